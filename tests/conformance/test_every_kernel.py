"""Every kernel of the CPU plug-in in turn is spoiled in one way: the kit sees each."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.backend import Backend, Kernel, Tensor, contiguous, float32, float64, int64, intern, make
from flambeau.backends import register
from flambeau.conformance.families import SAMPLES
from flambeau.conformance.suite import Suite
from flambeau.device import device
from flambeau.dispatch.operator import operators
from flambeau.dispatch.providers import registry
from flambeau.ops.conversion import host_array

TRUTH = {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "logical_not"}


def served():
    """The operators whose values are compared, each with a dtype that the plug-in serves."""
    registry.load("cpu")
    provider = next(each for each in registry.providers if each.name == "cpu")
    for name in sorted(provider.kernels.keys() & SAMPLES.keys()):
        keys = [intern(device("cpu"), dtype=each) for each in (float32, float64, int64)]
        yield name, next(key.dtype for key in keys if provider.kernel(name, key) is not None)


def spoil(given):
    """Change the last element of a tensor, or of the first of several."""
    first = next(each for each in (given if isinstance(given, (tuple, list)) else [given]) if isinstance(each, Tensor))
    array = host_array(first)
    if array.size:
        last, at = array[(-1,) * array.ndim], (-1,) * array.ndim
        with np.errstate(all="ignore"):
            array[at] = not last if array.dtype == bool else last + 1 if array.dtype.kind in "iu" else last * 1.01 + 0.5


EVERY = pytest.mark.parametrize(("name", "dtype"), [pytest.param(*each, id=each[0]) for each in served()])


def failed(name, dtype, spoiled):
    """The cases that fail if ``spoiled(kernel, args, kwargs)`` stands in for a kernel."""
    provider = next(each for each in registry.providers if each.name == "cpu")
    kernel = provider.kernel(name, intern(device("cpu"), dtype=dtype))
    wrong = Kernel(lambda *args, **kwargs: spoiled(kernel, args, kwargs), [dtype])
    with register(Backend(name="second", device="cpu", version="1.0", priority=9, kernels={name: wrong})):
        suite = Suite("cpu", "second")
        return {each.category for each in suite.cases() if suite.run(each).status == "failed"}


@EVERY
def test_one_wrong_element_is_seen(name, dtype):
    def spoiled(kernel, args, kwargs):
        result = kernel(*args, **kwargs)
        spoil(args[0] if result is None or name.endswith("_steps_") else result)
        return result

    assert failed(name, dtype, spoiled)


def misread(look):
    """A kernel that takes tensors for what ``look`` makes of them."""

    def convert(each):
        if isinstance(each, Tensor):
            return look(each)
        return [convert(one) for one in each] if isinstance(each, (list, tuple)) else each

    return lambda kernel, args, kwargs: kernel(*[convert(each) for each in args], **kwargs)


@EVERY
def test_ignored_strides_are_seen(name, dtype):
    if name in ("arange_", "linspace_"):
        pytest.skip("their kernels are only ever given contiguous targets")

    def packed(each):  # as far as there is memory
        geometry = each.geometry
        return each if geometry.span < geometry.numel else make(each.key, contiguous(geometry.shape), each.memory)

    assert "strided view" in failed(name, dtype, misread(packed))


@EVERY
def test_ignored_offsets_are_seen(name, dtype):
    def whole(each):
        return make(each.key, each.geometry, each.memory if each.shared is None else each.shared.memory)

    assert "offset view" in failed(name, dtype, misread(whole))


#: Pointwise operators with an in-place form that writes by their kernel; truth values are copied into other dtypes.
IN_PLACE = [
    pytest.param(*each, id=each[0])
    for each in served()
    if operators[each[0]].kind == "pointwise" and operators[each[0]].inplace and each[0] not in TRUTH
]


@pytest.mark.parametrize(("name", "dtype"), IN_PLACE)
def test_ignored_out_is_seen(name, dtype):
    assert {"in-place", "in-place on a view"} <= failed(name, dtype, lambda kernel, args, kwargs: kernel(*args))
