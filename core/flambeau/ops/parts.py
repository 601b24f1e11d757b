"""Views of parts of a tensor: indices, ranges, windows and diagonals, and copies in which a part is replaced."""

from __future__ import annotations

import operator
from typing import Any, cast

from ..autograd.grad_mode import mode
from ..autograd.node import record
from ..dispatch.operator import composite, view_op
from ..dtype import bool_
from ..errors import ArgumentTypeError, BoundsError, DtypeError, ShapeError, shown
from ..geometry import Size, axis, strided
from ..tensor import Tensor, view as _view
from .views import positions

__all__ = ["diagonal", "narrow", "select", "slice_", "unfold"]


@view_op("self | dim index")
def select(self: Tensor, dim: int, index: int) -> Tensor:
    """The slice at one index of a dimension, without that dimension.

    Raises:
        IndexError: the index is out of range, or there is no dimension.
    """
    geometry = self.geometry
    if not geometry.ndim:
        raise BoundsError("select() cannot be applied to a 0-dim tensor.")
    at = axis(dim, geometry.ndim)
    shape, strides = geometry.shape, geometry.strides
    size = shape[at]
    if not -size <= index < size:
        raise BoundsError(f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {at}")
    index = int(index) + size if index < 0 else int(index)
    result = _view(self, strided(shape[:at] + shape[at + 1 :], strides[:at] + strides[at + 1 :]), index * strides[at])
    if self.node is not None and mode.enabled:
        record(select.op, (self, at, index), result)
    return result


def _select_gradient(grad: Any, self_shape: Size, dim: int, index: int) -> Any:
    return grad.new_zeros(self_shape).select_scatter(grad, dim, index)


select.gradient(self=_select_gradient)


@view_op("self | dim start stop step", method=False, namespaces=())
def slice_(self: Tensor, dim: int, start: int, stop: int, step: int) -> Tensor:
    """Every ``step``-th index of a dimension from ``start`` up to ``stop``; all already in range."""
    geometry = self.geometry
    shape, strides = geometry.shape, geometry.strides
    size = (stop - start + step - 1) // step if stop > start else 0
    wanted = strided(
        shape[:dim] + (size,) + shape[dim + 1 :], (*strides[:dim], strides[dim] * step, *strides[dim + 1 :])
    )
    result = _view(self, wanted, start * strides[dim])
    if self.node is not None and mode.enabled:
        record(slice_.op, (self, dim, start, stop, step), result)
    return result


def _slice_gradient(grad: Any, self_shape: Size, dim: int, start: int, stop: int, step: int) -> Any:
    return grad.new_zeros(self_shape).slice_scatter(grad, dim, start, stop, step)


slice_.gradient(self=_slice_gradient)


def _into(self: Any, src: Any, part: Any) -> Any:
    """A clone of ``self`` in which the part that ``part`` views holds ``src``."""
    result = self.clone()
    target = part(result)
    if target.shape != src.shape:
        raise ShapeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = {list(target.shape)}"
        )
    target.copy_(src)
    return result


@composite
def select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of ``self`` with ``src`` at one index of a dimension."""
    return cast(Tensor, _into(self, src, lambda out: select(out, dim, index)))


@composite
def slice_scatter(
    self: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of ``self`` with ``src`` in a slice of a dimension."""
    if not self.ndim:
        raise ShapeError("slice_scatter() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise ShapeError(f"slice step must be positive, got {step}.")
    at = axis(dim, self.ndim)
    begin, stop, stride = slice(start, end, step).indices(self.shape[at])
    return cast(Tensor, _into(self, src, lambda out: slice_(out, at, begin, stop, stride)))


def _whole(start: Any) -> int:
    """The place that a 0-dim integral tensor, or a whole number of another type, holds."""
    if isinstance(start, Tensor):
        if start.ndim or start.dtype is bool_ or start.dtype.category > 1:
            raise DtypeError(
                f"narrow(): start must be an int or a 0-dim integral tensor, got {start.dtype.name}{list(start.shape)}."
            )
        start = cast(Any, start).item()
    try:
        return operator.index(start)
    except TypeError:
        raise ArgumentTypeError(
            f"narrow(): start must be an int or a 0-dim integral tensor, got {type(start).__name__} {shown(start)}."
        ) from None


@composite
def narrow(self: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """``length`` indices of a dimension from ``start`` on.

    Raises:
        RuntimeError: they are not all in range.
    """
    if not self.ndim:
        raise ShapeError("narrow() cannot be applied to a 0-dim tensor.")
    at = axis(dim, self.ndim)
    first = start if type(start) is int else _whole(start)
    size = self.shape[at]
    if length < 0:
        raise ShapeError(f"narrow(): length must be non-negative, got {length}.")
    if not -size <= first <= size:
        raise BoundsError(f"start out of range (expected to be in range of [-{size}, {size}], but got {first})")
    if first < 0:
        first += size
    if first + length > size:
        raise ShapeError(f"start ({first}) + length ({length}) exceeds dimension size ({size}).")
    return slice_(self, at, first, first + length, 1)  # type: ignore[no-any-return]


@view_op("self | dimension size step", namespaces=())
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All windows of ``size`` along a dimension, ``step`` apart; the window becomes the last dimension.

    Raises:
        RuntimeError: the window is larger than the dimension, or the step is not positive.
    """
    geometry = self.geometry
    at = axis(dimension, geometry.ndim)
    shape = geometry.shape or Size((1,))
    strides = geometry.strides or (1,)
    if size > shape[at]:
        raise ShapeError(f"maximum size for tensor at dimension {at} is {shape[at]} but size is {size}")
    if step <= 0:
        raise ShapeError(f"step is {step} but must be > 0")
    if size < 0:
        raise ShapeError(f"size is {size} but must be >= 0")
    count = (shape[at] - size) // step + 1
    wanted = strided(
        Size((*shape[:at], count, *shape[at + 1 :], size)) if geometry.ndim else Size((size,)),
        (*strides[:at], strides[at] * step, *strides[at + 1 :], strides[at]) if geometry.ndim else (1,),
    )
    return cast(Tensor, unfold.run(_view(self, wanted), self, at, size, step))


def _unfold_gradient(grad: Any, self_shape: Size, dimension: int, size: int, step: int) -> Any:
    if not self_shape:
        return grad.reshape(())
    length = self_shape[dimension]
    places = unfold(positions(grad, length), 0, size, step)  # (count, size)
    moved = grad.movedim(-1, dimension + 1).flatten(dimension, dimension + 1)
    return grad.new_zeros(self_shape).index_add(dimension, places.reshape(-1), moved)


unfold.gradient(self=_unfold_gradient)


@view_op("self | offset dim1 dim2")
def diagonal(self: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two dimensions, as the last dimension of a view.

    Args:
        offset: above (positive) or below the main diagonal.
    """
    geometry = self.geometry
    a, b = axis(dim1, geometry.ndim), axis(dim2, geometry.ndim)
    if a == b or geometry.ndim < 2:
        raise ShapeError(f"diagonal dimensions cannot be identical {dim1}, {dim2} (tensor of shape {list(self.shape)})")
    shape, strides = geometry.shape, geometry.strides
    size = max(min(shape[a] + min(offset, 0), shape[b] - max(offset, 0)), 0)
    shift = (offset * strides[b] if offset >= 0 else -offset * strides[a]) if size else 0
    rest = [i for i in range(geometry.ndim) if i not in (a, b)]
    wanted = strided(Size((*(shape[i] for i in rest), size)), (*(strides[i] for i in rest), strides[a] + strides[b]))
    return cast(Tensor, diagonal.run(_view(self, wanted, shift), self, offset, a, b))


def _diagonal_gradient(grad: Any, self_shape: Size, offset: int, dim1: int, dim2: int) -> Any:
    return grad.new_zeros(self_shape).diagonal_scatter(grad, offset, dim1, dim2)


diagonal.gradient(self=_diagonal_gradient)


@composite
def diagonal_scatter(self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of ``self`` with ``src`` on a diagonal."""
    return cast(Tensor, _into(self, src, lambda out: diagonal(out, offset, dim1, dim2)))
