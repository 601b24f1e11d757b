"""Any sizes and strides over a tensor's storage, and the history of writes into views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from ..autograd.grad_mode import mode, no_grad
from ..autograd.node import Node, edge, record, refresher
from ..dispatch.operator import view_op
from ..errors import ShapeError
from ..geometry import Geometry, Size, strided
from ..tensor import Tensor, alias, view as _view
from .views import bounded, positions, sizes

__all__ = ["as_strided", "as_strided_scatter"]


@view_op("self | size stride storage_offset origin")
def as_strided(self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """View the tensor's storage with any sizes and strides (both in elements).

    Args:
        size: the shape of the view.
        stride: its strides.
        storage_offset: elements before its first; the tensor's own offset if not given.

    Raises:
        RuntimeError: sizes and strides differ in number, one is negative, or the view leaves the storage.
    """
    size, stride = sizes((size,)), sizes((stride,), "stride")
    if len(size) != len(stride):
        raise ShapeError(f"mismatch in length of strides and shape: {list(size)} and {list(stride)}.")
    if any(each < 0 for each in size):
        raise ShapeError(f"Trying to create tensor with negative dimension: {list(size)}.")
    if any(each < 0 for each in stride):
        raise ShapeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}.")
    offset = self.offset if storage_offset is None else bounded(storage_offset, "storage_offset")
    geometry = strided(Size(size), tuple(stride))
    owner = self.shared.geometry if self.shared is not None else self.geometry
    if geometry.numel and (offset < 0 or offset + geometry.span > owner.span):
        raise ShapeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset} require a storage of "
            f"{offset + geometry.span} elements, out of bounds for storage of {owner.span}."
        )
    result = _view(self, geometry, offset - self.offset)
    return cast(Tensor, as_strided.run(result, self, size, stride, offset, (self.geometry, self.offset)))


def _strided_gradient(grad: Any, size: Any, stride: Any, storage_offset: int, origin: tuple[Geometry, int]) -> Tensor:
    """Put the view's gradient where the view's elements lie in the input."""
    whole, start = origin  # of the input, which itself is not kept: it may be written later
    lowest = min(start, storage_offset)
    geometry = strided(Size(size), tuple(stride))
    length = max(start - lowest + whole.span, storage_offset - lowest + geometry.span)
    buffer = grad.new_zeros(length)
    if geometry.overlapping:
        places = as_strided(positions(grad, length), size, stride, storage_offset - lowest)
        buffer = buffer.index_add(0, places.reshape(-1), grad.reshape(-1))
    else:
        buffer = buffer.as_strided_scatter(grad, size, stride, storage_offset - lowest)
    return cast(Tensor, buffer.as_strided(whole.shape, whole.strides, start - lowest))


as_strided.gradient(self=_strided_gradient)


@view_op("self src | size stride storage_offset", namespaces="", method=True)
def as_strided_scatter(
    self: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A copy of ``self`` in which the elements of its ``as_strided`` view are those of ``src``."""
    offset = self.offset if storage_offset is None else bounded(storage_offset, "storage_offset")
    size, stride = sizes((size,)), sizes((stride,), "stride")
    with no_grad():
        result = cast(Any, self).clone()
        result.as_strided(size, stride, offset - self.offset).copy_(src)
    if mode.enabled and (self.node is not None or src.node is not None):
        record(as_strided_scatter.op, (self, src, tuple(size), tuple(stride), offset - self.offset), result)
    return cast(Tensor, result)


def _kept_gradient(grad: Any, size: Any, stride: Any, storage_offset: int, src_shape: Any) -> Any:
    grad = grad.contiguous()  # which may itself begin inside of its storage
    return grad.as_strided_scatter(grad.new_zeros(src_shape), size, stride, grad.offset + storage_offset)


def _written_gradient(grad: Any, size: Any, stride: Any, storage_offset: int) -> Any:
    grad = grad.contiguous()
    return grad.as_strided(size, stride, grad.offset + storage_offset)


as_strided_scatter.gradient(self=_kept_gradient, src=_written_gradient)


def _rebuild(view: Tensor) -> Node:
    """The history of a view whose base was written after the view was made."""
    base = view.base
    assert base is not None
    twin = alias(view)
    origin = (base.geometry, base.offset)
    record(as_strided.op, (base, view.geometry.shape, view.geometry.strides, view.offset, origin), twin)
    return cast(Node, twin.node)


def _scatter(base: Tensor, view: Tensor) -> None:
    """Record that a view's new value, already written, is part of its base."""
    if not base.geometry.contiguous:
        raise ShapeError(
            f"A view of a non-contiguous base (shape {list(base.shape)}, strides {base.geometry.strides}) was written in "
            "place under autograd.\nCall contiguous() or clone() on the base first."
        )
    old = alias(base)
    old.node, old.output = edge(base), base.output
    args = (old, view, view.geometry.shape, view.geometry.strides, view.offset - base.offset)
    record(as_strided_scatter.op, args, base)


refresher.rebuild = _rebuild
refresher.scatter = _scatter
