"""Shapes, strides and what follows from them.

A Geometry is interned: equal shape and strides are one object, so that kernels
test "same shape and dense" with one identity comparison.  The tables are emptied
when they grow large; losing an entry costs time, never correctness.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, SupportsIndex

from .errors import ArgumentTypeError, BoundsError, ShapeError, shown

__all__ = [
    "Geometry",
    "Size",
    "axis",
    "broadcast",
    "broadcast_shapes",
    "contiguous",
    "contiguous_strides",
    "expanded",
    "strided",
]

_LARGEST_TABLE: Final = 8192
#: Of sizes, strides and numbers of elements: kernels count in int64.
_LARGEST: Final = 2**63 - 1
_contiguous: Final[dict[tuple[int, ...], Geometry]] = {}
_strided: Final[dict[tuple[tuple[int, ...], tuple[int, ...]], Geometry]] = {}
_broadcast: Final[dict[tuple[Geometry, Geometry], Geometry]] = {}


class Size(tuple[int, ...]):
    """The sizes of a tensor's dimensions: a tuple with ``numel``."""

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements: the product of the sizes."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return Size(found) if isinstance(index, slice) else found

    def __add__(self, other: Any) -> Any:
        return Size(tuple.__add__(self, tuple(other)))

    def __reduce__(self) -> tuple[type[Size], tuple[tuple[int, ...]]]:
        return Size, (tuple(self),)


class Geometry:
    """The shape and strides (in elements) of a strided tensor, and what follows from them."""

    __slots__ = ("contiguous", "dense", "ndim", "numel", "packed", "shape", "single", "strides")

    shape: Size
    strides: tuple[int, ...]
    numel: int
    ndim: int
    #: rows follow each other without gaps, last dimension fastest
    contiguous: bool
    #: the elements fill one piece of memory exactly, in any order
    dense: bool
    #: all indices name the same element
    single: bool
    #: sizes and strides as int64 in a row, for compiled code, which puts them here when it first asks
    packed: bytes

    def __init__(self, shape: Size, strides: tuple[int, ...]) -> None:
        self.shape, self.strides = shape, strides
        self.numel, self.ndim = math.prod(shape), len(shape)
        if max(self.numel, *shape, *strides, 0) > _LARGEST:
            raise ShapeError(
                f"A tensor of shape {shown(list(shape))} and strides {shown(list(strides))} cannot be addressed:\n"
                "sizes, strides and the number of elements stay below 2**63."
            )
        self.contiguous = _is_contiguous(shape, strides, self.numel)
        self.dense = self.contiguous or _is_dense(shape, strides)
        self.single = self.numel > 0 and all(
            size == 1 or not stride for size, stride in zip(shape, strides, strict=True)
        )

    def __repr__(self) -> str:
        return f"Geometry({tuple(self.shape)}, {self.strides})"

    @property
    def span(self) -> int:
        """How many elements of memory lie from the first to the last element."""
        if not self.numel:
            return 0
        return 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))

    @property
    def overlapping(self) -> bool:
        """Whether two indices may name the same element (never wrongly False)."""
        return not self.dense and not _is_injective(self.shape, self.strides)


def _is_contiguous(shape: Sequence[int], strides: Sequence[int], numel: int) -> bool:
    expected = 1
    if numel == 0:
        return True
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def _is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    expected = 1
    for stride, size in sorted((b, a) for a, b in zip(shape, strides, strict=True) if a != 1):
        if stride != expected:
            return False
        expected *= size
    return True


def _is_injective(shape: Sequence[int], strides: Sequence[int]) -> bool:
    reach = 0
    for stride, size in sorted((b, a) for a, b in zip(shape, strides, strict=True) if a != 1):
        if stride <= reach:
            return False
        reach += (size - 1) * stride
    return True


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides; a size of 0 counts as 1, as PyTorch has it."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size if size > 1 else 1
    return tuple(reversed(strides))


def contiguous(shape: tuple[int, ...]) -> Geometry:
    """The geometry of a row-major tensor.

    Raises:
        RuntimeError: a size is negative.
    """
    found = _contiguous.get(shape)
    if found is None:
        for size in shape:
            if not isinstance(size, int):
                raise ArgumentTypeError(f"A size is an int, got {type(size).__name__} {shown(size)} in {shown(shape)}.")
            if size < 0:
                raise ShapeError(f"Trying to create tensor with negative dimension {size}: {list(shape)}.")
        shape = Size(map(int, shape))
        found = strided(shape, contiguous_strides(shape))
        if len(_contiguous) > _LARGEST_TABLE:
            _contiguous.clear()
        _contiguous[shape] = found
    return found


def strided(shape: tuple[int, ...], strides: tuple[int, ...]) -> Geometry:
    """The geometry with these strides, in elements; nothing is checked."""
    found = _strided.get((shape, strides))
    if found is None:
        shape = shape if type(shape) is Size else Size(shape)
        if len(_strided) > _LARGEST_TABLE:
            _strided.clear()
        found = _strided.setdefault((shape, strides), Geometry(shape, strides))
    return found


def broadcast_shapes(*shapes: Sequence[int]) -> Size:
    """The common shape, by NumPy's rules.

    Raises:
        RuntimeError: two sizes differ and neither is 1.

    >>> import flambeau
    >>> flambeau.broadcast_shapes((2, 1), (3,))
    torch.Size([2, 3])
    """
    ndim = max(map(len, shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        for i in range(1, len(shape) + 1):
            size = shape[-i]
            if size != 1 and size != result[-i]:
                if result[-i] != 1:
                    raise ShapeError(
                        f"Expected shapes that broadcast together, got {' and '.join(str(list(s)) for s in shapes)}: "
                        f"the size of tensor a ({result[-i]}) must match the size of tensor b ({size}) "
                        f"at non-singleton dimension {ndim - i}."
                    )
                result[-i] = size
    return Size(result)


def broadcast(a: Geometry, b: Geometry) -> Geometry:
    """The contiguous geometry of the common shape."""
    if a.shape == b.shape:
        return contiguous(a.shape)
    found = _broadcast.get((a, b))
    if found is None:
        found = contiguous(broadcast_shapes(a.shape, b.shape))
        if len(_broadcast) > _LARGEST_TABLE:
            _broadcast.clear()
        _broadcast[a, b] = found
    return found


def expanded(geometry: Geometry, shape: Sequence[int]) -> tuple[int, ...]:
    """The strides with which a geometry reads as ``shape`` (0 where it is repeated)."""
    lead = len(shape) - geometry.ndim
    strides = [0] * lead
    for size, stride, wanted in zip(geometry.shape, geometry.strides, shape[lead:], strict=True):
        strides.append(stride if size == wanted else 0)
    return tuple(strides)


def axis(dim: SupportsIndex, ndim: int) -> int:
    """A dimension counted from 0, given one that may count from the end.

    Raises:
        IndexError: there is no such dimension.
    """
    try:
        found = dim.__index__()
    except AttributeError:
        raise ArgumentTypeError(f"A dimension is an int, got {type(dim).__name__} {shown(dim)}.") from None
    limit = ndim or 1
    if not -limit <= found < limit:
        raise BoundsError(
            f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {found})."
        )
    return found + limit if found < 0 else found
