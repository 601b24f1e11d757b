"""Joining, repeating and turning against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays

import flambeau
from flambeau.autograd import gradcheck, gradgradcheck

rng = np.random.default_rng(0)
DTYPES = ["bool", "uint8", "int32", "int64", "float16", "float32", "float64"]


def both(shape, dtype="float64"):
    array = (rng.standard_normal(shape) * 5).astype(dtype)
    return array, flambeau.tensor(array)


@settings(max_examples=80, deadline=None)
@given(st.data(), arrays.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4), st.sampled_from(DTYPES))
def test_cat_and_stack(data, shape, dtype):
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=9))
    pairs = [both([n if i == dim % len(shape) else size for i, size in enumerate(shape)], dtype) for n in sizes]
    np.testing.assert_array_equal(
        flambeau.cat([t for _, t in pairs], dim).numpy(), np.concatenate([a for a, _ in pairs], dim)
    )
    a, t = both(shape, dtype)
    at = data.draw(st.integers(-len(shape) - 1, len(shape)))
    turned = t.permute(*range(t.ndim)[::-1]).contiguous().permute(*range(t.ndim)[::-1])
    np.testing.assert_array_equal(flambeau.stack([t, turned, t], at).numpy(), np.stack([a, a, a], at))


def test_cat_promotes_writes_out_and_skips_empty_vectors():
    x, y = flambeau.ones(2, dtype=flambeau.int32), flambeau.tensor([0.5])
    assert flambeau.cat((x, y)).dtype is flambeau.float32 and flambeau.cat(
        [flambeau.empty(0), flambeau.ones(2, 2)], 1
    ).shape == (2, 2)
    base = flambeau.zeros(6)
    assert flambeau.cat([y, y, y], out=base[::2].clone()).tolist() == [0.5] * 3
    flambeau.cat([y, y, y], 0, out=base[::2])
    assert base.tolist() == [0.5, 0, 0.5, 0, 0.5, 0]
    assert flambeau.cat([y, y], axis=0).shape == (2,)


JOINS = {
    "hstack": (flambeau.hstack, np.hstack), "vstack": (flambeau.vstack, np.vstack),
}  # fmt: skip


@pytest.mark.parametrize("name", JOINS)
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4)])
def test_named_joins(name, shape):
    ours, theirs = JOINS[name]
    (a, x), (b, y) = both(shape), both(shape)
    np.testing.assert_array_equal(ours((x, y)).numpy(), theirs((a, b)))


TURNS = {
    "flip": (lambda x: x.flip(0, 2), lambda a: np.flip(a, (0, 2))), "fliplr": (flambeau.fliplr, np.fliplr),
    "flipud": (flambeau.flipud, np.flipud), "roll": (lambda x: x.roll((1, -2), (0, 2)), lambda a: np.roll(a, (1, -2), (0, 2))),
    "roll all": (lambda x: x.roll(5), lambda a: np.roll(a, 5)),
    "repeat": (lambda x: x.repeat(2, 1, 3, 2), lambda a: np.tile(a, (2, 1, 3, 2))),
    "tile": (lambda x: x.tile(2, 2), lambda a: np.tile(a, (2, 2))), "tril": (lambda x: x.tril(1), lambda a: np.tril(a, 1)),
    "triu": (lambda x: x.triu(-1), lambda a: np.triu(a, -1)),
}  # fmt: skip


@pytest.mark.parametrize("name", TURNS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_turns(name, dtype):
    ours, theirs = TURNS[name]
    a, x = both((3, 4, 5), dtype)
    for tensor in (x, x.transpose(0, 2).contiguous().transpose(0, 2)):
        np.testing.assert_array_equal(ours(tensor).numpy(), theirs(a))
    assert ours(x).data_ptr() != x.data_ptr()


def test_diagonals_and_grids():
    a, x = both((4, 4))
    for offset in (-2, 0, 3):
        np.testing.assert_array_equal(x.diag(offset).numpy(), np.diag(a, offset))
        np.testing.assert_array_equal(x[0].diag(offset).numpy(), np.diag(a[0], offset))
        np.testing.assert_array_equal(flambeau.diagflat(x, offset).numpy(), np.diagflat(a, offset))
        np.testing.assert_array_equal(flambeau.diag_embed(x, offset)[2].numpy(), np.diag(a[2], offset))
    for indexing in ("ij", "xy"):
        for ours, theirs in zip(
            flambeau.meshgrid(x[0], x[1, :3], indexing=indexing),
            np.meshgrid(a[0], a[1, :3], indexing=indexing),
            strict=True,
        ):
            np.testing.assert_array_equal(ours.numpy(), theirs)
    wide = flambeau.broadcast_tensors(flambeau.ones(3, 1), flambeau.ones(2))
    assert [each.shape for each in wide] == [(3, 2), (3, 2)]


@pytest.mark.parametrize("name", [*TURNS, "cat", "stack", "diag_embed"])
def test_gradients(name):
    extra = {
        "cat": lambda x: flambeau.cat([x, x[:1], x * 2]), "stack": lambda x: flambeau.stack([x, x * x], 1),
        "diag_embed": lambda x: flambeau.diag_embed(x, 1),
    }  # fmt: skip
    call = extra[name] if name in extra else TURNS[name][0]
    x = flambeau.tensor(rng.standard_normal((3, 4, 5)), requires_grad=True)
    assert gradcheck(call, (x,), fast_mode=True) and gradgradcheck(call, (x,), fast_mode=True)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: flambeau.cat([]), (RuntimeError, ValueError), r"cat\(\): expected a non-empty list of Tensors"),
        (lambda x: flambeau.cat([x, x[:, :2]]), RuntimeError, "Sizes of tensors must match except in dimension 0"),
        (lambda x: flambeau.cat([x, x[0]]), RuntimeError, "must have same number of dimensions: got 2 and 1"),
        (lambda x: flambeau.cat([x], 2), IndexError, "Dimension out of range"),
        (lambda x: flambeau.cat([flambeau.tensor(1.0)]), RuntimeError, "zero-dimensional tensor"),
        (lambda x: flambeau.cat([x, 3]), TypeError, "expected Tensor as element 1 in argument 0 of cat"),
        (lambda x: flambeau.cat(x), TypeError, r"cat\(\) expects a list or tuple of Tensors, got Tensor"),
        (lambda x: flambeau.stack([x, x[:1]]), RuntimeError, "equal size"),
        (lambda x: flambeau.stack([]), RuntimeError, "non-empty"),
        (lambda x: x.flip(0, 0), RuntimeError, r"dim \[0, 0\] appears multiple times"),
        (lambda x: x.roll((1, 2), 0), RuntimeError, "shifts and dimensions must align"),
        (lambda x: x.repeat(2), RuntimeError, "repeat"), (lambda x: x[0].tril(), RuntimeError, "2 dim"),
        (lambda x: flambeau.meshgrid(x, x), RuntimeError, "D"), (lambda x: flambeau.diag(x.unsqueeze(0)), RuntimeError, "diag"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(flambeau.ones(2, 3))
