"""The C kernels on NumPy arrays."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from flambeau.backend import (
    AllocationError,
    BoundsError,
    bool_,
    complex64,
    complex128,
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
    "NUMBERS",
    "REAL",
    "find",
    "order",
    "places",
    "runs",
    "sampled",
    "scatter",
    "sorted_product",
    "sum_runs",
]

Array = np.ndarray[Any, Any]

#: C type of each element type that kernels are compiled for.
_C_TYPES: Final = {
    bool_: "_Bool", uint8: "uint8_t", int8: "int8_t", int16: "int16_t", int32: "int32_t", int64: "int64_t",
    float32: "float", float64: "double", complex64: "float _Complex", complex128: "double _Complex",
}  # fmt: skip
DTYPES: Final = tuple(_C_TYPES)
#: Those that can be subtracted, and those that have an order.
NUMBERS: Final = DTYPES[1:]
REAL: Final = NUMBERS[:-2]
_NAMES: Final = {np.dtype(each.numpy): each.name for each in DTYPES}
_ARRAYS: Final = {np.dtype(each.numpy): ffi.typeof(f"{name}[]") for each, name in _C_TYPES.items()}
_POINTERS: Final = {np.dtype(each.numpy): ffi.typeof(f"{name} *") for each, name in _C_TYPES.items()}


def _pointer(array: Array) -> Any:
    return ffi.from_buffer(_ARRAYS[array.dtype], array, require_writable=False)


def _base(array: Array) -> Any:
    """The address of the first element of an array of any strides."""
    return ffi.cast(_POINTERS[array.dtype], array.__array_interface__["data"][0])


def _kernel(name: str, array: Array) -> Any:
    return getattr(lib, f"fs_{name}_{_NAMES[array.dtype]}")


def places(indices: Array, sizes: tuple[int, ...]) -> Array:
    """Each column of indices as one number.

    Raises:
        IndexError: one is outside of the sizes: indices were written to since the tensor was made.
    """
    dims, count = indices.shape
    found = np.empty(count, np.int64)
    bad = lib.fs_places(_pointer(indices), dims, count, _pointer(np.array(sizes, np.int64)), _pointer(found))
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


def scatter(out: Array, where: Array, values: Array) -> None:
    """Add values to the elements at different places of a row-major array."""
    width = values[:1].size if len(values) else 0
    _kernel("scatter", out)(_pointer(out), _pointer(where), _pointer(values), len(values), width)


def sorted_product(starts: Array, columns: Array, values: Array, dense: Array) -> Array:
    """Rows of sparse values, each from one start to the next, times a dense matrix."""
    down, across = (each // dense.itemsize for each in dense.strides)
    rows, width = starts.size - 1, dense.shape[1]
    out = np.empty((rows, width), values.dtype)
    _kernel("spmm", values)(
        _pointer(starts), _pointer(columns), _pointer(values), _base(dense), down, across, rows, width, _pointer(out)
    )
    return out


def sampled(rows: Array, columns: Array, a: Array, b: Array) -> Array:
    """The elements at given places of a product of dense matrices."""
    out = np.empty(rows.size, a.dtype)
    steps = [[each // one.itemsize for each in one.strides] for one in (a, b)]
    _kernel("sddmm", a)(
        _pointer(rows), _pointer(columns), rows.size, _base(a), *steps[0], _base(b), *steps[1], a.shape[1],
        _pointer(out),
    )  # fmt: skip
    return out
