"""gather, scatter, index_*, take and put against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flambeau as torch
from flambeau.autograd import gradcheck, gradgradcheck

REAL = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


def tensor(array) -> torch.Tensor:
    return torch.tensor(np.asarray(array))


def case(seed, shape=(4, 5, 3), dim=1, wanted=(3, 6, 2), dtype="float64"):
    rng = np.random.default_rng(seed)
    return (
        rng.integers(-9, 9, shape).astype(dtype), rng.integers(0, shape[dim], wanted), rng.integers(-9, 9, wanted).astype(dtype)
    )  # fmt: skip


def scattered(array, dim, index, source, combine):
    result = array.copy()
    for place in np.ndindex(*index.shape):
        at = list(place)
        at[dim] = index[place]
        result[tuple(at)] = combine(result[tuple(at)], source[place])
    return result


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 2), st.booleans())
def test_gather_and_scatter_along_every_dimension(seed, dim, transposed):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 5, 3))
    wanted = tuple(rng.integers(1, 7) if at == dim else rng.integers(1, size + 1) for at, size in enumerate(shape))
    array, index, source = case(seed, shape, dim, wanted)
    x, i, s = tensor(array), tensor(index), tensor(source)
    if transposed:
        x, i, s = (each.permute(2, 0, 1).contiguous().permute(1, 2, 0) for each in (x, i, s))
    cut = tuple(slice(None) if at == dim else slice(size) for at, size in enumerate(wanted))
    np.testing.assert_array_equal(x.gather(dim, i).numpy(), np.take_along_axis(array[cut], index, dim))
    np.testing.assert_array_equal(x.scatter(dim, i, s).numpy(), scattered(array, dim, index, source, lambda _, b: b))
    np.testing.assert_array_equal(
        x.scatter_add(dim - 3, i, s).numpy(), scattered(array, dim, index, source, lambda a, b: a + b)
    )
    np.testing.assert_array_equal(x.scatter(dim, i, 7).numpy(), scattered(array, dim, index, source, lambda *_: 7))
    product = scattered(array, dim, index, source, lambda a, b: a * b)
    np.testing.assert_array_equal(x.scatter(dim, i, s, reduce="multiply").numpy(), product)
    np.testing.assert_array_equal(x.numpy(), array)


@pytest.mark.parametrize("dtype", REAL)
def test_dtypes(dtype):
    array, index, source = case(3, dtype=dtype)
    array, source = np.abs(array) % 50, np.abs(source) % 9  # no overflow
    got = tensor(array).scatter_add(1, tensor(index), tensor(source)).numpy()
    np.testing.assert_array_equal(got, scattered(array, 1, index, source, lambda a, b: np.add(a, b, dtype=dtype)))
    np.testing.assert_array_equal(
        tensor(array).gather(1, tensor(index)).numpy(), np.take_along_axis(array[:3, :, :2], index, 1)
    )


def test_an_expanded_index_adds_whole_rows():
    index = np.array([2, 0, 2])
    source = np.arange(12.0).reshape(3, 4)
    got = torch.zeros(3, 4, dtype=torch.float64).scatter_add(0, tensor(index).unsqueeze(1).expand(3, 4), tensor(source))
    expected = np.zeros((3, 4))
    np.add.at(expected, index, source)
    np.testing.assert_array_equal(got.numpy(), expected)


def test_nan_and_infinity_move_and_add():
    x = torch.tensor([1.0, float("nan"), float("inf")])
    assert np.isnan(x.gather(0, torch.tensor([1])).item()) and x.take(torch.tensor([-1])).item() == float("inf")
    assert np.isnan(
        torch.zeros(1).index_add(0, torch.tensor([0, 0]), torch.tensor([float("inf"), -float("inf")])).item()
    )
    assert torch.zeros(1).scatter(0, torch.tensor([0]), torch.tensor([-0.0])).numpy().view(np.int32)[0] != 0


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_slices(dim):
    array = np.arange(60.0).reshape(4, 5, 3)
    x, size = tensor(array), array.shape[dim]
    index = np.array([size - 1, 0, 0, 1])
    shape = list(array.shape)
    shape[dim] = 4
    source = np.arange(np.prod(shape), dtype=np.float64).reshape(shape) + 100
    at = [slice(None)] * 3
    at[dim] = index
    at = tuple(at)
    np.testing.assert_array_equal(x.index_select(dim, tensor(index)).numpy(), np.take(array, index, dim))
    np.testing.assert_array_equal(
        x.transpose(0, 2).index_select(dim, tensor(index % 3)).numpy(),
        np.take(array.transpose(2, 1, 0), index % 3, dim),
    )
    added = array.copy()
    np.add.at(added, at, source)
    np.testing.assert_array_equal(x.index_add(dim, tensor(index), tensor(source)).numpy(), added)
    doubled = array.copy()
    np.add.at(doubled, at, 2 * source)
    np.testing.assert_array_equal(x.index_add(dim, tensor(index), tensor(source), alpha=2).numpy(), doubled)
    copied = array.copy()
    copied[at] = source
    np.testing.assert_array_equal(x.index_copy(dim, tensor(index), tensor(source)).numpy(), copied)
    filled = array.copy()
    filled[at] = -1
    np.testing.assert_array_equal(x.index_fill(dim, tensor(index), -1).numpy(), filled)


def test_take_and_put():
    array = np.arange(12.0).reshape(3, 4)
    index = np.array([[0, -1], [5, 5]])
    for x in (tensor(array), tensor(array.T.copy()).t()):
        np.testing.assert_array_equal(x.take(tensor(index)).numpy(), array.take(index))
        added = array.copy()
        np.add.at(added.reshape(-1), index, 1.0)
        np.testing.assert_array_equal(
            x.put(tensor(index), torch.ones(2, 2, dtype=torch.float64), accumulate=True).numpy(), added
        )
        put = array.copy()
        put.reshape(-1)[index] = 8
        np.testing.assert_array_equal(
            x.clone().put_(tensor(index), torch.full((2, 2), 8.0, dtype=torch.float64)).numpy(), put
        )


def test_zero_dim_and_empty():
    x, none = torch.tensor(3.0), torch.zeros(0, dtype=torch.int64)
    assert x.gather(0, torch.tensor(0)).shape == () and x.index_select(0, torch.tensor([0])).item() == 3
    assert x.scatter(0, torch.tensor(0), 5.0).item() == 5 and x.index_fill(0, torch.tensor(0), 2.0).item() == 2
    assert x.take(torch.tensor([0])).tolist() == [3]
    y = torch.ones(2, 3)
    assert y.index_select(1, none).shape == (2, 0)
    assert y.index_add(0, none, torch.zeros(0, 3)).tolist() == y.tolist()
    assert y.gather(0, torch.zeros(0, 3, dtype=torch.int64)).shape == (0, 3)
    assert torch.zeros(0, 3).index_select(1, torch.tensor([2])).shape == (0, 1)


def test_out():
    x, i = torch.arange(6.0).view(2, 3), torch.tensor([2, 0])
    out = torch.empty(0)
    assert torch.index_select(x, 1, i, out=out) is out and out.tolist() == [[2, 0], [5, 3]]
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float32"):
        torch.take(x, i, out=torch.empty(2, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.take(x, i, out=x)


BAD = torch.tensor([0, 7])
ROWS = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda x: x.gather(0, torch.tensor([[5]])),
            RuntimeError,
            "index 5 is out of bounds for dimension 0 with size 4",
        ),
        (
            lambda x: x.gather(1, torch.tensor([[-1]])),
            RuntimeError,
            "index -1 is out of bounds for dimension 1 with size 3",
        ),
        (lambda x: x.scatter_(0, torch.tensor([[0], [9]]), 1.0), RuntimeError, "index 9 is out of bounds"),
        (
            lambda x: x.scatter_add_(0, torch.tensor([[0], [9]]), torch.ones(2, 1)),
            RuntimeError,
            "index 9 is out of bounds",
        ),
        (lambda x: x.scatter_(0, torch.tensor([0]), 1.0), RuntimeError, "same number of dimensions"),
        (lambda x: x.scatter_(0, torch.zeros(1, 9, dtype=torch.int64), 1.0), RuntimeError, "no larger than self"),
        (
            lambda x: x.scatter_(0, torch.tensor([[0]]), torch.ones(1, 1, dtype=torch.float64)),
            RuntimeError,
            "self.dtype to be equal",
        ),
        (lambda x: x.scatter_(0, torch.tensor([[0]]), 1.0, reduce="mean"), RuntimeError, "add or multiply"),
        (lambda x: x.gather(2, torch.tensor([[0]])), IndexError, "Dimension out of range"),
        (lambda x: x.gather(0, torch.tensor([[0.0]])), RuntimeError, "Expected dtype int32/int64 for index"),
        (lambda x: x.index_select(0, BAD), IndexError, "index out of range in self: 7"),
        (lambda x: x.index_select(0, torch.tensor([-1])), IndexError, "index out of range in self: -1"),
        (lambda x: x.index_select(0, torch.tensor([[0]])), IndexError, "supposed to be a vector"),
        (lambda x: x.index_add_(0, BAD, ROWS), RuntimeError, "index 7 is out of bounds for dimension 0 with size 4"),
        (lambda x: x.index_add_(0, torch.tensor([0]), ROWS), RuntimeError, "Number of indices"),
        (lambda x: x.index_copy_(0, BAD, ROWS), IndexError, "index_copy_.*index 7 is out of bounds"),
        (lambda x: x.index_copy_(0, torch.tensor([0, 1]), torch.ones(2, 4)), RuntimeError, "slice shapes must match"),
        (lambda x: x.index_fill_(0, torch.tensor([0, -5]), 1), IndexError, "index -5 is out of bounds"),
        (lambda x: x.index_fill_(0, torch.tensor([0]), torch.ones(2)), RuntimeError, "0-dimensional value"),
        (lambda x: x.take(torch.tensor([12])), IndexError, "tried to access index 12 on a tensor of 12 elements"),
        (lambda x: x.put_(torch.tensor([0, -13]), torch.ones(2)), IndexError, "tried to access index -13"),
        (lambda x: x.put_(torch.tensor([0]), torch.ones(2)), RuntimeError, "same number of elements"),
        (lambda x: torch.zeros(0).take(torch.tensor([0])), IndexError, "empty tensor"),
    ],
)
def test_errors_leave_the_target_as_it_was(call, error, text):
    x = torch.arange(12.0).view(4, 3)
    with pytest.raises(error, match=text):
        call(x)
    assert x.reshape(-1).tolist() == list(range(12))


def test_gradients():
    x = torch.randn(4, 3, dtype=torch.float64).requires_grad_()
    s = torch.randn(2, 3, dtype=torch.float64).requires_grad_()
    v = torch.tensor(0.5, dtype=torch.float64).requires_grad_()
    i, rows = torch.tensor([[0, 3, 1], [2, 1, 0]]), torch.tensor([3, 1])
    cases = [
        (lambda x: x.gather(0, i), (x,)), (lambda x, s: x.scatter(0, i, s), (x, s)), (lambda x, s: x.scatter_add(0, i, s), (x, s)),
        (lambda x: x.index_select(0, torch.tensor([1, 1, 0])), (x,)), (lambda x, s: x.index_add(0, rows, s), (x, s)),
        (lambda x, s: x.index_copy(0, rows, s), (x, s)), (lambda x, v: x.index_fill(0, torch.tensor([0, -1]), v), (x, v)),
        (lambda x: x.take(torch.tensor([[0, 5], [5, -1]])), (x,)),
        (lambda x, s: x.put(i, s, accumulate=True), (x, s)), (lambda x, s: x.scatter_add(0, i[:1], s), (x, s)),
    ]  # fmt: skip
    for function, inputs in cases:
        assert gradcheck(function, inputs)
        assert gradgradcheck(function, inputs)


@pytest.mark.parametrize("index", [np.broadcast_to(2, 3), np.broadcast_to(0, 3), np.array([2, 9, 1, 9, 2])[::2]])
def test_an_index_vector_with_any_stride(index):
    places = torch.from_numpy(np.ascontiguousarray(index))
    if index.strides == (0,):
        places = places[:1].expand(3)  # one value stored, three meant
    source = np.arange(1.0, 7).reshape(3, 2)
    for rows in (3, 4):
        into = np.full((rows, 2), 10.0)
        added, copied, filled = into.copy(), into.copy(), into.copy()
        np.add.at(added, index, source)
        copied[index] = source
        filled[index] = -1
        x = torch.from_numpy(into)
        np.testing.assert_array_equal(x.index_add(0, places, tensor(source)).numpy(), added)
        np.testing.assert_array_equal(x.index_copy(0, places, tensor(source)).numpy(), copied)
        np.testing.assert_array_equal(x.index_fill(0, places, -1).numpy(), filled)
    one = torch.zeros(1, dtype=torch.float64).index_add(
        0, torch.zeros(1, dtype=torch.int64).expand(3), tensor([1.0, 2, 4])
    )
    assert one.tolist() == [7]
