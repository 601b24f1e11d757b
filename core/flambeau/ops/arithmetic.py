"""Sums, products, quotients, powers and bits of two tensors, element by element."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ..dispatch.operator import composite, offer
from ..dispatch.pointwise import BOOL, FLOAT, pointwise, result_type
from ..dtype import bool_, dtype as Dtype, uint8
from ..errors import ArgumentTypeError, DtypeError, shown
from ..tensor import Tensor

__all__ = ["add", "add_scaled", "atan2", "div", "maximum", "minimum", "mul", "pow", "scale_of", "sub"]


# ---------------------------------------------------------------- sums


@pointwise(name="add", operator=("__add__", "__radd__"), method=False, namespaces=())
def plus(self: Tensor, other: Any) -> Tensor:
    """Return ``self + other``, broadcast together."""


plus.gradient(self=lambda grad: grad, other=lambda grad: grad)
plus.reference(np.add)


def _no_bool_difference(dtype: Dtype) -> str | None:
    if dtype is bool_:
        return (
            "Subtraction, the `-` operator, with two bool tensors is not supported. "
            "Use the `^` or `logical_xor()` operator instead"
        )
    return None


@pointwise(name="sub", operator="__sub__", method=False, namespaces=(), check=_no_bool_difference)
def minus(self: Tensor, other: Any) -> Tensor:
    """Return ``self - other``, broadcast together."""


minus.gradient(self=lambda grad: grad, other=lambda grad: -grad)
minus.reference(np.subtract)


@pointwise(method=False, namespaces=())
def add_scaled(self: Tensor, other: Any, alpha: Any) -> Tensor:
    """Return ``self + alpha * other``, broadcast together."""


add_scaled.gradient(
    self=lambda grad: grad, other=lambda grad, alpha: grad * alpha, alpha=lambda grad, other: grad * other
)
add_scaled.reference(lambda a, b, alpha: a + alpha * b)


def scale_of(name: str, alpha: Any, *operands: Any) -> Any:
    """``alpha`` as a number of the operands' common dtype: for bool a truth value, for uint8 its remainder by 256."""
    dtype = result_type(*operands)
    if isinstance(alpha, float) and dtype.category < 2:
        raise DtypeError(
            f"{name}(): For integral input tensors, argument alpha must not be a floating point number, got {shown(alpha)}.\n"
            "Convert a tensor to floating point, or use an integer."
        )
    if isinstance(alpha, bool) and dtype is not bool_:
        raise DtypeError(f"{name}(): Boolean alpha only supported for Boolean results, got {shown(alpha)}.")
    if dtype is bool_:
        return bool(alpha)
    return alpha % 256 if dtype is uint8 and isinstance(alpha, int) and -256 < alpha < 0 else alpha


def _negated(name: str, alpha: Any, *operands: Any) -> Any:
    scale_of(name, alpha, *operands)
    problem = _no_bool_difference(result_type(*operands))
    if problem:
        raise DtypeError(f"{name}(): {problem}.")
    return scale_of(name, -alpha, *operands)


def _only(legacy: tuple[Any, ...]) -> Any:
    if len(legacy) > 1:
        raise ArgumentTypeError(f"One or two operands are expected after the first, got {len(legacy) + 1}.")
    return legacy[0]


@offer()
def add(self: Any, other: Any, *legacy: Any, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """Return ``self + alpha * other``, broadcast together.

    Args:
        other: a tensor or a number.
        legacy: ``add(self, alpha, other)`` of old is understood as well.
        alpha: factor of ``other``.
        out: receives the result.

    Raises:
        RuntimeError: the shapes do not broadcast, or alpha is not of a kind with the tensors.
    """
    if legacy:
        alpha, other = other, _only(legacy)
    if type(alpha) is not int or alpha != 1:
        alpha = scale_of("add", alpha, self, other)
    if alpha == 1:
        return cast(Tensor, plus(self, other, out=out))
    return cast(Tensor, add_scaled(self, other, alpha, out=out))


@offer(name="add_", namespaces=())
def add_(self: Tensor, other: Any, *legacy: Any, alpha: Any = 1) -> Tensor:
    """In-place form of :func:`add`."""
    if legacy:
        alpha, other = other, _only(legacy)
    if type(alpha) is int and alpha == 1:
        return cast(Tensor, _plus_in_place(self, other))
    return cast(Tensor, _add_scaled_in_place(self, other, scale_of("add_", alpha, self, other)))


@offer()
def sub(self: Any, other: Any, *legacy: Any, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """Return ``self - alpha * other``, broadcast together; the arguments are those of :func:`add`."""
    if legacy:
        alpha, other = other, _only(legacy)
    if type(alpha) is int and alpha == 1:
        return cast(Tensor, minus(self, other, out=out))
    return cast(Tensor, add_scaled(self, other, _negated("sub", alpha, self, other), out=out))


@offer(name="sub_", namespaces=())
def sub_(self: Tensor, other: Any, *legacy: Any, alpha: Any = 1) -> Tensor:
    """In-place form of :func:`sub`."""
    if legacy:
        alpha, other = other, _only(legacy)
    if type(alpha) is int and alpha == 1:
        return cast(Tensor, _minus_in_place(self, other))
    return cast(Tensor, _add_scaled_in_place(self, other, _negated("sub_", alpha, self, other)))


@offer()
def rsub(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return ``other - alpha * self``, broadcast together."""
    return sub(other, self, alpha=alpha)


@offer(name="__rsub__", namespaces=())
def _rsub(self: Tensor, other: Any) -> Tensor:
    return cast(Tensor, minus(other, self))


_plus_in_place = cast(Any, plus.op).body_of_inplace
_minus_in_place = cast(Any, minus.op).body_of_inplace
_add_scaled_in_place = cast(Any, add_scaled.op).body_of_inplace

# ---------------------------------------------------------------- products and quotients


@pointwise(operator=("__mul__", "__rmul__"))
def mul(self: Tensor, other: Any) -> Tensor:
    """Return ``self * other``, broadcast together."""


mul.gradient(self=lambda grad, other: grad * other, other=lambda grad, self: grad * self)
mul.reference(np.multiply)


@pointwise(name="div", promote=FLOAT, operator="__truediv__", method=False, namespaces=())
def quotient(self: Tensor, other: Any) -> Tensor:
    """Return ``self / other``, broadcast together; integers give floating point."""


quotient.gradient(
    self=lambda grad, other: grad / other, other=lambda grad, self, other: -grad * ((self / other) / other)
)
quotient.reference(np.true_divide)


@pointwise(operator="__floordiv__")
def floor_divide(self: Tensor, other: Any) -> Tensor:
    """Return ``self // other``, broadcast together: the quotient rounded down.

    Raises:
        RuntimeError: an integer is divided by zero.
    """


floor_divide.gradient(self=lambda grad: grad.new_zeros(grad.shape), other=lambda grad: grad.new_zeros(grad.shape))
floor_divide.reference(np.floor_divide)


@pointwise(method=False, namespaces=())
def trunc_divide(self: Tensor, other: Any) -> Tensor:
    """The quotient rounded towards zero."""


trunc_divide.gradient(self=lambda grad: grad.new_zeros(grad.shape), other=lambda grad: grad.new_zeros(grad.shape))
trunc_divide.reference(lambda a, b: np.trunc(a / b).astype(np.result_type(a, b)))

_ROUNDINGS: dict[str | None, Any] = {None: quotient, "floor": floor_divide, "trunc": trunc_divide}


def _rounding(mode: str | None) -> Any:
    found = _ROUNDINGS.get(mode)
    if found is None:
        raise DtypeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found {shown(mode)}")
    return found


@offer()
def div(self: Any, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """Return ``self / other``, broadcast together.

    Args:
        rounding_mode: None for the true quotient, ``"floor"`` to round it down, ``"trunc"`` towards zero.
        out: receives the result.

    Raises:
        RuntimeError: the mode is unknown, or an integer is divided by zero with rounding.
    """
    return cast(Tensor, _rounding(rounding_mode)(self, other, out=out))


@offer(name="div_", namespaces=())
def div_(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """In-place form of :func:`div`."""
    return cast(Tensor, cast(Any, _rounding(rounding_mode).op).body_of_inplace(self, other))


@offer(name="__rtruediv__", namespaces=())
def _rdiv(self: Tensor, other: Any) -> Tensor:
    return cast(Tensor, quotient(other, self))


@offer(name="__rfloordiv__", namespaces=())
def _rfloordiv(self: Tensor, other: Any) -> Tensor:
    return cast(Tensor, floor_divide(other, self))


# Python 2's names, which old code still calls.
offer(name="__div__", namespaces=())(quotient)
offer(name="__rdiv__", namespaces=())(_rdiv)
offer(name="__idiv__", namespaces=())(div_)


@pointwise(operator="__mod__")
def remainder(self: Tensor, other: Any) -> Tensor:
    """Return ``self % other``, broadcast together, with the sign of ``other``.

    Raises:
        RuntimeError: an integer is divided by zero.
    """


remainder.gradient(self=lambda grad: grad, other=lambda grad, self, other: -grad * _rounded_ratio(self, other, "floor"))
remainder.reference(np.remainder)


@offer(name="__rmod__", namespaces=())
def _rmod(self: Tensor, other: Any) -> Tensor:
    return cast(Tensor, remainder(other, self))


@pointwise(tensor_first=True)
def fmod(self: Tensor, other: Any) -> Tensor:
    """What is left of ``self`` divided by ``other``, with the sign of ``self``.

    Raises:
        RuntimeError: an integer is divided by zero.
    """


fmod.gradient(self=lambda grad: grad, other=lambda grad, self, other: -grad * _rounded_ratio(self, other, "trunc"))
fmod.reference(np.fmod)


def _rounded_ratio(a: Any, b: Any, mode: str) -> Tensor:
    return div(a, b, rounding_mode=mode)


# ---------------------------------------------------------------- powers and angles


@pointwise(name="pow", operator="__pow__", method=False, namespaces=())
def power(self: Tensor, exponent: Any) -> Tensor:
    """Return ``self ** exponent``, broadcast together."""


def _power_gradient(grad: Any, base: Any, exponent: Any) -> Any:
    if not isinstance(exponent, Tensor):
        return grad.new_zeros(grad.shape) if exponent == 0 else grad * (exponent * base ** (exponent - 1))
    power_below: Any = cast(Any, exponent) - 1
    return (grad * (exponent * base**power_below)).masked_fill(cast(Any, exponent) == 0, 0)


def _exponent_gradient(grad: Any, base: Any, exponent: Any, result: Any) -> Any:
    if not isinstance(base, Tensor):
        logarithm = np.log(np.float64(base)) if base > 0 else -np.inf if base == 0 else np.nan
        slope = grad * (result * float(logarithm))
        return slope.masked_fill(exponent >= 0, 0) if base == 0 else slope
    base_ = cast(Any, base)
    return (grad * (result * base_.log())).masked_fill((base_ == 0) & (exponent >= 0), 0)


power.gradient(
    self=lambda grad, self, exponent: _power_gradient(grad, self, exponent),
    exponent=lambda grad, self, exponent, result: _exponent_gradient(grad, self, exponent, result),
)
power.reference(np.power)


def _check_power(base: Any, exponent: Any) -> None:
    if type(exponent) is int and exponent < 0 and isinstance(base, Tensor) and base.key.dtype.category < 2:
        raise DtypeError(
            f"Integers to negative integer powers are not allowed: {base.dtype.name}{list(base.shape)} ** {exponent}.\n"
            "Convert the base to floating point first."
        )


@offer(name="__pow__", namespaces=())
def _pow(self: Any, exponent: Any) -> Tensor:
    if type(exponent) is int and exponent < 0:
        _check_power(self, exponent)
    return cast(Tensor, power(self, exponent))


@offer()
def pow(self: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """Return ``self ** exponent``, broadcast together.

    Args:
        self: a tensor or a number.
        exponent: a tensor or a number.
        out: receives the result.

    Raises:
        RuntimeError: integers are raised to a negative integer.
    """
    _check_power(self, exponent)
    return cast(Tensor, power(self, exponent, out=out))


@offer(name="pow_", namespaces=())
def pow_(self: Tensor, exponent: Any) -> Tensor:
    """In-place form of :func:`pow`."""
    _check_power(self, exponent)
    return cast(Tensor, cast(Any, power.op).body_of_inplace(self, exponent))


offer(name="__ipow__", namespaces=())(pow_)


@offer(name="__rpow__", namespaces=())
def _rpow(self: Tensor, other: Any) -> Tensor:
    return cast(Tensor, power(other, self))


@pointwise(promote=FLOAT)
def atan2(self: Tensor, other: Any) -> Tensor:
    """The angle of the point (other, self), in [-pi, pi]."""


def _over_square(part: Any, y: Any, x: Any) -> Any:
    """A coordinate over the squared distance; 0 at the origin, which has no angle."""
    square = y * y + x * x
    return (part / square).masked_fill(square == 0, 0)


atan2.gradient(
    self=lambda grad, self, other: grad * _over_square(other, self, other),
    other=lambda grad, self, other: -grad * _over_square(self, self, other),
)
atan2.reference(np.arctan2)


@composite(inplace="xlogy_")
def xlogy(self: Any, other: Any) -> Tensor:
    """``self * log(other)``, and 0 where ``self`` is 0 (unless ``other`` is NaN)."""
    like: Any = self if isinstance(self, Tensor) else other
    if not isinstance(like, Tensor):
        raise ArgumentTypeError(f"xlogy() expects at least one tensor, got {shown(self)} and {shown(other)}.")
    a, b = (
        cast(Any, each if isinstance(each, Tensor) else cast(Any, like).new_full((), each)) for each in (self, other)
    )
    product = a * b.log()
    return product.masked_fill(((a == 0) & ~(b != b)).expand(product.shape), 0)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- the greater and the lesser


def _share(grad: Any, mine: Any, theirs: Any, sign: int) -> Any:
    """The gradient where mine was chosen; half of it where both are equal."""
    lost = mine < theirs if sign > 0 else mine > theirs
    tie = mine == theirs
    return (grad * (1 - 0.5 * tie.to(grad.dtype))).masked_fill(lost, 0)


@pointwise()
def maximum(self: Tensor, other: Any) -> Tensor:
    """The greater of two numbers; NaN if one is."""


maximum.gradient(
    self=lambda grad, self, other: _share(grad, self, other, 1),
    other=lambda grad, self, other: _share(grad, other, self, 1),
)
maximum.reference(np.maximum)


@pointwise()
def minimum(self: Tensor, other: Any) -> Tensor:
    """The lesser of two numbers; NaN if one is."""


minimum.gradient(
    self=lambda grad, self, other: _share(grad, self, other, -1),
    other=lambda grad, self, other: _share(grad, other, self, -1),
)
minimum.reference(np.minimum)

# ---------------------------------------------------------------- bits and truth values


@pointwise(operator=("__and__", "__rand__"))
def bitwise_and(self: Tensor, other: Any) -> Tensor:
    """The bits set in both; for bool, whether both are true."""


@pointwise(operator=("__or__", "__ror__"))
def bitwise_or(self: Tensor, other: Any) -> Tensor:
    """The bits set in either; for bool, whether one is true."""


@pointwise(operator=("__xor__", "__rxor__"))
def bitwise_xor(self: Tensor, other: Any) -> Tensor:
    """The bits set in just one; for bool, whether just one is true."""


@pointwise(operator="__lshift__")
def bitwise_left_shift(self: Tensor, other: Any) -> Tensor:
    """The bits moved up; zero from the type's width on."""


@pointwise(operator="__rshift__")
def bitwise_right_shift(self: Tensor, other: Any) -> Tensor:
    """The bits moved down, the sign filling in."""


@offer(name="__rlshift__", namespaces=())
def _rlshift(self: Tensor, other: Any) -> Tensor:
    return cast(Tensor, bitwise_left_shift(other, self))


@offer(name="__rrshift__", namespaces=())
def _rrshift(self: Tensor, other: Any) -> Tensor:
    return cast(Tensor, bitwise_right_shift(other, self))


@pointwise(promote=BOOL)
def logical_and(self: Tensor, other: Any) -> Tensor:
    """Whether both are not zero."""


@pointwise(promote=BOOL)
def logical_or(self: Tensor, other: Any) -> Tensor:
    """Whether one is not zero."""


@pointwise(promote=BOOL)
def logical_xor(self: Tensor, other: Any) -> Tensor:
    """Whether just one is not zero."""


for _each, _oracle in (
    (bitwise_and, np.bitwise_and), (bitwise_or, np.bitwise_or), (bitwise_xor, np.bitwise_xor),
    (bitwise_left_shift, np.left_shift), (bitwise_right_shift, np.right_shift),
    (logical_and, np.logical_and), (logical_or, np.logical_or), (logical_xor, np.logical_xor),
):  # fmt: skip
    _each.nondifferentiable()
    _each.reference(_oracle)
