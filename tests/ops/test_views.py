"""Views against numpy: values, shared memory, strides; what cannot be a view; gradients flow back to the base."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays

import flambeau

shapes = arrays.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4)


def pair(shape):
    """An array and a tensor over the same memory."""
    array = np.arange(float(np.prod(shape))).reshape(shape)
    return array, flambeau.from_numpy(array)


@settings(max_examples=80, deadline=None)
@given(st.data(), shapes)
def test_chains_of_views_are_numpy_s(data, shape):
    array, tensor = pair(shape)
    for _ in range(data.draw(st.integers(1, 4))):
        kind = data.draw(st.sampled_from(["permute", "unsqueeze", "slice", "select", "expand", "diagonal", "unfold"]))
        ndim = array.ndim
        if kind == "permute" and ndim:
            order = data.draw(st.permutations(range(ndim)))
            array, tensor = array.transpose(order), tensor.permute(*order)
        elif kind == "unsqueeze":
            at = data.draw(st.integers(-ndim - 1, ndim))
            array, tensor = np.expand_dims(array, at), tensor.unsqueeze(at)
        elif kind == "slice" and ndim:
            at, step = data.draw(st.integers(0, ndim - 1)), data.draw(st.integers(1, 2))
            start = data.draw(st.integers(0, array.shape[at] - 1))
            index = (slice(None),) * at + (slice(start, None, step),)
            array, tensor = array[index], tensor[index]
        elif kind == "select" and ndim:
            at = data.draw(st.integers(0, ndim - 1))
            place = data.draw(st.integers(-array.shape[at], array.shape[at] - 1))
            array, tensor = (
                array.take(place, at) if False else array[(slice(None),) * at + (place,)],
                tensor.select(at, place),
            )
        elif kind == "expand":
            wide = (2, *[3 if size == 1 else size for size in array.shape])
            array, tensor = np.broadcast_to(array, wide), tensor.expand(wide)
        elif kind == "diagonal" and ndim >= 2:
            offset = data.draw(st.integers(-1, 1))
            array, tensor = np.diagonal(array, offset), tensor.diagonal(offset)
            if not array.size:
                break
        elif kind == "unfold" and ndim:
            at = data.draw(st.integers(0, ndim - 1))
            size = data.draw(st.integers(1, array.shape[at]))
            array = np.lib.stride_tricks.sliding_window_view(array, size, at)
            tensor = tensor.unfold(at, size, 1)
    assert tensor.shape == array.shape
    np.testing.assert_array_equal(tensor.numpy(), array)
    if array.size:
        sizes = [i for i, size in enumerate(array.shape) if size > 1]
        assert [tensor.stride(i) for i in sizes] == [array.strides[i] // array.itemsize for i in sizes]


@settings(max_examples=60, deadline=None)
@given(st.data(), shapes)
def test_reshape_and_view(data, shape):
    array, tensor = pair(shape)
    if data.draw(st.booleans()):
        array, tensor = array.T, tensor.permute(*range(array.ndim)[::-1])
    count = array.size
    first = data.draw(st.sampled_from([n for n in range(1, count + 1) if count % n == 0]))
    wanted = data.draw(st.sampled_from([(first, -1), (count // first, first), (-1,), (1, first, count // first, 1)]))
    np.testing.assert_array_equal(tensor.reshape(wanted).numpy(), array.reshape(wanted))
    np.testing.assert_array_equal(flambeau.flatten(tensor).numpy(), array.reshape(-1))
    try:
        view = array.view()
        view.shape = tuple(array.reshape(wanted).shape)  # numpy refuses where it would have to copy
    except AttributeError:
        return
    assert tensor.view(wanted).data_ptr() == tensor.data_ptr()


VIEWS = {
    "view": lambda x: x.view(3, 4), "t": lambda x: x.view(3, 4).t(), "transpose": lambda x: x.view(3, 4).transpose(0, 1),
    "permute": lambda x: x.view(3, 2, 2).permute(2, 0, 1), "squeeze": lambda x: x.view(1, 12).squeeze(0),
    "unsqueeze": lambda x: x.unsqueeze(1), "narrow": lambda x: x.narrow(0, 2, 5), "select": lambda x: x.view(3, 4).select(1, 2),
    "slice": lambda x: x[1::3], "diagonal": lambda x: x.view(3, 4).diagonal(1), "unfold": lambda x: x.unfold(0, 4, 4),
    "chunk": lambda x: x.chunk(2)[1], "split": lambda x: x.split([5, 7])[0], "unbind": lambda x: x.view(3, 4).unbind(0)[2],
    "as_strided": lambda x: x.as_strided((2, 3), (1, 4), 1), "movedim": lambda x: x.view(3, 2, 2).movedim(0, 2),
    "swapaxes": lambda x: x.view(3, 4).swapaxes(0, 1), "unflatten": lambda x: x.unflatten(0, (3, -1)),
    "view_as": lambda x: x.view_as(flambeau.ones(4, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_writes_reach_the_base_and_gradients_come_back(name):
    base = flambeau.arange(12.0)
    part = VIEWS[name](base)
    places = part.detach().numpy().astype(int).reshape(-1).tolist()
    part.mul_(-1)
    assert [i for i, each in enumerate(base.tolist()) if each < 0] == sorted(set(places) - {0})
    x = flambeau.arange(12.0, requires_grad=True)
    (VIEWS[name](x) * 2).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.bincount(places, minlength=12) * 2.0)
    y = flambeau.zeros(12, requires_grad=True) * 1
    z = VIEWS[name](y)
    z.add_(3)  # through the view: the base knows
    y.sum().backward()
    assert y.detach().sum().item() == 3 * len(places)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.view(5, 3), r"shape '\[5, 3\]' is invalid for input of size 12"),
        (lambda x: x.t().view(12), r"view size \[12\] is not compatible"),
        (lambda x: x.view(-1, -1), "only one dimension can be inferred"),
        (lambda x: x.view(7, -1), "invalid for input of size 12"),
        (lambda x: x.expand(3, 5), r"expanded size of the tensor \(5\) must match the existing size \(4\)"),
        (lambda x: x.expand(4), r"number of sizes provided \(1: \[4\]\) must be greater or equal"),
        (lambda x: x.permute(0), "permute"), (lambda x: x.permute(0, 0), "permute"),
        (lambda x: x.transpose(0, 2), "Dimension out of range"), (lambda x: x.unsqueeze(4), "Dimension out of range"),
        (lambda x: x.narrow(0, 2, 5), "exceeds dimension size"), (lambda x: x.narrow(0, 0, -1), "length"),
        (lambda x: x.select(0, 3), "out of range"), (lambda x: x.unfold(0, 4, 1), "maximum size"),
        (lambda x: x.unfold(0, 2, 0), "step"), (lambda x: x.diagonal(0, 1, 1), "identical"), (lambda x: x.unsqueeze(0).t(), "2"),
        (lambda x: x.as_strided((5, 5), (4, 1)), "out of bounds|storage"), (lambda x: x.unflatten(0, (2, 2)), "2"),
        (lambda x: x.split([1, 1]), "split"), (lambda x: x.chunk(0), "chunk"), (lambda x: x.movedim(0, 5), "Dimension out of range"),
    ],
)  # fmt: skip
def test_errors(call, message):
    with pytest.raises((RuntimeError, IndexError, ValueError), match=message):
        call(flambeau.arange(12.0).view(3, 4))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("t_", ()),
        ("transpose_", (0, 1)),
        ("squeeze_", ()),
        ("squeeze_", (1,)),
        ("unsqueeze_", (1,)),
        ("unsqueeze_", (-1,)),
    ],
)
def test_in_place_forms(name, args):
    x = flambeau.arange(6.0).view(6, 1) if name == "squeeze_" else flambeau.arange(6.0).view(2, 3)
    expected = getattr(x, name[:-1])(*args)
    y = x.clone()
    pointer = y.data_ptr()
    assert getattr(y, name)(*args) is y and y.data_ptr() == pointer
    assert y.shape == expected.shape and y.stride() == expected.stride() and y.tolist() == expected.tolist()
    leaf = x.clone().requires_grad_()
    z = leaf * 2
    getattr(z, name)(*args)
    weights = flambeau.arange(6.0).view(z.shape)
    (z * weights).sum().backward()
    back = np.arange(6.0).reshape(tuple(z.shape))
    back = back.T if name in ("t_", "transpose_") else back.reshape(tuple(x.shape))
    np.testing.assert_array_equal(leaf.grad.numpy(), 2 * back)
    with pytest.raises(
        RuntimeError, match=rf"a leaf Variable that requires grad is being used in an in-place operation \({name}"
    ):
        getattr(leaf, name)(*args)
    with flambeau.no_grad():
        assert getattr(leaf, name)(*args) is leaf


def test_in_place_forms_of_what_was_saved_are_noticed():
    w = flambeau.ones(2, 3, requires_grad=True)
    x = flambeau.arange(6.0).view(2, 3).clone()
    loss = (w * x).sum()
    x.t_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    view = (w * 2)[0]
    with pytest.raises(RuntimeError, match=r"unsqueeze_\(\) of a view that has history"):
        view.unsqueeze_(0)
