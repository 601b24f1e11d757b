"""The host's memory: small blocks owned by cffi, large ones from the caching allocator."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import add, itemgetter
from typing import Any, Final

import numpy as np

from flambeau.backend import AllocationError, DeviceError, bfloat16, dtype, float16, from_bfloat16

from ._kernels import ffi, lib

__all__ = ["C_TYPES", "HostMemory", "blocks_of"]

#: The C type behind each element type; float16 and bfloat16 are bits.
C_TYPES: Final = {
    "bool": "_Bool", "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
    "float16": "uint16_t", "bfloat16": "uint16_t", "float32": "float", "float64": "double",
    "complex64": "float _Complex", "complex128": "double _Complex",
}  # fmt: skip

_ADDRESS: Final = ffi.typeof("uintptr_t")
_VOID: Final = ffi.typeof("void *")
_cast: Final = ffi.cast

#: Blocks of at most this many bytes are cffi objects: one Python call, zeroed, no cache.
SMALL: Final = 2048
_MOST_TYPES: Final = 4096


def _take(size: int) -> Any:
    memory = lib.fb_allocate(size)
    if memory == ffi.NULL:
        raise AllocationError(
            f"The host could not allocate {size:,} bytes; {lib.fb_live_bytes():,} are in use by tensors.\n"
            "Use smaller batches or free tensors first."
        )
    return memory


_large: Final = ffi.new_allocator(alloc=_take, free=lib.fb_release, should_clear_after_alloc=False)
_large_zeros: Final = ffi.new_allocator(alloc=_take, free=lib.fb_release, should_clear_after_alloc=True)


class _Blocks(dict[int, Callable[[], Any]]):
    """For one element type: number of elements to a function that makes such a block."""

    def __init__(self, name: str, large: Any = _large) -> None:
        self.name, self.large = C_TYPES[name], large
        self.itemsize = ffi.sizeof(self.name)

    def __missing__(self, elements: int) -> Callable[[], Any]:
        if elements * self.itemsize > 1 << 62:
            raise AllocationError(f"The host cannot address {elements:,} elements of {self.itemsize} bytes.")
        kind = ffi.typeof(f"{self.name}[{max(elements, 1)}]")
        make = partial(ffi.new if elements * self.itemsize <= SMALL else self.large, kind)
        if len(self) > _MOST_TYPES:
            self.clear()
        self[elements] = make
        return make


_blocks: Final = {name: _Blocks(name) for name in C_TYPES}
_zeros: Final = {name: _Blocks(name, _large_zeros) for name in C_TYPES}


def blocks_of(dtype: dtype) -> _Blocks:
    """Makers of fresh blocks by number of elements: ``blocks_of(dtype)[n]()``."""
    return _blocks[dtype.name]


class HostMemory:
    """Memory that NumPy can address."""

    host = True

    def canonical(self, device: Any) -> Any:
        if device.index not in (None, 0):
            raise DeviceError(f"There is one CPU device, got {device}.\nWrite {device.type!r}.")
        return type(device)(device.type)

    def allocator(self, device: Any, dtype: dtype) -> Callable[[int], Any]:
        blocks = _blocks[dtype.name]
        return lambda elements: blocks[elements]()

    def zeros_allocator(self, device: Any, dtype: dtype) -> Callable[[int], Any]:
        blocks = _zeros[dtype.name]
        return lambda elements: blocks[elements]()

    def shifter(self, dtype: dtype) -> Callable[[Any, int], Any]:
        return add

    def address(self, handle: Any) -> int:
        return int(_cast(_ADDRESS, handle))

    def compiled_address(self) -> tuple[int, Any]:
        return int(_cast(_ADDRESS, lib.fb_address_of_handle())), _VOID

    def reader(self, dtype: dtype) -> Callable[[Any], Any]:
        if dtype is float16:
            return lambda handle: float(np.frombuffer(ffi.buffer(handle, 2), np.float16)[0])
        if dtype is bfloat16:
            return lambda handle: float(from_bfloat16(np.frombuffer(ffi.buffer(handle, 2), np.uint16))[0])
        return itemgetter(0)

    def unpacker(self, dtype: dtype) -> Callable[[Any, int], list[Any]] | None:
        return None if dtype in (float16, bfloat16) else ffi.unpack  # type: ignore[no-any-return]

    def to_numpy(self, handle: Any, elements: int, dtype: dtype) -> np.ndarray[Any, Any]:
        return np.frombuffer(ffi.buffer(handle, elements * dtype.itemsize), dtype.numpy)

    def from_numpy(self, array: np.ndarray[Any, Any], device: Any, dtype: dtype) -> Any:
        kind = C_TYPES[dtype.name]
        if array.size:
            return ffi.from_buffer(f"{kind}[]", array.view(np.uint8), require_writable=False)
        return ffi.new(f"{kind}[1]")
