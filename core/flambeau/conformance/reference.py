"""The reference: a device whose kernels are the operators' references on NumPy arrays.

Everything that runs on a device under test runs here too, from the same numbers: operators, their
gradients to any order, composites.  It computes in float64 (complex128) whatever the dtype and rounds once.
An operator without a reference of its own is what its body says, on this device.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from ..backend import Backend
from ..backends import register
from ..device import device as Device
from ..dispatch.operator import Operator, operators
from ..dtype import complex128, dtype as Dtype, float64, from_numpy_dtype
from ..errors import BoundsError
from ..geometry import contiguous
from ..key import Handle, Key, devices
from ..layout import strided
from ..ops.conversion import host_array
from ..tensor import Tensor, make
from .families import DEFINITIONS
from .operands import Array, narrow, widen

__all__ = ["REFERENCE", "NumpyMemory", "reference_device"]

REFERENCE: Final = "reference"


class NumpyMemory:
    """Memory that is NumPy's: a handle is a flat array that begins at the tensor's first element."""

    host = True

    def canonical(self, device: Device) -> Device:
        return Device(device.type)

    def allocator(self, device: Device, dtype: Dtype) -> Callable[[int], Handle]:
        return lambda elements: np.empty(elements, dtype.numpy)

    def zeros_allocator(self, device: Device, dtype: Dtype) -> Callable[[int], Handle]:
        return lambda elements: np.zeros(elements, dtype.numpy)

    def shifter(self, dtype: Dtype) -> Callable[[Handle, int], Handle]:
        return lambda handle, elements: handle[elements:]

    def reader(self, dtype: Dtype) -> Callable[[Handle], Any]:
        return lambda handle: widen(handle[:1], dtype)[0].item()

    def unpacker(self, dtype: Dtype) -> None:
        return None

    def to_numpy(self, handle: Handle, elements: int, dtype: Dtype) -> Array:
        return np.asarray(handle[:elements])

    def from_numpy(self, array: Array, device: Device, dtype: Dtype) -> Handle:
        return array


def _wide(each: Any) -> Any:
    """A kernel's argument as the references want it."""
    if isinstance(each, Tensor):
        return widen(np.array(host_array(each)), each.dtype)
    if isinstance(each, Dtype):
        return float64 if each.is_floating_point else complex128 if each.is_complex else each
    return [_wide(one) for one in each] if isinstance(each, list) else each


def _result_dtype(op: Operator, key: Key, args: tuple[Any, ...], kind: np.dtype[Any]) -> Dtype:
    """The dtype of a result whose reference is of a NumPy dtype."""
    if op.kind == "pointwise" and kind.kind != "b":
        return key.dtype
    if kind.kind in "fc":
        named = next((each for each in args if isinstance(each, Dtype)), key.dtype)
        return named.to_real() if kind.kind == "f" else named
    found = from_numpy_dtype(kind)
    assert found is not None, f"the reference of {op.name} gives {kind}"
    return found


def _kernel(op: Operator, oracle: Callable[..., Any], key: Key) -> Callable[..., Any]:
    def result(values: Any, args: tuple[Any, ...]) -> Tensor:
        values = np.asarray(values)
        target = key.of(_result_dtype(op, key, args, values.dtype))
        return make(target, contiguous(values.shape), np.array(narrow(values, target.dtype).reshape(-1)))

    def run(*args: Any, out: Tensor | None = None) -> Any:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = oracle(*[_wide(each) for each in args])
            except IndexError as error:
                raise BoundsError(f"{op.name}: {error}") from None
        if op.mutates or out is not None:
            target = args[0] if out is None else out
            host_array(target)[...] = narrow(found, target.dtype)
            return out
        if isinstance(found, bool):
            return found
        if isinstance(found, (tuple, list)):
            return tuple(None if each is None else result(each, args) for each in found)
        return result(found, args)

    return run


class _Reference:
    """The reference of one operator as kernels for every dtype."""

    predicate: Callable[..., bool] | None = None

    def __init__(self, op: Operator, oracle: Callable[..., Any]) -> None:
        self.op, self.oracle = op, oracle

    def build(self, key: Key) -> Callable[..., Any]:
        return _kernel(self.op, self.oracle, key)

    def source(self) -> str:
        code = getattr(self.oracle, "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(self.oracle)


def references() -> Mapping[str, Callable[..., Any]]:
    """What each operator means on NumPy arrays: as declared beside it, else as its family here says."""
    return {
        **{name: op.oracle for name, op in operators.items() if op.oracle is not None},
        **DEFINITIONS,
    }


def reference_device() -> Device:
    """The reference, ready for use."""
    if (REFERENCE, strided) not in devices.memory:
        kernels = {name: _Reference(operators[name], oracle) for name, oracle in references().items()}
        register(Backend(name=REFERENCE, device=REFERENCE, version="", memory=NumpyMemory(), kernels=kernels))
        devices(Device(REFERENCE))
    return Device(REFERENCE)
