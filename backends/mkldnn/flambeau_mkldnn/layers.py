"""Averages of windows, norms, and the gradient of softmax.

Not here, because oneDNN gives other numbers than flambeau promises: softmax takes NaN for the smallest number, and
normalisation by a batch's own statistics adds thousands of float32 one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from flambeau.backend import Geometry, Key, Tensor, contiguous_strides, float32

from . import cache
from .cache import Operation, Part
from .family import Family, fresh, plain, unfit
from .native import lib

__all__ = ["KERNELS"]

Ints = Sequence[int]
#: elements below which calling oneDNN costs more than it saves
_WORTHWHILE: Final = 1 << 15


def _rows(tensor: Tensor) -> Tensor:
    """The tensor in row-major order: itself, or a copy without history."""
    tensor = plain(tensor)
    return tensor if tensor.geometry.contiguous else tensor.contiguous()  # type: ignore[attr-defined,no-any-return]


def _part(part: int, shape: Ints, manner: int = 0) -> Part:
    """A row-major tensor, seen in this shape."""
    return Part(part, manner, shape, contiguous_strides(shape))


# ---------------------------------------------------------------- averages


def _average(backward: bool) -> Callable[[Key], Callable[..., Tensor]]:
    kind, inner, outer = (
        (lib.FM_AVERAGE_BACKWARD, lib.FM_GRAD_RESULT, lib.FM_GRAD_SOURCE)
        if backward
        else (lib.FM_AVERAGE, lib.FM_SOURCE, lib.FM_RESULT)
    )

    def launcher(key: Key) -> Callable[..., Tensor]:
        def launch(
            x: Tensor, size: Ints, window: Ints, stride: Ints, padding: Ints, counted: bool, divisor: int
        ) -> Tensor:
            dims, x = len(size), _rows(x)
            shape = x.geometry.shape
            out = fresh(key, (*shape[:-dims], *size))

            def make_it() -> Operation:
                planes = math.prod(shape[:-dims])
                here, there = (1, planes, *shape[-dims:]), (1, planes, *size)
                wide, small = (there, here) if backward else (here, there)
                parts = _part(inner, here), _part(outer, there, lib.FM_WRITTEN)
                after = _after(wide[2:], small[2:], window, stride, padding)
                numbers = [dims, *stride, *[0] * dims, *padding, *after, *window, int(counted)]
                return Operation(key, kind, parts, numbers)

            which = (kind, key, shape, tuple(size), window, stride, padding, counted)
            cache.find(which, make_it).run(x, out)
            return out

        return launch

    return launcher


def _after(wide: Ints, small: Ints, window: Ints, stride: Ints, padding: Ints) -> list[int]:
    return [
        (count - 1) * step + span - size - pad
        for count, step, span, size, pad in zip(small, stride, window, wide, padding, strict=True)
    ]


def _cannot_average(
    x: Tensor, size: Ints, window: Ints, stride: Ints, padding: Ints, counted: bool, divisor: int
) -> str | None:
    here = x.geometry.shape[-len(size) :]
    return _cannot_window(x, here, size, window, stride, padding, divisor)


def _cannot_average_backward(
    grad: Tensor, size: Ints, window: Ints, stride: Ints, padding: Ints, counted: bool, divisor: int
) -> str | None:
    here = grad.geometry.shape[-len(size) :]
    return _cannot_window(grad, size, here, window, stride, padding, divisor)


def _cannot_window(
    x: Tensor, wide: Ints, small: Ints, window: Ints, stride: Ints, padding: Ints, divisor: int
) -> str | None:
    if divisor:
        return "a divisor of one's own"
    after = _after(wide, small, window, stride, padding)
    if any(end > pad for end, pad in zip(after, padding)):
        return "windows that end after the padding"
    if any(end + step <= 0 for end, step in zip(after, stride)) or not all(wide):
        return "an input that ends a whole stride after the last window"
    return unfit(x)


# ---------------------------------------------------------------- softmax


def _softmax_backward(kind: int) -> Callable[[Key], Callable[..., Tensor]]:
    def launcher(key: Key) -> Callable[..., Tensor]:
        def launch(grad: Tensor, output: Tensor, dim: int) -> Tensor:
            grad, output = _rows(grad), _rows(output)
            shape = output.geometry.shape
            out = fresh(key, shape)

            def make_it() -> Operation:
                lines = (math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :]))
                parts = (
                    _part(lib.FM_GRAD_RESULT, lines), _part(lib.FM_RESULT, lines),
                    _part(lib.FM_GRAD_SOURCE, lines, lib.FM_WRITTEN),
                )  # fmt: skip
                return Operation(key, kind, parts, (1,))

            cache.find((kind, key, shape, dim), make_it).run(grad, output, out)
            return out

        return launch

    return launcher


def _cannot_softmax(grad: Tensor, output: Tensor, dim: int) -> str | None:
    return unfit(grad) if grad.geometry.ndim else "no dimension"


def _loses_softmax(grad: Tensor, output: Tensor, dim: int) -> str | None:
    return "faster without: float32" if grad.key.dtype is float32 else _loses(grad)


# ---------------------------------------------------------------- norms


def _planes(geometry: Geometry) -> tuple[int, int, int]:
    """(N, C, L)"""
    batch, channels = geometry.shape[:2]
    return batch, channels, geometry.numel // (batch * channels)


def _norm(key: Key, kind: int, shape: Ints, stats: int, statistics: Ints, given: Ints, eps: float) -> Operation:
    """The operation of a norm: what is normalised, the result, mean and variance, then scale and shift if given."""
    affine = [_part(part, (shape[-1] if kind == lib.FM_LAYER_NORM else shape[1],)) for part in given]
    parts = [
        _part(lib.FM_SOURCE, shape), _part(lib.FM_RESULT, shape, lib.FM_WRITTEN),
        _part(lib.FM_MEAN, statistics, stats), _part(lib.FM_VARIANCE, statistics, stats), *affine,
    ]  # fmt: skip
    return Operation(key, kind, parts, (0,), eps)


def _affine(weight: Tensor | None, bias: Tensor | None) -> tuple[tuple[int, ...], list[Tensor]]:
    found = [(lib.FM_SCALE, weight), (lib.FM_SHIFT, bias)]
    return tuple(part for part, each in found if each is not None), [
        _rows(each) for _, each in found if each is not None
    ]


def _batch_norm_given(key: Key) -> Callable[..., Tensor]:
    def launch(
        x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
    ) -> Tensor:
        x, (given, affine) = _rows(x), _affine(weight, bias)
        shape, kind = _planes(x.geometry), lib.FM_BATCH_NORM_GIVEN
        out = fresh(key, x.geometry.shape)

        def make_it() -> Operation:
            return _norm(key, kind, shape, 0, shape[1:2], given, eps)

        cache.find((kind, key, shape, given, eps), make_it).run(x, out, _rows(mean), _rows(variance), *affine)
        return out

    return launch


def _layer_norm(key: Key) -> Callable[..., Any]:
    def launch(x: Tensor, weight: Tensor | None, bias: Tensor | None, groups: int, weights: int, eps: float) -> Any:
        x, (given, affine) = _rows(x), _affine(weight, bias)
        shape, kind = (x.geometry.numel // weights, weights), lib.FM_LAYER_NORM
        out, mean, variance = fresh(key, x.geometry.shape), fresh(key, shape[:1]), fresh(key, shape[:1])

        def make_it() -> Operation:
            return _norm(key, kind, shape, lib.FM_WRITTEN, shape[:1], given, eps)

        cache.find((kind, key, shape, given, eps), make_it).run(x, out, mean, variance, *affine)
        return out, mean, variance.add_(eps).rsqrt_()  # type: ignore[attr-defined]

    return launch


def _cannot_norm(x: Tensor, *_: Any) -> str | None:
    return unfit(x)


def _cannot_layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, groups: int, *_: Any) -> str | None:
    return "groups of channels" if groups else unfit(x)


def _loses(x: Tensor, *_: Any) -> str | None:
    return "faster without: little work" if x.geometry.numel < _WORTHWHILE else None


def _loses_norm(x: Tensor, *_: Any) -> str | None:
    return "faster without, whatever the size"


KERNELS: Final[dict[str, Family]] = {
    "avg_pool": Family(_average(False), _cannot_average, _loses),
    "avg_pool_backward": Family(_average(True), _cannot_average_backward, _loses),
    "softmax_backward": Family(_softmax_backward(lib.FM_SOFTMAX_BACKWARD), _cannot_softmax, _loses_softmax),
    "log_softmax_backward": Family(_softmax_backward(lib.FM_LOG_SOFTMAX_BACKWARD), _cannot_softmax, _loses_softmax),
    "batch_norm_eval": Family(_batch_norm_given, _cannot_norm, _loses_norm, (float32,)),
    "row_norm": Family(_layer_norm, _cannot_layer_norm, _loses_norm, (float32,)),
}
