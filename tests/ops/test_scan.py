"""Running sums, products and extremes against NumPy; gradients; errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import flambeau
from flambeau.autograd import gradcheck, gradgradcheck

SHAPES = [(), (1,), (0,), (7,), (64,), (2, 131), (131, 2), (3, 40, 5), (2, 0, 3), (150_000,)]


@pytest.fixture
def rng():
    return np.random.default_rng(2)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "float32", "float64"])
def test_running_sums(rng, shape, dtype):
    x = np.asarray(rng.standard_normal(shape) if np.dtype(dtype).kind == "f" else rng.integers(0, 3, shape)).astype(
        dtype
    )
    t = flambeau.tensor(x)
    tolerance = {"float16": 4e-3, "float32": 2e-6, "float64": 1e-12}.get(dtype, 0)
    for dim in range(max(x.ndim, 1)):
        result = t.cumsum(dim)
        assert result.dtype is (t.dtype if np.dtype(dtype).kind == "f" else flambeau.int64)
        expected = np.cumsum(x.astype(np.float64 if tolerance else np.int64), dim) if x.ndim else x.astype(np.float64)
        scale = max(1.0, float(np.abs(expected).max(initial=0)))
        np.testing.assert_allclose(result.numpy().astype(np.float64), expected, tolerance, tolerance * scale)


def test_long_sums_stay_exact_and_do_not_depend_on_threads(rng):
    x = rng.random(500_000).astype(np.float32)
    exact = np.cumsum(x.astype(np.float64))
    result = flambeau.tensor(x).cumsum(0).numpy()
    assert np.max(np.abs(result - exact) / exact) < 2e-7


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
def test_running_products(rng, dtype):
    x = (rng.integers(1, 3, (4, 20, 3))).astype(dtype)
    for dim in range(3):
        np.testing.assert_allclose(flambeau.tensor(x).cumprod(dim).numpy(), np.cumprod(x, dim, dtype=dtype), 1e-6)


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "float64"])
def test_running_extremes(rng, name, dtype):
    x = rng.integers(0, 9, (5, 17, 3)).astype(dtype)
    ufunc = np.maximum if name == "cummax" else np.minimum
    for dim in range(3):
        found = getattr(flambeau.tensor(x), name)(dim)
        np.testing.assert_array_equal(found.values.numpy(), ufunc.accumulate(x, dim))
        indices = found.indices.numpy()
        np.testing.assert_array_equal(np.take_along_axis(x, indices, dim), found.values.numpy())
    found = getattr(flambeau.tensor([1.0, 1.0, math.nan, 3.0]), name)(0)
    assert found.indices.tolist() == [0, 1, 2, 2] and math.isnan(found.values[3].item())


def test_logcumsumexp(rng):
    x = rng.standard_normal((3, 9)) * 200
    np.testing.assert_allclose(flambeau.tensor(x).logcumsumexp(1).numpy(), np.logaddexp.accumulate(x, 1), 1e-12)
    assert flambeau.tensor([-math.inf, -math.inf, 1.0]).logcumsumexp(0).tolist() == [-math.inf, -math.inf, 1.0]


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_recurrence_solves_its_equation(rng, own, reverse):
    c, drive = rng.standard_normal((2, 6, 3)), rng.standard_normal((2, 6, 3))
    y = flambeau.tensor(c).recurrence(flambeau.tensor(drive), 1, reverse, own).numpy()
    if reverse:
        c, drive, y = c[:, ::-1], drive[:, ::-1], y[:, ::-1]
    np.testing.assert_allclose(y[:, 0], drive[:, 0])
    np.testing.assert_allclose(y[:, 1:], drive[:, 1:] + (c[:, 1:] if own else c[:, :-1]) * y[:, :-1], 1e-12)
    a = flambeau.tensor(rng.standard_normal((2, 3)), requires_grad=True)
    b = flambeau.tensor(rng.standard_normal((2, 3)), requires_grad=True)
    assert gradcheck(lambda a, b: a.recurrence(b, 1, reverse, own), (a, b))
    assert gradgradcheck(lambda a, b: a.recurrence(b, 1, reverse, own), (a, b))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.cumsum(1),
        lambda x: x.t().cumsum(0),
        lambda x: x.cumprod(1),
        lambda x: x.cummax(1)[0],
        lambda x: x.cummin(0)[0],
        lambda x: x.logcumsumexp(1),
    ],
)
def test_gradients(rng, call):
    x = flambeau.tensor(rng.permutation(8).reshape(2, 4) / 4 - 0.6, requires_grad=True)
    assert gradcheck(call, (x,))
    assert gradgradcheck(call, (x,))


def test_gradient_of_running_products_with_zeros():
    x = flambeau.tensor([2.0, 0.0, 3.0, 0.0, 5.0], dtype=flambeau.float64, requires_grad=True)
    assert gradcheck(lambda x: x.cumprod(0), (x,))
    assert gradgradcheck(lambda x: x.cumprod(0), (x,))


def test_in_place_out_and_dtype():
    x = flambeau.tensor([1.0, 2.0, 3.0])
    assert x.cumsum_(0) is x and x.tolist() == [1, 3, 6]
    out = flambeau.empty(0)
    assert flambeau.cumprod(flambeau.tensor([2.0, 3.0]), 0, out=out) is out and out.tolist() == [2, 6]
    assert flambeau.tensor([100, 100], dtype=flambeau.int8).cumsum(0, dtype=flambeau.int8).tolist() == [100, -56]
    assert flambeau.tensor([1, 2]).cumsum(0, dtype=flambeau.float64).dtype is flambeau.float64


def test_errors():
    with pytest.raises(IndexError, match=r"expected to be in range of \[-1, 0\], but got 3"):
        flambeau.ones(2).cumsum(3)
    with pytest.raises(TypeError, match="expected 2 tensors as out, got 1"):
        flambeau.cummax(flambeau.ones(2), 0, out=(flambeau.empty(2),))
