"""The C kernels on NumPy arrays."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from flambeau.backend import (
    AllocationError,
    BoundsError,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)

from ._kernels import ffi, lib

__all__ = [
    "DTYPES",
    "FLOATING",
    "HALVES",
    "NUMBERS",
    "REAL",
    "add_merged",
    "find",
    "fold",
    "get_threads",
    "merge",
    "merged_indices",
    "order",
    "places",
    "product",
    "runs",
    "sampled",
    "scatter",
    "set_threads",
    "sum_runs",
]

Array = np.ndarray[Any, Any]

#: C type of each element type that kernels are compiled for.
_C_TYPES: Final = {
    bool_: "_Bool", uint8: "uint8_t", int8: "int8_t", int16: "int16_t", int32: "int32_t", int64: "int64_t",
    float32: "float", float64: "double", complex64: "float _Complex", complex128: "double _Complex",
}  # fmt: skip
#: Those that are computed in float32, and rounded once.
HALVES: Final = (float16, bfloat16)
DTYPES: Final = (*_C_TYPES, *HALVES)
#: Those that can be subtracted, those that have an order, and those with a point.
NUMBERS: Final = tuple(each for each in DTYPES if each is not bool_)
REAL: Final = tuple(each for each in NUMBERS if not each.is_complex)
FLOATING: Final = tuple(each for each in REAL if each.is_floating_point)
_NAMES: Final = {np.dtype(each.numpy): each.name for each in _C_TYPES}
_ARRAYS: Final = {np.dtype(each.numpy): ffi.typeof(f"{name}[]") for each, name in _C_TYPES.items()}


set_threads: Final = lib.fs_set_threads
get_threads: Final = lib.fs_get_threads


def _pointer(array: Array) -> Any:
    return ffi.from_buffer(_ARRAYS[array.dtype], array, require_writable=False)


def _base(matrix: Array) -> Any:
    """The address of the first element of a matrix in row-major or column-major order."""
    return _pointer(matrix if matrix.flags.c_contiguous else matrix.T)


def _kernel(name: str, array: Array) -> Any:
    return getattr(lib, f"fs_{name}_{_NAMES[array.dtype]}")


def places(indices: Array, sizes: tuple[int, ...]) -> Array:
    """Each column of indices as one number.

    Raises:
        IndexError: one is outside of the sizes: indices were written to since the tensor was made.
    """
    dims, count = indices.shape
    found = np.empty(count, np.int64)
    bad = lib.fs_places(_pointer(indices), dims, count, ffi.new("int64_t[]", sizes), _pointer(found))
    if bad < count:
        raise BoundsError(
            f"A sparse tensor's indices are inside of its sizes {list(sizes)}, got {indices[:, bad].tolist()} in column "
            f"{bad}.\nMake a new tensor instead of writing to x._indices()."
        )
    return found


def order(numbers: Array) -> Array:
    """The stable order that sorts int64 numbers."""
    found = np.empty(numbers.size, np.int64)
    if not lib.fs_order(_pointer(numbers), numbers.size, _pointer(found)):
        raise AllocationError(f"The host could not allocate the memory to sort {numbers.size:,} places.")
    return found


def runs(numbers: Array, ordered: Array) -> Array:
    """Where runs of equal numbers start in sorted order, and the end."""
    found = np.empty(numbers.size + 1, np.int64)
    return found[: lib.fs_runs(_pointer(numbers), _pointer(ordered), numbers.size, _pointer(found)) + 1]


def find(ordered: Array, wanted: Array) -> Array:
    """Where in sorted numbers others are; -1 for those that are not there."""
    found = np.empty(wanted.size, np.int64)
    lib.fs_find(_pointer(ordered), ordered.size, _pointer(wanted), wanted.size, _pointer(found))
    return found


def sum_runs(values: Array, ordered: Array, starts: Array) -> Array:
    """The sum of the values of each run."""
    out = np.empty((starts.size - 1, *values.shape[1:]), values.dtype)
    width = out[:1].size if len(out) else 0
    kernel = _kernel("sum_runs", values)
    kernel(_pointer(values), _pointer(ordered), _pointer(starts), starts.size - 1, width, _pointer(out))
    return out


def merge(a: Array, b: Array) -> tuple[Array, Array]:
    """Where each of the numbers that two rising arrays have together is in the one and the other; -1 if it is not."""
    found = np.empty((2, a.size + b.size), np.int64)
    count = lib.fs_merge(_pointer(a), a.size, _pointer(b), b.size, _pointer(found[0]), _pointer(found[1]))
    return found[0, :count], found[1, :count]


def merged_indices(a: Array, from_a: Array, b: Array, from_b: Array) -> Array:
    """Indices that are at merged places."""
    out = np.empty((len(a), from_a.size), np.int64)
    lib.fs_merged_indices(
        _pointer(a), a.shape[1], _pointer(from_a), _pointer(b), b.shape[1], _pointer(from_b), *out.shape, _pointer(out)
    )
    return out


def add_merged(a: Array, from_a: Array, b: Array, from_b: Array) -> Array:
    """Sums of values that are at merged places."""
    out = np.empty((from_a.size, *a.shape[1:]), a.dtype)
    width = out[:1].size if len(out) else 0
    _kernel("add_merged", a)(
        _pointer(a), _pointer(from_a), _pointer(b), _pointer(from_b), len(out), width, _pointer(out)
    )
    return out


def scatter(out: Array, where: Array, values: Array) -> None:
    """Add values, one after the other, to the elements at some places of a row-major array."""
    width = values[:1].size if len(values) else 0
    count = out.size // width if width else 0
    _kernel("scatter", out)(_pointer(out), count, _pointer(where), _pointer(values), len(values), width)


def fold(out: Array, where: Array, values: Array, p: float) -> None:
    """Fold sizes to the power of p into the rows (count, kept) at some places; values are (n, kept, inner)."""
    _kernel("fold", out)(_pointer(out), len(out), _pointer(where), _pointer(values), *values.shape, p)


def product(out: Array, rows: Array, columns: Array, values: Array, dense: Array) -> None:
    """Add to a row-major matrix the product of one given by its elements, in any order, and a dense one."""
    down, across = (each // dense.itemsize for each in dense.strides)
    _kernel("spmm", values)(
        _pointer(rows), _pointer(columns), _pointer(values), values.size, _base(dense), down, across, *out.shape,
        _pointer(out),
    )  # fmt: skip


def sampled(rows: Array, columns: Array, a: Array, b: Array) -> Array:
    """The elements at given places of a product of dense matrices."""
    out = np.empty(rows.size, a.dtype)
    steps = [[each // one.itemsize for each in one.strides] for one in (a, b)]
    _kernel("sddmm", a)(
        _pointer(rows), _pointer(columns), rows.size, _base(a), *steps[0], _base(b), *steps[1], a.shape[1],
        _pointer(out),
    )  # fmt: skip
    return out
