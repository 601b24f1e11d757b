"""Dispatch keys: one interned object for each (device, layout, dtype).

A key also carries what every tensor of its kind needs at once: how its device
allocates and addresses memory, and its constants (Python numbers as 0-dim tensors).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np

from .device import device as Device
from .dtype import dtype as Dtype, of_scalar, promote_types
from .errors import ArgumentTypeError, DeviceError, shown
from .layout import layout as Layout, strided

__all__ = ["Handle", "Key", "Memory", "devices", "intern"]

#: A backend's name for a piece of memory, positioned at a tensor's first element.
#: The core never looks inside.
Handle = Any


class Memory(Protocol):
    """What the core asks of a device's memory; a plug-in that brings a device implements it.

    So does a plug-in that brings a layout: its handles stand for whole tensors, in whatever form it likes.
    A handle that an allocator gave is a tensor of zeros there; what cannot be done without strides (``shifter``,
    ``to_numpy``) raises and says how to convert.
    """

    #: NumPy can address the memory in place
    host: bool

    def canonical(self, device: Device) -> Device:
        """The device with the index that tensors on it show.

        Raises:
            RuntimeError: there is no such device.
        """

    def allocator(self, device: Device, dtype: Dtype) -> Callable[[int], Handle]:
        """A function from a number of elements to fresh memory (contents undefined).

        It raises AllocationError when there is not enough.
        """

    def zeros_allocator(self, device: Device, dtype: Dtype) -> Callable[[int], Handle]:
        """Like ``allocator``, for memory whose elements are zero."""

    def shifter(self, dtype: Dtype) -> Callable[[Handle, int], Handle]:
        """A function from (handle, n) to the handle of the n-th next element; it need not own the memory."""

    # Optional:
    # def reinterpret(self, handle, dtype, wanted) -> a handle of the same memory for another dtype of the same size.
    #     Without it, a device that is not the host has no x.view(dtype).
    # def address(self, handle) -> int, the address of a handle's first element on the device.
    # def compiled_address(self) -> (f, context), the same for compiled code: f is the address of a C function
    #     `void *f(PyObject *handle, PyObject *context)`, which returns NULL with a Python error set if it fails.

    def reader(self, dtype: Dtype) -> Callable[[Handle], Any]:
        """A function from a handle to its element as a Python number."""

    def unpacker(self, dtype: Dtype) -> Callable[[Handle, int], list[Any]] | None:
        """A function from (handle, n) to n consecutive elements as Python numbers, if there is a fast one."""

    def to_numpy(self, handle: Handle, elements: int, dtype: Dtype) -> np.ndarray[Any, Any]:
        """``elements`` consecutive elements as a flat array; memory is shared if ``host``."""

    def from_numpy(self, array: np.ndarray[Any, Any], device: Device, dtype: Dtype) -> Handle:
        """A handle for a flat array's contents; memory is shared (and kept alive) if ``host``."""


class _Devices:
    """The memory of the loaded devices and layouts; ``find`` is installed by the plug-in loader."""

    def __init__(self) -> None:
        self.memory: dict[tuple[str, Layout], Memory] = {}
        self.find: Callable[[str, Layout], Memory] | None = None
        #: called with a device type that is forgotten
        self.followers: list[Callable[[str], None]] = []
        #: devices that stand for real ones while a call is explained
        self.stand_ins: dict[Device, Any] = {}

    def __call__(self, device: Device, layout: Layout = strided) -> Memory:
        stand_in = self.stand_ins.get(device)
        if stand_in is not None:
            return stand_in.of(layout)  # type: ignore[no-any-return]
        found = self.memory.get((device.type, layout))
        if found is None:
            if self.find is None:
                raise DeviceError(f"No plug-in provides the device {str(device)!r}.")
            found = self.memory[device.type, layout] = self.find(device.type, layout)
        return found

    def forget(self, device: str, layout: Layout = strided) -> None:
        """Drop what is known of a layout of a device type that no longer exists; with strides, the device itself."""
        whole = layout is strided
        for kind in [each for each in self.memory if each[0] == device and (whole or each[1] is layout)]:
            del self.memory[kind]
        for place in [each for each in _interned if each[0].type == device and (whole or each[1] is layout)]:
            del _interned[place]
        for follow in self.followers if whole else ():
            follow(device)


devices: Final = _Devices()
_interned: Final[dict[tuple[Device, Layout, Dtype], Key]] = {}
_MOST_CONSTANTS: Final = 1024


class Key:
    """A (device, layout, dtype) with its allocator."""

    __slots__ = (
        "address", "allocate", "allocate_zeros", "constants", "device", "dtype", "keeps", "layout", "memory", "read", "shift",
        "unpack",
    )  # fmt: skip

    def __init__(self, device: Device, layout: Layout, dtype: Dtype) -> None:
        self.device, self.layout, self.dtype = device, layout, dtype
        self.memory = memory = devices(device, layout)
        self.allocate = memory.allocator(device, dtype)
        self.allocate_zeros = memory.zeros_allocator(device, dtype)
        self.shift = memory.shifter(dtype)
        self.read = memory.reader(dtype)
        self.unpack = memory.unpacker(dtype)
        self.address: Callable[[Handle], int] = getattr(memory, "address", self._seen_by_numpy)
        #: types of Python numbers that leave the dtype of a tensor as it is
        self.keeps = frozenset(
            kind for kind in (bool, int, float, complex) if of_scalar(kind).category <= dtype.category
        )
        self.constants: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"({self.device}, {self.layout.name}, {self.dtype.name})"

    def __reduce__(self) -> tuple[Any, ...]:
        return intern, (self.device, self.layout, self.dtype)

    def _seen_by_numpy(self, handle: Handle) -> int:
        if not self.memory.host:
            raise DeviceError(f"The memory of the device {str(self.device)!r} has no addresses.\nCall .cpu() first.")
        return int(self.memory.to_numpy(handle, 1, self.dtype).ctypes.data)

    def of(self, dtype: Dtype) -> Key:
        """The same device and layout with another dtype."""
        return intern(self.device, self.layout, dtype)

    def at(self, device: Device) -> Key:
        """The same layout and dtype on another device.

        Raises:
            RuntimeError: nothing provides the device.
        """
        return intern(device, self.layout, dtype=self.dtype)

    def remember(self, number: Any, constant: Any) -> None:
        """Keep the 0-dim tensor that stands for a Python number."""
        if len(self.constants) >= _MOST_CONSTANTS:
            self.constants.clear()
        self.constants[number or repr(number)] = constant  # 0, 0.0 and -0.0 are equal but not the same

    def promoted(self, other: Dtype) -> Key:
        """The key of the common dtype."""
        return self.of(promote_types(self.dtype, other))


def intern(device: Device, layout: Layout = strided, dtype: Dtype | None = None) -> Key:
    """The one key of a device, layout and dtype; loads the device's plug-in if need be.

    Raises:
        RuntimeError: no installed plug-in provides the device.
    """
    dtype = dtype or of_scalar(float)
    found = _interned.get((device, layout, dtype))
    if found is None:
        for each, kind in ((dtype, Dtype), (layout, Layout)):
            if type(each) is not kind:
                raise ArgumentTypeError(
                    f"{kind.__name__} must be a flambeau.{kind.__name__}, got {type(each).__name__} {shown(each)}."
                )
        canonical = devices(device).canonical(device)
        found = _interned.get((canonical, layout, dtype)) or Key(canonical, layout, dtype)
        _interned[canonical, layout, dtype] = found
        if device.index is not None:  # what a bare device type means may change (current device)
            _interned[device, layout, dtype] = found
    return found
