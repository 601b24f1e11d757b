"""Pooling against windows cut out in NumPy; indices, gradients, unpooling, errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import flambeau
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.nn import functional as F

rng = np.random.default_rng(0)


def per(value, dims):
    return (value,) * dims if isinstance(value, int) else tuple(value)


def pooled(x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False):
    """For each output position: output size, place, flat indices of its window in the plane, taps in the padding."""
    dims = len(kernel)
    stride = kernel if stride is None else per(stride, dims)
    padding, dilation = per(padding, dims), per(dilation, dims)
    shape, size = x.shape[-dims:], []
    for length, k, s, p, d in zip(shape, kernel, stride, padding, dilation):
        room = length + 2 * p - d * (k - 1) - 1
        count = (-(-room // s) if ceil_mode else room // s) + 1
        size.append(count - (ceil_mode and (count - 1) * s >= length + p))
    for at in itertools.product(*map(range, size)):
        window, padded = [], 0
        for tap in itertools.product(*map(range, kernel)):
            place = [a * s - p + t * d for a, s, p, t, d in zip(at, stride, padding, tap, dilation)]
            if all(0 <= each < length for each, length in zip(place, shape)):
                window.append(int(np.ravel_multi_index(place, shape)))
            elif all(each < length + p for each, length, p in zip(place, shape, padding)):
                padded += 1
        yield tuple(size), at, window, padded


CASES = [
    ((2, 3, 17), {"kernel_size": 2}),
    ((2, 3, 300), {"kernel_size": 3, "stride": 1, "padding": 1}),
    ((3, 10), {"kernel_size": 4, "stride": 3, "padding": 2, "ceil_mode": True}),
    ((2, 2, 8, 9), {"kernel_size": 2}),
    ((2, 2, 9, 11), {"kernel_size": 3, "stride": 2, "padding": 1}),
    ((2, 2, 9, 11), {"kernel_size": (2, 3), "stride": (1, 4), "padding": (1, 0), "ceil_mode": True}),
    ((1, 2, 5, 6, 7), {"kernel_size": 2, "stride": (1, 2, 3), "padding": 1}),
    ((2, 4, 5, 4), {"kernel_size": (2, 3, 1), "ceil_mode": True}),
    ((0, 2, 6, 6), {"kernel_size": 2}),
]


def dims_of(shape, options):
    return {2: 1, 3: 1, 4: 2, 5: 3}[len(shape)] if len(per(options["kernel_size"], 1)) < 3 else 3


def call(name, shape, options, x, **more):
    dims = dims_of(shape, options)
    return dims, getattr(F, f"{name}_pool{dims}d")(x, **options, **more)


@pytest.mark.parametrize("shape, options", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8"])
@pytest.mark.parametrize("dilation", [1, 2])
def test_max_and_its_indices(shape, options, dtype, dilation):
    x = rng.permutation(np.prod(shape, dtype=int)).reshape(shape) % 251
    x = x.astype(dtype)
    if dtype == "float64" and x.size > 9:
        x.reshape(-1)[[3, 7]] = np.nan, -np.inf
    if dilation == 2 and min(shape[2:] or shape[1:]) < 5:
        pytest.skip("no window fits")
    wide = dict(options, dilation=dilation)
    dims, (values, indices) = call("max", shape, wide, flambeau.tensor(x), return_indices=True)
    planes = x.reshape(int(np.prod(x.shape[:-dims])), *x.shape[-dims:])
    kernel = per(options["kernel_size"], dims)
    rest = {k: v for k, v in wide.items() if k != "kernel_size"}
    got_v, got_i = (each.numpy().reshape(len(planes), *each.shape[-dims:]) for each in (values, indices))
    for size, at, window, _ in pooled(planes, kernel, **rest):
        assert got_v.shape[1:] == size
        for plane in range(len(planes)):
            parts = planes[plane].reshape(-1)[window]
            nans = np.flatnonzero(np.isnan(parts)) if parts.dtype.kind == "f" else []
            best = nans[-1] if len(nans) else int(np.argmax(parts))
            assert got_i[(plane, *at)] == window[best]
            np.testing.assert_array_equal(got_v[(plane, *at)], parts[best])


@pytest.mark.parametrize("shape, options", CASES)
@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("divisor", [None, 3])
@pytest.mark.parametrize("dtype, tolerance", [("float16", 2e-3), ("float32", 1e-6), ("float64", 1e-14)])
def test_average(shape, options, include, divisor, dtype, tolerance):
    x = rng.standard_normal(shape).astype(dtype)
    more = {} if dims_of(shape, options) == 1 or divisor is None else {"divisor_override": divisor}
    dims, result = call("avg", shape, options, flambeau.tensor(x), count_include_pad=include, **more)
    planes = x.reshape(int(np.prod(x.shape[:-dims])), *x.shape[-dims:]).astype(np.float64)
    got = result.numpy().reshape(len(planes), *result.shape[-dims:])
    rest = {k: v for k, v in options.items() if k != "kernel_size"}
    for size, at, window, padded in pooled(planes, per(options["kernel_size"], dims), **rest):
        assert got.shape[1:] == size
        count = divisor if more else len(window) + padded * include
        sums = planes.reshape(len(planes), int(np.prod(x.shape[-dims:])))[:, window].sum(-1)
        np.testing.assert_allclose(got[(slice(None), *at)], sums / count, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "shape, size",
    [((2, 3, 7), 3), ((3, 10), 4), ((2, 2, 5, 7), (3, 2)), ((2, 3, 4, 5), (None, 7)), ((1, 2, 3, 4, 5), 2)],
)
def test_adaptive(shape, size):
    x = rng.standard_normal(shape)
    dims = {2: 1, 3: 1, 4: 2, 5: 3}[len(shape)]
    averages = getattr(F, f"adaptive_avg_pool{dims}d")(flambeau.tensor(x), size).numpy()
    maxima, indices = getattr(F, f"adaptive_max_pool{dims}d")(flambeau.tensor(x), size, return_indices=True)
    wanted = [length if each is None else each for each, length in zip(per(size, dims), shape[-dims:])]
    assert averages.shape == tuple(maxima.shape) == shape[:-dims] + tuple(wanted)
    places = np.arange(np.prod(shape[-dims:])).reshape(shape[-dims:])
    for at in itertools.product(*map(range, wanted)):
        window = tuple(slice(i * n // m, -((i + 1) * n // -m)) for i, n, m in zip(at, shape[-dims:], wanted))
        parts = x[(..., *window)].reshape(*shape[:-dims], -1)
        np.testing.assert_allclose(averages[(..., *at)], parts.mean(-1), atol=1e-14)
        np.testing.assert_array_equal(maxima.numpy()[(..., *at)], parts.max(-1))
        np.testing.assert_array_equal(indices.numpy()[(..., *at)], places[window].reshape(-1)[parts.argmax(-1)])


def leaf(*shape):
    return flambeau.tensor(rng.permutation(np.prod(shape)).reshape(shape) * 0.1, requires_grad=True)


@pytest.mark.parametrize(
    "function, input",
    [
        (lambda x: F.max_pool1d(x, 3, 2, 1), leaf(2, 7)),
        (lambda x: F.max_pool2d(x, 2, ceil_mode=True), leaf(1, 2, 3, 5)),
        (lambda x: F.max_pool3d(x, 2, 1), leaf(1, 1, 2, 3, 3)),
        (lambda x: F.avg_pool1d(x, 3, 2, 1), leaf(2, 7)),
        (lambda x: F.avg_pool2d(x, (2, 3), 1, (1, 1), True, False), leaf(1, 2, 3, 4)),
        (lambda x: F.avg_pool2d(x, 2, divisor_override=3), leaf(1, 2, 4, 4)),
        (lambda x: F.avg_pool3d(x, 2, 1), leaf(1, 1, 2, 3, 3)),
        (lambda x: F.adaptive_avg_pool2d(x, (2, 3)), leaf(1, 2, 3, 4)),
        (lambda x: F.adaptive_max_pool2d(x, (2, 3)), leaf(1, 2, 3, 4)),
        (lambda x: F.adaptive_avg_pool3d(x, 2), leaf(1, 1, 3, 2, 3)),
    ],
)
def test_gradients(function, input):
    assert gradcheck(function, input)
    assert gradgradcheck(function, input)


def test_gradient_of_overlapping_maxima_adds_up():
    x = flambeau.tensor([[1.0, 5.0, 2.0, 0.0]], requires_grad=True)
    F.max_pool1d(x, 3, 1).sum().backward()
    assert x.grad.tolist() == [[0.0, 2.0, 0.0, 0.0]]


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpooling_undoes_pooling(dims):
    x = leaf(*(2, 3, 4, 6, 4)[: dims + 2])
    pool, unpool = getattr(F, f"max_pool{dims}d"), getattr(F, f"max_unpool{dims}d")
    values, indices = pool(x, 2, return_indices=True)
    back = unpool(values, indices, 2)
    flat = np.zeros((6, np.prod(x.shape[2:])))
    np.put_along_axis(flat, indices.numpy().reshape(6, -1), values.detach().numpy().reshape(6, -1), 1)
    np.testing.assert_array_equal(back.detach().numpy().reshape(6, -1), flat)
    small = values.detach()[:1, :1].contiguous().requires_grad_()
    few = indices[:1, :1].contiguous()
    assert gradcheck(lambda v: unpool(v, few, 2), small)
    assert gradgradcheck(lambda v: unpool(v, few, 2), small)
    assert unpool(values, indices, 2, output_size=[each + 1 for each in x.shape[2:]]).shape[2:] == tuple(
        each + 1 for each in x.shape[2:]
    )


def test_special_values():
    x = np.full((1, 1, 4, 4), -np.inf, np.float32)
    values, indices = F.max_pool2d(flambeau.tensor(x), 2, padding=1, return_indices=True)
    assert (values.numpy() == -np.inf).all()
    np.testing.assert_array_equal(indices.numpy()[0, 0], [[0, 1, 3], [4, 5, 7], [12, 13, 15]])
    x[0, 0, 1, 1] = np.nan
    assert np.isnan(F.max_pool2d(flambeau.tensor(x), 2).numpy()[0, 0, 0, 0])
    assert np.isnan(F.adaptive_max_pool2d(flambeau.tensor(x), 1).numpy()).all()


def test_not_contiguous():
    x = rng.standard_normal((5, 4, 3, 2))
    tensor = flambeau.tensor(x).permute(3, 2, 1, 0)[:, 1:]
    same = flambeau.tensor(np.ascontiguousarray(x.transpose(3, 2, 1, 0)[:, 1:]))
    for name in ("max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d"):
        np.testing.assert_array_equal(getattr(F, name)(tensor, 2).numpy(), getattr(F, name)(same, 2).numpy())


def z(*shape):
    return flambeau.zeros(*shape)


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: F.max_pool2d(z(2, 2), 2), RuntimeError, "3D or 4D \\(batch mode\\)"),
        (lambda: F.max_pool2d(z(1, 0, 2, 2), 2), RuntimeError, "but got \\[1, 0, 2, 2\\]"),
        (lambda: F.max_pool2d(z(1, 1, 2, 2), 3), RuntimeError, "Output size is too small"),
        (
            lambda: F.max_pool2d(z(1, 1, 4, 4), 2, padding=2),
            RuntimeError,
            "at most half of effective kernel size.*pad=\\[2, 2\\]",
        ),
        (lambda: F.max_pool2d(z(1, 1, 4, 4), 2, 0), RuntimeError, "stride should be greater than zero"),
        (lambda: F.max_pool2d(z(1, 1, 4, 4), 0), RuntimeError, "kernel size should be greater than zero"),
        (lambda: F.avg_pool2d(z(1, 1, 4, 4), 2, divisor_override=0), RuntimeError, "divisor must be not zero"),
        (lambda: F.adaptive_avg_pool2d(z(1, 1, 4, 4), (1, -1)), RuntimeError, "greater than or equal to 0"),
        (lambda: F.adaptive_avg_pool2d(z(4, 4), (1, 1)), ValueError, "at least 3"),
        (lambda: F.max_unpool2d(z(1, 1, 2, 2), z(1, 1, 2, 2), 2), RuntimeError, "int64, got flambeau.float32"),
        (lambda: F.max_unpool2d(z(1, 1, 2, 2), z(1, 1, 2, 1).long(), 2), RuntimeError, "same as that of the input"),
        (
            lambda: F.max_unpool2d(z(1, 1, 2, 2), z(1, 1, 2, 2).long() + 16, 2),
            RuntimeError,
            "invalid max index: 16.*4x4",
        ),
        (lambda: F.max_unpool2d(z(1, 1, 2, 2), z(1, 1, 2, 2).long() + -1, 2), RuntimeError, "invalid max index: -1"),
        (
            lambda: F.max_unpool2d(z(1, 1, 2, 2), z(1, 1, 2, 2).long(), 2, output_size=(9, 4)),
            ValueError,
            "between 2 and 6",
        ),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize("dims", [2, 3])
def test_fractional(dims):
    function = getattr(F, f"fractional_max_pool{dims}d")
    x = rng.permutation(2 * 3 * 7**dims).reshape(2, 3, *[7] * dims).astype(np.float64)
    values, indices = function(flambeau.tensor(x), 2, output_size=4, return_indices=True)
    assert values.shape == indices.shape == (2, 3, *[4] * dims)
    flat = x.reshape(6, -1)
    np.testing.assert_array_equal(
        values.numpy().reshape(6, -1), np.take_along_axis(flat, indices.numpy().reshape(6, -1), 1)
    )
    # Samples of 0 put the windows at floor(i * 5 / 3) and the last at the end.
    zeros = flambeau.zeros(2, 3, dims, dtype=flambeau.float64)
    values = function(flambeau.tensor(x), 2, output_size=4, _random_samples=zeros).numpy()
    for at in itertools.product(range(4), repeat=dims):
        starts = [(0, 1, 3, 5)[i] for i in at]
        window = x[(..., *[slice(s, s + 2) for s in starts])].reshape(2, 3, -1)
        np.testing.assert_array_equal(values[(..., *at)], window.max(-1))
    assert function(flambeau.tensor(x), 2, output_ratio=0.5).shape[2:] == (3,) * dims
    small = leaf(1, 1, *[4] * dims)
    assert gradcheck(
        lambda v: function(v, 2, output_size=2, _random_samples=flambeau.zeros(1, 1, dims, dtype=flambeau.float64)),
        small,
    )


def test_lp():
    x = rng.standard_normal((2, 3, 8, 8))
    got = F.lp_pool2d(flambeau.tensor(x), 3, 2).numpy()
    sums = (x.reshape(2, 3, 4, 2, 4, 2) ** 3).sum((3, 5))
    np.testing.assert_allclose(got, np.maximum(np.abs(sums), 0) ** (1 / 3) * np.where(sums > 0, 1, np.nan), atol=1e-12)
    got = F.lp_pool1d(flambeau.tensor(x[0]), 2, 2).numpy()
    np.testing.assert_allclose(got, np.sqrt((x[0].reshape(3, 8, 4, 2) ** 2).sum(-1)), atol=1e-12)


@pytest.mark.parametrize(
    "options, kind, message",
    [
        ({}, ValueError, "either an output_size or an output_ratio"),
        ({"output_size": 4}, RuntimeError, "an output size of 1 to 3 for input \\[1, 1, 4, 4\\]"),
    ],
)
def test_fractional_errors(options, kind, message):
    with pytest.raises(kind, match=message):
        F.fractional_max_pool2d(z(1, 1, 4, 4), 2, **options)
