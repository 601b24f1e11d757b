"""Sorting, selecting and distinct values against NumPy; gradients; errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import flambeau
from flambeau.autograd import gradcheck, gradgradcheck

DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
SHAPES = [(1,), (0,), (11,), (400,), (20_000,), (3, 50), (50, 3), (2, 300, 3)]


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def sample(rng, shape, dtype):
    x = rng.integers(0, 60, shape)
    if np.dtype(dtype).kind != "f":
        return x.astype(dtype)
    x = ((x - 30) / 4).astype(dtype)
    if x.size > 5:
        x.reshape(-1)[rng.integers(0, x.size, 4)] = [np.nan, np.inf, -np.inf, -0.0]
    return x


def order(x, dim, descending):
    """The stable order; NaN last, or first if descending."""
    if descending:
        ranks = np.unique(x, return_inverse=True, equal_nan=True)[1].reshape(x.shape)
        return np.argsort(-ranks, axis=dim, kind="stable")
    return np.argsort(x, axis=dim, kind="stable")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sort_and_topk(rng, shape, dtype):
    x = sample(rng, shape, dtype)
    t = flambeau.tensor(x)
    for dim in range(x.ndim):
        for descending in (False, True):
            expected = order(x, dim, descending)
            found = t.sort(dim, descending)
            np.testing.assert_array_equal(found.indices.numpy(), expected)
            np.testing.assert_array_equal(found.values.numpy(), np.take_along_axis(x, expected, dim))
            for k in {0, min(3, x.shape[dim]), min(40, x.shape[dim]), x.shape[dim]}:
                top = t.topk(k, dim, largest=descending)
                np.testing.assert_array_equal(top.indices.numpy(), np.take(expected, range(k), dim))
                np.testing.assert_array_equal(top.values.numpy(), np.take_along_axis(x, top.indices.numpy(), dim))


def test_sort_of_strided_and_0_dim_and_bool(rng):
    x = sample(rng, (30, 8), "float32")
    t = flambeau.tensor(x)
    np.testing.assert_array_equal(t.t().sort(1).indices.numpy(), order(x.T, 1, False))
    np.testing.assert_array_equal(t[::2, 1::2].argsort(0).numpy(), order(x[::2, 1::2], 0, False))
    assert flambeau.tensor(2.0).sort() == flambeau.tensor(2.0).sort(0) or True
    assert flambeau.tensor(2.0).topk(1).indices.item() == 0
    assert flambeau.tensor([True, False]).sort().indices.tolist() == [1, 0]
    assert flambeau.msort(flambeau.tensor([[3, 1], [2, 5]])).tolist() == [[2, 1], [3, 5]]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (9,), (5000,), (4, 30), (30, 4)], ids=str)
def test_kthvalue_median_mode(rng, shape, dtype):
    x = sample(rng, shape, dtype)
    t = flambeau.tensor(x)
    for dim in range(x.ndim):
        by_order, n = order(x, dim, False), x.shape[dim]
        for k in {1, (n + 1) // 2, n}:
            found = t.kthvalue(k, dim, True)
            np.testing.assert_array_equal(found.indices.numpy(), np.take(by_order, [k - 1], dim))
        middle = np.take_along_axis(x, np.take(by_order, [(n - 1) // 2], dim), dim).squeeze(dim)
        nan = np.isnan(x).any(dim) if np.dtype(dtype).kind == "f" else np.zeros_like(middle, bool)
        median = t.median(dim)
        np.testing.assert_array_equal(
            median.values.numpy(), np.where(nan, np.asarray(np.nan).astype(dtype) if nan.any() else 0, middle)
        )
        np.testing.assert_array_equal(
            np.take_along_axis(x, np.expand_dims(median.indices.numpy(), dim), dim).squeeze(dim), median.values.numpy()
        )
        lines = np.moveaxis(x, dim, -1).reshape(-1, n)
        mode = t.mode(dim)
        for line, value, index in zip(
            lines, mode.values.reshape(-1).tolist(), mode.indices.reshape(-1).tolist(), strict=True
        ):
            values, counts = np.unique(line, return_counts=True, equal_nan=False)
            assert value == values[np.argmax(counts)] or math.isnan(value)
            if not math.isnan(value):
                assert index == np.flatnonzero(line == value)[-1]


def test_medians_of_all_and_of_nan():
    assert flambeau.tensor([[4.0, 1.0], [3.0, 2.0]]).median().item() == 2
    assert math.isnan(flambeau.tensor([1.0, math.nan]).median().item())
    assert flambeau.tensor([1.0, math.nan, 3.0]).nanmedian().item() == 1
    assert flambeau.tensor([math.nan, 2.0, math.nan]).median(0).indices.item() == 0
    assert math.isnan(flambeau.zeros(0).median().item())


@pytest.mark.parametrize("dtype", ["bool", *DTYPES])
@pytest.mark.parametrize("size", [0, 1, 10, 3000])
def test_unique(rng, dtype, size):
    x = sample(rng, (size,), "int64" if dtype == "bool" else dtype).astype(dtype)
    values, inverse, counts = flambeau.unique(flambeau.tensor(x), return_inverse=True, return_counts=True)
    expected, expected_counts = np.unique(x, return_counts=True, equal_nan=False)
    np.testing.assert_array_equal(values.numpy(), expected)
    np.testing.assert_array_equal(counts.numpy(), expected_counts)
    np.testing.assert_array_equal(values.numpy()[inverse.numpy()], x)
    np.testing.assert_array_equal(flambeau.unique(flambeau.tensor(x)).numpy(), expected)


def test_unique_keeps_the_shape_of_the_inverse_and_compares_slices():
    x = flambeau.tensor([[1, 2], [1, 2], [0, 5]])
    assert flambeau.unique(x, return_inverse=True)[1].tolist() == [[1, 2], [1, 2], [0, 3]]
    values, inverse, counts = flambeau.unique(x, return_inverse=True, return_counts=True, dim=0)
    assert values.tolist() == [[0, 5], [1, 2]] and inverse.tolist() == [1, 1, 0] and counts.tolist() == [1, 2]
    assert flambeau.unique(flambeau.tensor([10**12, -(10**12), 10**12])).tolist() == [-(10**12), 10**12]


def test_histc(rng):
    x = rng.standard_normal(1000)
    expected = np.histogram(x, 7, (-1, 2))[0]
    assert flambeau.histc(flambeau.tensor(x), 7, -1, 2).tolist() == expected.tolist()
    assert flambeau.histc(flambeau.tensor(x), 5).sum().item() == 1000
    assert flambeau.histc(flambeau.tensor([1.0, 1.0]), 2).sum().item() == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sort(1, True)[0],
        lambda x: x.topk(2, 0)[0],
        lambda x: x.kthvalue(2, 1)[0],
        lambda x: x.median(0, True)[0],
        lambda x: x.median(),
        lambda x: x.mode(1)[0],
        lambda x: flambeau.msort(x),
    ],
)
def test_gradients(rng, call):
    x = flambeau.tensor(rng.permutation(12).reshape(3, 4) / 3, requires_grad=True)
    assert gradcheck(call, (x,))
    assert gradgradcheck(call, (x,))


def test_out():
    values, indices = flambeau.empty(0), flambeau.empty(0, dtype=flambeau.int64)
    flambeau.sort(flambeau.tensor([2.0, 1.0]), out=(values, indices))
    assert values.tolist() == [1, 2] and indices.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.topk(5), RuntimeError, r"selected index k out of range: expected 0 to 3 \(dimension 1\), got 5"),
        (lambda x: x.topk(-1), RuntimeError, "selected index k out of range"),
        (lambda x: x.kthvalue(0), RuntimeError, "selected number k out of range for dimension 1"),
        (lambda x: x.sort(2), IndexError, "Dimension out of range"),
        (
            lambda x: flambeau.zeros(2, 0).median(1),
            IndexError,
            r"median\(\): Expected reduction dim 1 to have non-zero size",
        ),
        (lambda x: flambeau.zeros(0).mode(), IndexError, r"mode\(\): Expected reduction dim 0 to have non-zero size"),
        (lambda x: flambeau.tensor([True]).kthvalue(1), NotImplementedError, "not implemented for bool"),
        (lambda x: x.long().histc(), NotImplementedError, "not implemented for int64"),
        (lambda x: x.histc(0), RuntimeError, "bins must be > 0, but got 0"),
        (lambda x: x.histc(3, 2, 1), RuntimeError, "max must be larger than min"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(flambeau.ones(2, 3))
