"""Choosing and blending: where, clamp, lerp, and sums with products and quotients."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from ..dispatch.operator import offer, primitive
from ..dispatch.pointwise import finish_out, pointwise, result_type
from ..dtype import bool_, uint8
from ..errors import ArgumentTypeError, DtypeError, shown
from ..tensor import Tensor, constant

__all__ = ["addcdiv", "addcmul", "clamp", "lerp", "where"]


# ---------------------------------------------------------------- where


@primitive("self other condition |", name="where", method=False, namespaces=())
def select(self: Tensor, other: Tensor, condition: Tensor) -> Tensor:
    """``self`` where the condition holds, else ``other``; both of one dtype."""
    return cast(Tensor, select.run(self, other, condition))


select.reference(lambda a, b, condition: np.where(condition, a, b))


@offer(method=False)
def where(condition: Any, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:
    """Elements of ``input`` where the condition holds, else of ``other``, all broadcast together.

    With the condition alone: the indices where it holds, one tensor for each dimension.

    Args:
        condition: a bool tensor.
        input: a tensor or a number.
        other: a tensor or a number.
        out: receives the result.

    Raises:
        RuntimeError: the condition is not bool.
    """
    if not isinstance(condition, Tensor):
        raise ArgumentTypeError(f"where(): argument 'condition' must be Tensor, not {type(condition).__name__}.")
    if input is None and other is None:
        return cast(Any, condition).nonzero(as_tuple=True)
    if out is not None:
        return finish_out("where", out, (input, other), lambda: cast(Tensor, where(condition, input, other)))
    if condition.key.dtype is not bool_:
        if condition.key.dtype is not uint8:
            raise DtypeError(
                f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype.name}.\n"
                "Compare it first, for instance condition != 0."
            )
        condition = cast(Any, condition).to(bool_)
    key = condition.key.of(result_type(input, other))
    operands = []
    for each in (input, other):
        if not isinstance(each, Tensor):
            each = constant(key, each.item() if isinstance(each, np.generic) else each)
        elif each.key is not key:
            if each.key.device is not key.device and not each.geometry.ndim:
                each = cast(Any, each).to(key.device)
            each = cast(Any, each).to(key.dtype)
        operands.append(each)
    return select.run(*operands, condition)


select.gradient(
    self=lambda grad, condition: where(condition, grad, 0), other=lambda grad, condition: where(condition, 0, grad)
)


@offer(name="where", namespaces=())
def _where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """``self`` where the condition holds, else ``other``."""
    return cast(Tensor, where(condition, self, other))


# ---------------------------------------------------------------- clamp


@pointwise(name="clip_numbers", method=False, namespaces=())
def between(self: Tensor, low: Any, high: Any) -> Tensor:
    """Each element, or the nearest of two numbers ``low`` and ``high`` if it is beyond."""


between.reference(lambda a, low, high: np.minimum(np.maximum(a, low), high))


@pointwise(method=False, namespaces=(), inplace=False)
def between_backward(upstream: Tensor, self: Tensor, low: Any, high: Any) -> Tensor:
    """``upstream`` where ``low <= self <= high``, else 0."""


between.gradient(self=lambda grad, self, low, high: between_backward(grad, self, low, high))
between_backward.gradient(
    upstream=lambda grad, self, low, high: between_backward(grad, self, low, high),
    self=lambda grad: grad.new_zeros(grad.shape),
)
between_backward.reference(lambda g, a, low, high: np.where((a >= low) & (a <= high), g, 0))


@pointwise(name="clamp", method=False, namespaces=())
def between_tensors(self: Tensor, low: Any, high: Any) -> Tensor:
    """Each element, or the nearer bound if it is beyond; bounds are tensors, and the upper one wins."""


between_tensors.gradient(
    self=lambda grad, self, low, high: grad.masked_fill(~((self >= low) & (self <= high)), 0),
    low=lambda grad, self, low, high: grad.masked_fill(~((self < low) & (low < high)), 0),
    high=lambda grad, self, low, high: grad.masked_fill(~((self > high) | (high < low)), 0),
)
between_tensors.reference(lambda a, low, high: np.minimum(np.maximum(a, low), high))


def _clamp(self: Any, min: Any, max: Any, inplace: bool) -> Any:
    if min is None and max is None:
        raise DtypeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        if min is None or max is None:
            one_sided = self.maximum_ if inplace else self.maximum
            if min is None:
                one_sided = self.minimum_ if inplace else self.minimum
            return one_sided(max if min is None else min)
        return (
            cast(Any, between_tensors.op).body_of_inplace(self, min, max)
            if inplace
            else between_tensors(self, min, max)
        )
    if min is None or max is None:
        given = max if min is None else min
        if not (dtype := result_type(self, given)).is_floating_point:
            if dtype.is_complex:
                raise DtypeError(f"clamp is not supported for complex types, got {dtype.name}.")
            limits = np.iinfo(dtype.numpy) if dtype is not bool_ else None
            low, high = (limits.min, limits.max) if limits else (False, True)
        else:
            low, high = -math.inf, math.inf  # type: ignore[assignment]
        min, max = (low, max) if min is None else (min, high)
    return cast(Any, between.op).body_of_inplace(self, min, max) if inplace else between(self, min, max)


@offer()
def clamp(self: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Each element, or the nearer bound if it is beyond; where ``min > max``, ``max``.

    Args:
        min: lower bound, a number or a tensor.
        max: upper bound.
        out: receives the result.

    Raises:
        RuntimeError: no bound is given.
    """
    if out is not None:
        return finish_out("clamp", out, (self, min, max), lambda: cast(Tensor, _clamp(self, min, max, False)))
    return cast(Tensor, _clamp(self, min, max, False))


@offer(namespaces="")
def clamp_(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """In-place form of :func:`clamp`."""
    return cast(Tensor, _clamp(self, min, max, True))


offer(name="clip")(clamp)
offer(name="clip_")(clamp_)


@offer()
def clamp_min(self: Tensor, min: Any, *, out: Tensor | None = None) -> Tensor:
    """Each element, or ``min`` if it is less."""
    return clamp(self, min=min, out=out)


@offer()
def clamp_max(self: Tensor, max: Any, *, out: Tensor | None = None) -> Tensor:
    """Each element, or ``max`` if it is greater."""
    return clamp(self, max=max, out=out)


@offer()
def clamp_min_(self: Tensor, min: Any) -> Tensor:
    """In-place form of :func:`clamp_min`."""
    return clamp_(self, min=min)


@offer()
def clamp_max_(self: Tensor, max: Any) -> Tensor:
    """In-place form of :func:`clamp_max`."""
    return clamp_(self, max=max)


# ---------------------------------------------------------------- fused sums


@pointwise(name="addcmul", method=False, namespaces=())
def add_product(self: Tensor, tensor1: Any, tensor2: Any, value: Any) -> Tensor:
    """``self + value * tensor1 * tensor2``."""


add_product.gradient(
    self=lambda grad: grad,
    tensor1=lambda grad, tensor2, value: grad * (tensor2 * value),
    tensor2=lambda grad, tensor1, value: grad * (tensor1 * value),
    value=lambda grad, tensor1, tensor2: grad * tensor1 * tensor2,
)
add_product.reference(lambda a, b, c, value: a + value * b * c)


@pointwise(name="addcdiv", method=False, namespaces=())
def add_quotient(self: Tensor, tensor1: Any, tensor2: Any, value: Any) -> Tensor:
    """``self + value * tensor1 / tensor2``."""


add_quotient.gradient(
    self=lambda grad: grad,
    tensor1=lambda grad, tensor2, value: grad * value / tensor2,
    tensor2=lambda grad, tensor1, tensor2, value: -grad * (value * tensor1 / (tensor2 * tensor2)),
    value=lambda grad, tensor1, tensor2: grad * tensor1 / tensor2,
)
add_quotient.reference(lambda a, b, c, value: a + value * b / c)


def _fused(op: Any, self: Tensor, given: tuple[Any, ...], value: Any, out: Tensor | None, inplace: bool) -> Tensor:
    """addcmul and addcdiv, whose old form has the factor as second argument."""
    name = op.op.name
    if len(given) == 3:
        value, *given = given  # type: ignore[assignment]
    if len(given) != 2:
        raise ArgumentTypeError(
            f"{name}() takes the tensors input, tensor1 and tensor2, got {1 + len(given)} positional arguments."
        )
    dtype = result_type(self, *given)
    if dtype.category < 2 and name == "addcdiv":
        raise DtypeError(
            f"Integer division with addcdiv is no longer supported, got {dtype.name}.\nConvert a tensor to floating point first."
        )
    if isinstance(value, float) and dtype.category < 2:
        raise DtypeError(
            f"{name}(): value must not be a floating point number for {dtype.name} tensors, got {shown(value)}."
        )
    if inplace:
        return cast(Tensor, op.op.body_of_inplace(self, *given, value))
    return cast(Tensor, op(self, *given, value, out=out))


@offer()
def addcmul(self: Tensor, *tensors: Any, value: Any = 1, out: Tensor | None = None) -> Tensor:
    """``self + value * tensor1 * tensor2``, broadcast together: ``addcmul(self, tensor1, tensor2, value=1)``.

    Raises:
        RuntimeError: a floating-point value with integer tensors.
    """
    return _fused(add_product, self, tensors, value, out, False)


@offer(namespaces=())
def addcmul_(self: Tensor, *tensors: Any, value: Any = 1) -> Tensor:
    """In-place form of :func:`addcmul`."""
    return _fused(add_product, self, tensors, value, None, True)


@offer()
def addcdiv(self: Tensor, *tensors: Any, value: Any = 1, out: Tensor | None = None) -> Tensor:
    """``self + value * tensor1 / tensor2``, broadcast together: ``addcdiv(self, tensor1, tensor2, value=1)``.

    Raises:
        RuntimeError: the tensors are integers.
    """
    return _fused(add_quotient, self, tensors, value, out, False)


@offer(namespaces=())
def addcdiv_(self: Tensor, *tensors: Any, value: Any = 1) -> Tensor:
    """In-place form of :func:`addcdiv`."""
    return _fused(add_quotient, self, tensors, value, None, True)


# ---------------------------------------------------------------- lerp


@pointwise(name="lerp", method=False, namespaces=())
def blend(self: Tensor, end: Any, weight: Any) -> Tensor:
    """``self + weight * (end - self)``."""


blend.gradient(
    self=lambda grad, weight: grad * (1 - weight),
    end=lambda grad, weight: grad * weight,
    weight=lambda grad, self, end: grad * (end - self),
)
blend.reference(lambda a, b, weight: a + weight * (b - a))


def _same_dtype(self: Tensor, end: Any, weight: Any) -> None:
    for name, each in (("end", end), ("weight", weight)):
        if isinstance(each, Tensor) and each.key.dtype is not self.key.dtype:
            raise DtypeError(
                f"expected dtype {self.dtype.name} for `{name}` but got dtype {each.dtype.name} in lerp().\n"
                "Convert it to the dtype of the first tensor."
            )


@offer()
def lerp(self: Tensor, end: Tensor, weight: Any, *, out: Tensor | None = None) -> Tensor:
    """``self + weight * (end - self)``, broadcast together; exact at both ends.

    Args:
        end: where weight 1 leads.
        weight: a number or a tensor.
        out: receives the result.

    Raises:
        RuntimeError: the dtypes differ or are integers.
    """
    _same_dtype(self, end, weight)
    return cast(Tensor, blend(self, end, weight, out=out))


@offer(namespaces=())
def lerp_(self: Tensor, end: Tensor, weight: Any) -> Tensor:
    """In-place form of :func:`lerp`."""
    _same_dtype(self, end, weight)
    return cast(Tensor, cast(Any, blend.op).body_of_inplace(self, end, weight))
