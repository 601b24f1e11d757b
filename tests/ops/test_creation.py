"""Factories against numpy: shapes, dtypes, `out=`, likenesses, sharing of memory, errors."""

from __future__ import annotations

import numpy as np
import pytest

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
SHAPES = [(), (0,), (3,), (2, 3), (2, 0, 4), (1, 2, 3, 4)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_filled(dtype, shape):
    kind = getattr(flambeau, dtype)
    for result, expected in (
        (flambeau.zeros(shape, dtype=kind), np.zeros(shape, dtype)),
        (flambeau.ones(*shape, dtype=kind), np.ones(shape, dtype)),
        (flambeau.full(shape, 1, dtype=kind), np.ones(shape, dtype)),
        (flambeau.empty(shape, dtype=kind).fill_(1), np.ones(shape, dtype)),
    ):
        assert result.dtype is kind and result.shape == shape and result.is_contiguous()
        np.testing.assert_array_equal(result.numpy(), expected)


def test_dtypes_that_are_not_named():
    assert flambeau.zeros(2).dtype is flambeau.float32 and flambeau.full((2,), 1).dtype is flambeau.int64
    assert flambeau.full((2,), 1.0).dtype is flambeau.float32 and flambeau.full((2,), True).dtype is flambeau.bool
    assert flambeau.full((2,), 1j).dtype is flambeau.complex64
    assert flambeau.full((), flambeau.tensor(2.5)).item() == 2.5


def test_out():
    target = flambeau.ones(2, 3)
    view = target[0]
    assert flambeau.zeros(3, out=view) is view and target.tolist() == [[0, 0, 0], [1, 1, 1]]
    assert flambeau.ones(2, 2, out=flambeau.empty(0)).tolist() == [[1, 1], [1, 1]]
    assert flambeau.full((3,), 7, out=flambeau.empty(3, dtype=flambeau.int16)).tolist() == [7, 7, 7]


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_likenesses_keep_dtype_and_strides(dtype):
    x = flambeau.tensor(np.zeros((2, 3), dtype)).t()
    for like in (
        flambeau.zeros_like,
        flambeau.ones_like,
        flambeau.empty_like,
        flambeau.rand_like if dtype == "float32" else flambeau.zeros_like,
    ):
        result = like(x)
        assert result.dtype is x.dtype and result.shape == (3, 2) and result.stride() == x.stride()
    expanded = flambeau.zeros(3, 1).expand(3, 4)
    assert flambeau.ones_like(expanded).stride() == (4, 1)
    assert flambeau.full_like(x, 1, dtype=flambeau.float64).sum().item() == 6
    assert x.new_zeros(2, 2).dtype is x.dtype and x.new_ones((2,), dtype=flambeau.int8).tolist() == [1, 1]
    assert x.new_full((2,), 1).tolist() == [1, 1] and x.new_empty(0).shape == (0,)
    assert x.new_tensor([1, 0]).dtype is x.dtype


@pytest.mark.parametrize(
    ("data", "dtype", "expected"),
    [
        ([1, 2], "int64", [1, 2]), ([1, 2.5], "float32", [1, 2.5]), ([True, False], "bool", [True, False]),
        ([True, 2], "int64", [1, 2]), ([1, 2j], "complex64", [1, 2j]), ([], "float32", []), ([[], []], "float32", [[], []]),
        (((1, 2), (3, 4)), "int64", [[1, 2], [3, 4]]), (range(3), "int64", [0, 1, 2]), (3, "int64", 3), (2.5, "float32", 2.5),
        (np.float64(2), "float64", 2.0), (np.arange(3, dtype=np.int16), "int16", [0, 1, 2]),
        ([np.int32(1), 2], "int64", [1, 2]), ([[np.array([1.0, 2.0])]], "float64", [[[1, 2]]]),
    ],
)  # fmt: skip
def test_from_data(data, dtype, expected):
    result = flambeau.tensor(data)
    assert result.dtype is getattr(flambeau, dtype) and result.tolist() == expected


def test_from_tensors_in_lists():
    x = flambeau.tensor([1.0, 2.0], requires_grad=True)
    assert flambeau.tensor([x[0], 3.0]).tolist() == [1, 3]
    again = flambeau.tensor(x)
    assert not again.requires_grad and again.data_ptr() != x.data_ptr()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([[1, 2], [3]], r"expected sequences of equal length at every depth, got \[\[1, 2\], \[3\]\]"), ("abc", "got str 'abc'"),
        ([None], "got NoneType"), ([1, "a"], "got str 'a'"), (object(), "got object"), (b"ab", "got bytes"),
    ],
)  # fmt: skip
def test_data_that_is_none(data, message):
    with pytest.raises((TypeError, ValueError, RuntimeError), match=message):
        flambeau.tensor(data)


def test_memory_is_shared_or_not():
    a = np.arange(6.0).reshape(2, 3)
    for shares, make in ((True, flambeau.from_numpy), (True, flambeau.as_tensor), (False, flambeau.tensor)):
        a[:] = np.arange(6.0).reshape(2, 3)
        x = make(a)
        x[0, 0] = 9
        assert bool(a[0, 0] == 9) is shares
    assert flambeau.from_numpy(a.T).stride() == (1, 3) and flambeau.from_numpy(a[:, ::2]).tolist() == a[:, ::2].tolist()
    assert flambeau.from_numpy(a[:0]).shape == (0, 3) and flambeau.from_numpy(np.array(5)).item() == 5
    assert flambeau.as_tensor(a, dtype=flambeau.float32).data_ptr() != a.ctypes.data
    x = flambeau.ones(2)
    assert flambeau.as_tensor(x) is x
    with pytest.raises(
        ValueError, match=r"strides must be non-negative multiples of the element size \(8\), got \(-8,\)"
    ):
        flambeau.from_numpy(np.arange(3.0)[::-1])
    with pytest.raises(TypeError, match=r"can't convert np\.ndarray of type uint16"):
        flambeau.from_numpy(np.arange(3, dtype=np.uint16))
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    with pytest.warns(UserWarning, match="The array is read-only, so the tensor got a copy"):
        flambeau.from_numpy(frozen)[0] = 7
    assert frozen[0] == 0


def test_empty_strided():
    x = flambeau.empty_strided((2, 3), (1, 2)).copy_(flambeau.arange(6.0).view(2, 3))
    assert x.stride() == (1, 2) and x.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(RuntimeError, match=r"dimensionality of sizes \(2\) must match dimensionality of strides \(1\)"):
        flambeau.empty_strided((2, 3), (1,))
    with pytest.raises(RuntimeError, match="sizes and strides are not negative"):
        flambeau.empty_strided((2,), (-1,))


def test_requires_grad_and_errors():
    assert flambeau.zeros(2, requires_grad=True).is_leaf and flambeau.tensor([1.0], requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="floating"):
        flambeau.zeros(2, dtype=flambeau.int64, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"negative dimension -1: \[2, -1\]"):
        flambeau.zeros(2, -1)
    with pytest.raises(TypeError, match="dtype must be"):
        flambeau.zeros(2, dtype="float32")
    with pytest.raises(RuntimeError, match="overflow"):
        flambeau.full((2,), 300, dtype=flambeau.uint8)
