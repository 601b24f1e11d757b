"""The device's memory as the core knows it: handles that say nothing but whose memory it is, and where in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau import device
from flambeau.backend import DeviceError, bfloat16, contiguous, dtype, from_bfloat16, intern, make

from .link import DEVICE, LINK, Owned
from .streams import current

__all__ = ["RemoteMemory"]

#: Handles are pairs: what is owned, and the elements between its first and the tensor's first.
Pair = tuple[Owned, int]


class RemoteMemory:
    """Memory of the worker process."""

    host = False

    def canonical(self, device: Any) -> Any:
        if device.index not in (None, 0):
            raise DeviceError(f"There is one {device.type} device, got {device}.\nWrite {device.type!r}.")
        return type(device)(device.type, 0)

    def allocator(self, device: Any, dtype: dtype, zeros: bool = False) -> Callable[[int], Pair]:
        def allocate(elements: int) -> Pair:
            owned = Owned()
            LINK.send("allocate", owned.number, dtype.name, elements, zeros)
            return owned, 0

        return allocate

    def zeros_allocator(self, device: Any, dtype: dtype) -> Callable[[int], Pair]:
        return self.allocator(device, dtype, zeros=True)

    def shifter(self, dtype: dtype) -> Callable[[Pair, int], Pair]:
        return lambda handle, elements: (handle[0], handle[1] + elements)

    def reinterpret(self, handle: Pair, dtype: dtype, wanted: dtype) -> Pair:
        return handle  # the worker sees to it: names of tensors say their dtype

    def reader(self, dtype: dtype) -> Callable[[Pair], Any]:
        def read(handle: Pair) -> Any:
            found = self.to_numpy(handle, 1, dtype)
            return (from_bfloat16(found) if dtype is bfloat16 else found).item()

        return read

    def unpacker(self, dtype: dtype) -> None:
        return None

    def to_numpy(self, handle: Pair, elements: int, dtype: dtype) -> np.ndarray[Any, Any]:
        flat = make(intern(device(DEVICE), dtype=dtype), contiguous((elements,)), handle)
        return LINK.ask("read", current().number, flat)  # type: ignore[no-any-return]

    def from_numpy(self, array: np.ndarray[Any, Any], device: Any, dtype: dtype) -> Pair:
        owned = Owned()
        LINK.send("write", owned.number, dtype.name, array)
        return owned, 0
