"""Views of a tensor's consecutive parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from ..dispatch.operator import composite, view_op
from ..errors import ArgumentTypeError, BoundsError, ShapeError
from ..geometry import axis, strided
from ..tensor import Tensor, view as _view
from .views import declared

__all__ = ["chunk", "split", "split_with_sizes", "tensor_split", "unbind"]


@view_op("self | split_sizes dim")
def split_with_sizes(self: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Consecutive parts of a dimension, of the sizes given.

    Raises:
        RuntimeError: the sizes are negative or do not add up to the dimension's.
    """
    geometry = self.geometry
    at = axis(dim, geometry.ndim)
    if not geometry.ndim:
        raise ShapeError("split expects at least a 1-dimensional tensor.")
    lengths = tuple(split_sizes)
    if any(each < 0 for each in lengths):
        raise ShapeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(lengths)}"
        )
    if sum(lengths) != geometry.shape[at]:
        raise ShapeError(
            f"split_with_sizes expects split_sizes to sum exactly to {geometry.shape[at]} (input tensor's size at dimension "
            f"{at}), but got split_sizes={list(lengths)}"
        )
    shape, step, start, parts = geometry.shape, geometry.strides[at], 0, []
    for length in lengths:
        parts.append(_view(self, strided(shape[:at] + (length,) + shape[at + 1 :], geometry.strides), start * step))
        start += length
    return tuple(split_with_sizes.run(parts, self, lengths, at))


split_with_sizes.gradient(self=lambda grads, dim: declared("cat")(grads, dim))


@composite
def split(self: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Consecutive parts of a dimension: all of one size (the last may be smaller), or of the sizes listed.

    Raises:
        RuntimeError: the size is negative, or zero for a dimension that is not empty.
    """
    at = axis(dim, self.ndim)
    if not isinstance(split_size, int):
        return split_with_sizes(self, split_size, at)  # type: ignore[no-any-return]
    if not self.ndim:
        raise ShapeError("split expects at least a 1-dimensional tensor")
    length = self.shape[at]
    if split_size < 0 or (split_size == 0 and length):
        raise ShapeError(
            f"split expects split_size be non-negative and positive for a non-empty dimension, but got split_size={split_size}"
        )
    if not length or not split_size:
        return split_with_sizes(self, (length,), at)  # type: ignore[no-any-return]
    whole, rest = divmod(length, split_size)
    return split_with_sizes(self, (split_size,) * whole + (rest,) * bool(rest), at)  # type: ignore[no-any-return]


@composite
def chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most ``chunks`` consecutive parts of a dimension, all but the last of one size.

    Raises:
        RuntimeError: ``chunks`` is not positive.
    """
    at = axis(dim, self.ndim)
    if not self.ndim:
        raise ShapeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise ShapeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    length = self.shape[at]
    if not length:
        return split_with_sizes(self, (0,) * chunks, at)  # type: ignore[no-any-return]
    return split(self, (length + chunks - 1) // chunks, at)  # type: ignore[no-any-return]


@composite
def tensor_split(self: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of nearly equal size, or cut before the indices given, as ``numpy.array_split``.

    Raises:
        RuntimeError: the number of sections is not positive.
    """
    at = axis(dim, self.ndim)
    if not self.ndim:
        raise ShapeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    length = self.shape[at]
    given = indices_or_sections.tolist() if isinstance(indices_or_sections, Tensor) else indices_or_sections
    if isinstance(given, int):
        if given <= 0:
            raise ShapeError(f"number of sections must be larger than 0, got {given}")
        if given > 2**31:
            raise ShapeError(f"number of sections must stay below 2**31, got {given}")
        whole, rest = divmod(length, given)
        return split_with_sizes(self, (whole + 1,) * rest + (whole,) * (given - rest), at)  # type: ignore[no-any-return]
    cuts = [0, *(slice(None, each).indices(length)[1] for each in given), length]
    parts = []
    for begin, end in zip(cuts, cuts[1:], strict=False):
        parts.append(cast(Any, self).narrow(at, begin, max(end - begin, 0)))
    return tuple(parts)


@view_op("self | dim")
def unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along a dimension, without it.

    Raises:
        IndexError: the tensor has no dimensions.
    """
    geometry = self.geometry
    at = axis(dim, geometry.ndim)
    if not geometry.ndim:
        raise BoundsError("Dimension specified as 0 but tensor has no dimensions (unbind).")
    shape, strides = geometry.shape, geometry.strides
    part = strided(shape[:at] + shape[at + 1 :], strides[:at] + strides[at + 1 :])
    parts = [_view(self, part, index * strides[at]) for index in range(shape[at])]
    return tuple(unbind.run(parts, self, at))


unbind.gradient(self=lambda grads, dim: declared("stack")(grads, dim))


def __iter__(self: Tensor) -> Iterator[Tensor]:
    """The slices along the first dimension.

    Raises:
        TypeError: the tensor has no dimensions.
    """
    if not self.geometry.ndim:
        raise ArgumentTypeError("iteration over a 0-d tensor\nUse item() for its value.")
    return iter(cast(Any, unbind(self, 0)))
