"""Extremes and their places against NumPy; gradients; errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import flambeau
from flambeau.autograd import gradcheck, gradgradcheck

DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def sample(rng, shape, dtype):
    x = rng.integers(-5 if np.dtype(dtype).kind != "u" else 0, 5, shape)
    return np.asarray(x if np.dtype(dtype).kind != "f" else x / 2).astype(dtype)


def layouts(rng, dtype):
    whole = sample(rng, (6, 5, 4), dtype)
    yield whole, flambeau.tensor(whole)
    yield whole.transpose(2, 0, 1), flambeau.tensor(whole).permute(2, 0, 1)
    wide = sample(rng, (40, 70), dtype)
    yield wide[1::2, 3::3], flambeau.tensor(wide)[1::2, 3::3]
    for shape in ((1,), (5000,), (3, 2100), (2100, 3), (300, 400)):
        x = sample(rng, shape, dtype)
        if np.dtype(dtype).kind == "f":
            x.reshape(-1)[rng.integers(0, x.size, 2)] = np.nan
        yield x, flambeau.tensor(x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["max", "min"])
def test_values_and_first_places(rng, dtype, name):
    value, place = getattr(np, name), getattr(np, f"arg{name}")
    for x, t in layouts(rng, dtype):
        np.testing.assert_array_equal(np.asarray(getattr(t, name)().item()), value(x))
        np.testing.assert_array_equal(getattr(t, f"arg{name}")().item(), place(x))
        for dim in range(x.ndim):
            found = getattr(flambeau, name)(t, dim)
            np.testing.assert_array_equal(found.values.numpy(), value(x, dim))
            np.testing.assert_array_equal(found.indices.numpy(), place(x, dim))
            np.testing.assert_array_equal(getattr(t, f"a{name}")(dim, True).numpy(), value(x, dim, keepdims=True))
            np.testing.assert_array_equal(getattr(t, f"arg{name}")(dim - x.ndim).numpy(), place(x, dim))
        np.testing.assert_array_equal(getattr(t, f"a{name}")(tuple(range(x.ndim))).numpy(), value(x))


def test_0_dim_and_empty():
    x = flambeau.tensor(3.0)
    assert (x.max().item() == 3 and x.max(0) == (x, x.argmax())) or x.max(0).indices.item() == 0
    assert x.argmax(0).item() == 0 and x.amin().item() == 3
    assert tuple(flambeau.zeros(2, 0).max(0).values.shape) == (0,)
    assert tuple(flambeau.zeros(0, 2, dtype=flambeau.int64).argmax(1).shape) == (0,)


def test_bool_and_infinities():
    assert flambeau.tensor([False, True]).max().item() is True
    assert flambeau.tensor([True, False]).min(0).indices.item() == 1
    assert flambeau.tensor([-math.inf, -math.inf]).max(0).indices.item() == 0
    assert flambeau.tensor([math.inf, math.nan, math.nan]).argmin().item() == 1


def test_two_tensors_and_out():
    a, b = flambeau.tensor([1.0, 5.0]), flambeau.tensor([3.0, 2.0])
    assert flambeau.max(a, b).tolist() == [3, 5] and a.min(other=b).tolist() == [1, 2]
    values, indices = flambeau.empty(0), flambeau.empty(0, dtype=flambeau.int64)
    result = flambeau.max(flambeau.tensor([[1.0, 2.0], [4.0, 3.0]]), 1, out=(values, indices))
    assert result.values is values and values.tolist() == [2, 4] and indices.tolist() == [1, 0]
    least, largest = flambeau.aminmax(a)
    assert (least.item(), largest.item()) == (1, 5)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.max(1)[0],
        lambda x: x.min(0, True).values,
        lambda x: x.amax((0, 1)),
        lambda x: x.max(),
        lambda x: x.amin(1),
    ],
)
def test_gradients(rng, call):
    x = flambeau.tensor(rng.permutation(12).reshape(3, 4) / 3, requires_grad=True)
    assert gradcheck(call, (x,))
    assert gradgradcheck(call, (x,))


def test_equal_elements_share_the_gradient_of_a_full_maximum():
    x = flambeau.tensor([2.0, 1.0, 2.0], requires_grad=True)
    assert flambeau.autograd.grad(x.max(), x)[0].tolist() == [0.5, 0, 0.5]
    assert flambeau.autograd.grad(x.max(0)[0], x)[0].tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: flambeau.zeros(0).max(), RuntimeError, r"max\(\): Expected reduction dim to be specified"),
        (lambda: flambeau.zeros(2, 0).max(1), IndexError, r"max\(\): Expected reduction dim 1 to have non-zero size"),
        (lambda: flambeau.zeros(2, 0).amax(1), IndexError, r"amax\(\): Expected reduction dim 1 to have non-zero size"),
        (lambda: flambeau.zeros(0).argmax(), IndexError, r"argmax\(\): Expected reduction dim"),
        (lambda: flambeau.ones(2).max(1), IndexError, "Dimension out of range"),
        (lambda: flambeau.ones(2).max(0.5), TypeError, "got float 0.5"),
        (lambda: flambeau.tensor([True]).argmax(), RuntimeError, "does not support bool input"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
