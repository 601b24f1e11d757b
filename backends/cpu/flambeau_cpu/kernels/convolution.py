"""Launchers of convolution.c: all kernels take one geometry, that of the forward convolution."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from flambeau.backend import Key, Tensor, contiguous, empty

from .._kernels import ffi, lib
from ..launch import packed
from .linalg import Routine, out_of_memory

__all__ = ["KERNELS"]

_MOST_PLANS: Final = 1024
_NULL: Final = ffi.NULL
_plans: Final[dict[Any, Any]] = {}

Ints = Sequence[int]


def _three(values: Ints, fill: int) -> list[int]:
    return [fill] * (3 - len(values)) + list(values)


def _parameters(x: Ints, y: Ints, w: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Any:
    """The parameter block for tensors of shapes x -> y with weights of shape w."""
    which = (tuple(x), tuple(y), tuple(w), stride, padding, dilation, groups)
    found = _plans.get(which)
    if found is None:
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        found = _plans[which] = ffi.new("int64_t[]", [
            x[0], groups, w[1], w[0] // groups, *_three(x[2:], 1), *_three(y[2:], 1), *_three(w[2:], 1),
            *_three(stride, 1), *_three(padding, 0), *_three(dilation, 1),
        ])  # fmt: skip
    return found


def _call(name: str, kernel: Any, out: Tensor, a: Tensor, b: Tensor, bias: Tensor | None, params: Any) -> Tensor:
    if out.geometry.numel:
        a, b = packed(a), packed(b)
        add = _NULL if bias is None else packed(bias).memory
        if lib.fb_call4(kernel, out.memory, a.memory, b.memory, add, params):
            raise out_of_memory(name)
    return out


def _conv(kernel: Any, key: Key) -> Callable[..., Tensor]:
    def launch(
        x: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints, dilation: Ints, groups: int
    ) -> Tensor:
        size, w = x.geometry.shape, weight.geometry.shape
        spatial = [
            (length + 2 * pad - wide * (taps - 1) - 1) // step + 1
            for length, pad, wide, taps, step in zip(size[2:], padding, dilation, w[2:], stride, strict=True)
        ]
        out = empty(key, contiguous((size[0], w[0], *spatial)))
        params = _parameters(size, out.geometry.shape, w, stride, padding, dilation, groups)
        return _call("convolution", kernel, out, x, weight, bias, params)

    return launch


def _conv_input(kernel: Any, key: Key) -> Callable[..., Tensor]:
    def launch(
        grad: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        size: Ints,
        stride: Ints,
        padding: Ints,
        dilation: Ints,
        groups: int,
    ) -> Tensor:
        y, w = grad.geometry.shape, weight.geometry.shape
        out = empty(key, contiguous((y[0], w[1] * groups, *size)))
        params = _parameters(out.geometry.shape, y, w, stride, padding, dilation, groups)
        return _call("transposed convolution", kernel, out, grad, weight, bias, params)

    return launch


def _conv_weight(kernel: Any, key: Key) -> Callable[..., Tensor]:
    def launch(x: Tensor, grad: Tensor, size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Tensor:
        shape, y = x.geometry.shape, grad.geometry.shape
        out = empty(key, contiguous((y[1], shape[1] // groups, *size)))
        params = _parameters(shape, y, out.geometry.shape, stride, padding, dilation, groups)
        return _call("convolution (weight gradient)", kernel, out, x, grad, None, params)

    return launch


def _im2col(kernel: Any, key: Key) -> Callable[..., Tensor]:
    def launch(x: Tensor, taps: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Tensor:
        n, channels, *size = x.geometry.shape
        positions = [
            (length + 2 * pad - wide * (tap - 1) - 1) // step + 1
            for length, pad, wide, tap, step in zip(size, padding, dilation, taps, stride, strict=True)
        ]
        out = empty(key, contiguous((n, channels * math.prod(taps), math.prod(positions))))
        params = _parameters(x.geometry.shape, (n, 0, *positions), (0, channels, *taps), stride, padding, dilation, 1)
        return _call("unfold", kernel, out, x, x, None, params)

    return launch


def _col2im(kernel: Any, key: Key) -> Callable[..., Tensor]:
    def launch(columns: Tensor, size: Ints, taps: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Tensor:
        n, rows, _ = columns.geometry.shape
        channels = rows // math.prod(taps)
        positions = [
            (length + 2 * pad - wide * (tap - 1) - 1) // step + 1
            for length, pad, wide, tap, step in zip(size, padding, dilation, taps, stride, strict=True)
        ]
        out = empty(key, contiguous((n, channels, *size)))
        params = _parameters(out.geometry.shape, (n, 0, *positions), (0, channels, *taps), stride, padding, dilation, 1)
        return _call("fold", kernel, out, columns, columns, None, params)

    return launch


KERNELS: Final[dict[str, Any]] = {
    "conv": Routine("conv", _conv),
    "conv_input": Routine("conv_input", _conv_input),
    "conv_weight": Routine("conv_weight", _conv_weight),
    "im2col": Routine("unfold", _im2col),
    "col2im": Routine("fold", _col2im),
}
