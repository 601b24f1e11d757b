"""The Tensor class: what it holds and how one is made.  Operators are bound to it later.

A tensor is five slots.  Everything that few tensors need (``grad``, the base of a
view) is an ordinary attribute with a default on the class.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from .device import device as Device
from .dtype import bfloat16, dtype as Dtype
from .errors import ArgumentTypeError, DtypeError, MissingKernelError, shown
from .geometry import Geometry, Size, contiguous
from .key import Handle, Key
from .layout import layout as Layout, strided

if TYPE_CHECKING:
    from .autograd.node import Leaf, Node

__all__ = [
    "ABI_VERSION",
    "VIEW",
    "Storage",
    "Tensor",
    "alias",
    "clock",
    "constant",
    "empty",
    "encode",
    "from_bfloat16",
    "make",
    "number_of",
    "shared_storage",
    "tensors_in",
    "to_bfloat16",
    "touch",
    "view",
]

#: A logical clock.  Nodes take a tick when they are recorded and storages when they
#: are written, so "was this saved tensor changed since?" is one comparison.
clock: Final[Callable[[], int]] = itertools.count(1).__next__


#: Compiled extensions are built against it: it changes when the slots below, or those of Geometry and Key, do.
ABI_VERSION: Final = 1


class _View:
    """Stands where a node would, on a view whose base was not tracked when the view was made.

    Writing a tracked value into the base later makes such a view tracked as well.
    """

    def __repr__(self) -> str:
        return "VIEW"


VIEW: Final = _View()


class Storage:
    """What the views of one piece of memory share; made only when there are several, or a write."""

    __slots__ = ("geometry", "key", "memory", "rebased", "version", "written")

    def __init__(self, memory: Handle, key: Key, geometry: Geometry) -> None:
        #: owns the memory; handles of views may not
        self.memory = memory
        self.key, self.geometry = key, geometry
        #: ticks of the last write, and of the last write that autograd recorded
        self.written = self.rebased = 0
        #: how often it was written
        self.version = 0


class Tensor:
    """A multi-dimensional array of one element type on one device.

    Make one with :func:`flambeau.tensor`, :func:`flambeau.zeros` and their siblings.
    """

    __slots__ = ("__dict__", "__weakref__", "geometry", "key", "memory", "node", "shared")

    key: Key
    geometry: Geometry
    #: handle of the first element
    memory: Handle
    #: what computes this tensor's gradient: None when nothing does
    node: Node | Leaf | _View | None
    shared: Storage | None

    grad: Tensor | None = None
    #: the tensor whose memory this one views
    base: Tensor | None = None
    #: elements between the storage's first and this tensor's first
    offset: int = 0
    #: which output of its node this is
    output: int = 0

    #: makes `Tensor(2, 3)` and the typed legacy constructors; installed by the factories
    construct: ClassVar[Callable[..., Tensor]]
    #: every subclass: the fast path asks for exact types, and a set is quicker than isinstance
    subclasses: ClassVar[set[type]] = set()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Tensor.subclasses.add(cls)

    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:
        return Tensor.construct(cls, *args, **kwargs)

    shape: Size = property(attrgetter("geometry.shape"))  # type: ignore[assignment]
    ndim: int = property(attrgetter("geometry.ndim"))  # type: ignore[assignment]
    dtype: Dtype = property(attrgetter("key.dtype"))  # type: ignore[assignment]
    device: Device = property(attrgetter("key.device"))  # type: ignore[assignment]
    layout: Layout = property(attrgetter("key.layout"))  # type: ignore[assignment]

    if TYPE_CHECKING:  # operators are bound when the package is imported

        def __getattr__(self, name: str) -> Any: ...

    # Not elementwise: a tensor is a key in dictionaries and sets by identity.
    __hash__ = object.__hash__


_new: Final = object.__new__


def make(key: Key, geometry: Geometry, memory: Handle) -> Tensor:
    """A tensor over memory that it takes over."""
    tensor = _new(Tensor)
    tensor.key, tensor.geometry, tensor.memory, tensor.node, tensor.shared = key, geometry, memory, None, None
    return tensor


def empty(key: Key, geometry: Geometry) -> Tensor:
    """A tensor in fresh memory with undefined contents; ``geometry`` is dense.

    Raises:
        MemoryError: the device cannot provide the memory.
    """
    tensor = _new(Tensor)
    tensor.key, tensor.geometry, tensor.memory = key, geometry, key.allocate(geometry.numel)
    tensor.node = tensor.shared = None
    return tensor


def shared_storage(tensor: Tensor) -> Storage:
    """The storage record of a tensor, made on first use."""
    shared = tensor.shared
    if shared is None:
        shared = tensor.shared = Storage(tensor.memory, tensor.key, tensor.geometry)
    return shared


def _no_view(key: Key, caller: Any) -> MissingKernelError:
    """The error for a view of what has no strides, which names the operator that makes it."""
    while caller.f_code.co_name.startswith("<"):  # a comprehension
        caller = caller.f_back
    name = caller.f_code.co_name.strip("_")
    return MissingKernelError(
        f'"{name}" not implemented for {key.dtype.name} on {key.device} ({key.layout.name}).\n'
        "A view needs strides: convert with x.to_dense()."
    )


def view(tensor: Tensor, geometry: Geometry, shift: int = 0) -> Tensor:
    """Another look at a tensor's memory, ``shift`` elements further; autograd is the caller's.

    Raises:
        NotImplementedError: the tensor has no strides.
    """
    if tensor.key.layout is not strided:
        raise _no_view(tensor.key, sys._getframe(1))
    result = _new(Tensor)
    result.key, result.geometry = tensor.key, geometry
    result.shared = tensor.shared or shared_storage(tensor)
    result.memory = tensor.key.shift(tensor.memory, shift) if shift else tensor.memory
    result.node = VIEW
    base = tensor.base
    result.base = tensor if base is None else base
    if shift or base is not None or tensor.offset:
        result.offset = tensor.offset + shift
    return result


def alias(tensor: Tensor) -> Tensor:
    """The same tensor without history: what ``detach()`` returns."""
    result = _new(Tensor)
    result.key, result.geometry, result.memory, result.node = tensor.key, tensor.geometry, tensor.memory, None
    result.shared = tensor.shared or shared_storage(tensor)
    if tensor.offset:
        result.offset = tensor.offset
    return result


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors among arguments or results, those of lists and tuples too, in order."""
    if isinstance(value, Tensor):
        return [value]
    return [part for each in value for part in tensors_in(each)] if isinstance(value, (list, tuple)) else []


def touch(tensor: Tensor) -> None:
    """Note that a tensor's memory was written."""
    shared = tensor.shared or shared_storage(tensor)
    shared.written = clock()
    shared.version += 1


def constant(key: Key, number: complex) -> Tensor:
    """The 0-dim tensor that stands for a Python number; kept, and never to be written.

    Raises:
        RuntimeError: the number does not fit the element type.
    """
    found = key.constants.get(number or repr(number))
    if found is None:
        found = make(key, contiguous(()), key.memory.from_numpy(encode(key.dtype, number), key.device, key.dtype))
        key.remember(number, found)
    return found


def number_of(dtype: Dtype, value: Any) -> Any:
    """A Python or NumPy number as one that ``dtype`` holds: whole if it is an integer type.

    Raises:
        RuntimeError: the type has no such number.
        TypeError: it is no number.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (int, float, complex)):
        raise ArgumentTypeError(f"A number is expected here, got {type(value).__name__} {shown(value)}.")
    if dtype.kind == "b":
        return bool(value)
    if (isinstance(value, complex) and not dtype.is_complex) or (
        isinstance(value, float) and dtype.category < 2 and not math.isfinite(value)
    ):
        raise DtypeError(f"value cannot be converted to type {dtype.name} without overflow: {value}.")
    return int(value) if isinstance(value, float) and dtype.category < 2 else value


def encode(dtype: Dtype, number: complex) -> np.ndarray[Any, Any]:
    """One number as a flat array of the memory format of ``dtype``."""
    if dtype.kind in "ui" and isinstance(number, int):
        limits = np.iinfo(dtype.numpy)
        if not limits.min <= number <= limits.max:
            raise DtypeError(
                f"value cannot be converted to type {dtype.name} without overflow: {number}.\n"
                f"{dtype.name} holds {limits.min} to {limits.max}; convert the tensor to a wider type first."
            )
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype is bfloat16:
            return to_bfloat16(np.array([number], np.float32))
        return np.array([number]).astype(dtype.numpy)


def to_bfloat16(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """float32 values rounded to the nearest bfloat16 (ties to even), as uint16 bits."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    return np.where(np.isnan(array), (bits >> 16) | 0x40, rounded >> 16).astype(np.uint16)


def from_bfloat16(bits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """bfloat16 bits as float32 values."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
