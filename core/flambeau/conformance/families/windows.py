"""Convolutions and pooling in one to three dimensions, with their adjoints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from ..operands import Draw
from ..samples import definition, samples

Ints = Sequence[int]
#: channels, outputs, input size, kernel, stride, padding, dilation, groups
_CONVOLUTIONS: Final = (
    (2, 3, (7,), (3,), (1,), (0,), (1,), 1),
    (4, 2, (8,), (3,), (2,), (1,), (1,), 2),
    (2, 3, (5, 6), (3, 2), (1, 1), (0, 0), (1, 1), 1),
    (4, 4, (6, 7), (3, 3), (2, 1), (1, 2), (1, 2), 4),
    (3, 2, (5, 5), (1, 1), (1, 1), (0, 0), (1, 1), 1),
    (2, 2, (4, 5, 4), (2, 3, 2), (1, 2, 1), (1, 1, 0), (1, 1, 2), 1),
)


def _outputs(size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> tuple[int, ...]:
    return tuple(
        (length + 2 * pad - wide * (taps - 1) - 1) // step + 1
        for length, taps, step, pad, wide in zip(size, kernel, stride, padding, dilation, strict=True)
    )


@samples("conv")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for c, o, size, kernel, *geometry, groups in _CONVOLUTIONS:
        yield draw(2, c, *size), draw(o, c // groups, *kernel), draw(o), *geometry, groups
    yield draw(1, 2, 6), draw(3, 2, 3), None, (1,), (0,), (1,), 1
    yield "empty", draw(0, 2, 6), draw(3, 2, 3), draw(3), (1,), (0,), (1,), 1


@samples("conv_input")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for c, o, size, kernel, *geometry, groups in _CONVOLUTIONS:
        grad = draw(2, o, *_outputs(size, kernel, *geometry))
        yield grad, draw(o, c // groups, *kernel), draw(c), size, *geometry, groups
    yield draw(1, 3, 4), draw(3, 2, 3), None, (6,), (1,), (0,), (1,), 1
    yield "empty", draw(0, 3, 4), draw(3, 2, 3), None, (6,), (1,), (0,), (1,), 1


@samples("conv_weight")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for c, o, size, kernel, *geometry, groups in _CONVOLUTIONS:
        yield draw(2, c, *size), draw(2, o, *_outputs(size, kernel, *geometry)), kernel, *geometry, groups
    yield "empty", draw(0, 2, 6), draw(0, 3, 4), (3,), (1,), (0,), (1,), 1


_PATCHES: Final = (
    ((5, 6), (2, 3), (1, 1), (0, 0), (1, 1)), ((6, 6), (3, 2), (1, 2), (1, 1), (2, 1)), ((3, 3), (3, 3), (1, 1), (1, 0), (1, 1)),
)  # fmt: skip


@samples("im2col")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for size, *geometry in _PATCHES:
        yield draw(2, 3, *size), *geometry
    yield "empty", draw(0, 3, 5, 6), *_PATCHES[0][1:]


@samples("col2im")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for size, kernel, dilation, padding, stride in _PATCHES:
        places = math.prod(_outputs(size, kernel, stride, padding, dilation))
        yield draw(2, 3 * math.prod(kernel), places), size, kernel, dilation, padding, stride


#: input size, kernel, stride, padding, dilation
_POOLS: Final = (
    ((7,), (3,), (2,), (1,), (1,)), ((6, 7), (2, 3), (2, 2), (0, 1), (1, 1)), ((6, 7), (2, 2), (1, 2), (1, 0), (2, 1)),
    ((4, 5, 4), (2, 2, 2), (2, 1, 2), (0, 1, 0), (1, 1, 1)),
)  # fmt: skip


@samples("max_pool")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for size, *window in _POOLS:
        yield draw.distinct(2, 3, *size), _outputs(size, *window), *window
    yield draw.distinct(1, 7), (4,), (2,), (2,), (0,), (1,)  # the last window reaches beyond the end
    yield "empty", draw(0, 3, 7), (3,), (3,), (2,), (0,), (1,)
    if draw.floating:
        yield "NaN", draw.of([[1, np.nan, 2, 3, 4, 5]]), (3,), (2,), (2,), (0,), (1,)
        yield "infinity", draw.of([[-np.inf, -np.inf, 2, np.inf]]), (2,), (2,), (2,), (0,), (1,)


@samples("avg_pool")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for size, kernel, stride, padding, _ in _POOLS:
        outputs = _outputs(size, kernel, stride, padding, (1,) * len(size))
        for include, divisor in ((True, 0), (False, 0), (True, 3)):
            yield draw(2, 3, *size), outputs, kernel, stride, padding, include, divisor
    yield draw(1, 7), (4,), (2,), (2,), (0,), True, 0
    yield "empty", draw(0, 3, 7), (3,), (3,), (2,), (0,), True, 0


@samples("avg_pool_backward")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for size, kernel, stride, padding, _ in _POOLS:
        outputs = _outputs(size, kernel, stride, padding, (1,) * len(size))
        for include, divisor in ((True, 0), (False, 0), (True, 3)):
            yield draw(2, 3, *outputs), size, kernel, stride, padding, include, divisor


_ADAPTIVE: Final = (((7,), (3,)), ((5, 7), (2, 4)), ((4, 5, 3), (2, 2, 3)), ((3,), (5,)))


@samples("adaptive_avg_pool")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for size, wanted in _ADAPTIVE:
        yield draw(2, 3, *size), wanted
    yield "empty", draw(0, 3, 7), (3,)


@samples("adaptive_max_pool")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for size, wanted in _ADAPTIVE:
        yield draw.distinct(2, 3, *size), wanted
    yield "empty", draw(0, 3, 7), (3,)
    if draw.floating:
        yield "NaN", draw.of([[1, np.nan, 2, 3, 4, 5]]), (3,)


@samples("adaptive_avg_pool_backward")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for size, wanted in _ADAPTIVE:
        yield draw(2, 3, *wanted), size


# ---------------------------------------------------------------- definitions of convolutions


def _taps(kernel: Ints, outputs: Ints, stride: Ints, dilation: Ints) -> Iterator[tuple[Any, Any]]:
    """An index for each element of the kernel, and one for the elements of the padded input that it meets."""
    for offset in np.ndindex(*kernel):
        met = [
            slice(o * wide, o * wide + step * (count - 1) + 1, step)
            for o, wide, step, count in zip(offset, dilation, stride, outputs, strict=True)
        ]
        yield (..., *offset), (..., *met)


def _padded(a: Any, padding: Ints) -> Any:
    return np.pad(a, [(0, 0)] * (a.ndim - len(padding)) + [(each, each) for each in padding])


def _cropped(a: Any, padding: Ints, size: Ints) -> Any:
    inside = (..., *[slice(pad, pad + length) for pad, length in zip(padding, size, strict=True)])
    return a[inside]


def _grouped(a: Any, axis: int, groups: int) -> Any:
    return a.reshape(*a.shape[:axis], groups, a.shape[axis] // groups, *a.shape[axis + 1 :])


def _ungrouped(a: Any) -> Any:
    return a.reshape(a.shape[0], a.shape[1] * a.shape[2], *a.shape[3:])


def _biased(a: Any, bias: Any) -> Any:
    return a if bias is None else a + bias.reshape(-1, *[1] * (a.ndim - 2))


@definition("conv")
def _conv(x: Any, weight: Any, bias: Any, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Any:
    kernel = weight.shape[2:]
    outputs = _outputs(x.shape[2:], kernel, stride, padding, dilation)
    x, weight = _grouped(_padded(x, padding), 1, groups), _grouped(weight, 0, groups)
    result = np.zeros((x.shape[0], groups, weight.shape[1], *outputs), x.dtype)
    for offset, met in _taps(kernel, outputs, stride, dilation):
        result += np.einsum("ngc...,goc->ngo...", x[met], weight[offset])
    return _biased(_ungrouped(result), bias)


@definition("conv_input")
def _conv_input(
    y: Any, weight: Any, bias: Any, size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Any:
    kernel, outputs = weight.shape[2:], y.shape[2:]
    y, weight = _grouped(y, 1, groups), _grouped(weight, 0, groups)
    wide = [length + 2 * pad for length, pad in zip(size, padding, strict=True)]
    result = np.zeros((y.shape[0], groups, weight.shape[2], *wide), y.dtype)
    for offset, met in _taps(kernel, outputs, stride, dilation):
        result[met] += np.einsum("ngo...,goc->ngc...", y, weight[offset])
    return _biased(_ungrouped(_cropped(result, padding, size)), bias)


@definition("conv_weight")
def _conv_weight(x: Any, y: Any, size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Any:
    x, outputs = _grouped(_padded(x, padding), 1, groups), y.shape[2:]
    y = _grouped(y, 1, groups)
    result = np.zeros((groups, y.shape[2], x.shape[2], *size), x.dtype)
    flat = y.reshape(*y.shape[:3], math.prod(outputs))
    for offset, met in _taps(size, outputs, stride, dilation):
        result[offset] = np.einsum("ngcl,ngol->goc", x[met].reshape(*x.shape[:3], flat.shape[3]), flat)
    return result.reshape(-1, *result.shape[2:])


@definition("im2col")
def _im2col(a: Any, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Any:
    outputs = _outputs(a.shape[2:], kernel, stride, padding, dilation)
    a = _padded(a, padding)
    columns = np.stack([a[met] for _, met in _taps(kernel, outputs, stride, dilation)], 2)
    return columns.reshape(a.shape[0], a.shape[1] * math.prod(kernel), math.prod(outputs))


@definition("col2im")
def _col2im(a: Any, size: Ints, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Any:
    outputs = _outputs(size, kernel, stride, padding, dilation)
    columns = a.reshape(a.shape[0], -1, math.prod(kernel), *outputs)
    result = np.zeros((*columns.shape[:2], *[s + 2 * p for s, p in zip(size, padding, strict=True)]), a.dtype)
    for place, (_, met) in enumerate(_taps(kernel, outputs, stride, dilation)):
        result[met] += columns[:, :, place]
    return _cropped(result, padding, size)


# ---------------------------------------------------------------- definitions of pools


def _largest(a: Any, size: Ints, region: Any) -> tuple[Any, Any]:
    """The maxima of regions of the last dimensions, and their flat places; NaN is larger than any number."""
    dims = len(size)
    lead = a.shape[: a.ndim - dims]
    values, places = np.empty((*lead, *size), a.dtype), np.zeros((*lead, *size), np.int64)
    numbers = np.arange(math.prod(a.shape[-dims:])).reshape(a.shape[-dims:])
    for at in np.ndindex(*size):
        chosen = (..., *np.ix_(*region(at)))
        candidates = a[chosen].reshape(*lead, math.prod(map(len, region(at))))
        winner = np.argmax(candidates, -1)
        here = (..., *at)
        values[here] = np.take_along_axis(candidates, winner[..., None], -1)[..., 0]
        places[here] = numbers[chosen].reshape(-1)[winner]
    return values, places


@definition("max_pool")
def _max_pool(a: Any, size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Any:
    def region(at: Ints) -> list[list[int]]:
        return [
            [i for i in range(o * s - p, o * s - p + k * d, d) if 0 <= i < length]
            for o, s, p, k, d, length in zip(at, stride, padding, kernel, dilation, a.shape[-len(size) :], strict=True)
        ]

    return _largest(a, size, region)


def _share(at: int, size: int, length: int) -> range:
    """The elements that output ``at`` of ``size`` covers, where windows divide a length evenly."""
    return range(at * length // size, -(-(at + 1) * length // size))


@definition("adaptive_max_pool")
def _adaptive_max_pool(a: Any, size: Ints) -> Any:
    lengths = a.shape[-len(size) :]
    return _largest(a, size, lambda at: [list(_share(*each)) for each in zip(at, size, lengths, strict=True)])


Window = tuple[Any, Any, float]


def _averaged(a: Any, size: Ints, windows: Iterator[Window]) -> Any:
    result = np.empty((*a.shape[: a.ndim - len(size)], *size), a.dtype)
    for at, region, count in windows:
        result[at] = a[region].sum(tuple(range(-len(size), 0))) / count
    return result


def _spread(a: Any, size: Ints, windows: Iterator[Window]) -> Any:
    result = np.zeros((*a.shape[: a.ndim - len(size)], *size), a.dtype)
    for at, region, count in windows:
        result[region] += (a[at] / count).astype(a.dtype).reshape(*a.shape[: a.ndim - len(size)], *[1] * len(size))
    return result


def _windows(
    outputs: Ints, lengths: Ints, kernel: Ints, stride: Ints, padding: Ints, include: bool, divisor: int
) -> Iterator[Window]:
    for at in np.ndindex(*outputs):
        bounds = [
            (o * s - p, min(o * s - p + k, length + p), length)
            for o, s, p, k, length in zip(at, stride, padding, kernel, lengths, strict=True)
        ]
        inside = [(max(low, 0), min(high, length)) for low, high, length in bounds]
        counted = [(low, high) for low, high, _ in bounds] if include else inside
        count = divisor or math.prod(high - low for low, high in counted)
        yield (..., *at), (..., *[slice(*each) for each in inside]), count


def _even_windows(outputs: Ints, lengths: Ints) -> Iterator[Window]:
    for at in np.ndindex(*outputs):
        shares = [_share(*each) for each in zip(at, outputs, lengths, strict=True)]
        region = (..., *[slice(each.start, each.stop) for each in shares])
        yield (..., *at), region, math.prod(map(len, shares))


@definition("avg_pool")
def _avg_pool(a: Any, size: Ints, *window: Any) -> Any:
    return _averaged(a, size, _windows(size, a.shape[-len(size) :], *window))


@definition("avg_pool_backward")
def _avg_pool_backward(a: Any, size: Ints, *window: Any) -> Any:
    return _spread(a, size, _windows(a.shape[-len(size) :], size, *window))


@definition("adaptive_avg_pool")
def _adaptive_avg_pool(a: Any, size: Ints) -> Any:
    return _averaged(a, size, _even_windows(size, a.shape[-len(size) :]))


@definition("adaptive_avg_pool_backward")
def _adaptive_avg_pool_backward(a: Any, size: Ints) -> Any:
    return _spread(a, size, _even_windows(a.shape[-len(size) :], size))
