"""How a tensor gets to other places: devices, pinned and shared memory, other libraries, Python functions."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import numpy as np

from .capabilities import current_accelerator, function, require
from .device import device as Device
from .dtype import bfloat16, dtype as Dtype, from_numpy_dtype
from .errors import ArgumentTypeError, AutogradError, DeviceError, ShapeError
from .ops.conversion import host_array
from .ops.creation import over
from .plugins import load_all, plugins
from .storage import TypedStorage
from .tensor import Storage, Tensor, shared_storage

__all__ = ["METHODS", "PROPERTIES", "from_dlpack", "to_dlpack"]

#: The device that :func:`cpu` means.
HOST: Final = "cpu"
#: What DLPack calls memory that the host addresses.
_HOST: Final = 1


def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor on the host; itself if it is there."""
    return cast(Tensor, cast(Any, self).to(HOST))


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """The tensor on a CUDA device, the current one if none is given; itself if it is there.

    Raises:
        RuntimeError: there is no such device.
    """
    where = Device("cuda", device) if isinstance(device, int) else Device("cuda" if device is None else device)
    if device is None and self.device.type == where.type:
        return self
    return cast(Tensor, cast(Any, self).to(where, non_blocking=non_blocking))


def get_device(self: Tensor) -> int:
    """The index of the tensor's device, -1 where devices have none."""
    return -1 if self.device.index is None else self.device.index


def storage(self: Tensor) -> TypedStorage:
    """The memory that the tensor and its views share."""
    return TypedStorage.of(self)


def _offered(name: str) -> Callable[..., Any] | None:
    """A function of a loaded backend."""
    for plugin in plugins:
        for backend in plugin.backends:
            if name in backend.hooks:
                return backend.hooks[name]
    return None


def _pinning() -> Iterator[Device]:
    """The devices that have pinned memory, the accelerator first."""
    first = current_accelerator()
    for plugin in sorted(load_all(), key=lambda each: first is None or each.device != first.type):
        if any("pinned_memory" in each.capabilities for each in plugin.backends):
            yield Device(plugin.device)


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """A copy on the host that a device can read by itself, while Python goes on; itself if it is that already.

    Args:
        device: the one that will read it; by default the accelerator.

    Raises:
        RuntimeError: no installed device has pinned memory, or the named one has not.
    """
    place = next(_pinning(), None) if device is None else require(device, "pinned_memory")
    if place is None:
        raise DeviceError(
            "Pinned memory needs a device that offers it; no installed plug-in does.\n"
            "Leave pin_memory out: ordinary host memory works everywhere."
        )
    if not self.key.memory.host:
        raise DeviceError(
            f"cannot pin {self.device} memory: only tensors on the host can be pinned.\nCall .cpu() first."
        )
    pinned = function(place, "is_pinned")(self)
    return self if pinned else cast(Tensor, function(place, "pin_memory")(self))


def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether a device can read the memory by itself; the accelerator, if none is named."""
    places = [require(device, "pinned_memory")] if device is not None else _pinning()
    return self.key.memory.host and any(function(each, "is_pinned")(self) for each in places)


def share_memory_(self: Tensor) -> Tensor:
    """Move the tensor to memory that processes forked from this one share.

    Views taken before keep the old memory.

    Raises:
        RuntimeError: the tensor is not on the host.
    """
    if is_shared(self):
        return self
    key, shared = self.key, shared_storage(self)
    if not key.memory.host:
        return self  # devices share by handles of their own
    span = shared.geometry.span
    pages = mmap.mmap(-1, max(span * key.dtype.itemsize, 1))
    array = np.frombuffer(pages, key.dtype.numpy, span)
    if span:
        array[:] = key.memory.to_numpy(shared.memory, span, key.dtype)
    memory = key.memory.from_numpy(array, key.device, key.dtype)
    moved = Storage(memory, key, shared.geometry)
    moved.version, moved.written, moved.rebased = shared.version, shared.written, shared.rebased
    self.shared = moved
    self.memory = key.shift(memory, self.offset) if self.offset else memory
    self.__dict__["in_shared_memory"] = True
    return self


def is_shared(self: Tensor) -> bool:
    """Whether the memory is shared between processes."""
    return bool(self.__dict__.get("in_shared_memory", False)) or not self.key.memory.host


# ---------------------------------------------------------------- Python functions


def _for_python(self: Tensor, name: str) -> np.ndarray[Any, Any]:
    if cast(Any, self).requires_grad:
        raise AutogradError(f"Can't call {name} on Variable that requires grad. Use var.detach().{name}() instead.")
    if not self.key.memory.host:
        raise ArgumentTypeError(f"{name} is only implemented on CPU tensors, got {self.device}.\nUse x.cpu().")
    return host_array(self)


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by what a Python function makes of it; slow.

    Raises:
        TypeError: the tensor is not on the host.
    """
    _for_python(self, "apply_")
    values = [callable(each) for each in cast(Any, self).reshape(-1).tolist()]
    return cast(Tensor, cast(Any, self).copy_(_tensor_like(self, values)))


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by what a Python function makes of it and the one of another tensor; slow.

    Raises:
        RuntimeError: the other tensor does not broadcast to this shape.
    """
    _for_python(self, "map_")
    other = cast(Any, tensor).detach().expand(self.shape).reshape(-1).tolist()
    mine = cast(Any, self).reshape(-1).tolist()
    return cast(
        Tensor, cast(Any, self).copy_(_tensor_like(self, [callable(a, b) for a, b in zip(mine, other, strict=True)]))
    )


def _tensor_like(self: Any, values: list[Any]) -> Tensor:
    return cast(Tensor, self.new_tensor(values).reshape(self.shape))


# ---------------------------------------------------------------- DLPack


def __dlpack__(self: Tensor, **options: Any) -> Any:
    """A DLPack capsule that shares the tensor's memory.

    Raises:
        BufferError: the tensor requires grad, or its dtype or device has no counterpart.
    """
    if cast(Any, self).requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if not self.key.memory.host:
        export = _offered("to_dlpack")
        if export is None:
            raise BufferError(f"The device {self.device} has no DLPack export.")
        return export(self, **options)
    if self.dtype is bfloat16:
        raise BufferError("bfloat16 cannot be exported: NumPy, which does it, has no such type.")
    return host_array(self).__dlpack__(**options)


def __dlpack_device__(self: Tensor) -> tuple[int, int]:
    """DLPack's numbers for the tensor's device."""
    if self.key.memory.host:
        return _HOST, 0
    known = _offered("dlpack_device")
    if known is None:
        raise BufferError(f"The device {self.device} has no DLPack export.")
    return cast("tuple[int, int]", known(self))


class _Capsule:
    """A bare capsule of host memory, as an object that exports it."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return _HOST, 0


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule that shares a tensor's memory; can be consumed once."""
    return __dlpack__(tensor)


def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor that shares the memory of another library's array.

    Args:
        ext_tensor: an object with ``__dlpack__``, or a DLPack capsule of host memory.

    Raises:
        TypeError: it is neither.
        RuntimeError: it is on a device whose backend does not import DLPack.

    >>> import flambeau, numpy
    >>> flambeau.from_dlpack(numpy.arange(3.0))
    tensor([0., 1., 2.], dtype=flambeau.float64)
    """
    if isinstance(ext_tensor, Tensor):
        return cast(Tensor, cast(Any, ext_tensor).detach())
    if type(ext_tensor).__name__ == "PyCapsule":
        if '"dltensor' not in repr(ext_tensor):
            raise ShapeError(
                "from_dlpack: this is no unused DLPack capsule; each is used once.\nMake another one with to_dlpack()."
            )
        ext_tensor = _Capsule(ext_tensor)
    elif not hasattr(ext_tensor, "__dlpack__"):
        raise ArgumentTypeError(
            f"from_dlpack() expects an object with __dlpack__ or a DLPack capsule, got {type(ext_tensor).__name__}."
        )
    if ext_tensor.__dlpack_device__()[0] != _HOST:
        take = _offered("from_dlpack")
        if take is None:
            raise DeviceError(f"No loaded backend imports DLPack device {ext_tensor.__dlpack_device__()}.")
        return cast(Tensor, take(ext_tensor))
    try:
        array = np.from_dlpack(ext_tensor)  # read-only in older versions of NumPy, whatever the memory is
        return over(array, cast(Dtype, from_numpy_dtype(array.dtype)))
    except ValueError as error:
        raise ShapeError(f"from_dlpack: {error}") from error


METHODS: Final = {
    each.__name__: each
    for each in (
        cpu, cuda, get_device, storage, pin_memory, is_pinned, share_memory_, is_shared, apply_, map_, __dlpack__,
        __dlpack_device__,
    )
}  # fmt: skip
METHODS["untyped_storage"] = storage

PROPERTIES: Final = {
    "is_cuda": property(lambda self: self.device.type == "cuda", doc="Whether the tensor is on a CUDA device."),
}
