"""Typed names from before dtypes, and the settings of the process."""

import numpy as np
import pytest

import flambeau

STEMS = {
    "Bool": "bool", "Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64",
    "Half": "float16", "BFloat16": "bfloat16", "Float": "float32", "Double": "float64",
}  # fmt: skip


@pytest.mark.parametrize(("stem", "name"), STEMS.items())
def test_types_by_old_names(stem, name):
    kind, dtype = getattr(flambeau, f"{stem}Tensor"), getattr(flambeau, name)
    x = kind([0, 1])
    assert x.dtype is dtype and x.tolist() == [0, 1] and type(x) is flambeau.Tensor
    assert isinstance(x, kind) and isinstance(x, flambeau.Tensor)
    assert not isinstance(x, flambeau.LongTensor if stem != "Long" else flambeau.FloatTensor)
    assert x.type() == f"torch.{stem}Tensor"
    assert kind(2, 3).shape == (2, 3) and kind().shape == (0,) and kind(flambeau.Size([4])).shape == (4,)
    assert kind.dtype is dtype and repr(kind) == f"<class 'torch.{stem}Tensor'>"
    assert x.storage_type() is getattr(flambeau, f"{stem}Storage")
    assert isinstance(x.storage(), x.storage_type())


def test_making_from_arrays_storages_and_tensors():
    assert flambeau.DoubleTensor(np.arange(2)).tolist() == [0.0, 1.0]
    s = flambeau.LongStorage([1, 2])
    x = flambeau.LongTensor(s)
    x[0] = 5
    assert s.tolist() == [5, 2]
    assert flambeau.LongTensor(x).data_ptr() == x.data_ptr()
    with pytest.raises(TypeError, match=r"expected FloatTensor \(got torch.LongTensor\)"):
        flambeau.FloatTensor(x)
    with pytest.raises(TypeError, match="expects a storage of float32, got int64"):
        flambeau.FloatTensor(s)


@pytest.mark.parametrize("kind", ["torch.DoubleTensor", flambeau.DoubleTensor, flambeau.float64, "torch.float64"])
def test_type_converts(kind):
    x = flambeau.ones(2)
    assert x.type(kind).dtype is flambeau.float64
    assert x.type("torch.FloatTensor") is x


@pytest.mark.parametrize("kind", ["torch.FooTensor", "FloatTensor", 3, "torch.cpu.more.FloatTensor"])
def test_unknown_types(kind):
    with pytest.raises(ValueError, match="invalid type"):
        flambeau.ones(1).type(kind)


def test_types_of_other_devices_need_them():
    with pytest.raises(RuntimeError, match="warp"):
        flambeau.ones(1).type("torch.warp.FloatTensor")


# ---------------------------------------------------------------- settings


def test_default_dtype():
    try:
        flambeau.set_default_dtype(flambeau.float64)
        assert flambeau.get_default_dtype() is flambeau.float64
        assert flambeau.zeros(1).dtype is flambeau.tensor(1.0).dtype is flambeau.Tensor(1).dtype is flambeau.float64
        assert (flambeau.tensor([1]) / 2).dtype is flambeau.float64
        flambeau.set_default_tensor_type("torch.HalfTensor")
        assert flambeau.get_default_dtype() is flambeau.float16
        flambeau.set_default_tensor_type(flambeau.FloatTensor)
        assert flambeau.get_default_dtype() is flambeau.float32
        for bad in (flambeau.int64, "float32", None):
            with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
                flambeau.set_default_dtype(bad)
        with pytest.raises(TypeError, match="only floating-point types are supported"):
            flambeau.set_default_tensor_type("torch.LongTensor")
    finally:
        flambeau.set_default_dtype(flambeau.float32)


def test_threads():
    before = flambeau.get_num_threads()
    try:
        flambeau.set_num_threads(3)
        assert flambeau.get_num_threads() == 3
        for bad, kind in ((0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError)):
            with pytest.raises(kind, match="set_num_threads expects"):
                flambeau.set_num_threads(bad)
    finally:
        flambeau.set_num_threads(before)


def test_questions():
    x = flambeau.zeros(2, 3)
    assert flambeau.is_tensor(x) and not flambeau.is_tensor(np.zeros(1))
    assert flambeau.numel(x) == 6
    with pytest.raises(TypeError, match=r"numel\(\) expects a Tensor, got int"):
        flambeau.numel(3)


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_finfo_is_numpy_s(name):
    ours, theirs = flambeau.finfo(getattr(flambeau, name)), np.finfo(name)
    assert (ours.bits, ours.eps, ours.max, ours.min) == (theirs.bits, theirs.eps, theirs.max, theirs.min)
    assert ours.tiny == ours.smallest_normal == theirs.tiny
    assert ours.resolution == pytest.approx(float(theirs.resolution), rel=1e-3)  # which NumPy rounds to the type
    assert ours.dtype == name


def test_limits_of_other_types():
    half = flambeau.finfo(flambeau.bfloat16)
    assert (half.eps, half.tiny, half.bits) == (2.0**-7, 2.0**-126, 16)
    assert half.max == flambeau.tensor(half.max, dtype=flambeau.bfloat16).item() < float("inf")
    assert flambeau.finfo().dtype == flambeau.finfo(flambeau.complex64).dtype == "float32"
    assert "eps=1.19209e-07" in repr(flambeau.finfo(flambeau.float32))
    limits = flambeau.iinfo(flambeau.int16)
    assert (limits.min, limits.max, limits.bits) == (-(2**15), 2**15 - 1, 16)
    assert repr(flambeau.iinfo(flambeau.uint8)) == "iinfo(min=0, max=255, dtype=uint8)"
    with pytest.raises(TypeError, match=r"torch.finfo\(\) requires a floating point input type"):
        flambeau.finfo(flambeau.int64)
    with pytest.raises(TypeError, match=r"torch.iinfo\(\) requires an integer input type"):
        flambeau.iinfo(flambeau.bool)


def test_flush_denormal():
    tiny = flambeau.tensor([1e-310], dtype=flambeau.float64)
    try:
        if flambeau.set_flush_denormal(True):
            assert (tiny * 1).item() == 0.0
    finally:
        flambeau.set_flush_denormal(False)
    assert (tiny * 1).item() == 1e-310
