"""Convolutions over one to three dimensions, forward and both backwards; the transposed one is a backward."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from flambeau.backend import Geometry, Key, Tensor, float32, make, strided

from . import cache
from .cache import Operation, Part
from .family import Family, fresh, plain, unfit
from .native import lib

__all__ = ["KERNELS"]

Ints = Sequence[int]
#: products of numbers below which calling oneDNN costs more than it saves
_WORTHWHILE: Final = 1 << 20
_ANY: Final = lib.FM_ANY
_OUT: Final = lib.FM_ANY | lib.FM_WRITTEN


def _after(x: Ints, y: Ints, taps: Ints, stride: Ints, padding: Ints, dilation: Ints) -> list[int]:
    """Zeros after the input, with which the windows end exactly; negative where they leave out its end."""
    return [
        (out - 1) * step + wide * (tap - 1) + 1 - size - pad
        for size, out, tap, step, pad, wide in zip(x[2:], y[2:], taps, stride, padding, dilation, strict=True)
    ]


def _numbers(x: Ints, y: Ints, taps: Ints, stride: Ints, padding: Ints, dilation: Ints) -> list[int]:
    wide = [each - 1 for each in dilation]
    return [len(taps), *stride, *wide, *padding, *_after(x, y, taps, stride, padding, dilation)]


def _grouped(part: int, manner: int, weight: Geometry, groups: int) -> Part:
    """Weights with a dimension for groups, if there are several."""
    found = Part.of(part, manner, weight)
    if groups == 1:
        return found
    outputs, each = weight.shape[0] // groups, found.strides[0]
    return Part(part, manner, (groups, outputs, *weight.shape[1:]), (each * outputs, *found.strides))


def _conv(key: Key) -> Callable[..., Tensor]:
    def launch(
        x: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints, dilation: Ints, groups: int
    ) -> Tensor:
        x, weight = plain(x), plain(weight)
        size, shape = x.geometry.shape, weight.geometry.shape
        out = fresh(key, (size[0], shape[0], *[
            (length + 2 * pad - wide * (taps - 1) - 1) // step + 1
            for length, pad, wide, taps, step in zip(size[2:], padding, dilation, shape[2:], stride, strict=True)
        ]))  # fmt: skip
        tail = () if bias is None else (plain(bias),)

        def make_it() -> Operation:
            parts = [
                Part.of(lib.FM_SOURCE, _ANY, x.geometry),
                _grouped(lib.FM_WEIGHTS, _ANY, weight.geometry, groups),
                Part.of(lib.FM_RESULT, _OUT, out.geometry),
                *[Part.of(lib.FM_BIAS, 0, each.geometry) for each in tail],
            ]
            numbers = _numbers(size, out.geometry.shape, shape[2:], stride, padding, dilation)
            return Operation(key, lib.FM_CONVOLUTION, parts, numbers)

        which = ("conv", key, x.geometry, weight.geometry, bias is None, stride, padding, dilation, groups)
        cache.find(which, make_it).run(x, weight, out, *tail)
        return out

    return launch


def _conv_input(key: Key) -> Callable[..., Tensor]:
    def launch(
        grad: Tensor, weight: Tensor, bias: Tensor | None, size: Ints, stride: Ints, padding: Ints, dilation: Ints,
        groups: int,
    ) -> Tensor:  # fmt: skip
        grad, weight = plain(grad), plain(weight)
        y, shape = grad.geometry.shape, weight.geometry.shape
        out = fresh(key, (y[0], shape[1] * groups, *size))

        def make_it() -> Operation:
            parts = (
                Part.of(lib.FM_GRAD_RESULT, _ANY, grad.geometry),
                _grouped(lib.FM_WEIGHTS, _ANY, weight.geometry, groups),
                Part.of(lib.FM_GRAD_SOURCE, _OUT, out.geometry),
            )
            numbers = _numbers(out.geometry.shape, y, shape[2:], stride, padding, dilation)
            return Operation(key, lib.FM_CONVOLUTION_INPUT, parts, numbers)

        which = ("conv_input", key, grad.geometry, weight.geometry, tuple(size), stride, padding, dilation, groups)
        cache.find(which, make_it).run(grad, weight, out)
        if bias is not None:
            spread = (bias.geometry.strides[0], *[0] * len(size))
            column = strided((bias.geometry.numel, *[1] * len(size)), spread)
            out.add_(make(key, column, bias.memory))  # type: ignore[attr-defined]
        return out

    return launch


def _conv_weight(key: Key) -> Callable[..., Tensor]:
    def launch(x: Tensor, grad: Tensor, size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Tensor:
        x, grad = plain(x), plain(grad)
        shape, y = x.geometry.shape, grad.geometry.shape
        out = fresh(key, (y[1], shape[1] // groups, *size))

        def make_it() -> Operation:
            parts = (
                Part.of(lib.FM_SOURCE, _ANY, x.geometry),
                Part.of(lib.FM_GRAD_RESULT, _ANY, grad.geometry),
                _grouped(lib.FM_GRAD_WEIGHTS, _OUT, out.geometry, groups),
            )
            return Operation(key, lib.FM_CONVOLUTION_WEIGHT, parts, _numbers(shape, y, size, stride, padding, dilation))

        which = ("conv_weight", key, x.geometry, grad.geometry, tuple(size), stride, padding, dilation, groups)
        cache.find(which, make_it).run(x, grad, out)
        return out

    return launch


def _cannot_forward(x: Tensor, weight: Tensor, *_: Any) -> str | None:
    return unfit(x, weight)


def _beyond(after: Ints, stride: Ints) -> str | None:
    """oneDNN does not know inputs that end a whole step or more after the last window."""
    if any(pad + step <= 0 for pad, step in zip(after, stride)):
        return "an output padding of a whole stride"
    return None


def _cannot_input(
    grad: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> str | None:
    y = grad.geometry.shape
    after = _after((0, 0, *size), y, weight.geometry.shape[2:], stride, padding, dilation)
    return unfit(grad, weight) or _beyond(after, stride)


def _cannot_weight(
    x: Tensor, grad: Tensor, size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> str | None:
    after = _after(x.geometry.shape, grad.geometry.shape, size, stride, padding, dilation)
    return unfit(x, grad) or _beyond(after, stride)


def _loses(key: Key, channels: int, outputs: int, taps: Ints, positions: int) -> str | None:
    """Measured: see docs/performance.md.  Channels and outputs are those of one group."""
    window = math.prod(taps)
    if positions * channels * outputs * window < _WORTHWHILE:
        return "faster without: little work"
    if key.dtype is float32 and (window == 1 or channels % 16 or outputs % 16):
        return "faster without: float32, and a window of 1 or channels that are no multiples of 16"
    return "faster without: one channel for each" if channels == 1 and outputs == 1 else None


def _loses_forward(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> str | None:
    outputs, channels, *taps = weight.geometry.shape
    positions = x.geometry.numel // max(channels * groups, 1) * groups // math.prod(stride)
    return _loses(x.key, channels, outputs // groups, taps, positions)


def _loses_input(grad: Tensor, weight: Tensor, bias: Tensor | None, size: Ints, *geometry: Any) -> str | None:
    outputs, channels, *taps = weight.geometry.shape
    groups = geometry[-1]
    return _loses(grad.key, channels, outputs // groups, taps, grad.geometry.numel // max(outputs // groups, 1))


def _loses_weight(x: Tensor, grad: Tensor, size: Ints, *geometry: Any) -> str | None:
    groups = geometry[-1]
    channels, outputs = x.geometry.shape[1] // groups, grad.geometry.shape[1] // groups
    return _loses(x.key, channels, outputs, size, grad.geometry.numel // max(outputs, 1))


KERNELS: Final[dict[str, Family]] = {
    "conv": Family(_conv, _cannot_forward, _loses_forward),
    "conv_input": Family(_conv_input, _cannot_input, _loses_input),
    "conv_weight": Family(_conv_weight, _cannot_weight, _loses_weight),
}
