"""What a sparse tensor holds: places and values, as tensors with strides; and how the core gets such tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from flambeau.backend import (
    Key,
    MissingKernelError,
    Tensor,
    contiguous,
    dtype,
    float32,
    int64,
    intern,
    make,
    sparse_coo,
    strided_layout,
)

from .native import HALVES

__all__ = [
    "Coordinates", "SparseMemory", "array_of", "coordinates", "narrow", "replace", "sparse", "tensor_of", "wide",
    "widened", "zeros",
]  # fmt: skip


class Coordinates:
    """The handle of a sparse tensor: it is what tensors that share memory share.

    Attributes:
        indices: int64, (sparse_dim, n): a place in each column; None for a tensor that nothing was written to.
        values: (n, ...): the value at each place.
        coalesced: places are sorted and differ.
    """

    __slots__ = ("coalesced", "indices", "values")

    def __init__(self, indices: Any = None, values: Any = None, coalesced: bool = True) -> None:
        self.indices, self.values, self.coalesced = indices, values, coalesced


def coordinates(tensor: Tensor) -> Coordinates:
    """What a sparse tensor holds."""
    held: Coordinates = tensor.memory
    if held.indices is None:
        key = dense_key(tensor.key)
        held.indices = make(key.of(int64), contiguous((tensor.ndim, 0)), key.of(int64).allocate(0))
        held.values = make(key, contiguous((0,)), key.allocate(0))
    return held


def sparse(values: Tensor, indices: Tensor, shape: Sequence[int], coalesced: bool) -> Tensor:
    """A sparse tensor over these; they are shared, without their history."""
    key = intern(values.device, sparse_coo, values.dtype)
    held = Coordinates(indices.detach(), values.detach(), coalesced or indices.shape[1] == 0)
    return make(key, contiguous(tuple(shape)), held)


def replace(target: Tensor, source: Coordinates) -> None:
    """Let a sparse tensor, and all that share its memory, hold something else."""
    held: Coordinates = target.memory
    held.indices, held.values, held.coalesced = source.indices, source.values, source.coalesced


def dense_key(key: Key) -> Key:
    """The key of dense tensors of the same device and dtype."""
    return intern(key.device, strided_layout, key.dtype)


# ---------------------------------------------------------------- NumPy


def array_of(tensor: Tensor) -> np.ndarray[Any, Any]:
    """The elements of a dense tensor, row-major; shared where it is so."""
    packed: Any = tensor.detach().contiguous()
    count, kind = packed.geometry.numel, packed.key.dtype
    flat = packed.key.memory.to_numpy(packed.memory, count, kind) if count else np.empty(0, kind.numpy)
    return flat.reshape(packed.geometry.shape)  # type: ignore[no-any-return]


def tensor_of(array: np.ndarray[Any, Any], key: Key, kind: dtype | None = None) -> Tensor:
    """A dense tensor over a fresh array, of a key's dtype or another one."""
    key = dense_key(key) if kind is None else intern(key.device, strided_layout, kind)
    flat = np.ascontiguousarray(array).reshape(-1)
    return make(key, contiguous(array.shape), key.memory.from_numpy(flat, key.device, key.dtype))


def widened(tensor: Tensor) -> Tensor:
    """A dense tensor of the dtype that kernels compute in: half precision as float32."""
    return tensor.to(float32) if tensor.dtype in HALVES else tensor


def wide(tensor: Tensor) -> np.ndarray[Any, Any]:
    """The elements of a dense tensor as the kernels take them."""
    return array_of(widened(tensor))


def zeros(shape: Sequence[int], key: Key) -> Tensor:
    """A dense tensor that kernels add to for a key's dtype."""
    geometry, key = contiguous(tuple(shape)), dense_key(key).of(float32 if key.dtype in HALVES else key.dtype)
    return make(key, geometry, key.allocate_zeros(geometry.numel))


def narrow(computed: Any, key: Key) -> Tensor:
    """A dense tensor of a key's dtype: what kernels computed for it, a fresh array or a tensor."""
    if isinstance(computed, np.ndarray):
        computed = tensor_of(computed, key, float32 if key.dtype in HALVES else None)
    return computed.to(key.dtype)  # type: ignore[no-any-return]


class SparseMemory:
    """Makes sparse tensors for the core: one that nothing was written to is zero."""

    host = True

    def canonical(self, device: Any) -> Any:
        return device

    def allocator(self, device: Any, dtype: dtype) -> Callable[[int], Coordinates]:
        return lambda elements: Coordinates()

    zeros_allocator = allocator

    def shifter(self, dtype: dtype) -> Callable[[Any, int], NoReturn]:
        return lambda handle, count: _no_strides("A view")

    def reader(self, dtype: dtype) -> Callable[[Coordinates], Any]:
        def read(handle: Coordinates) -> Any:
            return 0 if handle.values is None else handle.values.sum().to(handle.values.dtype).item()

        return read

    def unpacker(self, dtype: dtype) -> None:
        return None

    def to_numpy(self, handle: Coordinates, elements: int, dtype: dtype) -> NoReturn:
        _no_strides("Reading elements in place")

    def from_numpy(self, array: np.ndarray[Any, Any], device: Any, dtype: dtype) -> Coordinates:
        """A tensor without dimensions that holds one number; the core makes no others from arrays."""
        if array.size != 1:
            _no_strides("Making a tensor from many elements")
        key = intern(device, strided_layout, dtype)
        return Coordinates(tensor_of(np.empty((0, 1), np.int64), key, int64), tensor_of(array.reshape(1), key))


def _no_strides(what: str) -> NoReturn:
    raise MissingKernelError(f"{what} needs strides, and the layout sparse_coo has none.\nConvert with x.to_dense().")
