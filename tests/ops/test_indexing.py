"""x[...] and x[...] = value against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flambeau as torch
from flambeau.autograd import gradcheck, gradgradcheck

DTYPES = ["bool", "uint8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]


def tensor(array: np.ndarray) -> torch.Tensor:
    return torch.tensor(array)


@st.composite
def basic(draw, shape, least=0):
    """A tuple of ints, slices, None and Ellipsis for a shape."""
    parts, ellipsis = [], False
    for size in shape:
        kind = draw(st.sampled_from(["int", "slice", "slice", "none", "ellipsis", "stop"]))
        if kind == "stop":
            break
        if kind == "none":
            parts.append(None)
        if kind == "ellipsis":
            ellipsis = True
            break
        if kind == "int" and size:
            parts.append(draw(st.integers(-size, size - 1)))
        else:
            ends = st.none() | st.integers(-size - 2, size + 2)
            parts.append(slice(draw(ends), draw(ends), draw(st.none() | st.integers(1, 3))))
    if ellipsis:
        parts.append(Ellipsis)
    return tuple(parts)


@st.composite
def advanced(draw, shape):
    """An index with index arrays, masks, slices and ints mixed; arrays broadcast together."""
    common = draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
    parts, dim = [], 0
    while dim < len(shape):
        size = shape[dim]
        kind = draw(st.sampled_from(["array", "array", "slice", "int", "stop", "none"]))
        if kind == "stop":
            break
        if kind == "none":
            parts.append(None)
            continue
        if kind == "array":
            own = [draw(st.sampled_from([1, each])) for each in common][draw(st.integers(0, len(common) - 1)) :]
            numbers = draw(
                st.lists(st.integers(-size, size - 1), min_size=int(np.prod(own)), max_size=int(np.prod(own)))
            )
            parts.append(np.array(numbers, dtype=np.int64).reshape(own))
        elif kind == "slice":
            ends = st.none() | st.integers(-size, size)
            parts.append(slice(draw(ends), draw(ends), draw(st.none() | st.integers(1, 2))))
        else:
            parts.append(draw(st.integers(-size, size - 1)))
        dim += 1
    return tuple(parts)


SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def as_ours(index):
    return tuple(tensor(each) if isinstance(each, np.ndarray) else each for each in index)


def layouts(array):
    """The same values dense, transposed in memory, and as every other element with an offset."""
    x = tensor(array)
    yield x
    if array.ndim:
        yield tensor(np.ascontiguousarray(array.transpose())).permute(*range(array.ndim - 1, -1, -1))
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1] + 1), array.dtype)
        wide[..., 1::2] = array
        yield tensor(wide)[..., 1::2]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_basic_indices_view_what_numpy_views(data):
    shape = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple))
    array = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    index = data.draw(basic(shape))
    for x in layouts(array):
        got = x[index]
        np.testing.assert_array_equal(got.numpy(), array[index])
        assert tuple(got.shape) == array[index].shape
        assert got._base is not None  # a view
        changed = array.copy()
        changed[index] = 7
        x = x.clone()
        x[index] = 7
        np.testing.assert_array_equal(x.numpy(), changed)


def mixed_apart(index):
    """Whether ints stand among arrays: NumPy counts them as index arrays, PyTorch as parts of the view."""
    arrays = [i for i, each in enumerate(index) if isinstance(each, np.ndarray)]
    return any(isinstance(each, int) for each in index) and bool(arrays)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_advanced_indices_gather_and_scatter_like_numpy(data):
    shape = data.draw(SHAPES)
    array = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    index = data.draw(advanced(shape))
    reference = index
    if mixed_apart(index):  # the meaning of PyTorch: ints first
        first = tuple(each if isinstance(each, int) else slice(None) for each in index if each is not None)
        array_of_view = array[first]
        reference = tuple(each for each in index if not isinstance(each, int))
    else:
        array_of_view = array
    wanted = array_of_view[reference]
    for x in layouts(array):
        np.testing.assert_array_equal(x[as_ours(index)].numpy(), wanted)
    changed = array.copy()
    view = changed[first] if mixed_apart(index) else changed
    values = np.arange(wanted.size, dtype=np.float64).reshape(wanted.shape) + 100
    if len(np.unique(wanted)) == wanted.size:  # each place once
        view[reference] = values
        for x in layouts(array):
            x = x.clone()
            x[as_ours(index)] = tensor(values)
            np.testing.assert_array_equal(x.numpy(), changed)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype):
    array = (np.arange(24) % 5).astype(dtype).reshape(4, 6)
    rows, columns = np.array([3, 0, -1]), np.array([1, -6, 5])
    x = tensor(array)
    np.testing.assert_array_equal(x[tensor(rows)].numpy(), array[rows])
    np.testing.assert_array_equal(x[tensor(rows), tensor(columns)].numpy(), array[rows, columns])
    np.testing.assert_array_equal(x[:, tensor(columns)].numpy(), array[:, columns])
    changed = array.copy()
    changed[rows, columns] = 1
    x[tensor(rows), tensor(columns)] = 1
    np.testing.assert_array_equal(x.numpy(), changed)


@pytest.mark.parametrize("kind", ["list", "array", "int32", "bool list", "mask", "byte mask", "range"])
def test_kinds_of_index(kind):
    array = np.arange(12).reshape(3, 4)
    x = tensor(array)
    mask = np.array([True, False, True])
    index = {
        "list": [0, 2], "array": np.array([0, 2]), "int32": tensor(np.array([0, 2], np.int32)), "bool list": [True, False, True],
        "mask": tensor(mask), "byte mask": tensor(mask.astype(np.uint8)), "range": range(0, 3, 2),
    }[kind]  # fmt: skip
    np.testing.assert_array_equal(x[index].numpy(), array[[0, 2]])
    x[index] = -1
    assert (x.numpy()[[0, 2]] == -1).all() and (x.numpy()[1] == array[1]).all()


def test_masks_of_fewer_and_of_all_dimensions():
    rng = np.random.default_rng(0)
    array = rng.standard_normal((3, 4, 5))
    x = tensor(array)
    for mask in (array[:, :, 0] > 0, array > 0, array[:, 0, 0] > -9, np.zeros((3, 4), bool)):
        np.testing.assert_array_equal(x[tensor(mask)].numpy(), array[mask])
    mask = array[0] > 0
    np.testing.assert_array_equal(x[:, tensor(mask)].numpy(), array[:, mask])
    np.testing.assert_array_equal(x[1, tensor(mask[:, 0]), 2:].numpy(), array[1, mask[:, 0], 2:])
    changed = array.copy()
    changed[array > 0] = 0
    x[x > 0] = 0
    np.testing.assert_array_equal(x.numpy(), changed)


def test_true_false_and_zero_dim_tensors():
    x = torch.arange(6).view(2, 3)
    assert x[True].shape == (1, 2, 3) and x[False].shape == (0, 2, 3)
    assert x[torch.tensor(1)].tolist() == [3, 4, 5]
    assert x[torch.tensor(1)]._base is not None
    assert x[torch.tensor(True)].shape == (1, 2, 3)
    assert torch.tensor(5)[True].tolist() == [5]
    assert torch.tensor(5)[None].shape == (1,) and torch.tensor(5)[...].item() == 5


def test_a_list_of_lists_stands_for_a_tuple():
    x = torch.arange(12).view(3, 4)
    assert x[[[0, 1], [1, 2]]].tolist() == [1, 6]


def test_values_broadcast_and_lose_leading_ones():
    x = torch.zeros(3, 4)
    x[1] = torch.ones(1, 1, 4)
    x[[0, 2], 1:3] = torch.tensor([5.0, 6.0])
    assert x.tolist() == [[0, 5, 6, 0], [1, 1, 1, 1], [0, 5, 6, 0]]
    x[:, 0] = np.float32(9)
    x[0] = np.arange(4)
    assert x[:, 0].tolist() == [0, 9, 9]


def test_an_index_may_be_the_tensor_that_is_written():
    x = torch.arange(5).flip(0)
    x[x] = torch.arange(5) * 10
    assert x.tolist() == [40, 30, 20, 10, 0]


def test_empty():
    x = torch.zeros(0, 3)
    assert x[[]].shape == (0, 3) and x[:, [0, 1]].shape == (0, 2)
    assert torch.zeros(4)[torch.zeros(0, 2, dtype=torch.int64)].shape == (0, 2)
    x[:, [0, 1]] = 1
    y = torch.ones(3)
    y[[]] = 5
    assert y.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        (3, IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
        (-4, IndexError, "index -4 is out of bounds for dimension 0 with size 3"),
        ((0, 5), IndexError, "index 5 is out of bounds for dimension 1 with size 4"),
        ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
        (1.5, IndexError, "only integers, slices"),
        ("a", IndexError, "only integers, slices"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (slice(1.5, None), TypeError, "slice indices must be integers"),
        ([0, 9], IndexError, "index 9 is out of bounds for dimension 0 with size 3"),
        ((slice(None), [0, -5]), IndexError, "index -5 is out of bounds for dimension 1 with size 4"),
        ([[0, 1], [0, 1, 2]], IndexError, r"could not be broadcast together with shapes \[2\], \[3\]"),
        ([1.0], IndexError, "must be long, int, byte or bool"),
        ([True, False], IndexError, r"The shape of the mask \[2\] at index 0 does not match"),
    ],
)
def test_errors_of_reading_and_writing(index, error, text):
    x = torch.arange(12).view(3, 4)
    with pytest.raises(error, match=text):
        x[index]
    before = x.tolist()
    with pytest.raises(error, match=text):
        x[index] = 1
    assert x.tolist() == before


def test_errors_of_values():
    x = torch.zeros(3, 4)
    with pytest.raises(
        RuntimeError, match=r"value tensor of shape \[5\] cannot be broadcast to indexing result of shape \[1, 4\]"
    ):
        x[[0]] = torch.ones(5)
    with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match, got float32"):
        x[[0]] = torch.ones(4, dtype=torch.float64)
    with pytest.raises(TypeError, match="can't assign a list"):
        x[0] = [1, 2, 3, 4]
    with pytest.raises(RuntimeError, match="without overflow"):
        x[[0]] = 1j
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        torch.tensor(1)[0]
    assert x.tolist() == torch.zeros(3, 4).tolist()


def test_gradients():
    x = torch.randn(4, 5, dtype=torch.float64).requires_grad_()
    i, j = torch.tensor([0, 3, 0]), torch.tensor([[1], [4]])
    for read in (
        lambda x: x[1], lambda x: x[:, 2], lambda x: x[1:3, ::2], lambda x: x[None, ..., -1], lambda x: x[i], lambda x: x[i, j],
        lambda x: x[:, i], lambda x: x[x.detach() > 0], lambda x: x[[True, False, True, False]],
    ):  # fmt: skip
        assert gradcheck(read, (x,))
        assert gradgradcheck(read, (x,))

    v = torch.randn(2, 3, dtype=torch.float64).requires_grad_()
    for index in ((slice(0, 2), slice(1, 4)), (torch.tensor([[0], [2]]), i.clone().fill_(1) + torch.arange(3))):

        def write(x, v, index=index):
            y = x.clone()
            y[index] = v
            return y * y

        assert gradcheck(write, (x, v))
        assert gradgradcheck(write, (x, v))


def test_repeated_places_accumulate_in_the_gradient():
    x = torch.zeros(3).requires_grad_()
    x[torch.tensor([1, 1, 2])].sum().backward()
    assert x.grad.tolist() == [0, 2, 1]


def test_index_put_accumulates_and_writes_the_last():
    x = torch.zeros(3)
    x.index_put_((torch.tensor([0, 0, 2]),), torch.tensor([1.0, 2.0, 3.0]), accumulate=True)
    assert x.tolist() == [3, 0, 3]
    x.index_put_((torch.tensor([0, 0]),), torch.tensor([5.0, 6.0]))
    assert x.tolist() == [6, 0, 3]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_large_writes_do_not_depend_on_the_number_of_threads(threads):
    rng = np.random.default_rng(1)
    index, values = rng.integers(-5000, 5000, 200_000), rng.standard_normal(200_000).astype(np.float32)
    rows = rng.integers(0, 500, 3000)
    before = torch.get_num_threads() if hasattr(torch, "get_num_threads") else None
    if before is None:
        pytest.skip("threads cannot be set")
    torch.set_num_threads(threads)
    try:
        x = torch.zeros(5000)
        x.index_put_((tensor(index),), tensor(values), accumulate=True)
        expected = np.zeros(5000, np.float32)
        np.add.at(expected, index, values)
        np.testing.assert_array_equal(x.numpy(), expected)  # the same order of additions
        y = torch.zeros(5000)
        y[tensor(index)] = tensor(values)
        last = np.zeros(5000, np.float32)
        last[index] = values
        np.testing.assert_array_equal(y.numpy(), last)
        source = rng.standard_normal((3000, 40)).astype(np.float32)
        z = torch.zeros(500, 40).index_add_(0, tensor(rows), tensor(source))
        expected = np.zeros((500, 40), np.float32)
        np.add.at(expected, rows, source)
        np.testing.assert_array_equal(z.numpy(), expected)
    finally:
        torch.set_num_threads(before)
