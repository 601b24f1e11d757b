"""Launchers of pooling.c."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from flambeau.backend import Key, ShapeError, Tensor, contiguous, empty, int64

from .._kernels import ffi, lib
from ..launch import packed
from .linalg import Routine, out_of_memory

__all__ = ["KERNELS"]

_NULL: Final = ffi.NULL
Ints = Sequence[int]


def _three(values: Ints, fill: int = 1) -> list[int]:
    return [fill] * (3 - len(values)) + list(values)


def _planes(tensor: Tensor, dims: int) -> int:
    return math.prod(tensor.geometry.shape[: tensor.geometry.ndim - dims])


def _block(
    planes: int,
    wide: Ints,
    size: Ints,
    kernel: Ints = (),
    stride: Ints = (),
    padding: Ints = (),
    dilation: Ints = (),
    *rest: int,
) -> Any:
    """The parameter block: planes of size ``wide`` pooled to ``size``."""
    return ffi.new("int64_t[]", [
        planes, *_three(wide), *_three(size), *_three(kernel), *_three(stride), *_three(padding, 0), *_three(dilation),
        *(rest or (0, 0)),
    ])  # fmt: skip


def _maxima(kernel: Any, key: Key) -> Callable[..., tuple[Tensor, Tensor]]:
    index_key = key.of(int64)

    def launch(x: Tensor, size: Ints, *window: Ints) -> tuple[Tensor, Tensor]:
        dims = len(size)
        geometry = contiguous((*x.geometry.shape[:-dims], *size))
        out, indices = empty(key, geometry), empty(index_key, geometry)
        if geometry.numel:
            params = _block(_planes(x, dims), x.geometry.shape[-dims:], size, *window)
            x = packed(x)
            lib.fb_call4(kernel, out.memory, indices.memory, x.memory, _NULL, params)
        return out, indices

    return launch


def _averages(name: str, backward: bool) -> Callable[[Any, Key], Callable[..., Tensor]]:
    def launcher(kernel: Any, key: Key) -> Callable[..., Tensor]:
        def launch(x: Tensor, size: Ints, *window: Any) -> Tensor:
            dims = len(size)
            out = empty(key, contiguous((*x.geometry.shape[:-dims], *size)))
            if out.geometry.numel:
                here = x.geometry.shape[-dims:]
                wide, small = (size, here) if backward else (here, size)
                rest = (*window[:3], (), int(window[3]), window[4]) if window else ()
                params = _block(_planes(x, dims), wide, small, *rest)
                x = packed(x)
                if lib.fb_call4(kernel, out.memory, x.memory, _NULL, _NULL, params):
                    raise out_of_memory(name)
            return out

        return launch

    return launcher


def _bad_index(code: int, indices: Tensor, size: Ints) -> ShapeError:
    value = packed(indices).reshape(-1)[code - 1].item()  # type: ignore[attr-defined]
    return ShapeError(
        f"max_unpool: found an invalid max index: {value} (output volumes are of size {'x'.join(map(str, size))}).\n"
        "Use the indices that max_pool returned for an input of this size."
    )


def _spread(kernel: Any, key: Key) -> Callable[..., Tensor]:
    def launch(y: Tensor, indices: Tensor, size: Ints) -> Tensor:
        dims = len(size)
        out = empty(key, contiguous((*y.geometry.shape[:-dims], *size)))
        if out.geometry.numel:
            y, indices = packed(y), packed(indices)
            params = ffi.new("int64_t[]", [_planes(y, dims), math.prod(size), math.prod(y.geometry.shape[-dims:])])
            code = lib.fb_call4(kernel, out.memory, y.memory, indices.memory, _NULL, params)
            if code:
                raise _bad_index(code, indices, size)
        return out

    return launch


def _fetch(kernel: Any, key: Key) -> Callable[..., Tensor]:
    def launch(x: Tensor, indices: Tensor, dims: int) -> Tensor:
        out = empty(key, contiguous(indices.geometry.shape))
        if out.geometry.numel:
            x, indices = packed(x), packed(indices)
            planes = _planes(x, dims)
            params = ffi.new(
                "int64_t[]", [planes, math.prod(x.geometry.shape[-dims:]), indices.geometry.numel // planes]
            )
            code = lib.fb_call4(kernel, out.memory, x.memory, indices.memory, _NULL, params)
            if code:
                raise _bad_index(code, indices, x.geometry.shape[-dims:])
        return out

    return launch


KERNELS: Final[dict[str, Any]] = {
    "max_pool": Routine("max_pool", _maxima),
    "adaptive_max_pool": Routine("adaptive_max", _maxima),
    "avg_pool": Routine("avg_pool", _averages("avg_pool", False)),
    "avg_pool_backward": Routine("avg_pool_backward", _averages("avg_pool", True)),
    "adaptive_avg_pool": Routine("adaptive_avg", _averages("adaptive_avg_pool", False)),
    "adaptive_avg_pool_backward": Routine("adaptive_avg_backward", _averages("adaptive_avg_pool", True)),
    "plane_add": Routine("plane_add", _spread),
    "plane_put": Routine("plane_put", _spread),
    "plane_get": Routine("plane_get", _fetch),
}
