"""Masks against numpy: choosing, filling and scattering where they are true."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays

import flambeau
from flambeau.autograd import gradcheck, gradgradcheck

rng = np.random.default_rng(0)
DTYPES = ["bool", "uint8", "int16", "int64", "float16", "float32", "float64"]


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(DTYPES))
def test_values(data, dtype):
    shapes = data.draw(arrays.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4))
    a = (rng.standard_normal(shapes.input_shapes[0]) * 4).astype(dtype)
    mask = rng.random(shapes.input_shapes[1]) < 0.5
    x, m = flambeau.tensor(a), flambeau.tensor(mask)
    wide, where = np.broadcast_arrays(a, mask)
    np.testing.assert_array_equal(x.masked_select(m).numpy(), wide[where])
    np.testing.assert_array_equal(x.masked_fill(m, 1).numpy(), np.where(where, np.ones((), dtype), wide))
    np.testing.assert_array_equal(m.nonzero().numpy(), np.argwhere(mask) if mask.ndim else np.empty((int(mask), 0)))
    source = (rng.standard_normal(wide.shape) * 4).astype(dtype)
    expected = wide.copy()
    expected[where] = source.reshape(-1)[: where.sum()]
    np.testing.assert_array_equal(x.masked_scatter(m, flambeau.tensor(source)).numpy(), expected)


def test_in_place_on_views():
    base = flambeau.zeros(4, 4)
    base[::2, ::2].masked_fill_(flambeau.tensor([True, False]), 5.0)
    assert base.sum().item() == 10 and base[0, 0].item() == base[2, 0].item() == 5
    base.t()[1].masked_scatter_(flambeau.tensor([True, False, True, False]), flambeau.tensor([7.0, 8.0, 9.0]))
    assert base[:, 1].tolist() == [7, 0, 8, 0]
    x = flambeau.tensor([1.0, float("nan"), 0.0])
    assert x.masked_fill(x != x, flambeau.tensor(2.0)).tolist() == [1, 2, 0]
    assert x.nonzero().tolist() == [[0], [1]] and [each.tolist() for each in x.nonzero(as_tuple=True)] == [[0, 1]]
    assert x.masked_select(flambeau.tensor([1, 0, 1], dtype=flambeau.uint8)).tolist() == [1, 0]
    out = flambeau.empty(0)
    assert flambeau.masked_select(x, x == x, out=out) is out and out.tolist() == [1, 0]


def test_gradients():
    x = flambeau.tensor(rng.standard_normal((3, 4)), requires_grad=True)
    y = flambeau.tensor(rng.standard_normal((3, 4)), requires_grad=True)
    mask = flambeau.tensor(rng.random((3, 4)) < 0.5)
    for call, inputs in (
        (lambda x: x.masked_select(mask), (x,)), (lambda x: x.masked_fill(mask, 2.0), (x,)),
        (lambda x, y: x.masked_fill(mask, y[0, 0]), (x, y)), (lambda x, y: x.masked_scatter(mask, y), (x, y)),
        (lambda x: (x * 1).masked_fill_(mask[0], 3.0), (x,)),
    ):  # fmt: skip
        assert gradcheck(call, inputs) and gradgradcheck(call, inputs)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: x.masked_fill(x, 1),
            RuntimeError,
            r"only supports boolean masks, but got mask with dtype float32\.\nWrite mask",
        ),
        (lambda x: x.masked_fill([True], 1), TypeError, "argument 'mask' must be Tensor, not list"),
        (
            lambda x: x.masked_fill(x > 0, flambeau.ones(2)),
            RuntimeError,
            "0-dimensional value tensor, but got tensor with 1",
        ),
        (lambda x: x.masked_fill_(flambeau.ones(3) > 0, 1), RuntimeError, "broadcast|match|size"),
        (lambda x: x.long().masked_fill_(x > 0, flambeau.tensor(1.5)), RuntimeError, "overflow|convert"),
        (lambda x: x.masked_select(x.long()), RuntimeError, "expected BoolTensor for mask, got int64"),
        (lambda x: x.masked_scatter(x > 0, flambeau.ones(1)), RuntimeError, "elements"),
        (
            lambda x: x.masked_scatter(x.byte(), x),
            RuntimeError,
            "only supports boolean masks, but got mask with dtype uint8",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(flambeau.ones(2, 2))
