"""Between dtypes, devices and Python against numpy: values, identity, copies, numbers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flambeau

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
SMALL = np.array([[0, 1, 2], [3, 100, 127]])


@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
def test_every_pair(source, target):
    a = SMALL.astype(source)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # complex numbers lose a part
        expected = a.astype(target)
    for x in (flambeau.tensor(a), flambeau.tensor(a.T.copy()).t(), flambeau.tensor(np.repeat(a, 2, 1))[:, ::2]):
        result = x.to(getattr(flambeau, target))
        assert result.dtype is getattr(flambeau, target)
        np.testing.assert_array_equal(result.numpy(), expected)
        assert (result is x) is (source == target)
        np.testing.assert_array_equal(flambeau.empty(2, 3, dtype=result.dtype).copy_(x).numpy(), expected)


@settings(max_examples=100, deadline=None)
@given(st.floats(width=32))
def test_half_precisions_are_rounded_to_even(number):
    x = flambeau.tensor([number], dtype=flambeau.float32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(x.half().numpy(), np.array([number], np.float32).astype(np.float16))
    got = np.float32(x.bfloat16().float().item())
    bits = np.array([number], np.float32).view(np.uint32).astype(np.uint64)
    kept = (
        ((bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) & np.uint64(0xFFFF0000))
        .astype(np.uint32)
        .view(np.float32)[0]
    )
    assert got == kept or (np.isnan(got) and np.isnan(np.float32(number)))


def test_fractions_are_cut_and_nan_is_true():
    x = flambeau.tensor([-1.9, -0.5, 0.5, 1.9])
    assert x.int().tolist() == [-1, 0, 0, 1] and x.long().dtype is flambeau.int64 and x.byte()[2:].tolist() == [0, 1]
    assert flambeau.tensor([float("nan"), 0.0, -0.0, 1e-30]).bool().tolist() == [True, False, False, True]


def test_to():
    x = flambeau.ones(2)
    assert x.to("cpu") is x and x.to(x) is x and x.to(flambeau.float32) is x and x.to(x, copy=True) is not x
    assert (
        x.to("cpu", flambeau.float64).dtype is flambeau.float64
        and x.to(flambeau.ones(1).long()).dtype is flambeau.int64
    )
    assert (
        x.to(device="cpu", dtype=flambeau.int8).dtype is flambeau.int8
        and x.type_as(flambeau.ones(1).double()).dtype is flambeau.float64
    )
    shorthands = {
        "float": "float32",
        "double": "float64",
        "half": "float16",
        "long": "int64",
        "int": "int32",
        "short": "int16",
        "char": "int8",
        "byte": "uint8",
        "bool": "bool",
    }
    for name, dtype in shorthands.items():
        assert getattr(x, name)().dtype is getattr(flambeau, dtype)
    with pytest.raises(RuntimeError, match="No installed plug-in provides the device 'nowhere'"):
        x.to("nowhere")
    with pytest.raises((TypeError, RuntimeError)):
        x.to(3.5)


def test_gradients_come_back_in_the_dtype_they_left():
    x = flambeau.tensor([1.0, 2.0], requires_grad=True)
    (x.double() * flambeau.tensor([3.0, 4.0], dtype=flambeau.float64)).sum().backward()
    assert x.grad.dtype is flambeau.float32 and x.grad.tolist() == [3, 4]
    assert not x.long().requires_grad
    y = flambeau.zeros(2, requires_grad=True)
    z = y * 1
    z.copy_(x)
    z.sum().backward()
    assert y.grad.tolist() == [0, 0] and x.grad.tolist() == [4, 5]


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
def test_numbers_and_lists(dtype):
    kind = getattr(flambeau, dtype)
    x = flambeau.tensor([[0, 1], [1, 1]], dtype=kind)
    assert x.tolist() == [[0, 1], [1, 1]] and x.t()[1].tolist() == [1, 1] and x[0, 1].item() == 1 == x[1, 1].tolist()
    wanted = bool if dtype == "bool" else complex if "complex" in dtype else float if "float" in dtype else int
    assert type(x[0, 1].item()) is wanted and flambeau.empty(0, 2, dtype=kind).tolist() == []
    assert bool(x[0, 1]) and not x[0, 0]
    if wanted is not complex:
        assert int(x[1, 1]) == 1 and float(x[1, 1]) == 1.0
    assert 1 in x and 2 not in x and len(x) == 2


def test_what_is_no_number():
    x = flambeau.ones(2, 2)
    with pytest.raises(
        (RuntimeError, ValueError), match=r"a Tensor with 4 elements cannot be converted to Scalar \(shape \[2, 2\]\)"
    ):
        x.item()
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        bool(x)
    with pytest.raises(TypeError, match="0-d"):
        len(flambeau.tensor(1))
    with pytest.raises(TypeError, match="only integer tensors"):
        range(3)[flambeau.tensor(1.0)]
    assert range(3)[flambeau.tensor(1)] == 1 and [10, 20][flambeau.tensor(True)] == 20


def test_numpy_shares_memory():
    x = flambeau.arange(6.0).view(2, 3)
    a = x.t().numpy()
    a[0, 1] = 9
    assert x[1, 0].item() == 9 and a.strides == (4, 12)
    np.testing.assert_array_equal(np.asarray(x), x.numpy())
    assert np.add(x.numpy(), 1).sum() == x.sum().item() + 6
    y = flambeau.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="detach"):
        y.numpy()
    assert y.detach().numpy().sum() == 2 and y.numpy(force=True).sum() == 2


def test_fill_zero_clone_contiguous():
    base = flambeau.zeros(4, 4)
    part = base[::2, 1::2]
    assert part.fill_(3) is part and base.sum().item() == 12 and part.contiguous().is_contiguous()
    assert part.clone().data_ptr() != part.data_ptr() and base.contiguous() is base
    assert part.fill_(flambeau.tensor(2)).sum().item() == 8 and part.zero_().sum().item() == 0
    with pytest.raises(RuntimeError, match="0-dimension"):
        base.fill_(flambeau.ones(2))
    with pytest.raises(RuntimeError, match="overflow"):
        flambeau.zeros(2, dtype=flambeau.uint8).fill_(-1)
    with pytest.raises(RuntimeError, match=r"size|broadcast"):
        base.copy_(flambeau.ones(3))
