"""Launchers of joining.c."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from flambeau.backend import Kernel, Tensor, contiguous, empty, uint8

from .._kernels import ffi, lib
from ..launch import find, plan_for

_params: Final = ffi.typeof("int64_t[]")
_pointers: Final = ffi.typeof("void *[]")


def cat(tensors: Sequence[Any], dim: int) -> Tensor:
    first = tensors[0]
    key, shape = first.key, first.geometry.shape
    total = 0
    for each in tensors:
        total += each.geometry.shape[dim]
    out = empty(key, contiguous((*shape[:dim], total, *shape[dim + 1 :])))
    if not out.geometry.numel:
        return out
    dense = [each if each.geometry.contiguous else each.contiguous() for each in tensors]
    size = key.dtype.itemsize
    rows = prod(shape[:dim]) if dim else 1
    parts = [each.geometry.numel * size // rows for each in dense]
    pointers = ffi.new(_pointers, [out.memory, *[each.memory for each in dense]])
    lib.fb_call_n(_cat(), pointers, ffi.new(_params, [len(dense), rows, sum(parts), *parts]))
    return out


def _cat() -> Any:
    return find("cat", uint8)


def triangle(upper: bool) -> Any:
    def launch(self: Any, diagonal: int) -> Tensor:
        dense = self.contiguous()
        out = empty(self.key, dense.geometry)
        rows, columns = dense.geometry.shape[-2:]
        if out.geometry.numel:
            q = ffi.new(_params, (prod(dense.geometry.shape[:-2]), rows, columns, max(min(diagonal, columns), -rows), self.key.dtype.itemsize, upper))
            null = ffi.NULL
            lib.fb_call(find("triangle", uint8), out.memory, dense.memory, null, null, null, null, null, null, q)
        return out

    return launch


def flip(self: Any, dims: tuple[int, ...]) -> Tensor:
    """A copy that walks the flipped dimensions backwards."""
    geometry = self.geometry
    out = empty(self.key, contiguous(geometry.shape))
    if geometry.numel:
        strides = [-step if dim in dims else step for dim, step in enumerate(geometry.strides)]
        last = sum((geometry.shape[dim] - 1) * geometry.strides[dim] for dim in dims)
        start = self.key.shift(self.memory, last) if last else self.memory
        null = ffi.NULL
        lib.fb_walk(find("copy", self.key.dtype), plan_for(geometry.shape, [out.geometry.strides, strides]), out.memory, start, null, null, null)
    return out


KERNELS: Final[dict[str, Any]] = {"cat": Kernel(cat), "flip": Kernel(flip), "tril": Kernel(triangle(False)), "triu": Kernel(triangle(True))}
