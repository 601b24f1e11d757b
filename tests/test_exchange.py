"""Storages, DLPack, shared memory and Python functions over elements."""

import os

import numpy as np
import pytest

import flambeau
from flambeau.utils import dlpack

t = flambeau.tensor


# ---------------------------------------------------------------- storages


def test_storage_of_a_view_is_the_whole():
    x = t([[1.0, 2.0], [3.0, 4.0]])
    s = x[1].storage()
    assert (len(s), s.size(), s.nbytes(), s.element_size()) == (4, 4, 16, 4)
    assert s.tolist() == list(s) == [1, 2, 3, 4]
    assert s == x.storage() and s != t([1.0]).storage() and s.data_ptr() == x.data_ptr()
    assert s.dtype is flambeau.float32 and s.device == flambeau.device("cpu") and not s.is_cuda
    assert s.type() == "torch.FloatStorage"


def test_storage_elements():
    x = t([1, 2, 3])
    s = x.storage()
    s[0], s[-1] = 9, 7
    assert x.tolist() == [9, 2, 7] and (s[0], s[-1]) == (9, 7)
    s[1:] = 0
    assert s[:2].tolist() == [9, 0] and s[2:1].tolist() == []
    s[:2] = flambeau.LongStorage([4, 5])
    assert x.tolist() == [4, 5, 0]
    for bad in (3, -4):
        with pytest.raises(IndexError, match=f"index {bad} out of range for storage of size 3"):
            s[bad]
        with pytest.raises(IndexError, match=f"index {bad} out of range"):
            s[bad] = 1
    with pytest.raises(TypeError, match="an int or a slice, got str"):
        s["a"]
    with pytest.raises(TypeError, match="step 1, got 2"):
        s[::2]


def test_storage_copies():
    s = flambeau.FloatStorage([1, 2])
    copy = s.clone()
    copy.fill_(3)
    assert s.tolist() == [1, 2] and s.copy_(copy).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="expected a storage of 2 elements, got 1"):
        s.copy_(flambeau.FloatStorage(1))
    assert s.cpu() is s and s.to(dtype=flambeau.float64).type() == "torch.DoubleStorage"
    assert repr(flambeau.LongStorage([5, 6])) == " 5\n 6\n[torch.LongStorage of size 2]"
    assert flambeau.is_storage(s) and not flambeau.is_storage(3)
    assert len({s, s.clone()}) == 2


# ---------------------------------------------------------------- DLPack


@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "uint8", "bool", "float16"])
def test_dlpack_shares_memory_both_ways(kind):
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(kind)
    x = flambeau.from_dlpack(array)
    assert x.dtype is getattr(flambeau, kind) and x.tolist() == array.tolist()
    array[0, 0] = 1
    assert x[0, 0].item() == 1
    again = np.from_dlpack(x)
    assert again.ctypes.data == array.ctypes.data == x.data_ptr()


def test_dlpack_keeps_strides_and_memory():
    x = flambeau.arange(12.0).reshape(3, 4).t()[1:]
    y = np.from_dlpack(x)
    assert y.strides == (4, 16) and y.tolist() == x.tolist()
    expected = x.tolist()
    del x
    assert y.tolist() == expected
    z = flambeau.from_dlpack(np.arange(1000.0))
    assert z.sum().item() == 499500.0


def test_dlpack_capsules():
    x = t([1.0, 2.0])
    y = dlpack.from_dlpack(dlpack.to_dlpack(x))
    y.add_(1)
    assert x.tolist() == [2.0, 3.0]
    assert x.__dlpack_device__() == (1, 0)
    z = flambeau.from_dlpack(x)
    assert z.data_ptr() == x.data_ptr()


def test_dlpack_refusals():
    with pytest.raises(BufferError, match="Can't export tensors that require gradient"):
        np.from_dlpack(t([1.0], requires_grad=True))
    with pytest.raises(BufferError, match="bfloat16 cannot be exported"):
        flambeau.to_dlpack(t([1.0], dtype=flambeau.bfloat16))
    with pytest.raises(TypeError, match="an object with __dlpack__ or a DLPack capsule, got list"):
        flambeau.from_dlpack([1.0])

    class Elsewhere:
        def __dlpack__(self, **_):
            raise AssertionError

        def __dlpack_device__(self):
            return (2, 0)

    with pytest.raises(RuntimeError, match=r"No loaded backend imports DLPack device \(2, 0\)"):
        flambeau.from_dlpack(Elsewhere())


# ---------------------------------------------------------------- places


def test_host_tensors_are_on_the_host():
    x = t([1.0])
    assert x.cpu() is x and not x.is_cuda and x.get_device() == -1


def test_missing_devices_and_pinned_memory_say_so():
    x = t([1.0])
    if not any(each.device == "cuda" for each in flambeau.plugins.plugins):
        with pytest.raises(RuntimeError, match="No installed plug-in provides the device 'cuda'"):
            x.cuda()
        with pytest.raises(RuntimeError, match="Pinned memory needs a device that offers it"):
            x.pin_memory()
    assert not x.is_pinned()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_shared_memory_is_written_across_processes():
    x = flambeau.arange(6.0).reshape(2, 3)
    row = x[1]
    assert not x.is_shared()
    assert row.share_memory_() is row and row.is_shared() and row.tolist() == [3, 4, 5]
    x.share_memory_()
    pid = os.fork()
    if pid == 0:
        x.fill_(7)
        row[0] = -1
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert x.tolist() == [[7, 7, 7], [7, 7, 7]] and row.tolist() == [-1, 4, 5]
    assert flambeau.zeros(0).share_memory_().is_shared()


# ---------------------------------------------------------------- Python functions


def test_apply_and_map():
    x = t([[1.0, 2.0], [3.0, 4.0]])
    assert x.apply_(lambda each: each * 10) is x and x.tolist() == [[10, 20], [30, 40]]
    x.t()[0].apply_(lambda each: -each)
    assert x.tolist() == [[-10, 20], [-30, 40]]
    x.map_(t([1.0, 2.0]), lambda a, b: a + b)
    assert x.tolist() == [[-9, 22], [-29, 42]]
    with pytest.raises(RuntimeError, match="Can't call apply_ on Variable that requires grad"):
        t([1.0], requires_grad=True).apply_(abs)
    with pytest.raises(RuntimeError):
        x.map_(t([1.0, 2.0, 3.0]), max)
