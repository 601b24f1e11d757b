"""Convolutions against sums over taps written in NumPy; gradients to second order; errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import flambeau
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.nn import functional as F
from flambeau_cpu._kernels import lib

rng = np.random.default_rng(0)


def per(value, dims):
    return (value,) * dims if isinstance(value, int) else tuple(value)


def expected_conv(x, w, b, stride=1, padding=0, dilation=1, groups=1):
    """The definition: one shifted product for each tap of the kernel."""
    dims = x.ndim - 2
    stride, padding, dilation = per(stride, dims), per(padding, dims), per(dilation, dims)
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    size = [(x.shape[2 + d] - dilation[d] * (w.shape[2 + d] - 1) - 1) // stride[d] + 1 for d in range(dims)]
    result = np.zeros((x.shape[0], w.shape[0], *size))
    rows, channels = w.shape[0] // groups, w.shape[1]
    for tap in itertools.product(*[range(each) for each in w.shape[2:]]):
        at = tuple(
            slice(tap[d] * dilation[d], tap[d] * dilation[d] + stride[d] * (size[d] - 1) + 1, stride[d])
            for d in range(dims)
        )
        for g in range(groups):
            part = x[(slice(None), slice(g * channels, (g + 1) * channels), *at)]
            weight = w[(slice(g * rows, (g + 1) * rows), slice(None), *tap)]
            result[:, g * rows : (g + 1) * rows] += np.einsum("nc...,oc->no...", part, weight)
    return result if b is None else result + b.reshape(-1, *[1] * dims)


def adjoint(x_shape, w, y, **options):
    """The gradient of sum(y * conv(x)) in x, by linearity: one basis vector at a time is too slow, so scatter."""
    dims = len(x_shape) - 2
    stride, padding, dilation = (
        per(options.get(k, d), dims) for k, d in (("stride", 1), ("padding", 0), ("dilation", 1))
    )
    groups = options.get("groups", 1)
    full = np.zeros((x_shape[0], x_shape[1], *[s + 2 * p for s, p in zip(x_shape[2:], padding)]))
    rows, channels = w.shape[0] // groups, w.shape[1]
    for tap in itertools.product(*[range(each) for each in w.shape[2:]]):
        at = tuple(
            slice(tap[d] * dilation[d], tap[d] * dilation[d] + stride[d] * (y.shape[2 + d] - 1) + 1, stride[d])
            for d in range(dims)
        )
        for g in range(groups):
            weight = w[(slice(g * rows, (g + 1) * rows), slice(None), *tap)]
            full[(slice(None), slice(g * channels, (g + 1) * channels), *at)] += np.einsum(
                "no...,oc->nc...", y[:, g * rows : (g + 1) * rows], weight
            )
    return full[(slice(None), slice(None), *[slice(p, p + s) for s, p in zip(x_shape[2:], padding)])]


CASES = [
    # x, w, options
    ((2, 3, 10), (4, 3, 3), {}),
    ((1, 2, 9), (4, 1, 4), {"stride": 3, "padding": 2, "dilation": 2, "groups": 2}),
    ((2, 3, 8, 9), (5, 3, 3, 2), {"padding": 1}),
    ((3, 4, 11, 7), (6, 2, 3, 3), {"stride": (2, 1), "padding": (0, 2), "dilation": (1, 2), "groups": 2}),
    ((2, 6, 12, 12), (6, 1, 3, 3), {"padding": 1, "groups": 6}),  # depthwise
    ((2, 6, 13, 40), (6, 1, 5, 3), {"stride": 2, "padding": 2, "groups": 6}),
    ((4, 1, 28, 28), (10, 1, 5, 5), {}),  # few channels
    ((4, 10, 12, 12), (20, 10, 5, 5), {}),
    ((2, 40, 9, 9), (50, 40, 1, 1), {}),  # pointwise
    ((2, 40, 9, 9), (50, 40, 1, 1), {"stride": 2, "padding": 1}),
    ((2, 30, 14, 14), (70, 30, 3, 3), {"padding": 1}),  # several blocks
    ((5, 20, 3, 3), (44, 20, 3, 3), {"padding": 1}),  # small images
    ((1, 2, 5, 6, 7), (3, 2, 2, 3, 3), {"stride": (1, 2, 1), "padding": (1, 0, 1)}),
    ((2, 4, 4, 5, 5), (4, 2, 3, 3, 3), {"padding": 1, "groups": 2, "stride": 2}),
    ((0, 3, 8, 8), (4, 3, 3, 3), {}),  # no images
]


@pytest.mark.parametrize("x_shape, w_shape, options", CASES)
@pytest.mark.parametrize("dtype, tolerance", [("float16", 1e-2), ("float32", 3e-6), ("float64", 1e-13), ("int64", 0)])
def test_values(x_shape, w_shape, options, dtype, tolerance):
    dims = len(x_shape) - 2
    kind = np.dtype(dtype).kind
    x, w, b = (
        (rng.standard_normal(s) if kind == "f" else rng.integers(-5, 5, s)).astype(dtype)
        for s in (x_shape, w_shape, w_shape[:1])
    )
    function = getattr(F, f"conv{dims}d")
    # Non-contiguous: channels last in memory.
    order = (0, *range(2, dims + 2), 1)
    back = (0, dims + 1, *range(1, dims + 1))
    laid = flambeau.tensor(np.ascontiguousarray(x.transpose(order))).permute(back)
    wide = [each.astype(np.float64) for each in (x, w, b)]
    expected = expected_conv(*wide, **options)
    scale = np.sqrt(np.prod(w_shape[1:]))
    for input in (flambeau.tensor(x), laid):
        result = function(input, flambeau.tensor(w), flambeau.tensor(b), **options)
        assert tuple(result.shape) == expected.shape
        np.testing.assert_allclose(
            result.numpy().astype(np.float64), expected, rtol=tolerance, atol=tolerance * (1 + scale)
        )


@pytest.mark.parametrize("x_shape, w_shape, options", CASES)
def test_gradients_are_adjoints(x_shape, w_shape, options):
    dims = len(x_shape) - 2
    x, w, b = (flambeau.tensor(rng.standard_normal(s), requires_grad=True) for s in (x_shape, w_shape, w_shape[:1]))
    y = getattr(F, f"conv{dims}d")(x, w, b, **options)
    g = rng.standard_normal(tuple(y.shape))
    y.backward(flambeau.tensor(g))
    np.testing.assert_allclose(x.grad.numpy(), adjoint(x_shape, w.detach().numpy(), g, **options), atol=1e-11)
    np.testing.assert_allclose(b.grad.numpy(), g.sum((0, *range(2, g.ndim))), atol=1e-11)
    # The convolution is linear in w: <g, conv(x, v)> = <grad of w, v>.
    v = rng.standard_normal(w_shape)
    np.testing.assert_allclose(
        (w.grad.numpy() * v).sum(), (g * expected_conv(x.detach().numpy(), v, None, **options)).sum(), atol=1e-9
    )
    single = rng.integers(0, w.numel())
    v = np.zeros(w_shape)
    v.reshape(-1)[single] = 1
    np.testing.assert_allclose(
        w.grad.numpy().reshape(-1)[single],
        (g * expected_conv(x.detach().numpy(), v, None, **options)).sum(),
        atol=1e-11,
    )


@pytest.mark.parametrize(
    "x_shape, w_shape, options",
    [
        ((2, 2, 5), (2, 2, 2), {"stride": 2, "padding": 1}),
        ((1, 2, 3, 4), (2, 1, 2, 3), {"padding": 1, "groups": 2, "dilation": (2, 1)}),
        ((1, 1, 3, 3, 3), (2, 1, 2, 2, 2), {"stride": (1, 2, 1), "padding": 1}),
    ],
)
def test_second_gradients(x_shape, w_shape, options):
    dims = len(x_shape) - 2
    inputs = [flambeau.tensor(rng.standard_normal(s), requires_grad=True) for s in (x_shape, w_shape, w_shape[:1])]

    def forward(x, w, b):
        return getattr(F, f"conv{dims}d")(x, w, b, **options)

    assert gradcheck(forward, inputs)
    assert gradgradcheck(forward, inputs)


TRANSPOSED = [
    ((2, 3, 6), (3, 4, 3), {}),
    ((1, 4, 3), (4, 1, 4), {"stride": 3, "padding": 2, "output_padding": 2, "groups": 2, "dilation": 2}),
    ((2, 3, 5, 4), (3, 2, 3, 2), {"stride": 2, "padding": 1, "output_padding": 1}),
    ((2, 20, 8, 8), (20, 30, 4, 4), {"stride": 2, "padding": 1}),
    ((1, 2, 3, 3, 2), (2, 3, 2, 2, 2), {"stride": (1, 2, 2)}),
    ((1, 1, 2, 3), (1, 2, 2, 2), {"dilation": 4, "output_padding": 3, "stride": 2}),  # more padding than the stride
]


@pytest.mark.parametrize("x_shape, w_shape, options", TRANSPOSED)
def test_transposed(x_shape, w_shape, options):
    dims = len(x_shape) - 2
    x, w = rng.standard_normal(x_shape), rng.standard_normal(w_shape)
    groups = options.get("groups", 1)
    b = rng.standard_normal(w_shape[1] * groups)
    result = getattr(F, f"conv_transpose{dims}d")(*map(flambeau.tensor, (x, w, b)), **options)
    same = {k: v for k, v in options.items() if k != "output_padding"}
    stride, padding, dilation, extra = (
        per(options.get(k, d), dims) for k, d in (("stride", 1), ("padding", 0), ("dilation", 1), ("output_padding", 0))
    )
    size = [
        (x_shape[2 + d] - 1) * stride[d] - 2 * padding[d] + dilation[d] * (w_shape[2 + d] - 1) + extra[d] + 1
        for d in range(dims)
    ]
    expected = adjoint((x_shape[0], w_shape[1] * groups, *size), w, x, **same) + b.reshape(-1, *[1] * dims)
    assert tuple(result.shape) == expected.shape
    np.testing.assert_allclose(result.numpy(), expected, atol=1e-11)
    if x.size < 200:
        inputs = [flambeau.tensor(each, requires_grad=True) for each in (x, w, b)]

        def forward(*args):
            return getattr(F, f"conv_transpose{dims}d")(*args, **options)

        assert gradcheck(forward, inputs)
        assert gradgradcheck(forward, inputs)


def test_padding_by_name():
    x, w = rng.standard_normal((2, 2, 9, 8)), rng.standard_normal((3, 2, 4, 3))
    same = F.conv2d(flambeau.tensor(x), flambeau.tensor(w), padding="same", dilation=(1, 2))
    padded = np.pad(x, [(0, 0), (0, 0), (1, 2), (2, 2)])  # the odd one at the end
    np.testing.assert_allclose(same.numpy(), expected_conv(padded, w, None, dilation=(1, 2)), atol=1e-12)
    valid = F.conv2d(flambeau.tensor(x), flambeau.tensor(w), padding="valid")
    np.testing.assert_allclose(valid.numpy(), expected_conv(x, w, None), atol=1e-12)


def test_unbatched_and_general_forms():
    x, w, b = (flambeau.tensor(rng.standard_normal(s)) for s in ((3, 8, 8), (4, 3, 3, 3), (4,)))
    batched = F.conv2d(x.unsqueeze(0), w, b, stride=2, padding=1)
    np.testing.assert_array_equal(F.conv2d(x, w, b, stride=2, padding=1).numpy(), batched.squeeze(0).numpy())
    general = flambeau.convolution(x.unsqueeze(0), w, b, [2, 2], [1, 1], [1, 1], False, [0, 0], 1)
    np.testing.assert_array_equal(general.numpy(), batched.numpy())
    up = F.conv_transpose2d(batched, w, None, 2, 1, 1)
    general = flambeau.convolution(batched, w, None, 2, 1, 1, True, 1, 1)
    np.testing.assert_array_equal(general.numpy(), up.numpy())
    assert up.shape == (1, 3, 8, 8)


def test_conv_tbc():
    x, w, b = rng.standard_normal((7, 2, 3)), rng.standard_normal((3, 3, 4)), rng.standard_normal(4)
    result = flambeau.conv_tbc(*map(flambeau.tensor, (x, w, b)), 1)
    expected = expected_conv(x.transpose(1, 2, 0), w.transpose(2, 1, 0), b, padding=1).transpose(2, 0, 1)
    np.testing.assert_allclose(result.numpy(), expected, atol=1e-12)


def test_nan_in_the_input_stays_where_it_is_read():
    x = np.zeros((1, 1, 6, 11), np.float32)
    x[0, 0, 2, 10] = np.nan  # a column that a stride of 2 and a kernel of 2 never read
    w = np.ones((1, 1, 2, 2), np.float32)
    y = F.conv2d(flambeau.tensor(x), flambeau.tensor(w, requires_grad=True), stride=(1, 2))
    assert not np.isnan(y.detach().numpy()).any()
    weight = flambeau.tensor(w, requires_grad=True)
    F.conv2d(flambeau.tensor(x), weight, stride=(1, 2)).sum().backward()
    assert not np.isnan(weight.grad.numpy()).any()


@pytest.mark.parametrize("threads", [2, 3])
def test_results_do_not_depend_on_threads(threads):
    before = lib.fb_get_threads()
    try:
        for x_shape, w_shape, options in CASES[2:12]:
            results = []
            for count in (1, threads):
                lib.fb_set_threads(count)
                generator = np.random.default_rng(1)
                x, w = (
                    flambeau.tensor(generator.standard_normal(s).astype("float32"), requires_grad=True)
                    for s in (x_shape, w_shape)
                )
                y = F.conv2d(x, w, **options)
                (y * y).sum().backward()
                results.append((y.detach().numpy(), x.grad.numpy(), w.grad.numpy()))
            for one, many in zip(*results):
                np.testing.assert_array_equal(one, many)
    finally:
        lib.fb_set_threads(before)


@pytest.mark.parametrize(
    "options", [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "padding": (2, 0), "stride": (1, 3)}]
)
def test_unfold_and_fold(options):
    x = rng.standard_normal((2, 3, 8, 9))
    patches = F.unfold(flambeau.tensor(x), (3, 2), **options)
    taps = np.eye(6).reshape(6, 1, 3, 2)
    planes = expected_conv(x.reshape(6, 1, 8, 9), taps, None, **options)
    np.testing.assert_allclose(patches.numpy(), planes.reshape(2, 18, -1), atol=0)
    image = F.fold(patches, (8, 9), (3, 2), **options)
    ones = F.unfold(flambeau.ones(1, 1, 8, 9, dtype=flambeau.float64), (3, 2), **options)
    counts = F.fold(ones, (8, 9), (3, 2), **options).numpy()
    np.testing.assert_allclose(image.numpy(), x * counts, atol=1e-12)
    small = flambeau.tensor(rng.standard_normal((1, 1, 4, 5)), requires_grad=True)
    few = {k: v for k, v in options.items() if k != "dilation"}
    assert gradcheck(lambda v: F.unfold(v, 2, **few), small)
    assert gradgradcheck(lambda v: F.unfold(v, 2, **few), small)
    columns = F.unfold(small, 2, **few).detach().requires_grad_()
    assert gradcheck(lambda v: F.fold(v, (4, 5), 2, **few), columns)
    np.testing.assert_array_equal(F.unfold(flambeau.tensor(x)[0], (3, 2), **options).numpy(), patches[0].numpy())


def z(*shape, dtype=None):
    return flambeau.zeros(*shape, dtype=dtype)


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: F.conv2d(z(3, 4), z(1, 3, 1, 1)), RuntimeError, "Expected 3D \\(unbatched\\) or 4D"),
        (lambda: F.conv2d(z(1, 3, 4, 4), z(2, 4, 3, 3)), RuntimeError, "to have 4 channels, but got 3"),
        (lambda: F.conv2d(z(1, 3, 4, 4), z(2, 3, 5, 3)), RuntimeError, "Kernel size can't be greater"),
        (lambda: F.conv2d(z(1, 3, 4, 4), z(2, 3, 3)), RuntimeError, "expected a weight of 4 dimensions"),
        (
            lambda: F.conv2d(z(1, 3, 4, 4), z(2, 3, 3, 3), z(3)),
            RuntimeError,
            "bias to be 1-dimensional with 2 elements",
        ),
        (lambda: F.conv2d(z(1, 3, 4, 4), z(2, 3, 3, 3), stride=0), RuntimeError, "non-positive stride"),
        (lambda: F.conv2d(z(1, 3, 4, 4), z(2, 3, 3, 3), padding=-1), RuntimeError, "negative padding"),
        (lambda: F.conv2d(z(1, 3, 4, 4), z(2, 3, 3, 3), stride=(1, 2, 3)), RuntimeError, "list of 2 values"),
        (lambda: F.conv2d(z(1, 3, 4, 4), z(2, 3, 3, 3), stride="a"), TypeError, "must be an int"),
        (lambda: F.conv2d(z(1, 4, 4, 4), z(3, 2, 3, 3), groups=2), RuntimeError, "divisible"),
        (lambda: F.conv2d(z(1, 3, 4, 4), z(2, 3, 3, 3, dtype=flambeau.float64)), RuntimeError, "same dtype"),
        (lambda: F.conv2d(z(1, 3, 4, 4), z(2, 3, 3, 3), padding="most"), RuntimeError, "'valid' or 'same'"),
        (lambda: F.conv2d(z(1, 3, 4, 4), z(2, 3, 3, 3), padding="same", stride=2), RuntimeError, "strided"),
        (lambda: F.conv2d(z(1, 3, 4, 4), None), TypeError, "must be Tensors"),
        (
            lambda: F.conv_transpose2d(z(1, 3, 4, 4), z(3, 2, 3, 3), output_padding=1),
            RuntimeError,
            "smaller than either stride",
        ),
        (lambda: F.conv_transpose2d(z(1, 3, 1, 1), z(3, 2, 2, 2), padding=3), RuntimeError, "Output size is too small"),
        (lambda: F.unfold(z(1, 2, 3, 3), 4), RuntimeError, "too small"),
        (lambda: F.unfold(z(3, 3), 2), RuntimeError, "3D or 4D"),
        (lambda: F.fold(z(1, 7, 4), 3, 2), RuntimeError, "divisible"),
        (lambda: F.fold(z(1, 8, 5), 3, 2), RuntimeError, "2 \\* 2 = 4, but got 5"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
