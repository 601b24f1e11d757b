"""Devices whose memory is NumPy's: that memory, and adaptors from functions of arrays to kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from .device import device as Device
from .dtype import DTYPES, bfloat16, dtype as Dtype
from .errors import AllocationError, DeviceError
from .geometry import contiguous
from .kernel import Kernel
from .key import Key
from .tensor import Tensor, from_bfloat16, make

__all__ = ["ARRAY_DTYPES", "ArrayMemory", "as_array", "from_array", "pointwise", "returning", "writing"]

#: The dtypes that NumPy computes with: all but bfloat16, which are bits to it.
ARRAY_DTYPES: Final = tuple(each for each in DTYPES if each is not bfloat16)

#: The dtype of a result: one, a function of the kernel's arguments, or the operands'.
Result: TypeAlias = "Dtype | Callable[..., Dtype] | None"


class ArrayMemory:
    """NumPy's memory; a handle is a flat array and where in it the tensor begins.

    Attributes:
        host: True; a subclass that says False is treated as a device that the host cannot look into.
    """

    host: bool = True

    def canonical(self, device: Device) -> Device:
        if device.index not in (None, 0):
            raise DeviceError(f"There is one {device.type} device, got {device}.\nWrite {device.type!r}.")
        return Device(device.type)

    def _taker(self, device: Device, dtype: Dtype, take: Callable[..., Any]) -> Callable[[int], Any]:
        def allocate(elements: int) -> Any:
            try:
                return take(elements, dtype.numpy), 0
            except (MemoryError, ValueError):
                raise AllocationError(
                    f"The device {str(device)!r} could not allocate {elements * dtype.itemsize:,} bytes.\n"
                    "Use smaller batches or free tensors first."
                ) from None

        return allocate

    def allocator(self, device: Device, dtype: Dtype) -> Callable[[int], Any]:
        return self._taker(device, dtype, np.empty)

    def zeros_allocator(self, device: Device, dtype: Dtype) -> Callable[[int], Any]:
        return self._taker(device, dtype, np.zeros)

    def shifter(self, dtype: Dtype) -> Callable[[Any, int], Any]:
        return lambda handle, elements: (handle[0], handle[1] + elements)

    def reader(self, dtype: Dtype) -> Callable[[Any], Any]:
        if dtype is bfloat16:
            return lambda handle: from_bfloat16(handle[0][handle[1]]).item()
        return lambda handle: handle[0].item(handle[1])

    def unpacker(self, dtype: Dtype) -> Callable[[Any, int], list[Any]] | None:
        return None

    def to_numpy(self, handle: Any, elements: int, dtype: Dtype) -> np.ndarray[Any, Any]:
        flat, first = handle
        found: np.ndarray[Any, Any] = flat[first : first + elements].view(dtype.numpy)
        return found if self.host else found.copy()

    def from_numpy(self, array: np.ndarray[Any, Any], device: Device, dtype: Dtype) -> Any:
        return array if self.host else array.copy(), 0


def as_array(tensor: Tensor) -> np.ndarray[Any, Any]:
    """A tensor's elements as an array of its shape that shares its memory; the tensor is of :class:`ArrayMemory`."""
    flat, first = tensor.memory
    geometry, size = tensor.geometry, flat.itemsize
    if not geometry.numel:
        return np.empty(geometry.shape, flat.dtype)
    strides = [each * size for each in geometry.strides]
    array: np.ndarray[Any, Any] = np.ndarray(geometry.shape, flat.dtype, flat, first * size, strides)
    return array


def from_array(key: Key, values: Any) -> Tensor:
    """A new tensor with these values, converted to the key's dtype.

    Memory of its own is taken over from an array that owns it, as results of NumPy's functions do.
    """
    array = np.asarray(values, key.dtype.numpy)
    if not (array.flags.owndata and array.flags.c_contiguous and array.flags.writeable):
        array = np.array(array, order="C")
    return make(key, contiguous(array.shape), (array.reshape(-1), 0))


def _plain(value: Any) -> Any:
    """An argument of a kernel with arrays in place of tensors."""
    if isinstance(value, Tensor):
        return as_array(value)
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _key_of(value: Any) -> Key:
    key: Key = (value[0] if isinstance(value, (list, tuple)) else value).key
    return key


def _adapted(function: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
    """``run`` under the name and place of the function it adapts, without NumPy's warnings: NaN and infinity are
    results like others."""

    @functools.wraps(function, updated=())
    def kernel(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            return run(*args, **kwargs)

    return kernel


def pointwise(
    function: Callable[..., Any],
    dtypes: Sequence[Dtype] = ARRAY_DTYPES,
    result: Dtype | None = None,
    predicate: Callable[..., bool] | None = None,
) -> Kernel:
    """A kernel of a pointwise operator.

    Args:
        function: of arrays that broadcast, such as ``np.add``.
        dtypes: those of the operands that it serves.
        result: the result's dtype, if it is not the operands'.
        predicate: accepts or declines a call.
    """

    def run(*operands: Tensor, out: Tensor | None = None) -> Tensor:
        values = function(*[as_array(each) for each in operands])
        if out is None:
            key = operands[0].key
            return from_array(key if result is None else key.of(result), values)
        as_array(out)[...] = values
        return out

    return Kernel(_adapted(function, run), dtypes, predicate)


def returning(
    function: Callable[..., Any],
    dtypes: Sequence[Dtype] = ARRAY_DTYPES,
    result: Result | tuple[Result, ...] = None,
    predicate: Callable[..., bool] | None = None,
) -> Kernel:
    """A kernel that makes new tensors.

    Args:
        function: of the kernel's arguments, arrays in place of tensors, to an array or a number; to a tuple of
            them where the operator has several results.
        dtypes: those of the first operand that it serves.
        result: the result's dtype (a tuple for several results) if it is not the operands': a dtype, or a function of the
            kernel's arguments, such as ``lambda x, dims, keepdim, dtype: dtype`` for ``sum``.
        predicate: accepts or declines a call.
    """

    def new(key: Key, values: Any, wanted: Any, args: tuple[Any, ...]) -> Tensor:
        if wanted is not None and type(wanted) is not Dtype:
            wanted = wanted(*args)
        return from_array(key if wanted is None else key.of(wanted), values)

    def run(*args: Any) -> Any:
        values, key = function(*[_plain(each) for each in args]), _key_of(args[0])
        if not isinstance(values, tuple):
            return new(key, values, result, args)
        wanted = result if isinstance(result, tuple) else (result,) * len(values)
        return tuple([new(key, each, dtype, args) for each, dtype in zip(values, wanted, strict=True)])

    return Kernel(_adapted(function, run), dtypes, predicate)


def writing(
    function: Callable[..., Any],
    dtypes: Sequence[Dtype] = ARRAY_DTYPES,
    predicate: Callable[..., bool] | None = None,
) -> Kernel:
    """A kernel that writes into its first argument, such as ``copy_``.

    Args:
        function: of the kernel's arguments, arrays in place of tensors, to the values of the first argument.
        dtypes: those of the target that it serves.
        predicate: accepts or declines a call.
    """

    def run(target: Tensor, *args: Any) -> None:
        array = as_array(target)
        array[...] = function(array, *[_plain(each) for each in args])

    return Kernel(_adapted(function, run), dtypes, predicate)
