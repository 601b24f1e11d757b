"""Layers that look through windows, over one to three dimensions; batch norm.

A window's taps are its places; each is one strided view of the padded input, which the loops go over.
"""

from itertools import product

import numpy as np

from flambeau.backend import int64, returning

from .dtypes import FLOATS


def _padded(x, padding, value=0):
    return np.pad(x, [(0, 0)] * (x.ndim - len(padding)) + [(each, each) for each in padding], constant_values=value)


def _taps(sizes, outputs, stride, dilation):
    """Each tap of a window: where in the window, and the slices of the padded input that it sees."""
    for tap in product(*map(range, sizes)):
        starts = [at * step for at, step in zip(tap, dilation)]
        yield tap, (..., *[slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, outputs, stride)])


def _grouped(x, axis, groups):
    return x.reshape(*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :])


def _with_bias(x, bias):
    return x if bias is None else x + bias.reshape(-1, *[1] * (x.ndim - 2))


def _outputs(shape, sizes, stride, padding, dilation):
    return [
        max((n + 2 * p - d * (k - 1) - 1) // s + 1, 0) for n, k, s, p, d in zip(shape, sizes, stride, padding, dilation)
    ]


def _conv(x, weight, bias, stride, padding, dilation, groups):
    outputs = _outputs(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    padded, kernels = _grouped(_padded(x, padding), 1, groups), _grouped(weight, 0, groups)
    result = np.zeros((len(x), groups, len(weight) // groups, *outputs), x.dtype)
    for tap, seen in _taps(weight.shape[2:], outputs, stride, dilation):
        result += np.einsum("ngc...,goc->ngo...", padded[seen], kernels[(..., *tap)], optimize=True)
    return _with_bias(result.reshape(len(x), len(weight), *outputs), bias)


def _conv_input(y, weight, bias, size, stride, padding, dilation, groups):
    channels = weight.shape[1] * groups
    grown, kernels = _grouped(y, 1, groups), _grouped(weight, 0, groups)
    padded = np.zeros((len(y), groups, weight.shape[1], *[n + 2 * p for n, p in zip(size, padding)]), y.dtype)
    for tap, seen in _taps(weight.shape[2:], y.shape[2:], stride, dilation):
        padded[seen] += np.einsum("ngo...,goc->ngc...", grown, kernels[(..., *tap)], optimize=True)
    inner = padded[(..., *[slice(p, p + n) for n, p in zip(size, padding)])]
    return _with_bias(inner.reshape(len(y), channels, *size), bias)


def _conv_weight(x, y, size, stride, padding, dilation, groups):
    padded, grown = _grouped(_padded(x, padding), 1, groups), _grouped(y, 1, groups)
    result = np.zeros((groups, y.shape[1] // groups, x.shape[1] // groups, *size), x.dtype)
    for tap, seen in _taps(size, y.shape[2:], stride, dilation):
        result[(..., *tap)] = np.einsum("ngo...,ngc...->goc", grown, padded[seen], optimize=True)
    return result.reshape(y.shape[1], x.shape[1] // groups, *size)


def _max_pool(x, outputs, sizes, stride, padding, dilation):
    """The largest of each window and where in its plane it is; the first of equals, and NaN above all."""
    low = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    plane = x.shape[x.ndim - len(sizes) :]
    # A window may reach beyond the padding, where it was rounded up.
    ends = [(o - 1) * s + (k - 1) * d + 1 for o, s, k, d in zip(outputs, stride, sizes, dilation)]
    wide = [(p, max(e - n - p, p)) for n, p, e in zip(plane, padding, ends)]
    lead = [(0, 0)] * (x.ndim - len(sizes))
    padded = np.pad(x, lead + wide, constant_values=low)
    inside = np.pad(np.ones(plane, bool), wide)
    places = np.pad(np.arange(np.prod(plane, dtype=int)).reshape(plane), wide)
    best = index = None
    for _, seen in _taps(sizes, outputs, stride, dilation):
        values, allowed, here = padded[seen], inside[seen], np.broadcast_to(places[seen], padded[seen].shape)
        if best is None:
            best, index, found = values.copy(), here.copy(), np.broadcast_to(allowed, values.shape).copy()
            continue
        better = allowed & (~found | (values > best) | ((values != values) & (best == best)))
        best, index, found = np.where(better, values, best), np.where(better, here, index), found | allowed
    return best, index


def _counts(plane, outputs, sizes, stride, padding, count_include_pad, divisor):
    """How many elements each window is divided by."""
    if divisor:
        return float(divisor)
    count = np.ones(outputs)
    for axis, (n, o, k, s, p) in enumerate(zip(plane, outputs, sizes, stride, padding)):
        start = np.arange(o) * s - p
        stop = np.minimum(start + k, n + p)
        length = stop - start if count_include_pad else np.minimum(stop, n) - np.maximum(start, 0)
        count = count * length.reshape(-1, *[1] * (len(outputs) - axis - 1))
    return count


def _avg_pool(x, outputs, sizes, stride, padding, count_include_pad, divisor):
    plane, ones = x.shape[x.ndim - len(sizes) :], [1] * len(sizes)
    ends = [(o - 1) * s + k for o, s, k in zip(outputs, stride, sizes)]
    wide = [(p, max(e - n - p, p)) for n, p, e in zip(plane, padding, ends)]
    padded = np.pad(x, [(0, 0)] * (x.ndim - len(sizes)) + wide)
    total = sum(padded[seen].astype(np.float64) for _, seen in _taps(sizes, outputs, stride, ones))
    return total / _counts(plane, outputs, sizes, stride, padding, count_include_pad, divisor)


def _avg_pool_backward(y, plane, sizes, stride, padding, count_include_pad, divisor):
    outputs, ones = y.shape[y.ndim - len(sizes) :], [1] * len(sizes)
    share = y / _counts(plane, outputs, sizes, stride, padding, count_include_pad, divisor)
    ends = [max((o - 1) * s + k, n + 2 * p) for o, s, k, n, p in zip(outputs, stride, sizes, plane, padding)]
    padded = np.zeros((*y.shape[: y.ndim - len(sizes)], *ends))
    for _, seen in _taps(sizes, outputs, stride, ones):
        padded[seen] += share
    return padded[(..., *[slice(p, p + n) for n, p in zip(plane, padding)])]


KERNELS = {
    "conv": returning(_conv, FLOATS),
    "conv_input": returning(_conv_input, FLOATS),
    "conv_weight": returning(_conv_weight, FLOATS),
    "max_pool": returning(_max_pool, FLOATS, result=(None, int64)),
    "avg_pool": returning(_avg_pool, FLOATS),
    "avg_pool_backward": returning(_avg_pool_backward, FLOATS),
}
