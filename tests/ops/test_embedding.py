"""Tables of rows against numpy: embedding, bags of rows, one-hot vectors; gradients by difference."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.nn import functional as F

rng = np.random.default_rng(0)
TABLE = rng.standard_normal((7, 3))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("shape", [(), (0,), (4,), (2, 3), (2, 1, 3)])
def test_rows(shape, dtype):
    index = rng.integers(0, 7, shape).astype(dtype)
    for table in (flambeau.tensor(TABLE), flambeau.tensor(TABLE.T.copy()).t()):
        np.testing.assert_array_equal(F.embedding(flambeau.tensor(index), table).numpy(), TABLE[index])


def test_gradients_are_sums_over_the_uses():
    index = np.array([[1, 4, 1], [6, 1, 0]])
    upstream = rng.standard_normal((2, 3, 3))
    expected = np.zeros((7, 3))
    np.add.at(expected, index, upstream)
    for options, mask in (({}, None), ({"padding_idx": 1}, 1), ({"padding_idx": -1}, 6)):
        table = flambeau.tensor(TABLE, requires_grad=True)
        F.embedding(flambeau.tensor(index), table, **options).backward(flambeau.tensor(upstream))
        wanted = expected.copy()
        if mask is not None:
            wanted[mask] = 0
        np.testing.assert_allclose(table.grad.numpy(), wanted)
    table = flambeau.tensor(TABLE, requires_grad=True)
    F.embedding(flambeau.tensor(index), table, scale_grad_by_freq=True).backward(flambeau.tensor(upstream))
    np.testing.assert_allclose(
        table.grad.numpy(), expected / np.maximum(np.bincount(index.ravel(), minlength=7), 1)[:, None]
    )
    table = flambeau.tensor(TABLE, requires_grad=True)
    F.embedding(flambeau.tensor(index), table, sparse=True).backward(flambeau.tensor(upstream))
    assert table.grad.is_sparse
    np.testing.assert_allclose(table.grad.to_dense().numpy(), expected)


def test_long_rows_are_shortened_where_they_are_used():
    table = flambeau.tensor(TABLE * 3)
    F.embedding(flambeau.tensor([0, 2]), table, max_norm=1.0, norm_type=2.0)
    norms = np.linalg.norm(table.numpy(), axis=1)
    np.testing.assert_allclose(norms[[0, 2]], 1, rtol=1e-6)
    np.testing.assert_array_equal(table.numpy()[[1, 3, 4, 5, 6]], (TABLE * 3)[[1, 3, 4, 5, 6]])


FOLDS = {"sum": lambda rows: rows.sum(0), "mean": lambda rows: rows.mean(0), "max": lambda rows: rows.max(0)}


@pytest.mark.parametrize("mode", FOLDS)
def test_bags(mode):
    index, offsets = np.array([1, 4, 1, 6, 0, 2]), [0, 3, 3]
    table = flambeau.tensor(TABLE, requires_grad=True)
    result = F.embedding_bag(flambeau.tensor(index), table, flambeau.tensor(offsets), mode=mode)
    bags = [index[0:3], index[3:3], index[3:6]]
    expected = np.stack([FOLDS[mode](TABLE[bag]) if len(bag) else np.zeros(3) for bag in bags])
    np.testing.assert_allclose(result.detach().numpy(), expected)
    matrix = rng.integers(0, 7, (2, 3))
    expected = np.stack([FOLDS[mode](TABLE[row]) for row in matrix])
    np.testing.assert_allclose(F.embedding_bag(flambeau.tensor(matrix), table, mode=mode).detach().numpy(), expected)
    assert gradcheck(
        lambda t: F.embedding_bag(flambeau.tensor(index), t, flambeau.tensor(offsets), mode=mode), (table,)
    )
    if mode == "sum":
        factors = flambeau.tensor(rng.standard_normal(6), requires_grad=True)

        def weighted(t, w):
            return F.embedding_bag(flambeau.tensor(index), t, flambeau.tensor(offsets), mode=mode, per_sample_weights=w)

        wanted = np.stack(
            [
                (TABLE[bag] * factors.detach().numpy()[at][:, None]).sum(0)
                for bag, at in zip(bags, (slice(3), slice(0), slice(3, 6)), strict=True)
            ]
        )
        np.testing.assert_allclose(weighted(table, factors).detach().numpy(), wanted)
        assert gradcheck(weighted, (table, factors)) and gradgradcheck(weighted, (table, factors))


def test_one_hot():
    index = rng.integers(0, 4, (2, 3))
    np.testing.assert_array_equal(F.one_hot(flambeau.tensor(index), 5).numpy(), np.eye(5, dtype=np.int64)[index])
    assert F.one_hot(flambeau.tensor([0, 2])).shape == (2, 3) and F.one_hot(
        flambeau.empty(0, dtype=flambeau.int64), 3
    ).shape == (0, 3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda t: F.embedding(flambeau.tensor([7]), t), IndexError, "7"),
        (lambda t: F.embedding(flambeau.tensor([-1]), t), IndexError, "-1"),
        (lambda t: F.embedding(flambeau.tensor([0.5]), t), RuntimeError, "float32"),
        (lambda t: F.embedding(flambeau.tensor([0]), t[0]), RuntimeError, r"'weight' must be 2-D, got shape \[3\]"),
        (
            lambda t: F.embedding(flambeau.tensor([0]), t, padding_idx=7), (AssertionError, ValueError, RuntimeError),
            "Padding_idx must be within num_embeddings, got 7 for 7 rows",
        ),
        (lambda t: F.embedding_bag(flambeau.tensor([0]), t, mode="sum"), ValueError, "offsets"),
        (lambda t: F.embedding_bag(flambeau.tensor([0]), t, flambeau.tensor([0]), mode="median"), ValueError, "mode"),
        (lambda t: F.one_hot(flambeau.tensor([3]), 2), (RuntimeError, IndexError), "num_classes|class"),
        (lambda t: F.one_hot(flambeau.tensor([-1])), (RuntimeError, IndexError), "negative|non-negative|-1"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(flambeau.tensor(TABLE))
