"""Products of matrices, with a bias that is added on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from flambeau.backend import Geometry, Key, Tensor, float32, make, strided

from . import cache
from .cache import Operation, Part
from .family import Family, fresh, plain, unfit
from .native import lib

__all__ = ["KERNELS"]

#: products of numbers below which calling oneDNN costs more than it saves
_WORTHWHILE: Final = 1 << 24
_WORTHWHILE_HALF: Final = 1 << 19
#: elements of weights from which it pays to keep them in oneDNN's layout, in bfloat16
_WORTH_KEEPING: Final = 1 << 19


def _rows(geometry: Geometry) -> Geometry | None:
    """A geometry as rows, all leading dimensions in one; None if they do not lie like that."""
    if geometry.ndim == 2:
        return geometry
    if not geometry.contiguous:
        return None
    width = geometry.shape[-1]
    return strided((geometry.numel // width, width), (width, 1))


def _transposed(geometry: Geometry) -> Geometry:
    return strided((geometry.shape[1], geometry.shape[0]), (geometry.strides[1], geometry.strides[0]))


def _multiply(key: Key, out: Tensor, a: Tensor, x: Geometry, b: Tensor, y: Geometry, bias: Tensor | None) -> Tensor:
    """out = a @ b + bias, for memory of a that lies like x and of b that lies like y."""
    rows = (x.shape[0], y.shape[1])
    tail = () if bias is None else (plain(bias),)

    # Elsewhere it costs more to see that the weights are the same than to change their layout again.
    keeps = key.dtype is not float32 and y.numel >= _WORTH_KEEPING

    def make_it() -> Operation:
        parts = [
            Part.of(lib.FM_SOURCE, 0, x),
            Part.of(lib.FM_WEIGHTS, lib.FM_ANY | (lib.FM_KEPT if keeps else 0), y),
            Part(lib.FM_RESULT, lib.FM_WRITTEN, rows, (rows[1], 1)),
            *[Part(lib.FM_BIAS, 0, (1, rows[1]), (rows[1], 1)) for _ in tail],
        ]
        return Operation(key, lib.FM_MATMUL, parts)

    cache.find(("matmul", key, x, y, bias is None), make_it).run(a, b, out, *tail)
    return out


def _mm(key: Key) -> Callable[..., Tensor]:
    def launch(a: Tensor, b: Tensor) -> Tensor:
        a, b = plain(a), plain(b)
        x, y = a.geometry, b.geometry
        return _multiply(key, fresh(key, (x.shape[0], y.shape[1])), a, x, b, y, None)

    return launch


def _linear(key: Key) -> Callable[..., Tensor]:
    def launch(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        rows = _rows(x.geometry)
        if rows is None or not x.geometry.dense:
            x = make(x.key, x.geometry, x.memory).contiguous()  # type: ignore[attr-defined]
            rows = _rows(x.geometry)
        weight = plain(weight)
        out = fresh(key, (*x.geometry.shape[:-1], weight.geometry.shape[0]))
        assert rows is not None
        return _multiply(key, out, x, rows, weight, _transposed(weight.geometry), bias)

    return launch


def _cannot_mm(a: Tensor, b: Tensor) -> str | None:
    return unfit(a, b)


def _cannot_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> str | None:
    if weight.geometry.ndim != 2:
        return "a weight that is a vector"
    if bias is not None and bias.geometry.shape != weight.geometry.shape[:1]:
        return "a bias that is not a vector of the outputs"
    return unfit(x, weight) if bias is None else unfit(x, weight, bias)


def _loses(key: Key, rows: int, inner: int, columns: int) -> str | None:
    """Measured: see docs/performance.md."""
    least = _WORTHWHILE if key.dtype is float32 else _WORTHWHILE_HALF
    if rows * inner * columns < least or (key.dtype is float32 and rows < 32):
        return "faster without: little work"
    return None


def _loses_mm(a: Tensor, b: Tensor) -> str | None:
    return _loses(a.key, *a.geometry.shape, b.geometry.shape[1])


def _loses_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> str | None:
    wide = x.geometry.shape[-1]
    return _loses(x.key, x.geometry.numel // max(wide, 1), wide, weight.geometry.shape[0])


KERNELS: Final[dict[str, Family]] = {
    "mm": Family(_mm, _cannot_mm, _loses_mm),
    "linear": Family(_linear, _cannot_linear, _loses_linear),
}
