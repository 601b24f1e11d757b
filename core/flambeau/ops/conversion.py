"""Copies and conversions: between dtypes, devices, Python and NumPy."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ..capabilities import capabilities, function
from ..device import device as Device
from ..dispatch.operator import composite, primitive
from ..dtype import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype as Dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from ..errors import ArgumentTypeError, AutogradError, DtypeError, MissingKernelError, ShapeError, shown
from ..geometry import broadcast_shapes, contiguous
from ..key import intern
from ..layout import layout as Layout, strided
from ..tensor import Tensor, constant, empty, from_bfloat16, make, number_of
from .views import expand, view

__all__ = ["cast_to", "clone", "contiguous_", "copy_", "fill_", "item", "numpy", "to", "tolist", "type_as", "zero_"]


@primitive("self source |", mutates=True, namespaces=())
def copy_(self: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """Overwrite with the values of ``source``, broadcast to this shape and converted to this dtype.

    Raises:
        RuntimeError: ``source`` does not broadcast to this shape.
    """
    if not isinstance(source, Tensor):
        source = constant(self.key, source)
    if source.geometry.shape != self.geometry.shape:
        if broadcast_shapes(self.shape, source.shape) != self.shape:
            raise ShapeError(
                f"output with shape {list(self.shape)} doesn't match the broadcast shape "
                f"{list(broadcast_shapes(self.shape, source.shape))} in copy_()."
            )
        source = expand(source, self.shape)
    if source.key.device is not self.key.device:
        source = cast(Any, source).to(self.key.device, non_blocking=non_blocking)
    if source.shared is not None and self.shared is not None and source.shared.memory is self.shared.memory:
        source = clone(source)
    return cast(Tensor, copy_.run(self, source))


copy_.gradient(source=lambda grad: grad, self=lambda grad: grad.new_zeros(grad.shape))


@primitive("self value |", mutates=True, namespaces=())
def fill_(self: Tensor, value: Any) -> Tensor:
    """Set every element to one number, or to the value of a 0-dim tensor."""
    if not isinstance(value, Tensor):
        value = constant(self.key, value if type(value) in self.key.keeps else number_of(self.key.dtype, value))
    elif value.geometry.ndim:
        raise ShapeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.")
    elif value.key is not self.key:
        value = cast(Any, value).to(self.key.device, self.key.dtype)
    return cast(Tensor, fill_.run(self, value))


fill_.gradient(self=lambda grad: grad.new_zeros(grad.shape), value=lambda grad: grad.sum())


@composite(namespaces=("",))
def fill(self: Tensor, value: Any) -> Tensor:
    """A tensor of the same shape full of one number."""
    return cast(Tensor, fill_(clone(self), value))


@composite(namespaces=("",))
def zero_(self: Tensor) -> Tensor:
    """Set every element to zero."""
    return cast(Tensor, fill_(self, 0))


def _packed(self: Tensor) -> Tensor:
    """A row-major copy."""
    return cast(Tensor, copy_(empty(self.key, contiguous(self.geometry.shape)), self))


@primitive("self |")
def clone(self: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy with memory of its own; gradients flow through."""
    return cast(Tensor, clone.run(self))


clone.gradient(self=lambda grad: grad)
clone.composite(_packed)


@composite(name="contiguous", namespaces=())
def contiguous_(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself if its rows follow each other without gaps, else a copy where they do."""
    if self.geometry.contiguous:
        return self
    return _packed(self)


@primitive("self | dtype", name="cast", method=False, namespaces=())
def cast_to(self: Tensor, dtype: Dtype) -> Tensor:
    """A copy of another dtype; float to integer truncates."""
    if type(dtype) is not Dtype:
        raise ArgumentTypeError(f"dtype must be a flambeau.dtype, got {type(dtype).__name__} {shown(dtype)}.")
    return cast(Tensor, cast_to.run(self, dtype))


cast_to.gradient(self=lambda grad: grad)  # the engine converts a gradient to its tensor's dtype


def to(
    self: Tensor,
    *args: Any,
    device: Any = None,
    dtype: Dtype | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    layout: Layout | None = None,
    memory_format: Any = None,
) -> Tensor:
    """The tensor with another dtype or on another device; itself if nothing changes.

    Args:
        args: a dtype, a device, both, or a tensor to take both from; then ``non_blocking`` and ``copy``.
        copy: copy even if nothing changes.
        non_blocking: a copy from pinned memory to its device may still be under way when the call returns; the
            device's later kernels wait for it.

    Raises:
        RuntimeError: the device is unknown.
    """
    flags: list[bool] = []
    for each in args:
        if isinstance(each, Dtype):
            dtype = each
        elif isinstance(each, Tensor):
            device, dtype = each.device, each.dtype
        elif isinstance(each, bool):
            flags.append(each)
        elif isinstance(each, (Device, str)):
            device = each
        elif isinstance(each, int):
            device = Device(self.device.type, each)
        elif each is not None:
            raise ArgumentTypeError(
                f"to() expects a dtype, a device or a tensor, got {type(each).__name__} {shown(each)}."
            )
    copy = copy or (len(flags) > 1 and flags[1])
    key = self.key
    wanted = key
    if dtype is not None and dtype is not key.dtype:
        wanted = key.of(dtype)
    if device is not None:
        wanted = intern(Device(device), key.layout, wanted.dtype)
    if wanted is key:
        return cast(Tensor, clone(self)) if copy else self
    if wanted.device is not key.device:
        self = _moved(self, wanted.device, non_blocking or flags[:1] == [True])
        if wanted.dtype is key.dtype:
            return self
    return cast(Tensor, cast_to.run(self, wanted.dtype))


@primitive("self | device non_blocking", name="move", method=False, namespaces=())
def _moved(self: Tensor, device: Device, non_blocking: bool) -> Tensor:
    """A copy on another device; ``non_blocking`` allows it to be still under way when the call returns."""
    return cast(Tensor, _moved.run(self, device, non_blocking))


def _move(self: Tensor, device: Device, non_blocking: bool) -> Tensor:
    if non_blocking and "pinned_memory" in capabilities(device) and function(device, "is_pinned")(self):
        return cast(Tensor, function(device, "upload")(self, device))
    key = intern(device, self.layout, self.dtype)
    array = host_array(self).reshape(-1)
    return make(key, contiguous(self.shape), key.memory.from_numpy(np.array(array), key.device, key.dtype))


_moved.composite(_move)
_moved.gradient(self=lambda grad: grad)


# ---------------------------------------------------------------- NumPy and Python


def host_array(self: Tensor) -> np.ndarray[Any, Any]:
    """The values as an array in the memory format, sharing memory if the device is the host."""
    key, geometry, shared = self.key, self.geometry, self.shared
    span = geometry.span
    if not span and key.layout is strided:
        flat = np.empty(0, key.dtype.numpy)
    elif shared is None:
        flat = key.memory.to_numpy(self.memory, span, key.dtype)
    else:  # through the handle that owns the memory, so that the array keeps it alive
        flat = key.memory.to_numpy(shared.memory, self.offset + span, key.dtype)[self.offset :]
    if geometry.contiguous:
        return flat.reshape(geometry.shape)
    step = key.dtype.itemsize
    return np.lib.stride_tricks.as_strided(flat, geometry.shape, [each * step for each in geometry.strides])


def numpy(self: Tensor, *, force: bool = False) -> np.ndarray[Any, Any]:
    """The values as a NumPy array that shares the tensor's memory.

    Args:
        force: detach and copy to the host first if need be.

    Raises:
        RuntimeError: the tensor requires grad.
        TypeError: the tensor is on another device than the host, or NumPy lacks the dtype.
    """
    if self.node is not None and cast(Any, self).requires_grad and not force:
        raise AutogradError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if not self.key.memory.host and not force:
        raise ArgumentTypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
        )
    if self.key.dtype is bfloat16:
        raise ArgumentTypeError("Got unsupported ScalarType BFloat16: NumPy has no bfloat16.\nUse x.float().numpy().")
    return host_array(self)


def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    """The values as a NumPy array."""
    array = numpy(cast(Tensor, cast(Any, self).float()) if self.key.dtype is bfloat16 else self)
    return array if dtype is None and not copy else np.array(array, dtype=dtype, copy=True if copy else None)


def item(self: Tensor) -> Any:
    """The value of a tensor of one element as a Python number.

    Raises:
        RuntimeError: it has not exactly one element.
    """
    if self.geometry.numel != 1:
        raise ShapeError(
            f"a Tensor with {self.geometry.numel} elements cannot be converted to Scalar (shape {list(self.shape)}).\n"
            "Index it first, or use tolist()."
        )
    return self.key.read(self.memory)


def values(self: Tensor) -> np.ndarray[Any, Any]:
    """The values as an array of numbers (bfloat16 as float32)."""
    array = host_array(self)
    return from_bfloat16(array) if self.key.dtype is bfloat16 else array


def tolist(self: Tensor) -> Any:
    """The values as nested lists of Python numbers."""
    geometry = self.geometry
    if geometry.ndim == 1 and geometry.contiguous and geometry.numel:
        unpack = self.key.unpack
        if unpack is not None:
            return unpack(self.memory, geometry.numel)
    return values(self).tolist()


def _scalar(kind: type) -> Any:
    def convert(self: Tensor) -> Any:
        return kind(item(self))

    convert.__name__ = f"__{kind.__name__}__"
    convert.__doc__ = f"The one element as a Python {kind.__name__}."
    return convert


def __bool__(self: Tensor) -> bool:
    """Whether the one element is not zero.

    Raises:
        RuntimeError: there is not exactly one element.
    """
    if self.geometry.numel != 1:
        raise ShapeError(
            f"Boolean value of Tensor with {'no values' if not self.geometry.numel else 'more than one value'} is ambiguous "
            f"(shape {list(self.shape)}).\nUse any() or all()."
        )
    return bool(item(self))


def __index__(self: Tensor) -> int:
    """The one element of an integer tensor as an index."""
    if self.geometry.numel != 1 or self.key.dtype.category > 1:
        raise ArgumentTypeError(
            f"only integer tensors of a single element can be converted to an index, got {self.dtype.name}{list(self.shape)}."
        )
    return int(item(self))


def __len__(self: Tensor) -> int:
    """The size of the first dimension."""
    if not self.geometry.ndim:
        raise ArgumentTypeError("len() of a 0-d tensor")
    return int(self.geometry.shape[0])


def __contains__(self: Tensor, element: Any) -> bool:
    """Whether some element equals a number."""
    return bool(cast(Any, self == element).any())


# ---------------------------------------------------------------- dtype shorthands

_SHORTHANDS = {
    "half": float16, "bfloat16": bfloat16, "float": float32, "double": float64, "byte": uint8, "char": int8,
    "short": int16, "int": int32, "long": int64, "bool": bool_, "cfloat": complex64, "cdouble": complex128,
}  # fmt: skip


def _shorthand(name: str, dtype: Dtype) -> Any:
    def convert(self: Tensor, memory_format: Any = None) -> Tensor:
        if self.key.dtype is dtype:
            return self
        return cast(Tensor, cast_to.run(self, dtype))

    convert.__name__ = name
    convert.__doc__ = f"The tensor as {dtype.name}; itself if it is that already."
    return convert


#: Methods ``float()``, ``long()``, ...
SHORTHANDS = {name: _shorthand(name, dtype) for name, dtype in _SHORTHANDS.items()}


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor with another's dtype and device."""
    return to(self, other)


def view_dtype(self: Tensor, dtype: Dtype) -> Tensor:
    """The same memory read as another dtype of the same size.

    Raises:
        RuntimeError: the element sizes differ, or the device cannot do it.
    """
    if dtype.itemsize != self.dtype.itemsize:
        raise DtypeError(f"view(dtype): expected a dtype of {self.dtype.itemsize} bytes, got {dtype.name}.")
    result = view(self, self.shape)
    result.key = self.key.of(dtype)
    memory = self.key.memory
    if memory.host:
        array = memory.to_numpy(self.memory, self.geometry.span, self.dtype)
        result.memory = memory.from_numpy(array.view(dtype.numpy), self.device, dtype)
    elif hasattr(memory, "reinterpret"):
        result.memory = memory.reinterpret(self.memory, self.dtype, dtype)
    else:
        raise MissingKernelError(
            f"view(dtype): the device {str(self.device)!r} cannot read memory as another dtype.\n"
            "Copy: x.cpu().view(dtype).to(x.device)"
        )
    return cast(Tensor, result)
