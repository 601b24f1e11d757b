"""Operations of oneDNN, kept between calls, and weights in the layout that they compute in.

Making an operation takes milliseconds, so they are kept by everything that they depend on: the kind, sizes, strides,
parameters and the number of threads.  The least recently used go first.  Large bfloat16 weights that come a second
time unchanged are kept in the operation's layout, until they are written, die, or the operation goes.  Their version
tells of most writes; of those that change no version, as through ``x.data``, a fingerprint of the contents tells.

>>> import flambeau_mkldnn.cache as cache
>>> cache.clear()
>>> cache.statistics()
Statistics(operations=0, capacity=512, hits=0, misses=0, kept=0, kept_bytes=0, kept_hits=0)
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple

from flambeau.backend import AllocationError, Geometry, Key, PluginError, Tensor, bfloat16, contiguous_strides, uint8

from .native import ffi, lib

__all__ = ["Operation", "Part", "Statistics", "clear", "find", "set_capacity", "statistics"]

_OUT_OF_MEMORY: Final = 1
#: Weights that one operation keeps at most, as layers of one size share it.
_MOST_KEPT: Final = 256


class Statistics(NamedTuple):
    """What the cache holds and has done since it was last cleared."""

    #: operations held, and how many may be
    operations: int
    capacity: int
    #: calls that found their operation, and that had to make it
    hits: int
    misses: int
    #: weights held in oneDNN's layout, their size, and calls that used one
    kept: int
    kept_bytes: int
    kept_hits: int


class Part(NamedTuple):
    """A tensor of an operation: what it is to it (enum fm_part), how it is handled (enum fm_manner), where it lies."""

    part: int
    manner: int
    shape: Sequence[int]
    strides: Sequence[int]

    @classmethod
    def of(cls, part: int, manner: int, geometry: Geometry) -> Part:
        """A tensor as it is; strides of dimensions of size 1 mean nothing, and are made regular."""
        strides = contiguous_strides(geometry.shape) if geometry.contiguous else geometry.strides
        return cls(part, manner, geometry.shape, strides)


class _Kept:
    """Weights in an operation's layout, and what tells whether they are the same; no memory after the first call."""

    __slots__ = ("contents", "memory", "owner", "version")

    def __init__(self, owner: Any, version: int, contents: int = 0, memory: Any = None) -> None:
        self.owner, self.version, self.contents, self.memory = owner, version, contents, memory


def _failed(status: int, what: str) -> Exception:
    if status == _OUT_OF_MEMORY:
        return AllocationError(f"oneDNN found no memory {what}.\nUse smaller batches or free tensors first.")
    return PluginError(f"oneDNN failed {what}: status {status}.\nDo without it: flambeau.backends.disable('mkldnn')")


class Operation:
    """A primitive of oneDNN with the layouts of its tensors, for one number of threads.

    Args:
        key: of its tensors.
        kind: of enum fm_kind.
        parts: its tensors, in the order in which :meth:`run` takes them.
        numbers: what the kind takes; see bridge.c.
        epsilon: of norms.

    Raises:
        RuntimeError: oneDNN has no such primitive.
        MemoryError: there is no memory for it.
    """

    __slots__ = ("bytes", "keeps", "kept", "key", "name", "native", "scratch", "size")

    def __init__(
        self, key: Key, kind: int, parts: Sequence[Part], numbers: Sequence[int] = (0,), epsilon: float = 0.0
    ) -> None:
        code = int(key.dtype is bfloat16)
        flat = [len(parts)]
        for each in parts:
            flat += [each.part, each.manner, code, len(each.shape), *each.shape, *each.strides]
        status = ffi.new("int *")
        made = lib.fm_new(
            kind, ffi.new("int64_t[]", flat), ffi.new("int64_t[]", list(numbers)), epsilon, lib.fm_get_threads(), status
        )
        if made == ffi.NULL:
            raise _failed(status[0], f"to make an operation on {[list(each.shape) for each in parts]}")
        self.native = ffi.gc(made, lib.fm_free)
        self.scratch, self.size = lib.fm_scratch(made), lib.fm_kept(made)
        self.name = ffi.string(lib.fm_name(made)).decode()
        self.keeps = next((i for i, each in enumerate(parts) if each.manner & lib.FM_KEPT), -1) if self.size else -1
        self.key, self.bytes = key, key.of(uint8)
        self.kept: OrderedDict[int, _Kept] = OrderedDict()

    def run(self, *tensors: Tensor) -> None:
        """Compute; the tensors lie as it was made for, and those written are fresh.

        Raises:
            MemoryError: there is no memory to work in.
        """
        address = self.key.address
        places = [address(each.memory) for each in tensors]
        kept = self._layout_of(tensors[self.keeps], places[self.keeps]) if self.keeps >= 0 else None
        scratch = self.bytes.allocate(self.scratch + 64) if self.scratch else None
        status = lib.fm_run(
            self.native, ffi.new("uintptr_t[]", places), 0 if kept is None else self._start(kept),
            0 if scratch is None else address(scratch),
        )  # fmt: skip
        if status:
            raise _failed(status, f"to run {self.name}")

    def _start(self, memory: Any) -> int:
        return (self.key.address(memory) + 63) & ~63

    def _layout_of(self, weights: Tensor, place: int) -> Any:
        """Memory that holds the weights in the operation's layout, if they have not changed since they last came."""
        shared = weights.shared
        owner, version = (weights.memory, 0) if shared is None else (shared.memory, shared.version)
        with _lock:
            found = self.kept.get(place)
            if found is None or found.owner() is not owner or found.version != version:
                self.kept[place] = _Kept(weakref.ref(owner, lambda _: self.kept.pop(place, None)), version)
                if len(self.kept) > _MOST_KEPT:
                    self.kept.popitem(last=False)
                return None
        # Versions do not count what is written through x.data, a NumPy array or another process.
        contents = lib.fm_fingerprint(place, weights.geometry.numel * weights.key.dtype.itemsize)
        memory = found.memory
        if memory is not None and found.contents == contents:
            _counts["kept_hits"] += 1
            return memory
        memory = self.bytes.allocate(self.size + 64)
        status = lib.fm_keep(self.native, place, self._start(memory))
        if status:
            raise _failed(status, "to change the layout of weights")
        with _lock:
            self.kept[place] = _Kept(found.owner, version, contents, memory)
        return memory


#: weak references call back wherever memory is let go, so within this lock too
_lock: Final = threading.RLock()
_operations: Final[OrderedDict[Hashable, Operation]] = OrderedDict()
_counts: Final = {"capacity": 512, "hits": 0, "misses": 0, "kept_hits": 0}


def find(which: tuple[Any, ...], make: Callable[[], Operation]) -> Operation:
    """The operation for everything that it depends on, but the number of threads; made if it is not there.

    Raises:
        RuntimeError: oneDNN has no such primitive.
        MemoryError: there is no memory for it.
    """
    which = (*which, lib.fm_get_threads())
    with _lock:
        found = _operations.get(which)
        if found is not None:
            _operations.move_to_end(which)
            _counts["hits"] += 1
            return found
        _counts["misses"] += 1
    made = make()
    with _lock:
        _operations[which] = made
        _shrink()
    return made


def _shrink() -> None:
    while len(_operations) > _counts["capacity"]:
        _operations.popitem(last=False)


def set_capacity(operations: int) -> None:
    """Hold at most this many operations.

    Raises:
        ValueError: it is negative.
    """
    if operations < 0:
        raise ValueError(f"A capacity of 0 or more operations is expected, got {operations}.")
    with _lock:
        _counts["capacity"] = operations
        _shrink()


def clear() -> None:
    """Let go of all operations and weights, and count from 0."""
    with _lock:
        _operations.clear()
        _counts.update(hits=0, misses=0, kept_hits=0)


def statistics() -> Statistics:
    """What is held now, and what has been done since the last :func:`clear`."""
    with _lock:
        kept = [one.size for one in _operations.values() for each in one.kept.values() if each.memory is not None]
        return Statistics(
            len(_operations), _counts["capacity"], _counts["hits"], _counts["misses"], len(kept), sum(kept),
            _counts["kept_hits"],
        )  # fmt: skip
