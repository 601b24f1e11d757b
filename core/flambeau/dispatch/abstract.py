"""Tensors without elements, on stand-ins of devices: what a call would do shows without a kernel being run.

A stand-in device carries its own keys, so whatever is computed from its tensors stays there; where an
operator looks for its kernel, the stand-in answers instead.  Values of real arguments can be read until
something would have written them; reading anything else raises :class:`Unknown`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..autograd.node import Leaf, Node, edge
from ..device import device as Device
from ..dtype import dtype as Dtype
from ..generator import Generator
from ..geometry import Geometry, contiguous
from ..key import Key, Memory, devices, intern
from ..layout import layout as Layout, strided
from ..tensor import Storage, Tensor, clock, make

if TYPE_CHECKING:
    from .operator import Operator

__all__ = ["Abstraction", "Unknown", "concrete", "concrete_key", "described", "written"]

Answer = Callable[["Operator", Key], Callable[..., Any]]


class Unknown(BaseException):
    """Something that only running the kernels would tell; no operator's body may catch it."""


class _Root:
    """The memory behind handles that views share; not ``known`` once something would have written it."""

    __slots__ = ("known",)

    def __init__(self, known: bool) -> None:
        self.known = known


class Ghost:
    """A handle: of a real argument's memory, or of none."""

    __slots__ = ("real", "root")

    def __init__(self, root: _Root, real: Any = None) -> None:
        self.root, self.real = root, real

    def read(self) -> Any:
        """The real handle.

        Raises:
            Unknown: there is none, or what it holds would have changed.
        """
        if not self.root.known:
            raise Unknown("the values of a result are needed to go on")
        return self.real


class StandIn:
    """The memory of a stand-in device."""

    def __init__(self, real: Device, memory: Memory, answer: Answer) -> None:
        self.real, self.memory, self.host = real, memory, memory.host
        #: gives what an operator runs on tensors of this device
        self.answer = answer

    def of(self, layout: Layout) -> StandIn:
        """The same for tensors of a layout."""
        return self if layout is strided else StandIn(self.real, devices(self.real, layout), self.answer)

    def canonical(self, device: Device) -> Device:
        return device

    def allocator(self, device: Device, dtype: Dtype) -> Callable[[int], Ghost]:
        return lambda elements: Ghost(_Root(False))

    zeros_allocator = allocator

    def shifter(self, dtype: Dtype) -> Callable[[Ghost, int], Ghost]:
        shift = self.memory.shifter(dtype)
        return lambda ghost, count: Ghost(ghost.root, shift(ghost.real, count) if ghost.root.known else None)

    def reader(self, dtype: Dtype) -> Callable[[Ghost], Any]:
        read = self.memory.reader(dtype)
        return lambda ghost: read(ghost.read())

    def unpacker(self, dtype: Dtype) -> Callable[[Ghost, int], list[Any]] | None:
        unpack = self.memory.unpacker(dtype)
        return None if unpack is None else lambda ghost, count: unpack(ghost.read(), count)

    def to_numpy(self, handle: Ghost, elements: int, dtype: Dtype) -> np.ndarray[Any, Any]:
        return self.memory.to_numpy(handle.read(), elements, dtype)

    def from_numpy(self, array: np.ndarray[Any, Any], device: Device, dtype: Dtype) -> Ghost:
        return Ghost(_Root(False))


_stand_ins: Final[dict[Device, Device]] = {}


def stand_in(device: Device, answer: Answer) -> Device:
    """The stand-in of a device; the same one each time."""
    if device in devices.stand_ins:
        return device
    real = devices(device).canonical(device)
    found = _stand_ins.get(real)
    if found is None:
        found = object.__new__(Device)
        found.type, found.index = real.type, real.index
        devices.stand_ins[found] = StandIn(real, devices(real), answer)
        found = _stand_ins.setdefault(real, found)
    return found


def _forget(kind: str) -> None:
    for device in [each for each in _stand_ins if each.type == kind]:
        del devices.stand_ins[_stand_ins.pop(device)]


devices.followers.append(_forget)


def concrete_key(key: Key) -> Key:
    """The real key that a stand-in's key stands for; a real one is itself."""
    found = devices.stand_ins.get(key.device)
    return key if found is None else intern(found.real, key.layout, key.dtype)


class Abstraction:
    """Stand-ins of one call's arguments; those that share memory share it still."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._twins: dict[int, tuple[Tensor, Tensor]] = {}
        self._storages: dict[int, Storage] = {}
        self._names: dict[str, Device] = {}

    def __call__(self, value: Any) -> Any:
        """The same argument with stand-ins for the tensors and devices in it."""
        if isinstance(value, Tensor):
            found = self._twins.get(id(value))
            if found is None:
                found = self._twins[id(value)] = (value, self._stand_in(value))
            return found[1]
        if isinstance(value, Generator):
            twin = value.clone_state()
            twin.device = self.device(value.device)
            return twin
        if isinstance(value, Device):
            return self.device(value)
        if isinstance(value, (list, tuple)):
            parts = [self(each) for each in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        if isinstance(value, dict):
            return {name: self(each) for name, each in value.items()}
        return self._names.get(value, value) if isinstance(value, str) else value

    @property
    def tensors(self) -> list[Tensor]:
        """The stand-ins of the tensors, in the order in which they were met."""
        return [twin for _, twin in self._twins.values()]

    def device(self, value: Any) -> Device:
        """The stand-in of a device; its name means it from now on."""
        found = stand_in(Device(value), self._answer)
        self._names[str(found)] = self._names[found.type] = found
        return found

    def owner(self, function: Any) -> Any:
        """A function itself; of an object with parameters and buffers, a copy that has stand-ins for them."""
        if not hasattr(function, "parameters") or not hasattr(function, "buffers"):
            return function
        own = [*function.parameters(), *function.buffers()]
        return copy.deepcopy(function, {id(each): self(each) for each in own})

    def _stand_in(self, real: Tensor) -> Tensor:
        key = intern(self.device(real.key.device), real.key.layout, real.key.dtype)
        shared = real.shared
        if shared is None:
            twin = make(key, real.geometry, Ghost(_Root(True), real.memory))
        else:
            storage = self._storages.get(id(shared))
            if storage is None:
                storage = self._storages[id(shared)] = Storage(Ghost(_Root(True), shared.memory), key, shared.geometry)
                storage.written, storage.version = shared.written, shared.version
            twin = make(key, real.geometry, Ghost(storage.memory.root, real.memory))
            twin.shared, twin.offset = storage, real.offset
        node = edge(real)
        if node is not None:
            twin.node = Leaf(twin) if isinstance(node, Leaf) else _boundary(key, real.geometry)
        return twin


class _Argument:
    """What the node of an argument with history shows as its operator."""

    name = "argument"


def _boundary(key: Key, geometry: Geometry) -> Node:
    """The history of an argument: its gradient goes no further."""
    node = Node()
    node.op, node.edges, node.saved, node.metadata, node.sequence = _Argument, (), (), (key, geometry), clock()
    return node


def concrete(value: Any) -> Any:
    """An argument as a predicate would see it: with real keys; handles of unknown memory raise when used."""
    if isinstance(value, Tensor):
        handle = value.memory
        real = handle.real if isinstance(handle, Ghost) and handle.root.known else _Nowhere()
        twin = make(concrete_key(value.key), value.geometry, real)
        twin.node, twin.output = value.node, value.output
        return twin
    return type(value)(concrete(each) for each in value) if type(value) in (list, tuple) else value


class _Nowhere:
    """In the place of the memory of a result that was not computed."""

    def __getattribute__(self, name: str) -> Any:
        raise Unknown("a predicate looks at the memory of a result")

    def __getitem__(self, index: Any) -> Any:
        raise Unknown("a predicate looks at the values of a result")


def written(tensor: Tensor) -> None:
    """Note that a kernel would have written into a tensor's memory."""
    if isinstance(tensor.memory, Ghost):
        tensor.memory.root.known = False


def _without_elements(key: Key, geometry: Geometry) -> Tensor:
    return make(key, geometry, key.allocate(geometry.numel))


def described(key: Key, result: Any, new: Callable[[Key, Geometry], Tensor] = _without_elements) -> Any:
    """Tensors for what an operator declares with ``returns``: without elements, unless they are made otherwise."""
    if result is None:
        return None
    if isinstance(result, list):
        return tuple(described(key, each, new) for each in result)
    if isinstance(result, tuple) and len(result) > 1 and isinstance(result[1], Dtype):
        key = key.of(result[1])
        if len(result) > 2:
            key = key.at(stand_in(result[2], devices.stand_ins[key.device].answer))
        result = result[0]
    return new(key, result if isinstance(result, Geometry) else contiguous(tuple(_whole(result))))


def _whole(shape: Sequence[Any]) -> list[int]:
    return [int(each) for each in shape]
