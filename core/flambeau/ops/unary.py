"""Operators on one tensor, element by element: signs, rounding, elementary functions, predicates."""

from __future__ import annotations

import math
from typing import Any, Final, cast

import numpy as np

from ..dispatch.operator import composite, offer
from ..dispatch.pointwise import BOOL, FLOAT, finish_out, pointwise
from ..dtype import bool_, dtype as Dtype
from ..errors import ArgumentError, shown
from ..tensor import Tensor

__all__ = [
    "abs_", "acos", "asin", "atan", "bitwise_not", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac",
    "isfinite", "isinf", "isnan", "log", "log1p", "log2", "log10", "logical_not", "neg", "reciprocal", "round_", "rsqrt",
    "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
]  # fmt: skip

_TWO_OVER_ROOT_PI: Final = 2 / math.sqrt(math.pi)


def _no_bool(dtype: Dtype) -> str | None:
    if dtype is bool_:
        return (
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead"
        )
    return None


# ---------------------------------------------------------------- signs and powers


@pointwise(operator="__neg__", check=_no_bool)
def neg(self: Tensor) -> Tensor:
    """The number with the opposite sign."""


neg.gradient(self=lambda grad: -grad)
neg.reference(np.negative)


@pointwise(name="abs", operator="__abs__")
def abs_(self: Tensor) -> Tensor:
    """The absolute value."""


abs_.gradient(self=lambda grad, self: grad * self.sign())
abs_.reference(np.abs)


@pointwise()
def sign(self: Tensor) -> Tensor:
    """-1, 0 or 1; 0 for NaN."""


sign.gradient(self=lambda grad: grad.new_zeros(grad.shape))
sign.reference(lambda a: (np.int8(1) * (a > 0) - (a < 0)).astype(a.dtype))


@pointwise(promote=FLOAT)
def reciprocal(self: Tensor) -> Tensor:
    """One over each element."""


reciprocal.gradient(self=lambda grad, result: -grad * result * result)
reciprocal.reference(np.reciprocal)


@composite(inplace="square_")
def square(self: Tensor) -> Tensor:
    """Each element times itself."""
    return cast(Any, self).pow(2)  # type: ignore[no-any-return]


@pointwise(promote=FLOAT)
def sqrt(self: Tensor) -> Tensor:
    """The square root; NaN below zero."""


sqrt.gradient(self=lambda grad, result: grad / (2 * result))
sqrt.reference(np.sqrt)


@pointwise(promote=FLOAT)
def rsqrt(self: Tensor) -> Tensor:
    """One over the square root."""


rsqrt.gradient(self=lambda grad, result: -0.5 * grad * result.pow(3))
rsqrt.reference(lambda a: 1 / np.sqrt(a))

# ---------------------------------------------------------------- rounding


@pointwise()
def floor(self: Tensor) -> Tensor:
    """The largest integer that is not greater."""


floor.gradient(self=lambda grad: grad.new_zeros(grad.shape))
floor.reference(np.floor)


@pointwise()
def ceil(self: Tensor) -> Tensor:
    """The smallest integer that is not less."""


ceil.gradient(self=lambda grad: grad.new_zeros(grad.shape))
ceil.reference(np.ceil)


@pointwise()
def trunc(self: Tensor) -> Tensor:
    """The integer part, rounding towards zero."""


trunc.gradient(self=lambda grad: grad.new_zeros(grad.shape))
trunc.reference(np.trunc)


@pointwise(name="round", method=False, namespaces=())
def round_(self: Tensor) -> Tensor:
    """The nearest integer; of two, the even one."""


round_.gradient(self=lambda grad: grad.new_zeros(grad.shape))
round_.reference(np.rint)


@offer(name="round")
def round_to(self: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """The nearest multiple of ``10 ** -decimals``; of two, the even one."""
    if not decimals or self.key.dtype.category < 2:
        return cast(Tensor, round_(self, out=out))
    if abs(decimals) > 308:
        raise ArgumentError(f"round(): decimals lies in -308 to 308, got {shown(decimals)}.")
    scale: Any = 10 ** abs(decimals)

    def scaled() -> Tensor:
        return cast(Tensor, round_(self * scale) / scale if decimals > 0 else round_(self / scale) * scale)

    return scaled() if out is None else finish_out("round", out, (self,), scaled)


@offer(name="round_", namespaces=())
def round_to_(self: Tensor, *, decimals: int = 0) -> Tensor:
    """In-place form of :func:`round`."""
    if not decimals:
        return cast(Tensor, cast(Any, round_.op).body_of_inplace(self))
    return cast(Any, self).copy_(round_to(self, decimals=decimals))  # type: ignore[no-any-return]


@pointwise()
def frac(self: Tensor) -> Tensor:
    """What :func:`trunc` takes away: the fraction with the sign of the number."""


frac.gradient(self=lambda grad: grad)
frac.reference(lambda a: a - np.trunc(a))

# ---------------------------------------------------------------- exponentials and logarithms


@pointwise(promote=FLOAT)
def exp(self: Tensor) -> Tensor:
    """e to the power of each element."""


exp.gradient(self=lambda grad, result: grad * result)
exp.reference(np.exp)


@pointwise(promote=FLOAT)
def expm1(self: Tensor) -> Tensor:
    """``exp(x) - 1``, exact near zero."""


expm1.gradient(self=lambda grad, result: grad * (result + 1))
expm1.reference(np.expm1)


@pointwise(promote=FLOAT)
def log(self: Tensor) -> Tensor:
    """The natural logarithm; NaN below zero."""


log.gradient(self=lambda grad, self: grad / self)
log.reference(np.log)


@pointwise(promote=FLOAT)
def log1p(self: Tensor) -> Tensor:
    """``log(1 + x)``, exact near zero."""


log1p.gradient(self=lambda grad, self: grad / (self + 1))
log1p.reference(np.log1p)


@pointwise(promote=FLOAT)
def log2(self: Tensor) -> Tensor:
    """The logarithm to base 2."""


log2.gradient(self=lambda grad, self: grad / (self * math.log(2)))
log2.reference(np.log2)


@pointwise(promote=FLOAT)
def log10(self: Tensor) -> Tensor:
    """The logarithm to base 10."""


log10.gradient(self=lambda grad, self: grad / (self * math.log(10)))
log10.reference(np.log10)


@pointwise(promote=FLOAT, namespaces=("", "nn.functional"))
def sigmoid(self: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))``."""


sigmoid.reference(lambda a: 1 / (1 + np.exp(-a)))


@pointwise(method=False, namespaces=(), inplace=False)
def sigmoid_backward(upstream: Tensor, output: Tensor) -> Tensor:
    """``upstream * (1 - output) * output``: the gradient of :func:`sigmoid`."""


sigmoid.gradient(self=lambda grad, result: sigmoid_backward(grad, result))
sigmoid_backward.gradient(
    upstream=lambda grad, output: sigmoid_backward(grad, output),
    output=lambda grad, upstream, output: grad * upstream * (1 - 2 * output),
)
sigmoid_backward.reference(lambda upstream, output: upstream * (1 - output) * output)


@pointwise(promote=FLOAT, namespaces=("", "nn.functional"))
def tanh(self: Tensor) -> Tensor:
    """The hyperbolic tangent."""


tanh.reference(np.tanh)


@pointwise(method=False, namespaces=(), inplace=False)
def tanh_backward(upstream: Tensor, output: Tensor) -> Tensor:
    """``upstream * (1 - output ** 2)``: the gradient of :func:`tanh`."""


tanh.gradient(self=lambda grad, result: tanh_backward(grad, result))
tanh_backward.gradient(
    upstream=lambda grad, output: tanh_backward(grad, output),
    output=lambda grad, upstream, output: grad * upstream * (-2 * output),
)
tanh_backward.reference(lambda upstream, output: upstream * (1 - output * output))


@pointwise(promote=FLOAT)
def sinh(self: Tensor) -> Tensor:
    """The hyperbolic sine."""


sinh.gradient(self=lambda grad, self: grad * self.cosh())
sinh.reference(np.sinh)


@pointwise(promote=FLOAT)
def cosh(self: Tensor) -> Tensor:
    """The hyperbolic cosine."""


cosh.gradient(self=lambda grad, self: grad * self.sinh())
cosh.reference(np.cosh)

# ---------------------------------------------------------------- trigonometry


@pointwise(promote=FLOAT)
def sin(self: Tensor) -> Tensor:
    """The sine of an angle in radians."""


sin.gradient(self=lambda grad, self: grad * self.cos())
sin.reference(np.sin)


@pointwise(promote=FLOAT)
def cos(self: Tensor) -> Tensor:
    """The cosine of an angle in radians."""


cos.gradient(self=lambda grad, self: -grad * self.sin())
cos.reference(np.cos)


@pointwise(promote=FLOAT)
def tan(self: Tensor) -> Tensor:
    """The tangent of an angle in radians."""


tan.gradient(self=lambda grad, result: grad * (result * result + 1))
tan.reference(np.tan)


@pointwise(promote=FLOAT)
def asin(self: Tensor) -> Tensor:
    """The angle in [-pi/2, pi/2] with this sine; NaN outside [-1, 1]."""


asin.gradient(self=lambda grad, self: grad * (1 - self * self).rsqrt())
asin.reference(np.arcsin)


@pointwise(promote=FLOAT)
def acos(self: Tensor) -> Tensor:
    """The angle in [0, pi] with this cosine; NaN outside [-1, 1]."""


acos.gradient(self=lambda grad, self: -grad * (1 - self * self).rsqrt())
acos.reference(np.arccos)


@pointwise(promote=FLOAT)
def atan(self: Tensor) -> Tensor:
    """The angle in (-pi/2, pi/2) with this tangent."""


atan.gradient(self=lambda grad, self: grad / (self * self + 1))
atan.reference(np.arctan)

# ---------------------------------------------------------------- error function


@pointwise(promote=FLOAT)
def erf(self: Tensor) -> Tensor:
    """The error function."""


erf.gradient(self=lambda grad, self: grad * (_TWO_OVER_ROOT_PI * (-self * self).exp()))
erf.reference(np.vectorize(math.erf, otypes=[float]))


@pointwise(promote=FLOAT)
def erfc(self: Tensor) -> Tensor:
    """``1 - erf(x)``, exact in the tail."""


erfc.gradient(self=lambda grad, self: grad * (-_TWO_OVER_ROOT_PI * (-self * self).exp()))
erfc.reference(np.vectorize(math.erfc, otypes=[float]))

# ---------------------------------------------------------------- truth values and bits


@pointwise(promote=BOOL)
def logical_not(self: Tensor) -> Tensor:
    """Whether each element is zero."""


logical_not.nondifferentiable()
logical_not.reference(np.logical_not)


@pointwise(operator="__invert__")
def bitwise_not(self: Tensor) -> Tensor:
    """The bits inverted; for bool, the opposite."""


bitwise_not.nondifferentiable()
bitwise_not.reference(np.bitwise_not)


@pointwise(promote=BOOL, inplace=False)
def isnan(self: Tensor) -> Tensor:
    """Whether each element is not a number."""


isnan.nondifferentiable()
isnan.reference(np.isnan)


@pointwise(promote=BOOL, inplace=False)
def isinf(self: Tensor) -> Tensor:
    """Whether each element is an infinity."""


isinf.nondifferentiable()
isinf.reference(np.isinf)


@pointwise(promote=BOOL, inplace=False)
def isfinite(self: Tensor) -> Tensor:
    """Whether each element is neither an infinity nor NaN."""


isfinite.nondifferentiable()
isfinite.reference(np.isfinite)
