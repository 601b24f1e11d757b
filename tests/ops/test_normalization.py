"""Normalisation against its definition in NumPy; running statistics; gradients; errors."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.nn import functional as F


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def normal(x, dims, eps=1e-5):
    return (x - x.mean(dims, keepdims=True)) / np.sqrt(x.var(dims, keepdims=True) + eps)


def by_channel(v, ndim):
    return v.reshape(1, -1, *[1] * (ndim - 2))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(5, 3), (9, 130), (2, 3, 40), (4, 6, 5, 7), (2, 3, 100, 90)], ids=str)
def test_batch_norm(rng, shape, dtype):
    x = (rng.standard_normal(shape) * 3 + 5).astype(dtype)
    weight, bias = rng.standard_normal(shape[1]).astype(dtype), rng.standard_normal(shape[1]).astype(dtype)
    mean, var = np.zeros(shape[1], dtype), np.ones(shape[1], dtype)
    t_mean, t_var = flambeau.tensor(mean), flambeau.tensor(var)
    t = flambeau.tensor(x)
    dims, tolerance = (0, *range(2, x.ndim)), 2e-5 if dtype == "float32" else 1e-10
    result = F.batch_norm(t, t_mean, t_var, flambeau.tensor(weight), flambeau.tensor(bias), True, 0.3)
    expected = normal(x.astype(np.float64), dims) * by_channel(weight, x.ndim) + by_channel(bias, x.ndim)
    np.testing.assert_allclose(result.numpy(), expected, tolerance, tolerance)
    exact = x.astype(np.float64)
    np.testing.assert_allclose(t_mean.numpy(), 0.3 * exact.mean(dims), tolerance)
    np.testing.assert_allclose(t_var.numpy(), 0.7 + 0.3 * exact.var(dims, ddof=1), tolerance)
    evaluated = F.batch_norm(t, t_mean, t_var, None, flambeau.tensor(bias))
    scale = 1 / np.sqrt(t_var.numpy() + 1e-5)
    expected = (exact - by_channel(t_mean.numpy(), x.ndim)) * by_channel(scale, x.ndim) + by_channel(bias, x.ndim)
    np.testing.assert_allclose(evaluated.numpy(), expected, tolerance, tolerance)


@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize("width", [1, 8, 100, 5000])
def test_layer_norm(rng, rows, width):
    x = (rng.standard_normal((rows, width)) * 2 - 7).astype(np.float32)
    weight, bias = rng.standard_normal(width).astype(np.float32), rng.standard_normal(width).astype(np.float32)
    exact = normal(x.astype(np.float64), (1,))
    t, w, b = flambeau.tensor(x), flambeau.tensor(weight), flambeau.tensor(bias)
    for got, expected in (
        (F.layer_norm(t, (width,)), exact),
        (F.layer_norm(t, (width,), w), exact * weight),
        (F.layer_norm(t, [width], w, b), exact * weight + bias),
        (F.layer_norm(t, width, None, b), exact + bias),
    ):
        np.testing.assert_allclose(got.numpy(), expected, 2e-5, 2e-5)


def test_layer_norm_over_several_dims_and_strides(rng):
    x = rng.standard_normal((4, 3, 5))
    expected = normal(x.transpose(1, 0, 2), (1, 2))
    np.testing.assert_allclose(F.layer_norm(flambeau.tensor(x).transpose(0, 1), (4, 5)).numpy(), expected, 1e-10, 1e-10)


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_and_instance_norm(rng, groups):
    x, weight, bias = rng.standard_normal((3, 6, 4, 5)), rng.standard_normal(6), rng.standard_normal(6)
    grouped = normal(x.reshape(3, groups, -1), (2,)).reshape(x.shape)
    expected = grouped * by_channel(weight, 4) + by_channel(bias, 4)
    t, w, b = flambeau.tensor(x), flambeau.tensor(weight), flambeau.tensor(bias)
    np.testing.assert_allclose(F.group_norm(t, groups, w, b).numpy(), expected, 1e-10, 1e-10)
    if groups == 6:
        np.testing.assert_allclose(F.instance_norm(t, weight=w, bias=b).numpy(), expected, 1e-10, 1e-10)


def test_instance_norm_updates_running_statistics(rng):
    x = rng.standard_normal((3, 2, 9))
    mean, var = flambeau.zeros(2, dtype=flambeau.float64), flambeau.ones(2, dtype=flambeau.float64)
    F.instance_norm(flambeau.tensor(x), mean, var, momentum=0.5)
    np.testing.assert_allclose(mean.numpy(), 0.5 * x.mean(2).mean(0), 1e-12)
    np.testing.assert_allclose(var.numpy(), 0.5 + 0.5 * x.var(2, ddof=1).mean(0), 1e-12)
    fixed = F.instance_norm(flambeau.tensor(x), mean, var, use_input_stats=False).numpy()
    expected = (x - mean.numpy().reshape(1, 2, 1)) / np.sqrt(var.numpy() + 1e-5).reshape(1, 2, 1)
    np.testing.assert_allclose(fixed, expected, 1e-10)


@pytest.mark.parametrize("shape", [(0, 3, 4), (0, 3, 4, 2), (2, 3, 0)], ids=str)
@pytest.mark.parametrize("function", [F.batch_norm, F.instance_norm])
def test_nothing_teaches_nothing(function, shape):
    """Gradients of an empty batch are 0, and running statistics stay."""
    mean, var = flambeau.full((3,), 2.0), flambeau.full((3,), 5.0)
    x, w, b = (flambeau.ones(each).requires_grad_() for each in (shape, (3,), (3,)))
    output = function(x, mean, var, w, b, True)
    for create_graph in (False, True):
        to_x, to_w, to_b = flambeau.autograd.grad(output.sum(), (x, w, b), retain_graph=True, create_graph=create_graph)
        assert to_x.shape == output.shape == shape
        assert to_w.tolist() == to_b.tolist() == [0.0] * 3
    assert mean.tolist() == [2.0] * 3 and var.tolist() == [5.0] * 3


def test_local_response_norm(rng):
    x = rng.standard_normal((2, 7, 3))
    for size in (1, 2, 3, 5):
        padded = np.pad(x * x, [(0, 0), (size // 2, (size - 1) // 2), (0, 0)])
        total = sum(padded[:, k : k + 7] for k in range(size))
        expected = x / (1.5 + 0.2 * total / size) ** 0.6
        np.testing.assert_allclose(
            F.local_response_norm(flambeau.tensor(x), size, 0.2, 0.6, 1.5).numpy(), expected, 1e-12
        )


def test_normalize_and_renorm(rng):
    x = rng.standard_normal((4, 5))
    t = flambeau.tensor(x)
    np.testing.assert_allclose(F.normalize(t).numpy(), x / np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    np.testing.assert_allclose(F.normalize(t, 1, 0).numpy(), x / np.abs(x).sum(0), 1e-12)
    assert F.normalize(flambeau.zeros(2, 2)).tolist() == [[0, 0], [0, 0]]
    size = np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_allclose(
        flambeau.renorm(t, 2, 0, 1.5).numpy(), x * np.where(size > 1.5, 1.5 / (size + 1e-7), 1), 1e-12
    )
    t.renorm_(2, 0, 1.0)
    assert (t.norm(2, 1) <= 1.0001).all()


def leaf(rng, *shape):
    return flambeau.tensor(rng.standard_normal(shape), requires_grad=True)


STATISTICS = flambeau.tensor([0.5, -1.0, 0.0, 2.0]), flambeau.tensor([1.0, 0.5, 2.0, 3.0])
GRADIENTS = {
    "batch": lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
    "batch plain": lambda x, w, b: F.batch_norm(x, None, None, training=True),
    "batch eval": lambda x, w, b: F.batch_norm(x, *STATISTICS, w, b),
    "layer": lambda x, w, b: F.layer_norm(x.transpose(1, 2), (4,), w, b),
    "layer bias": lambda x, w, b: F.layer_norm(x.transpose(1, 2), (4,), None, b),
    "group": lambda x, w, b: F.group_norm(x, 2, w, b),
    "instance": lambda x, w, b: F.instance_norm(x, None, None, w, b),
    "response": lambda x, w, b: F.local_response_norm(x, 3, 0.3),
    "normalize": lambda x, w, b: F.normalize(x, 3.0, 1),
    "renorm": lambda x, w, b: x.renorm(2, 1, 0.8),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(rng, name):
    inputs = leaf(rng, 2, 4, 3), leaf(rng, 4), leaf(rng, 4)

    def call(*inputs):
        # Parameters that a variant leaves out take part with gradient zero.
        return GRADIENTS[name](*inputs) + 0 * (inputs[1].sum() + inputs[2].sum())

    assert gradcheck(call, inputs)
    assert gradgradcheck(call, inputs)


@pytest.mark.parametrize("shape", [(6, 70), (3, 5, 33)], ids=str)
def test_fused_gradients_equal_composed_ones(rng, shape):
    """backward() runs the fused kernels, create_graph the formulas made of other operators."""
    x, w, b = leaf(rng, *shape), leaf(rng, shape[1]), leaf(rng, shape[1])
    seed = flambeau.tensor(rng.standard_normal(shape))
    for call in (
        lambda: F.batch_norm(x, None, None, w, b, True),
        lambda: F.group_norm(x, 1, w, b),
        lambda: F.layer_norm(x.transpose(1, -1), (shape[1],), w, b).transpose(1, -1),
    ):
        fused = flambeau.autograd.grad(call(), (x, w, b), seed)
        composed = flambeau.autograd.grad(call(), (x, w, b), seed, create_graph=True)
        for left, right in zip(fused, composed, strict=True):
            np.testing.assert_allclose(left.numpy(), right.detach().numpy(), 1e-9, 1e-9)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: F.batch_norm(x, None, None), RuntimeError, "running_mean must be defined in evaluation mode"),
        (
            lambda x: F.batch_norm(x[:1], None, None, training=True),
            ValueError,
            "Expected more than 1 value per channel",
        ),
        (
            lambda x: F.batch_norm(x, flambeau.zeros(2), flambeau.ones(2)),
            RuntimeError,
            "should contain 4 elements not 2",
        ),
        (lambda x: F.layer_norm(x, (3,)), RuntimeError, r"expected input with shape \[\*, 3\]"),
        (lambda x: F.group_norm(x, 3), RuntimeError, "divisible by num_groups"),
        (lambda x: F.group_norm(x[:1], 4), ValueError, "Expected more than 1 value per channel"),
        (lambda x: F.instance_norm(x.unsqueeze(2)), ValueError, "Expected more than 1 spatial element"),
        (lambda x: F.local_response_norm(x, 2), ValueError, "Expected 3D or higher"),
        (lambda x: F.layer_norm(x.long(), (4,)), RuntimeError, "expected a floating-point input, got int64"),
        (lambda x: x.renorm(2, 0, -1), RuntimeError, "expected maxnorm to be >= 0 but got -1"),
        (lambda x: x.renorm(0, 0, 1), RuntimeError, "non-positive-norm not supported"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(flambeau.ones(2, 4))


def test_normalize_of_single_numbers_has_no_gradient_for_any_p():
    x = flambeau.from_numpy(np.random.default_rng(23).standard_normal((1, 50)).astype(np.float32)).requires_grad_()
    y = F.normalize(x, p=0.5, dim=0)
    weight = flambeau.from_numpy(np.random.default_rng(24).standard_normal((1, 50)).astype(np.float32))
    (y * weight).sum().backward()
    np.testing.assert_allclose(y.detach().numpy(), np.sign(x.detach().numpy()), rtol=1e-6)
    # Each element is divided by its own size: what is left is the rounding of weight / |x|.
    assert np.all(np.abs(x.grad.numpy()) <= 4e-7 * np.abs(weight.numpy() / x.detach().numpy()))
