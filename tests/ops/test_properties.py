"""What a tensor tells of itself, against numpy; sizes that change in place; hooks and gradients kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays

import flambeau


@settings(max_examples=50, deadline=None)
@given(
    arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
    st.sampled_from(["uint8", "int16", "float32", "complex128"]),
    st.booleans(),
)
def test_shape_strides_and_size(shape, dtype, turned):
    a, x = np.zeros(shape, dtype), flambeau.zeros(shape, dtype=getattr(flambeau, dtype))
    if turned and len(shape) > 1:
        a, x = a.T, x.permute(*range(len(shape))[::-1])
    assert x.shape == x.size() == a.shape and x.dim() == x.ndim == a.ndim and x.numel() == x.nelement() == a.size
    assert x.element_size() == a.itemsize and x.storage_offset() == 0
    assert x.is_contiguous() == a.flags.c_contiguous or a.size == 0
    if a.size:
        assert [s for s, n in zip(x.stride(), shape[::-1] if turned else shape, strict=True) if n > 1] == [
            s // a.itemsize for s, n in zip(a.strides, a.shape, strict=True) if n > 1
        ]
    assert x.is_floating_point() == (a.dtype.kind == "f") and x.is_complex() == (a.dtype.kind == "c")
    assert x.is_signed() == (a.dtype.kind != "u") and x.is_same_size(x.clone())


def test_single_dimensions():
    x = flambeau.zeros(2, 3, 4)[:, 1:]
    assert x.size(1) == x.size(-2) == 2 and x.stride(0) == 12 and x.storage_offset() == 4 and x.data_ptr() % 4 == 0
    assert isinstance(x.shape, flambeau.Size) and x.shape.numel() == 16 and repr(x.shape) == "torch.Size([2, 2, 4])"
    with pytest.raises(IndexError, match=r"Dimension out of range"):
        x.size(3)


def test_resize_set_and_data():
    x = flambeau.arange(6.0)
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]] and x.resize_(6).tolist() == [0, 1, 2, 3, 4, 5]
    assert x.resize_(8)[:6].tolist() == [0, 1, 2, 3, 4, 5] and x.resize_as_(flambeau.ones(3)).shape == (3,)
    y = flambeau.zeros(2)
    y.set_(flambeau.arange(3.0))
    assert y.tolist() == [0, 1, 2]
    storage = flambeau.arange(6.0).storage()
    assert y.set_(storage).tolist() == [0, 1, 2, 3, 4, 5]
    assert y.set_(storage, 1, (2, 2), (2, 1)).tolist() == [[1, 2], [3, 4]] and y.fill_(9).sum().item() == 36
    assert list(storage) == [0, 9, 9, 9, 9, 5]
    assert y.set_().shape == (0,)
    with pytest.raises(TypeError, match=r"set_\(\) expects a tensor or a storage, got list \[1\]"):
        y.set_([1])
    y.data = flambeau.ones(2, 2)
    assert y.shape == (2, 2)
    with pytest.raises(RuntimeError, match=r"grad|history|leaf"):
        flambeau.ones(2, requires_grad=True).resize_(3)
    with pytest.raises(TypeError, match=r"Tensor\.data expects a Tensor, got list"):
        y.data = [1]


def test_grad_of_another_kind_is_refused():
    x = flambeau.ones(2, requires_grad=True)
    x.grad = flambeau.zeros(2)
    x.grad = None
    for wrong in (flambeau.zeros(3), flambeau.zeros(2, dtype=flambeau.float64), [1, 2]):
        with pytest.raises((RuntimeError, TypeError)):
            x.grad = wrong


def test_requires_grad_and_leaves():
    x = flambeau.ones(2)
    assert x.is_leaf and not x.requires_grad and x.requires_grad_() is x and x.requires_grad
    y = x * 2
    assert not y.is_leaf and y.requires_grad and y.grad_fn is not None and y.grad is None
    y.retain_grad()
    y.sum().backward()
    assert y.grad.tolist() == [1, 1] and x.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        (x * 2).requires_grad = False
    with pytest.raises(RuntimeError, match="floating"):
        flambeau.ones(2).long().requires_grad_()
    with pytest.raises(RuntimeError, match="retain_grad"):
        flambeau.ones(1).retain_grad()


def test_hooks_see_and_change_gradients():
    x = flambeau.ones(3, requires_grad=True)
    seen = []
    first = x.register_hook(lambda g: seen.append(g.tolist()))
    second = x.register_hook(lambda g: g * 10)
    (x * 2).sum().backward()
    assert seen == [[2, 2, 2]] and x.grad.tolist() == [20, 20, 20]
    first.remove()
    second.remove()
    second.remove()  # twice does no harm
    (x * 2).sum().backward()
    assert len(seen) == 1 and x.grad.tolist() == [22, 22, 22]
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        flambeau.ones(1).register_hook(print)


def test_versions_count_writes():
    x = flambeau.zeros(4)
    before = x._version
    x[:2].add_(1)
    x.mul_(2)
    assert x._version == before + 2 == x[1:]._version and x.detach()._version == x._version
    x.data.add_(1)
    assert x._version == before + 2
