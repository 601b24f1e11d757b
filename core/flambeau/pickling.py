"""Copying and pickling tensors: what is written, and how a tensor is made from it again.

A tensor is its storage and its place in it.  Tensors that share a storage do so again
after they were pickled or deep-copied together.
"""

from __future__ import annotations

import copyreg
from copy import deepcopy
from typing import Any, Final, cast

import numpy as np

from .autograd.node import Leaf, edge
from .device import device as Device
from .dtype import dtype as Dtype
from .errors import AutogradError, FileError
from .geometry import contiguous, strided
from .key import Key, intern
from .layout import strided as strided_layout
from .ops.conversion import view_dtype
from .ops.sparse import sparse_coo_tensor
from .tensor import Storage, Tensor, make, shared_storage

__all__ = [
    "METHODS",
    "fresh_storage",
    "rebuild",
    "rebuild_sparse",
    "rebuild_subclass",
    "storage_bytes",
    "storage_from_bytes",
]

#: Attributes that are part of how a tensor works, not the user's.
_OWN: Final = frozenset({"base", "grad", "offset", "output", "retains_grad"})


def rebuild(
    storage: Storage, dtype: Dtype, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], requires_grad: bool
) -> Tensor:
    """A tensor from its storage and its place in it.

    Raises:
        RuntimeError: the place is not inside the storage.
    """
    return _placed(Tensor, storage, dtype, offset, shape, strides, requires_grad)


def rebuild_sparse(
    indices: Tensor, values: Tensor, shape: tuple[int, ...], coalesced: bool, requires_grad: bool
) -> Tensor:
    """A sparse tensor from what it holds.

    Raises:
        RuntimeError: the parts do not go together.
    """
    if not (isinstance(indices, Tensor) and isinstance(values, Tensor)):
        raise FileError(f"Expected tensors in a sparse tensor, got {type(indices).__name__}, {type(values).__name__}.")
    result: Any = sparse_coo_tensor(indices, values, shape)
    result = result.coalesce() if coalesced else result
    return cast(Tensor, result.requires_grad_(bool(requires_grad)))


def rebuild_subclass(cls: type[Tensor], *place: Any) -> Tensor:
    """Like :func:`rebuild`, for a subclass."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise FileError(f"Expected a subclass of Tensor, got {cls!r}.")
    return _placed(cls, *place)


def _placed(
    cls: type[Tensor],
    storage: Storage,
    dtype: Dtype,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    requires_grad: bool,
) -> Tensor:
    numbers = (offset, *shape, *strides)
    sound = (
        isinstance(storage, Storage)
        and isinstance(dtype, Dtype)
        and len(shape) == len(strides)
        and all(type(each) is int and each >= 0 for each in numbers)
    )
    geometry = strided(tuple(shape), tuple(strides)) if sound else None
    if geometry is None or offset + geometry.span > storage.geometry.span:
        raise FileError(
            f"A tensor of shape {tuple(shape)}, strides {tuple(strides)} and offset {offset} does not fit its storage."
        )
    key = storage.key
    result = object.__new__(cls)
    result.key, result.geometry, result.node, result.shared = key, geometry, None, storage
    result.memory = key.shift(storage.memory, offset) if offset else storage.memory
    if offset:
        result.offset = offset
    if dtype is not key.dtype:
        result = view_dtype(result, dtype)
    if requires_grad:
        result.node = Leaf(result)
    return result


def fresh_storage(key: Key, elements: int) -> Storage:
    """A storage of undefined contents."""
    return Storage(key.allocate(elements), key, contiguous((elements,)))


def _whole(storage: Storage) -> np.ndarray[Any, Any]:
    key, span = storage.key, storage.geometry.span
    return key.memory.to_numpy(storage.memory, span, key.dtype) if span else np.empty(0, key.dtype.numpy)


def storage_bytes(storage: Storage) -> memoryview:
    """The contents of a storage, little-endian."""
    array = _whole(storage)
    if not np.little_endian:
        array = array.byteswap()
    return memoryview(cast(Any, np.ascontiguousarray(array).view(np.uint8)))


def storage_from_bytes(contents: Any, dtype: Dtype, device: Device) -> Storage:
    """A storage on a device with these contents.

    Raises:
        RuntimeError: their length is no multiple of the element size, or the device is unavailable.
    """
    if len(contents) % dtype.itemsize:
        raise FileError(f"{len(contents)} bytes are no whole number of {dtype.name} elements.")
    array = np.frombuffer(contents, dtype.numpy)
    if not np.little_endian:
        array = array.byteswap()
    key = intern(device, strided_layout, dtype)
    if not key.memory.host:
        return Storage(key.memory.from_numpy(array, key.device, dtype), key, contiguous((array.size,)))
    fresh = fresh_storage(key, array.size)
    _whole(fresh)[:] = array
    return fresh


def _unpickle_storage(contents: bytes, dtype: Dtype, device: Device) -> Storage:
    return storage_from_bytes(contents, dtype, device)


def _reduce_storage(storage: Storage) -> tuple[Any, ...]:
    return _unpickle_storage, (bytes(storage_bytes(storage)), storage.key.dtype, storage.key.device)


copyreg.pickle(Storage, _reduce_storage)


def _extras(self: Tensor) -> dict[str, Any] | None:
    return {name: value for name, value in self.__dict__.items() if name not in _OWN} or None


def _requires_grad(self: Tensor) -> bool:
    return edge(self) is not None


def __reduce_ex__(self: Tensor, protocol: Any) -> tuple[Any, ...]:
    """Pickle the storage, the place in it and the user's attributes; not ``grad``, nor history."""
    if self.layout is not strided_layout:
        parts = self._indices(), self._values(), tuple(self.shape), self.is_coalesced(), _requires_grad(self)
        return rebuild_sparse, parts, _extras(self)
    geometry = self.geometry
    place = (
        shared_storage(self), self.dtype, self.offset, tuple(geometry.shape), geometry.strides, _requires_grad(self)
    )  # fmt: skip
    extras = _extras(self)
    made = (rebuild, place) if type(self) is Tensor else (rebuild_subclass, (type(self), *place))
    return made if extras is None else (*made, extras)


def __setstate__(self: Tensor, state: Any) -> None:
    """Take the user's attributes back; those that make the tensor are not touched."""
    if not isinstance(state, dict) or any(name in _OWN or name in Tensor.__slots__ for name in state):
        raise FileError(f"Expected a dict of attributes for a tensor, got {type(state).__name__}.")
    self.__dict__.update(state)


def _copied(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy of a strided tensor; the copy of a storage that others share is in the memo."""
    shared = shared_storage(self)
    own = memo.get(id(shared))
    if own is None:
        flat: Any = make(shared.key, contiguous((shared.geometry.span,)), shared.memory)
        flat = flat.clone()
        own = memo[id(shared)] = Storage(flat.memory, shared.key, shared.geometry)
        memo[id(own)] = shared  # keeps the original alive while its id is in use
    return _placed(type(self), own, self.dtype, self.offset, self.geometry.shape, self.geometry.strides, False)


def __deepcopy__(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy with memory of its own; tensors that share memory share the copy's.

    Raises:
        RuntimeError: the tensor was computed from others that require grad.
    """
    known = memo.get(id(self))
    if known is not None:
        return cast(Tensor, known)
    node = edge(self)
    if node is not None and not isinstance(node, Leaf):
        raise AutogradError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment, "
            f"got one made by {node.name()}.\nCopy x.detach() instead."
        )
    result = _copied(self, memo) if self.layout is strided_layout else cast(Any, self).detach().clone()
    result.node = None if node is None else Leaf(result)
    memo[id(self)] = result
    extras = _extras(self)
    for name, value in (extras or {}).items():
        result.__dict__[name] = deepcopy(value, memo)
    if self.grad is not None:
        result.grad = deepcopy(self.grad, memo)
    return result


METHODS: Final = {"__reduce_ex__": __reduce_ex__, "__setstate__": __setstate__, "__deepcopy__": __deepcopy__}
