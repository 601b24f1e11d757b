"""Launchers of reduction.c, moments.c and extrema.c: folds of any dimensions of tensors of any strides."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from flambeau.backend import (
    AllocationError,
    Geometry,
    Key,
    Tensor,
    bool_,
    complex64,
    complex128,
    contiguous,
    dtype,
    float32,
    float64,
    int64,
    uint8,
)

from .._kernels import ffi, lib
from ..launch import find
from ..lines import bits, parameters
from ..memory import blocks_of

_NULL: Final = ffi.NULL
_MOST_PLANS: Final = 1024

#: From the kernel's name and what came after keepdim to the C kernel's name and its parameter.
Choice = Callable[[str, Any], tuple[str, float]]


def _block(geometry: Geometry, dims: tuple[int, ...], parameter: float, complex_: bool) -> Any:
    sizes, strides = list(geometry.shape), list(geometry.strides)
    if complex_:  # pairs of reals: one more dimension that stays
        sizes, strides = [*sizes, 2], [*[2 * each for each in strides], 1]
    mask = sum(1 << each for each in dims)
    return parameters([len(sizes), mask, bits(parameter), 0, *sizes, *strides])


def _folded(geometry: Geometry, dims: tuple[int, ...], keepdim: bool) -> Geometry:
    sizes = [(1 if each in dims else size) for each, size in enumerate(geometry.shape) if keepdim or each not in dims]
    return contiguous(tuple(sizes))


class Fold:
    """An operator ``NAME(self, dims, keepdim, extra)`` with one output.

    Args:
        name: of the C kernel.
        result: the output's dtype for a key's.
        choose: the C kernel and its parameter from ``extra``; by default ``name`` and 0.
        complex_: whether complex tensors fold as pairs of reals.
    """

    predicate: Callable[..., bool] | None = None

    def __init__(
        self,
        name: str,
        result: Callable[[dtype], dtype] = lambda own: own,
        choose: Choice = lambda name, extra: (name, 0.0),
        complex_: bool = False,
    ) -> None:
        self.name, self.result, self.choose, self.complex = name, result, choose, complex_

    def build(self, key: Key) -> Callable[..., Tensor] | None:
        real = {complex64: float32, complex128: float64}.get(key.dtype, key.dtype)
        pairs = real is not key.dtype
        if (pairs and not self.complex) or find(self.choose(self.name, 2)[0], real) is None:
            return None
        out_key = key.of(self.result(key.dtype))
        blocks = blocks_of(out_key.dtype)
        plans: dict[Any, Any] = {}
        call, new, name, choose = lib.fb_call, object.__new__, self.name, self.choose

        def launch(a: Tensor, dims: tuple[int, ...], keepdim: bool, extra: Any = None) -> Tensor:
            plan = plans.get((a.geometry, dims, keepdim, extra))
            if plan is None:
                if len(plans) > _MOST_PLANS:
                    plans.clear()
                c_name, parameter = choose(name, extra)
                geometry = _folded(a.geometry, dims, keepdim)
                plan = (
                    find(c_name, real), geometry, blocks[geometry.numel], _block(a.geometry, dims, parameter, pairs)
                )  # fmt: skip
                plans[a.geometry, dims, keepdim, extra] = plan
            kernel, geometry, allocate, block = plan
            out: Tensor = new(Tensor)
            out.key, out.geometry, out.memory = out_key, geometry, allocate()
            out.node = out.shared = None
            if call(kernel, out.memory, a.memory, _NULL, _NULL, _NULL, _NULL, _NULL, _NULL, block):
                raise AllocationError("The host has no memory left for a reduction's working space.")
            return out

        return launch


class Extremum:
    """``max_over`` and ``min_over`` (values and indices over one dimension), ``argmax`` and ``argmin``.

    Args:
        name: of the C kernel.
        values: whether values come with the indices.
    """

    predicate: Callable[..., bool] | None = None

    def __init__(self, name: str, values: bool) -> None:
        self.name, self.values = name, values

    def build(self, key: Key) -> Callable[..., Any] | None:
        kernel = find(self.name, key.dtype)
        if kernel is None:
            return None
        index_key = key.of(int64)
        values, call = self.values, lib.fb_call
        own_blocks, index_blocks = blocks_of(key.dtype), blocks_of(int64)
        plans: dict[Any, Any] = {}

        def made(key: Key, geometry: Geometry, memory: Any) -> Tensor:
            out: Tensor = object.__new__(Tensor)
            out.key, out.geometry, out.memory, out.node, out.shared = key, geometry, memory, None, None
            return out

        def launch(a: Tensor, dim: int | None, keepdim: bool) -> Any:
            plan = plans.get((a.geometry, dim, keepdim))
            if plan is None:
                if len(plans) > _MOST_PLANS:
                    plans.clear()
                ndim = a.geometry.ndim
                dims = tuple(range(ndim)) if dim is None else (dim,) if ndim else ()
                plan = plans[a.geometry, dim, keepdim] = (
                    _folded(a.geometry, dims, keepdim), _block(a.geometry, dims, 0.0, False)
                )  # fmt: skip
            geometry, block = plan
            indices = made(index_key, geometry, index_blocks[geometry.numel]())
            found = made(key, geometry, own_blocks[geometry.numel]()) if values else None
            if call(
                kernel, _NULL if found is None else found.memory, a.memory, indices.memory,
                _NULL, _NULL, _NULL, _NULL, _NULL, block,
            ):  # fmt: skip
                raise AllocationError("The host has no memory left for a reduction's working space.")
            return indices if found is None else (found, indices)

        return launch


def _norm_kernel(name: str, p: float) -> tuple[str, float]:
    if math.isinf(p):
        return ("normmax" if p > 0 else "normmin"), p
    return {0.0: "norm0", 1.0: "norm1", 2.0: "norm2"}.get(p, "normp"), p


def _wide(own: dtype) -> dtype:
    return own if own.category >= 2 else int64


def _truth(own: dtype) -> dtype:
    return uint8 if own is uint8 else bool_


def _corrected(name: str, correction: Any) -> tuple[str, float]:
    return name, float(correction)


KERNELS: Final[dict[str, Any]] = {
    "sum": Fold("sum", _wide, complex_=True),
    "mean": Fold("mean", complex_=True),
    "prod": Fold("prod", _wide),
    "amax": Fold("amax"),
    "amin": Fold("amin"),
    "any": Fold("any", _truth),
    "all": Fold("all", _truth),
    "var": Fold("var", choose=_corrected),
    "std": Fold("std", choose=_corrected),
    "lp_norm": Fold("norm", choose=_norm_kernel),
    "max_over": Extremum("max", True),
    "min_over": Extremum("min", True),
    "argmax": Extremum("max", False),
    "argmin": Extremum("min", False),
}
