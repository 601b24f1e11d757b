"""Softmax and its logarithm against the definition in double; gradients; errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import flambeau
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.nn import functional as F


@pytest.fixture
def rng():
    return np.random.default_rng(4)


def expected_log(x, dim):
    if not x.ndim:
        return np.zeros(())
    return x - np.logaddexp.reduce(x, dim, keepdims=True)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (5, 0), (3, 100), (100, 3), (2, 300, 5), (2, 3, 700)], ids=str)
def test_values(rng, shape, dtype):
    x = np.asarray(rng.standard_normal(shape) * 4).astype(dtype)
    t = flambeau.tensor(x)
    tolerance = {"float16": 1e-2, "float32": 2e-6, "float64": 1e-12}[dtype]
    for dim in range(max(x.ndim, 1)):
        log = expected_log(x.astype(np.float64), dim)
        np.testing.assert_allclose(
            flambeau.softmax(t, dim).numpy().astype(np.float64), np.exp(log), tolerance, tolerance / 10
        )
        np.testing.assert_allclose(F.log_softmax(t, dim).numpy().astype(np.float64), log, tolerance, tolerance)
        np.testing.assert_allclose(
            F.softmin(-t, dim).numpy().astype(np.float64), np.exp(log), tolerance, tolerance / 10
        )


def test_large_numbers_infinities_and_nan():
    assert flambeau.softmax(flambeau.tensor([1000.0, -1000.0, -math.inf]), 0).tolist() == [1, 0, 0]
    assert flambeau.log_softmax(flambeau.tensor([1000.0, 0.0]), 0).tolist() == [0, -1000]
    assert all(math.isnan(each) for each in flambeau.softmax(flambeau.tensor([-math.inf, -math.inf]), 0).tolist())
    assert all(math.isnan(each) for each in flambeau.softmax(flambeau.tensor([1.0, math.nan]), 0).tolist())


def test_strided_and_dtype(rng):
    x = rng.standard_normal((6, 8)).astype(np.float32)
    np.testing.assert_allclose(
        flambeau.tensor(x).t()[::2].softmax(1).numpy(), np.exp(expected_log(x.T[::2].astype(np.float64), 1)), 1e-6
    )
    assert flambeau.softmax(flambeau.tensor([1, 2]), 0, dtype=flambeau.float64).dtype is flambeau.float64


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dim", [0, 1])
def test_gradients(rng, name, dim):
    x = flambeau.tensor(rng.standard_normal((3, 4)), requires_grad=True)
    assert gradcheck(lambda x: getattr(flambeau, name)(x, dim), (x,))
    assert gradgradcheck(lambda x: getattr(flambeau, name)(x, dim), (x,))


def test_errors_and_warnings():
    with pytest.raises(NotImplementedError, match='"softmax" not implemented for int64'):
        flambeau.softmax(flambeau.tensor([1, 2]), 0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        flambeau.softmax(flambeau.ones(2), 1)
    with pytest.warns(UserWarning, match="the choice of dim is deprecated"):
        assert F.softmax(flambeau.zeros(2, 4)).tolist() == [[0.25] * 4] * 2
