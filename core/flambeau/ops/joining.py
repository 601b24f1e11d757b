"""Putting tensors together, and rearranging or masking out their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np

from ..autograd.grad_mode import mode
from ..autograd.node import record
from ..dispatch.operator import composite, offer, primitive
from ..dispatch.pointwise import finish_out, result_type
from ..errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError
from ..geometry import Size, axis, broadcast_shapes
from ..tensor import Tensor
from .views import bounded, sizes

__all__ = [
    "broadcast_tensors", "cat", "diag", "diag_embed", "diagflat", "flip", "fliplr", "flipud", "hstack", "meshgrid", "repeat",
    "roll", "stack", "tile", "tril", "triu", "vstack",
]  # fmt: skip


# ---------------------------------------------------------------- cat and stack


def _dimension(dim: Any, axis_: Any) -> Any:
    return dim if axis_ is None else axis_


@primitive("tensors* | dim", method=False)
def cat(tensors: Sequence[Tensor], dim: int = 0, *, axis: int | None = None, out: Tensor | None = None) -> Tensor:
    """Put tensors one after another along a dimension that exists.

    Args:
        tensors: of equal shape but for that dimension; empty vectors are left out.
        dim: the dimension.
        out: receives the result.

    Raises:
        RuntimeError: shapes differ elsewhere, or there is no tensor.
        IndexError: there is no such dimension.
    """
    if out is None and axis is None and (type(tensors) is list or type(tensors) is tuple):
        # The common case: all of one key and number of dimensions.
        try:
            key, geometry = tensors[0].key, tensors[0].geometry
            at = dim + geometry.ndim if dim < 0 else dim
            plain, tracked = 0 <= at < geometry.ndim, False
            for each in tensors:
                if each.key is not key or (
                    each.geometry is not geometry and not _fits(each.geometry.shape, geometry.shape, at)
                ):
                    plain = False
                    break
                if each.node is not None:
                    tracked = True
        except (AttributeError, TypeError, LookupError):
            plain = False
        if plain:
            result: Tensor = (_kernels.get(key) or _cat.resolve(key))(tensors, at)
            if tracked and mode.enabled:
                record(_cat, (tensors, at), result)
            return result
    given = _tensors("cat", tensors)
    at, kept = _joinable(given, _dimension(dim, axis))
    if out is not None:
        return finish_out("cat", out, given, lambda: cast(Tensor, cat(given, at)))
    dtype = result_type(*given)
    return cast(Tensor, cat.run([cast(Any, each).to(dtype) for each in kept], at))


_cat: Final = cat.op
_kernels: Final = _cat.table


def _fits(shape: Size, other: Size, at: int) -> bool:
    return len(shape) == len(other) and all(
        a == b or i == at for i, (a, b) in enumerate(zip(shape, other, strict=True))
    )


def _tensors(name: str, tensors: Any) -> list[Tensor]:
    if isinstance(tensors, Tensor) or not isinstance(tensors, (list, tuple)):
        raise ArgumentTypeError(f"{name}() expects a list or tuple of Tensors, got {type(tensors).__name__}.")
    for position, each in enumerate(tensors):
        if not isinstance(each, Tensor):
            raise ArgumentTypeError(
                f"expected Tensor as element {position} in argument 0 of {name}(), but got {type(each).__name__}."
            )
    if not tensors:
        raise (ShapeError if name == "stack" else ArgumentError)(f"{name}(): expected a non-empty list of Tensors")
    return list(tensors)


def _joinable(tensors: list[Tensor], dim: int) -> tuple[int, list[Tensor]]:
    """The dimension counted from 0 and the tensors that have one, all checked."""
    for position, each in enumerate(tensors):
        if not each.geometry.ndim:
            raise ShapeError(f"zero-dimensional tensor (at position {position}) cannot be concatenated.\nUse stack().")
    # Empty vectors have always been accepted beside tensors of any shape.
    kept = [each for each in tensors if each.geometry.shape != (0,)] or tensors[:1]
    shape = kept[0].shape
    at = axis(dim, len(shape))
    for each in kept:
        if len(each.shape) != len(shape):
            raise ShapeError(f"Tensors must have same number of dimensions: got {len(shape)} and {len(each.shape)}")
        if not _fits(each.geometry.shape, shape, at):
            raise ShapeError(
                f"Sizes of tensors must match except in dimension {at}. Expected {list(shape)} but got {list(each.shape)} "
                f"for tensor number {next(i for i, t in enumerate(tensors) if t is each)} in the list."
            )
    return at, kept


def _cat_gradient(grad: Any, tensors: list[Any], dim: int) -> list[Any]:
    parts, start = [], 0
    for shape in tensors:
        length = shape[dim]
        parts.append(grad.narrow(dim, start, length))
        start += length
    return parts


cat.gradient(tensors=lambda grad, tensors_shape, dim: _cat_gradient(grad, tensors_shape, dim))
cat.reference(lambda tensors, dim: np.concatenate(tensors, dim))

offer(name="concat", method=False)(cat)
offer(name="concatenate", method=False)(cat)


@composite(method=False)
def stack(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Put tensors of one shape beside each other along a new dimension.

    Raises:
        RuntimeError: shapes differ, or there is no tensor.
        IndexError: the new dimension's position is out of range.
    """
    given = _tensors("stack", tensors)
    shape = given[0].shape
    at = axis(dim, len(shape) + 1)
    for position, each in enumerate(given):
        if each.shape != shape:
            raise ShapeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and {list(each.shape)} at entry {position}"
            )
    return cast(Tensor, cat([cast(Any, each).unsqueeze(at) for each in given], at, out=out))


@composite(method=False)
def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Put tensors beside each other along the second dimension (vectors: along the first)."""
    given = [each if each.ndim else cast(Any, each).reshape(1) for each in _tensors("hstack", tensors)]
    return cast(Tensor, cat(given, 0 if given[0].ndim == 1 else 1, out=out))


@composite(method=False)
def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Put tensors below each other; vectors count as rows."""
    given = [each if each.ndim > 1 else cast(Any, each).reshape(1, -1) for each in _tensors("vstack", tensors)]
    return cast(Tensor, cat(given, 0, out=out))


# ---------------------------------------------------------------- triangles and diagonals


def _triangle(name: str, doc: str) -> Any:
    def triangle(self: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
        if out is not None:
            return finish_out(name, out, (self,), lambda: cast(Tensor, triangle_(self, diagonal)))
        if self.geometry.ndim < 2:
            raise ShapeError(f"{name}: input tensor must have at least 2 dimensions, got shape {list(self.shape)}.")
        return cast(Tensor, triangle_.run(self, bounded(diagonal, "diagonal")))

    triangle.__name__ = triangle.__qualname__ = name
    triangle.__doc__ = doc
    triangle_ = primitive("self | diagonal", name=name, inplace=f"{name}_")(triangle)
    triangle_.gradient(self=lambda grad, diagonal: getattr(grad, name)(diagonal))
    triangle_.reference(lambda a, diagonal: getattr(np, name)(a, diagonal))
    return triangle_


tril = _triangle(
    "tril", "The part of each matrix on and below a diagonal (0: the main one, positive: above it); zeros elsewhere."
)
triu = _triangle(
    "triu", "The part of each matrix on and above a diagonal (0: the main one, positive: above it); zeros elsewhere."
)


@composite
def diag_embed(self: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices, in dimensions ``dim1`` and ``dim2`` of the result, with the last dimension on a diagonal and zeros elsewhere."""
    if not self.ndim:
        raise ShapeError("diag_embed: expected a tensor with at least one dimension, got a 0-dim tensor.")
    size = self.shape[-1] + abs(offset)
    ndim = self.ndim + 1
    a, b = axis(dim1, ndim), axis(dim2, ndim)
    if a == b:
        raise ShapeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    shape = list(self.shape[:-1])
    for each in sorted((a, b)):
        shape.insert(each, size)
    return cast(Tensor, cast(Any, self).new_zeros(shape).diagonal_scatter(self, offset, a, b))


@composite
def diag(self: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """A vector on a diagonal of a square matrix, or a matrix's diagonal as a vector.

    Raises:
        RuntimeError: there are more than two dimensions, or none.
    """
    if out is not None:
        return finish_out("diag", out, (self,), lambda: cast(Tensor, diag(self, diagonal)))
    if self.ndim == 1:
        return cast(Tensor, diag_embed(self, diagonal))
    if self.ndim == 2:
        return cast(Tensor, cast(Any, self).diagonal(diagonal).clone())
    raise ShapeError(f"diag(): Supports 1D or 2D tensors. Got {self.ndim}D (shape {list(self.shape)}).")


@composite
def diagflat(self: Tensor, offset: int = 0) -> Tensor:
    """All elements, in order, on a diagonal of a square matrix."""
    return cast(Tensor, diag_embed(cast(Any, self).reshape(-1), offset))


# ---------------------------------------------------------------- order and repetition


@primitive("self | dims")
def flip(self: Tensor, *dims: Any) -> Tensor:
    """Reverse the order of elements along some dimensions, in a copy.

    Raises:
        IndexError: there is no such dimension.
        RuntimeError: one is named twice.
    """
    given = tuple(axis(each, self.geometry.ndim) for each in sizes(dims, "dims"))
    if len(set(given)) != len(given):
        raise ShapeError(f"dim {list(given)} appears multiple times in the list of dims")
    return cast(Tensor, flip.run(self, given if self.geometry.ndim else ()))


flip.gradient(self=lambda grad, dims: grad.flip(dims))
flip.reference(lambda a, dims: np.flip(a, dims))


@composite
def fliplr(self: Tensor) -> Tensor:
    """Reverse the order of columns."""
    if self.ndim < 2:
        raise ShapeError(f"Input must be >= 2-d, got shape {list(self.shape)}.")
    return cast(Tensor, flip(self, 1))


@composite
def flipud(self: Tensor) -> Tensor:
    """Reverse the order of rows."""
    if self.ndim < 1:
        raise ShapeError(f"Input must be >= 1-d, got shape {list(self.shape)}.")
    return cast(Tensor, flip(self, 0))


@composite
def roll(self: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Move elements along dimensions; what leaves at the end comes back at the start.

    Args:
        shifts: by how much, for each dimension named.
        dims: the dimensions; none means that the flattened tensor is rolled.
    """
    moves = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    named = () if dims is None else (dims,) if isinstance(dims, int) else tuple(dims)
    if not moves:
        raise ShapeError("`shifts` required")
    if not named and len(moves) == 1:
        return cast(Tensor, roll(cast(Any, self).reshape(-1), moves[0], 0).view(self.shape))
    if len(moves) != len(named):
        raise ShapeError(f"shifts and dimensions must align. shifts: {len(moves)}, dims:{len(named)}")
    result: Any = self
    for shift, dim in zip(moves, named, strict=True):
        at = axis(dim, result.ndim)
        length = result.shape[at] if result.ndim else 1
        cut = -shift % length if length else 0
        if cut:
            result = cat([result.narrow(at, cut, length - cut), result.narrow(at, 0, cut)], at)
    return cast(Tensor, result.clone() if result is self else result)


@composite(namespaces=())
def repeat(self: Tensor, *repeats: Any) -> Tensor:
    """Copies beside each other: ``repeats[i]`` of them along dimension i.

    Raises:
        RuntimeError: fewer numbers than dimensions, or a negative one.
    """
    counts = sizes(repeats, "repeats")
    lead = len(counts) - self.ndim
    if lead < 0:
        raise ShapeError(
            f"Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: got {list(counts)} "
            f"for shape {list(self.shape)}."
        )
    for each in counts:
        if each < 0:
            raise ShapeError(f"Trying to create tensor with negative dimension {each}: repeats {list(counts)}.")
    inner = (1,) * lead + tuple(self.shape)
    apart: list[int] = []
    together: list[int] = []
    for count, size in zip(counts, inner, strict=True):
        apart += [1, size]
        together += [count, size]
    spread = cast(Any, self).reshape(apart).expand(together).clone()
    return cast(Tensor, spread.reshape([count * size for count, size in zip(counts, inner, strict=True)]))


@composite
def tile(self: Tensor, *dims: Any) -> Tensor:
    """Like :meth:`Tensor.repeat`, with missing numbers taken as 1."""
    counts = sizes(dims, "dims")
    return cast(Tensor, repeat(self, (1,) * (self.ndim - len(counts)) + counts))


@composite(method=False)
def broadcast_tensors(*tensors: Any) -> list[Tensor]:
    """Views of tensors expanded to their common shape.

    Raises:
        RuntimeError: the shapes do not broadcast.
    """
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    shape = broadcast_shapes(*[each.shape for each in given])
    return [each.expand(shape) for each in given]


@composite(method=False)
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """For vectors of n, m, ... elements, tensors of shape (n, m, ...) that vary along one dimension each.

    Args:
        indexing: ``"ij"``, or ``"xy"`` to swap the first two dimensions.

    Raises:
        RuntimeError: a tensor has more than one dimension, dtypes differ, or ``indexing`` is unknown.
    """
    given = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)
    if not given:
        raise ShapeError("meshgrid expects a non-empty TensorList")
    for each in given:
        if each.ndim > 1:
            raise ShapeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: shape {list(each.shape)}"
            )
        if each.key is not given[0].key:
            raise DtypeError("torch.meshgrid expects all tensors to have the same dtype")
    if indexing not in ("ij", "xy"):
        raise ShapeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    swap = indexing == "xy" and len(given) > 1
    if swap:
        given[0], given[1] = given[1], given[0]
    shape = [each.numel() for each in given]
    grids = [
        each.reshape([-1 if i == position else 1 for i in range(len(given))]).expand(shape)
        for position, each in enumerate(given)
    ]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)
