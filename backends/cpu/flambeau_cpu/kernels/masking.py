"""Launchers of masking.c."""

from __future__ import annotations

from typing import Any, Final

from flambeau.backend import Kernel, ShapeError, Tensor, contiguous, empty, int64

from .._kernels import ffi, lib
from ..launch import walk
from .indexing import find_cached, unshared

_params: Final = ffi.typeof("int64_t[]")
_NULL: Final = ffi.NULL
CHUNK: Final = 4096


def _call(name: str, key: Any, p: tuple[Any, ...], q: tuple[int, ...]) -> int:
    return lib.fb_call4(find_cached(name, key), *p, *(_NULL,) * (4 - len(p)), ffi.new(_params, q))  # type: ignore[no-any-return]


def _chunks(numel: int) -> Any:
    """Room for the number of elements chosen before each chunk."""
    return ffi.new(_params, numel // CHUNK + 1)


def masked_fill_(self: Tensor, mask: Tensor, value: Tensor) -> None:
    if self.geometry.numel:
        walk(find_cached("masked_fill", self.key), (self, self, unshared(self, mask), value))


def masked_select(self: Any, mask: Any) -> Tensor:
    x, mask = self.contiguous(), mask.contiguous()
    numel = x.geometry.numel
    before = _chunks(numel)
    count = _call("mask_count", mask.key, (mask.memory, before), (numel,))
    out = empty(self.key, contiguous((count,)))
    if count:
        _call("masked_select", self.key, (out.memory, x.memory, mask.memory, before), (numel,))
    return out


def masked_scatter_(self: Any, mask: Any, source: Any) -> None:
    target, mask, source = self.contiguous(), unshared(self, mask).contiguous(), unshared(self, source).contiguous()
    numel = target.geometry.numel
    before = _chunks(numel)
    count = _call("mask_count", mask.key, (mask.memory, before), (numel,))
    if count > source.geometry.numel:
        raise ShapeError(
            f"masked_scatter_: Number of elements of source < number of ones in mask: {source.geometry.numel} < {count}"
        )
    if count:
        _call("masked_scatter", self.key, (target.memory, source.memory, mask.memory, before), (numel,))
        if target is not self:
            self.copy_(target)


def nonzero(self: Any) -> Tensor:
    x = self.contiguous()
    geometry = x.geometry
    before = _chunks(geometry.numel)
    count = _call("nonzero_count", self.key, (x.memory, before), (geometry.numel,))
    out = empty(self.key.of(int64), contiguous((count, geometry.ndim)))
    if out.geometry.numel:
        _call(
            "nonzero_write", self.key, (out.memory, x.memory, before), (geometry.numel, geometry.ndim, *geometry.shape)
        )
    return out


KERNELS: Final[dict[str, Any]] = {
    "masked_fill_": Kernel(masked_fill_),
    "masked_select": Kernel(masked_select),
    "masked_scatter_": Kernel(masked_scatter_),
    "nonzero": Kernel(nonzero),
}
