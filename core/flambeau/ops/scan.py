"""Running sums, products and extremes along one dimension."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, cast

import numpy as np

from ..autograd.grad_mode import mode
from ..dispatch.operator import primitive
from ..dispatch.pointwise import finish_out, finish_outs
from ..dtype import default, dtype as Dtype, int64
from ..errors import ShapeError
from ..geometry import axis
from ..tensor import Tensor
from .conversion import cast_to

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "logcumsumexp", "recurrence"]


def _widened(self: Tensor, dtype: Dtype | None) -> tuple[Tensor, Dtype | None]:
    """The operand in the dtype that is added up, and what to convert the result to."""
    wanted = dtype or (self.key.dtype if self.key.dtype.category >= 2 else int64)
    if dtype is not None and dtype.category < 2 and self.key.dtype.category >= 2:
        self = cast_to(self, dtype)
    working = wanted if wanted.category >= 2 else int64
    if self.key.dtype is not working:
        self = cast_to.run(self, working)
    return self, None if wanted is working else wanted


@primitive("self | dim", inplace="cumsum_")
def cumsum(self: Tensor, dim: int, *, dtype: Dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The running sum along a dimension: element i is the sum of elements 0 to i.

    Args:
        dim: the dimension.
        dtype: of the result; integers and bool give int64.
        out: receives the result.
    """
    if out is not None:
        return finish_out("cumsum", out, (self,), lambda: cast(Tensor, cumsum(self, dim, dtype=dtype)))
    dim = axis(dim, self.geometry.ndim)
    self, finally_ = _widened(self, dtype)
    result = cumsum.run(self, dim)
    return cast(Tensor, result if finally_ is None else cast_to.run(result, finally_))


def _reverse_cumsum(grad: Any, dim: int) -> Any:
    return grad.new_ones(()).expand(grad.shape).recurrence(grad, dim, True, False)


cumsum.gradient(self=_reverse_cumsum)
cumsum.reference(lambda a, dim: np.cumsum(a, axis=dim, dtype=a.dtype) if a.ndim else a)


@primitive("self | dim", inplace="cumprod_")
def cumprod(self: Tensor, dim: int, *, dtype: Dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The running product along a dimension: element i is the product of elements 0 to i.

    Args:
        dim: the dimension.
        dtype: of the result; integers and bool give int64.
        out: receives the result.
    """
    if out is not None:
        return finish_out("cumprod", out, (self,), lambda: cast(Tensor, cumprod(self, dim, dtype=dtype)))
    dim = axis(dim, self.geometry.ndim)
    self, finally_ = _widened(self, dtype)
    result = cumprod.run(self, dim)
    return cast(Tensor, result if finally_ is None else cast_to.run(result, finally_))


def _cumprod_gradient(grad: Any, self: Any, dim: int) -> Any:
    """d/dx_k = (product before k) * sum over i >= k of grad_i (product after k up to i); holds at zeros too."""
    if not self.ndim or not self.numel():
        return grad
    first = self.new_zeros(self.shape)
    first.narrow(dim, 0, 1).fill_(1)
    return self.recurrence(first, dim, False, False) * self.recurrence(grad, dim, True, False)


cumprod.gradient(self=_cumprod_gradient)
cumprod.reference(lambda a, dim: np.cumprod(a, axis=dim, dtype=a.dtype) if a.ndim else a)


@primitive("self drive | dim reverse own", namespaces=())
def recurrence(self: Tensor, drive: Tensor, dim: int, reverse: bool, own: bool) -> Tensor:
    """Solve ``y[i] = drive[i] + c * y[i-1]`` along a dimension, from ``y[-1] = 0``.

    The coefficient c is ``self[i]`` if ``own``, else ``self[i-1]``.  In reverse, ``i+1`` stands for ``i-1``.
    The gradient of a recurrence is the recurrence of the other direction, whose coefficients
    are taken at the other end; products and their gradients are recurrences too.

    Raises:
        RuntimeError: the two differ in shape or dtype.
    """
    if self.key is not drive.key or self.geometry.shape != drive.geometry.shape:
        raise ShapeError(
            f"recurrence: expected two tensors of one shape and dtype, got {self.dtype.name} {list(self.shape)} and "
            f"{drive.dtype.name} {list(drive.shape)}."
        )
    dim = axis(dim, self.geometry.ndim)
    return cast(Tensor, recurrence.run(self, drive, dim, reverse, own))


def _shifted(values: Any, dim: int, back: bool) -> Any:
    """``values[i-1]`` at i with a zero first, or ``values[i+1]`` with a zero last."""
    size = values.shape[dim]
    result = values.new_zeros(values.shape)
    if size < 2:
        return result
    return result.slice_scatter(values.narrow(dim, 0 if back else 1, size - 1), dim, int(back), size - 1 + int(back))


def _recurrence_gradients(
    needs: tuple[bool, ...], grad: Any, self: Any, dim: int, reverse: bool, own: bool, result: Any
) -> Any:
    if not grad.ndim or not grad.numel():
        return None, grad
    drive = self.recurrence(grad, dim, not reverse, not own)
    if not needs[0]:
        return None, drive
    if own:
        return drive * _shifted(result, dim, not reverse), drive
    return _shifted(drive, dim, reverse) * result, drive


recurrence.gradients(_recurrence_gradients)


def _numpy_recurrence(c: Any, drive: Any, dim: int, reverse: bool, own: bool) -> Any:
    if not drive.ndim:
        return drive
    c, drive = np.moveaxis(c, dim, 0), np.moveaxis(drive, dim, 0)
    result = np.array(drive)
    order = range(len(drive))[::-1] if reverse else range(len(drive))
    for last, i in zip(order, order[1:], strict=False):
        result[i] += c[i if own else last] * result[last]
    return np.moveaxis(result, 0, dim)


recurrence.reference(_numpy_recurrence)


def _running_extreme(name: str, meaning: str) -> Any:
    pair: Any = namedtuple(name, "values indices")  # type: ignore[misc]

    def running(self: Tensor, dim: int, *, out: Any = None) -> Any:
        if out is not None:
            return finish_outs(name, out, (self,), lambda: declared(self, dim))
        return pair(*declared.run(self, axis(dim, self.geometry.ndim)))

    running.__name__ = running.__qualname__ = name
    running.__doc__ = f"""The {meaning} so far along a dimension and its index, as a pair (values, indices).

    Of equal elements the last counts; NaN is the extreme from where it stands on.

    Args:
        dim: the dimension.
        out: a pair that receives the result.
    """
    declared = primitive("self | dim", name=name)(running)
    declared.gradient(
        self=lambda grad, self_shape, dim, others: (
            grad.new_zeros(self_shape).scatter_add(dim, others[0], grad) if self_shape else grad
        )
    )
    return declared


cummax = _running_extreme("cummax", "largest element")
cummin = _running_extreme("cummin", "least element")


@primitive("self | dim")
def logcumsumexp(self: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the running sum of exponentials along a dimension, without overflow.

    Args:
        dim: the dimension.
        out: receives the result.
    """
    if out is not None:
        return finish_out("logcumsumexp", out, (self,), lambda: cast(Tensor, logcumsumexp(self, dim)))
    dim = axis(dim, self.geometry.ndim)
    if self.key.dtype.category < 2:
        self = cast_to.run(self, default.dtype)
    return cast(Tensor, logcumsumexp.run(self, dim))


def _logcumsumexp_gradient(grad: Any, self: Any, dim: int, result: Any) -> Any:
    """exp(x_k) * sum over i >= k of grad_i exp(-result_i)."""
    if mode.enabled or not self.ndim:
        return _reverse_cumsum(grad * (-result).exp(), dim) * self.exp()
    # By logarithms, for each sign apart: exp(-result) may overflow.
    parts = []
    for sign in (1, -1):
        logs = (grad * sign).clamp(min=0).log() - result
        parts.append((logs.flip(dim).logcumsumexp(dim).flip(dim) + self).exp())
    return parts[0] - parts[1]


logcumsumexp.gradient(self=_logcumsumexp_gradient)
logcumsumexp.reference(lambda a, dim: np.logaddexp.accumulate(a, axis=dim) if a.ndim else a)
