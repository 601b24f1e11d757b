"""Splitting, and parts written back, against numpy; sliding windows; scatters of parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flambeau
from flambeau.autograd import gradcheck, gradgradcheck

rng = np.random.default_rng(0)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 12), st.integers(1, 13), st.integers(0, 1))
def test_split_and_chunk(length, parts, dim):
    a = np.arange(length * 2.0).reshape((length, 2) if dim == 0 else (2, length))
    x = flambeau.from_numpy(a)
    cuts = range(parts, length, parts)
    for ours, theirs in zip(x.split(parts, dim), np.split(a, cuts, dim), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    size = -(-length // parts) or 1
    expected = np.split(a, range(size, length, size), dim) if length else [a]
    pieces = x.chunk(parts, dim)
    assert len(pieces) == (len(expected) if length else parts)
    for ours, theirs in zip(pieces, expected, strict=False):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    for ours, theirs in zip(x.tensor_split(parts, dim), np.array_split(a, parts, dim), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=6))
def test_split_into_sizes(sizes):
    a = np.arange(float(sum(sizes)))
    pieces = flambeau.from_numpy(a).split(sizes)
    assert [len(each) for each in pieces] == sizes
    assert np.concatenate([each.numpy() for each in pieces]).tolist() == a.tolist()
    cuts = np.cumsum(sizes)[:-1].tolist()
    for ours, theirs in zip(flambeau.from_numpy(a).tensor_split(cuts), np.split(a, cuts), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)


def test_unbind_and_iteration():
    x = flambeau.arange(6.0).view(2, 3)
    assert [each.tolist() for each in x.unbind(1)] == [[0, 3], [1, 4], [2, 5]] and [
        each.tolist() for each in x
    ] == x.tolist()
    first, _ = x
    first.add_(10)
    assert x[0].tolist() == [10, 11, 12]
    with pytest.raises(TypeError, match="0-d"):
        iter(flambeau.tensor(1.0))


SCATTERS = {
    "select_scatter": (lambda x, y: x.select_scatter(y[0], 1, 2), lambda a, b: _set(a, (slice(None), 2), b[0])),
    "slice_scatter": (
        lambda x, y: x.slice_scatter(y.t(), 1, 0, 4, 2), lambda a, b: _set(a, (slice(None), slice(0, 4, 2)), b.T),
    ),
    "diagonal_scatter": (lambda x, y: x.diagonal_scatter(y[1, :3], 1), lambda a, b: _diagonal(a, b[1, :3])),
}  # fmt: skip


def _set(a, index, values):
    result = a.copy()
    result[index] = values[: result[index].shape[0]] if values.ndim == 1 else values
    return result


def _diagonal(a, values):
    result = a.copy()
    result[np.arange(3), np.arange(1, 4)] = values
    return result


@pytest.mark.parametrize("name", SCATTERS)
def test_scatters_of_parts(name):
    ours, theirs = SCATTERS[name]
    a, b = rng.standard_normal((4, 4)), rng.standard_normal((2, 4))
    x, y = flambeau.tensor(a, requires_grad=True), flambeau.tensor(b, requires_grad=True)
    np.testing.assert_array_equal(ours(x, y).detach().numpy(), theirs(a, b))
    np.testing.assert_array_equal(x.detach().numpy(), a)
    assert gradcheck(ours, (x, y)) and gradgradcheck(ours, (x, y))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.split(-1), RuntimeError, "-1"), (lambda x: x.split(0), RuntimeError, "0"),
        (lambda x: x.split([1, 2]), RuntimeError, "sum exactly to 4"), (lambda x: x.chunk(0), RuntimeError, "greater than 0"),
        (lambda x: x.split(1, 2), IndexError, "Dimension out of range"), (lambda x: x.tensor_split(0), RuntimeError, "0"),
        (lambda x: x.unbind(2), IndexError, "Dimension out of range"), (lambda x: x.select_scatter(x, 0, 1), RuntimeError, "size|shape"),
        (lambda x: x.narrow(0, 5, 1), (RuntimeError, IndexError), "start|range"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(flambeau.ones(4, 4))
