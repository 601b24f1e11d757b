"""The non-linear functions of neural networks, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from ..dispatch.operator import offer
from ..dispatch.pointwise import pointwise
from ..errors import ArgumentError, ShapeError, shown
from ..tensor import Tensor, number_of
from .ternary import between, where

__all__ = [
    "celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid", "mish",
    "prelu", "relu", "relu6", "rrelu", "selu", "silu", "softplus", "softshrink", "softsign", "tanhshrink", "threshold",
]  # fmt: skip

_F: Final = "nn.functional"
# Klambauer et al., Self-Normalizing Neural Networks, 2017.
_SELU_ALPHA: Final = 1.6732632423543772848170429916717
_SELU_SCALE: Final = 1.0507009873554804934193349852946


def _in_place(op: Any) -> Callable[..., Tensor]:
    return cast(Callable[..., Tensor], cast(Any, op.op).body_of_inplace)


def _primitive(name: str) -> Callable[[Callable[..., Any]], Any]:
    """A pointwise operator behind a public function of its own."""
    return pointwise(name=name, method=False, namespaces=())


# ---------------------------------------------------------------- rectifiers


@pointwise(name="relu")
def rectify(self: Tensor) -> Tensor:
    """``max(x, 0)``."""


@_primitive("threshold_backward")
def threshold_backward(upstream: Tensor, self: Tensor, limit: Any) -> Tensor:
    """``upstream`` where ``self > limit``, else 0."""


threshold_backward.gradient(
    upstream=lambda grad, self, limit: threshold_backward(grad, self, limit),
    self=lambda grad: grad.new_zeros(grad.shape),
)
threshold_backward.reference(lambda g, a, limit: np.where(a <= limit, 0, g))
rectify.gradient(self=lambda grad, result: threshold_backward(grad, result, 0))
rectify.reference(lambda a: np.maximum(a, 0))


@offer(namespaces=_F, method=False)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(x, 0)``."""
    return _in_place(rectify)(input) if inplace else cast(Tensor, rectify(input))


@_primitive("threshold")
def above(self: Tensor, limit: Any, value: Any) -> Tensor:
    """``self`` where it is greater than ``limit``, else ``value``."""


above.gradient(self=lambda grad, self, limit: threshold_backward(grad, self, limit))
above.reference(lambda a, limit, value: np.where(a <= limit, value, a))


@offer(namespaces=("", _F), method=False)
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``x`` where it is greater than the threshold, else ``value``; both are numbers of the input's dtype."""
    threshold, value = number_of(input.dtype, threshold), number_of(input.dtype, value)
    return (_in_place(above) if inplace else above)(input, threshold, value)


@_primitive("leaky_relu")
def leaky(self: Tensor, slope: Any) -> Tensor:
    """``self`` where it is positive, else ``slope * self``."""


@_primitive("leaky_relu_backward")
def leaky_backward(upstream: Tensor, self: Tensor, slope: Any) -> Tensor:
    """``upstream`` where ``self`` is positive, else ``slope * upstream``."""


leaky_backward.gradient(
    upstream=lambda grad, self, slope: leaky_backward(grad, self, slope), self=lambda grad: grad.new_zeros(grad.shape)
)
leaky_backward.reference(lambda g, a, slope: np.where(a > 0, g, g * slope))
leaky.gradient(self=lambda grad, self, slope: leaky_backward(grad, self, slope))
leaky.reference(lambda a, slope: np.where(a > 0, a, a * slope))


@offer(namespaces=_F, method=False)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``x`` where it is positive, else ``negative_slope * x``."""
    return (_in_place(leaky) if inplace else leaky)(input, negative_slope)


@offer(namespaces=("", _F))
def prelu(self: Tensor, weight: Tensor) -> Tensor:
    """``x`` where it is positive, else ``weight * x``, with a weight for all or for each channel (dimension 1).

    Raises:
        RuntimeError: the number of weights is neither 1 nor that of the channels.
    """
    x, w = cast(Any, self), cast(Any, weight)
    if weight.ndim > 1 or (weight.geometry.numel != 1 and (self.ndim < 2 or weight.geometry.numel != self.shape[1])):
        raise ShapeError(
            f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.geometry.numel} "
            f"(shape {list(weight.shape)}) and input of shape {list(self.shape)}."
        )
    if weight.geometry.numel != 1:
        w = w.reshape([-1 if dim == 1 else 1 for dim in range(self.ndim)])
    elif weight.ndim > self.ndim:
        w = w.reshape(())
    return cast(Tensor, where(x > 0, x, w * x))


@offer(namespaces=("", _F), method=False)
def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """A leaky rectifier whose slope is drawn from [lower, upper) for each element in training, else is their mean."""
    if not lower <= upper:
        raise ShapeError(f"rrelu: lower bound {lower} is greater than upper bound {upper}.")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slope = cast(Any, input).new_empty(input.shape).uniform_(lower, upper)
    result = where(cast(Any, input) > 0, input, cast(Any, input) * slope)
    return cast(Any, input).copy_(result) if inplace else cast(Tensor, result)


@_primitive("hardtanh_backward")
def inside(upstream: Tensor, self: Tensor, low: Any, high: Any) -> Tensor:
    """``upstream`` where ``low < self < high``, else 0."""


inside.gradient(
    upstream=lambda grad, self, low, high: inside(grad, self, low, high), self=lambda grad: grad.new_zeros(grad.shape)
)
inside.reference(lambda g, a, low, high: np.where((a > low) & (a < high), g, 0))


@_primitive("hardtanh")
def cut(self: Tensor, low: Any, high: Any) -> Tensor:
    """``self``, or the nearer bound beyond it; unlike that of clamp, the gradient at a bound itself is 0."""


cut.composite(between)
cut.gradient(self=lambda grad, self, low, high: inside(grad, self, low, high))
cut.reference(lambda a, low, high: np.minimum(np.maximum(a, low), high))


@offer(namespaces=_F, method=False)
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` cut off at both bounds.

    Raises:
        ValueError: the bounds cross.
    """
    if min_val > max_val:
        raise ArgumentError(f"min_val cannot be greater than max_val, got {min_val} and {max_val}.")
    if input.key.dtype.category < 2:
        min_val, max_val = int(min_val), int(max_val)
    return (_in_place(cut) if inplace else cut)(input, min_val, max_val)


@offer(namespaces=_F, method=False)
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(x, 0), 6)``."""
    return hardtanh(input, 0.0, 6.0, inplace)


# ---------------------------------------------------------------- exponential units


@_primitive("elu")
def exponential(self: Tensor, negative: Any, scale: Any, input_scale: Any) -> Tensor:
    """``scale * x`` where x is positive, else ``negative * (exp(input_scale * x) - 1)``."""


exponential.gradient(
    self=lambda grad, self, negative, scale, input_scale: (
        grad * where(self > 0, scale, (self.clamp(max=0) * input_scale).exp() * (negative * input_scale))
    )
)
exponential.reference(
    lambda a, negative, scale, input_scale: np.where(
        a > 0, a * scale, np.expm1(np.minimum(a * input_scale, 0)) * negative
    )
)


def _exponential(input: Tensor, inplace: bool, *parameters: float) -> Tensor:
    return (_in_place(exponential) if inplace else exponential)(input, *parameters)


@offer(namespaces=_F, method=False)
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``."""
    return _exponential(input, inplace, float(alpha), 1.0, 1.0)


@offer(namespaces=("", _F), method=False)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The self-normalising exponential unit (Klambauer et al., 2017)."""
    return _exponential(input, inplace, _SELU_ALPHA * _SELU_SCALE, _SELU_SCALE, 1.0)


@offer(namespaces=("", _F), method=False)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` where it is positive, else ``alpha * (exp(x / alpha) - 1)``."""
    if alpha == 0:
        raise ShapeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _exponential(input, inplace, float(alpha), 1.0, 1.0 / alpha)


# ---------------------------------------------------------------- smooth units


@_primitive("softplus")
def smooth_relu(self: Tensor, beta: Any, limit: Any) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``; x itself where ``beta * x`` exceeds the limit."""


@_primitive("softplus_backward")
def softplus_backward(upstream: Tensor, self: Tensor, beta: Any, limit: Any) -> Tensor:
    """The gradient of softplus."""


softplus_backward.gradient(
    upstream=lambda grad, self, beta, limit: softplus_backward(grad, self, beta, limit),
    self=lambda grad, upstream, self, beta, limit: (
        grad * upstream * where(self * beta > limit, 0, (self * beta).sigmoid() * (-self * beta).sigmoid() * beta)
    ),
)
softplus_backward.reference(lambda g, a, beta, limit: np.where(a * beta > limit, g, g / (1 + np.exp(-a * beta))))
smooth_relu.gradient(self=lambda grad, self, beta, limit: softplus_backward(grad, self, beta, limit))
smooth_relu.reference(lambda a, beta, limit: np.where(a * beta > limit, a, np.logaddexp(0, a * beta) / beta))


@offer(namespaces=_F, method=False)
def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``, and ``x`` itself where ``beta * x`` exceeds the threshold."""
    return cast(Tensor, smooth_relu(input, float(beta), float(threshold)))


@_primitive("logsigmoid")
def log_sigmoid(self: Tensor) -> Tensor:
    """``log(1 / (1 + exp(-x)))``."""


@_primitive("logsigmoid_backward")
def logsigmoid_backward(upstream: Tensor, self: Tensor) -> Tensor:
    """``upstream * sigmoid(-self)``."""


logsigmoid_backward.gradient(
    upstream=lambda grad, self: logsigmoid_backward(grad, self),
    self=lambda grad, upstream, self: -grad * upstream * (self.sigmoid() * (-self).sigmoid()),
)
logsigmoid_backward.reference(lambda g, a: g / (1 + np.exp(a)))
log_sigmoid.gradient(self=lambda grad, self: logsigmoid_backward(grad, self))
log_sigmoid.reference(lambda a: -np.logaddexp(0, -a))


@offer(namespaces=_F, method=False)
def logsigmoid(input: Tensor) -> Tensor:
    """The logarithm of the sigmoid."""
    return cast(Tensor, log_sigmoid(input))


def _normal_slope(x: Any) -> Any:
    """The derivative of gelu: the normal distribution function plus x times its density."""
    return 0.5 * (1 + (x * 0.7071067811865476).erf()) + x * ((x * x * -0.5).exp() * 0.3989422804014327)


def _tanh_slope(x: Any) -> Any:
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    bend = inner.tanh()
    return 0.5 * (1 + bend) + 0.5 * x * (1 - bend * bend) * (0.7978845608028654 * (1 + 3 * 0.044715 * x * x))


@_primitive("gelu")
def gauss(self: Tensor) -> Tensor:
    """``x`` times the normal distribution function of x."""


@_primitive("gelu_tanh")
def gauss_tanh(self: Tensor) -> Tensor:
    """Hendrycks and Gimpel's approximation of gelu by tanh (2016)."""


gauss.gradient(self=lambda grad, self: grad * _normal_slope(self))
gauss_tanh.gradient(self=lambda grad, self: grad * _tanh_slope(self))


@offer(namespaces=_F, method=False)
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """``x`` times the normal distribution function of ``x``, or its approximation by ``"tanh"``.

    Raises:
        RuntimeError: ``approximate`` is neither ``"none"`` nor ``"tanh"``.
    """
    if approximate not in ("none", "tanh"):
        raise ShapeError(f"approximate argument must be either none or tanh, got {shown(approximate)}.")
    return cast(Tensor, gauss(input) if approximate == "none" else gauss_tanh(input))


@_primitive("silu")
def swish(self: Tensor) -> Tensor:
    """``x * sigmoid(x)``."""


def _silu_gradient(grad: Any, self: Any) -> Any:
    s = self.sigmoid()
    return grad * (s * (1 + self * (1 - s)))


swish.gradient(self=_silu_gradient)
swish.reference(lambda a: a / (1 + np.exp(-a)))


@offer(namespaces=_F, method=False)
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``."""
    return _in_place(swish)(input) if inplace else cast(Tensor, swish(input))


@offer(namespaces=_F, method=False)
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))`` (Misra, 2019)."""
    result = cast(Any, input) * cast(Any, softplus(input)).tanh()
    return cast(Any, input).copy_(result) if inplace else result  # type: ignore[no-any-return]


@offer(namespaces=_F, method=False)
def softsign(input: Tensor) -> Tensor:
    """``x / (1 + |x|)``."""
    x = cast(Any, input)
    return x / (x.abs() + 1)  # type: ignore[no-any-return]


@offer(namespaces=_F, method=False)
def tanhshrink(input: Tensor) -> Tensor:
    """``x - tanh(x)``."""
    x = cast(Any, input)
    return x - x.tanh()  # type: ignore[no-any-return]


@offer(namespaces=_F, method=False)
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(x + 3, 0), 6) / 6``."""
    result = (cast(Any, input) + 3.0).clamp(0.0, 6.0) / 6.0
    return cast(Any, input).copy_(result) if inplace else result  # type: ignore[no-any-return]


@offer(namespaces=_F, method=False)
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * min(max(x + 3, 0), 6) / 6`` (Howard et al., 2019)."""
    result = cast(Any, input) * ((cast(Any, input) + 3.0).clamp(0.0, 6.0) / 6.0)
    return cast(Any, input).copy_(result) if inplace else result  # type: ignore[no-any-return]


# ---------------------------------------------------------------- shrinkage


@_primitive("hardshrink_backward")
def outside(upstream: Tensor, self: Tensor, limit: Any) -> Tensor:
    """``upstream`` where ``|self| > limit``, else 0."""


outside.gradient(
    upstream=lambda grad, self, limit: outside(grad, self, limit), self=lambda grad: grad.new_zeros(grad.shape)
)
outside.reference(lambda g, a, limit: np.where((a >= -limit) & (a <= limit), 0, g))


@_primitive("hardshrink")
def hard(self: Tensor, limit: Any) -> Tensor:
    """``self`` where its absolute value exceeds the limit, else 0."""


@_primitive("softshrink")
def soft(self: Tensor, limit: Any) -> Tensor:
    """``self`` moved towards zero by the limit, and 0 where it would cross it."""


hard.gradient(self=lambda grad, self, limit: outside(grad, self, limit))
hard.reference(lambda a, limit: np.where((a >= -limit) & (a <= limit), 0, a))
soft.gradient(self=lambda grad, self, limit: outside(grad, self, limit))
soft.reference(lambda a, limit: np.sign(a) * np.maximum(np.abs(a) - limit, 0))


@offer(namespaces=("", _F))
def hardshrink(self: Tensor, lambd: float = 0.5) -> Tensor:
    """``x`` where ``|x| > lambd``, else 0."""
    return cast(Tensor, hard(self, float(lambd)))


@offer(namespaces=_F, method=False)
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``x`` moved towards zero by ``lambd``, and 0 where it would cross it.

    Raises:
        RuntimeError: ``lambd`` is negative.
    """
    if lambd < 0:
        raise ShapeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return cast(Tensor, soft(input, float(lambd)))


@offer(namespaces=_F, method=False)
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of a dimension times the sigmoid of the second.

    Raises:
        RuntimeError: the dimension's size is odd, or there is none.
    """
    if not input.ndim:
        raise ShapeError("glu does not support 0-dimensional tensors")
    size = cast(Any, input).size(dim)
    if size % 2:
        raise ShapeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    values, gates = (cast(Any, input).narrow(dim, start, size // 2) for start in (0, size // 2))
    return values * gates.sigmoid()  # type: ignore[no-any-return]


offer(name="threshold_", namespaces=_F, method=False)(_in_place(above))


@offer(namespaces=_F, method=False)
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """In-place form of :func:`leaky_relu`."""
    return leaky_relu(input, negative_slope, True)


@offer(namespaces=_F, method=False)
def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """In-place form of :func:`hardtanh`."""
    return hardtanh(input, min_val, max_val, True)


@offer(namespaces=("", _F), method=False)
def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """In-place form of :func:`rrelu`."""
    return rrelu(input, lower, upper, training, True)


@offer(namespaces=("", _F), method=False)
def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place form of :func:`celu`."""
    return celu(input, alpha, True)


@offer(name="relu_", namespaces=("", _F), method=False)
def relu_(input: Tensor) -> Tensor:
    """In-place form of :func:`relu`."""
    return _in_place(rectify)(input)


@offer(namespaces=_F, method=False)
def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place form of :func:`elu`."""
    return elu(input, alpha, True)


@offer(namespaces=("", _F), method=False)
def selu_(input: Tensor) -> Tensor:
    """In-place form of :func:`selu`."""
    return selu(input, True)
