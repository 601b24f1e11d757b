"""The process that owns the memory and runs the kernels: ``python -m flambeau_remote_process.worker SOCKET``.

Its main thread reads commands and gives them to streams, each a thread with a queue.  What a command names is
looked up when it is read, so it may be let go right behind it.  A kernel that fails leaves its results without
memory; whoever waits for the stream, or uses one of them, gets the error.
"""

from __future__ import annotations

import io
import itertools
import math
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from flambeau import device
from flambeau.backend import Key, Tensor, contiguous, intern, make, shared_storage, strided, tensors_in

from .channel import HEADER
from .hosted import HOSTED, hosted_backend
from .messages import TYPES, Failure, Place, failure, pack, unpack

__all__ = ["main"]

#: Commands that may wait in a stream; then the reader waits, and with it the other process.
MOST_WAITING = 1000
KEYS = {name: intern(device(HOSTED), dtype=each) for name, each in TYPES.items()}


class Slot:
    """What a number stands for: memory, once there is any, or the reason why there is none."""

    __slots__ = ("elements", "error", "key", "whole")

    def __init__(self, key: Key, elements: int, handle: Any = None) -> None:
        self.key, self.elements = key, elements
        #: all of the memory
        self.whole: Tensor | None = None
        self.error: Failure | None = None
        if handle is not None:
            self.fill(handle)

    def fill(self, handle: Any) -> None:
        self.whole = make(self.key, contiguous((self.elements,)), handle)


class Named(NamedTuple):
    """A tensor in a command: its memory may not be there before the command runs."""

    slot: Slot
    place: Place

    def tensor(self) -> Tensor:
        """The tensor; those of one memory share their storage record, so that kernels can tell.

        Raises:
            Failure: its memory was not filled.
        """
        slot, (_, offset, shape, strides, dtype) = self
        whole, key = slot.whole, KEYS[dtype]
        if whole is None:
            raise slot.error or Failure(
                "DeviceError",
                "A tensor was used before the stream that computes it had come so far.\n"
                "Let the using stream wait: stream.wait_stream(other)",
            )
        handle = whole.memory
        if key is not slot.key:  # the bits are read as another dtype
            array = key.memory.to_numpy(handle, slot.elements, slot.key.dtype)
            handle = key.memory.from_numpy(array.view(key.dtype.numpy), key.device, key.dtype)
        tensor = make(key, strided(shape, strides), key.shift(handle, offset) if offset else handle)
        tensor.shared, tensor.offset = shared_storage(whole), offset
        return tensor


def _tensors(value: Any) -> Any:
    """An argument as a kernel takes it."""
    if isinstance(value, Named):
        return value.tensor()
    return type(value)([_tensors(each) for each in value]) if type(value) in (list, tuple) else value


def _laid_out(tensor: Tensor, place: Place) -> Tensor:
    """A result with the strides that the other process was told."""
    if tuple(tensor.shape) != place.shape or tensor.dtype.name != place.dtype:
        raise TypeError(
            f"it returned {tensor.dtype.name} {list(tensor.shape)}, its declaration says {place.dtype} {list(place.shape)}"
        )
    wanted = strided(place.shape, place.strides)
    if tensor.geometry is wanted or not wanted.numel:
        return tensor
    fresh: Any = make(tensor.key, wanted, tensor.key.allocate(wanted.numel))
    return fresh.copy_(tensor)  # type: ignore[no-any-return]


class Stream(threading.Thread):
    """Work that is done in order."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.queue: queue.Queue[Callable[[], Any]] = queue.Queue(MOST_WAITING)
        self.given = self.done = 0
        #: the first error that nobody was told of
        self.error: Failure | None = None
        self.start()

    def run(self) -> None:
        while True:
            self.queue.get()()
            self.done += 1

    def give(self, work: Callable[[], Any]) -> None:
        """Let something be done behind all that was given before."""
        self.given += 1
        self.queue.put(work)

    def check(self) -> None:
        """Raise the error that nobody was told of, if there is one."""
        error = self.error
        if error is not None:
            self.error = None
            raise error


class Moment:
    """When an event happens in a stream."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.happened, self.time = stream, threading.Event(), 0

    def note(self) -> None:
        self.time = time.monotonic_ns()
        self.happened.set()


class Worker:
    """The commands, a method each.  Those with a ticket are answered."""

    def __init__(self, end: socket.socket) -> None:
        self.socket, self.sending = end, threading.Lock()
        self.families = hosted_backend().kernels
        self.kernels: dict[tuple[str, str], Callable[..., Any]] = {}
        self.streams = [Stream()]
        #: streams that nobody names any more, whose work need not be done yet; new ones are taken from here
        self.spare: list[Stream] = []
        #: what the other process names: a :class:`Slot`, :class:`Stream` or :class:`Moment`
        self.objects: dict[int, Any] = {0: self.streams[0]}
        #: for what is made here without having been announced; the other process counts upwards
        self.numbers = itertools.count(-1, -1)
        self.profile: list[tuple[str, float, float]] | None = None

    def serve(self) -> None:
        """Read commands until the other process is gone."""
        with self.socket.makefile("rb") as incoming:
            while header := incoming.read(HEADER):
                message = incoming.read(int.from_bytes(header, "little"))
                for command, *args in unpack(message, self.find):
                    getattr(self, command)(*args)

    def find(self, place: Place) -> Named:
        """A tensor of a command; a number that is new is that of a result."""
        slot = self.objects.get(place.number)
        if slot is None:
            slot = self.objects[place.number] = Slot(KEYS[place.dtype], math.prod(place.shape))
        return Named(slot, place)

    def place(self, tensor: Tensor) -> Place:
        """A name for a tensor that was made here."""
        number = next(self.numbers)
        self.objects[number] = Slot(tensor.key, tensor.geometry.span, tensor.memory)
        return Place(number, 0, tuple(tensor.geometry.shape), tensor.geometry.strides, tensor.dtype.name)

    def reply(self, ticket: int, value: Any) -> None:
        file = io.BytesIO()
        pack((ticket, value), file, self.place)
        with self.sending:
            self.socket.sendall(file.tell().to_bytes(HEADER, "little") + file.getbuffer())

    def answer(self, ticket: int, stream: Stream, ask: Callable[[], Any], operator: str = "copy_") -> None:
        """Reply with a value, or with the first error of the stream that was not told yet."""
        try:
            stream.check()
            self.reply(ticket, ask())
        except BaseException as error:
            self.reply(ticket, failure(operator, error))

    # -- memory ---------------------------------------------------------------

    def allocate(self, number: int, dtype: str, elements: int, zeros: bool) -> None:
        slot = self.objects[number] = Slot(KEYS[dtype], elements)
        try:
            slot.fill((slot.key.allocate_zeros if zeros else slot.key.allocate)(elements))
        except Exception as error:
            slot.error = failure("empty", error)

    def write(self, number: int, dtype: str, array: np.ndarray[Any, Any]) -> None:
        key = KEYS[dtype]
        self.objects[number] = Slot(key, array.size, key.memory.from_numpy(array, key.device, key.dtype))

    def read(self, ticket: int, stream: int, named: Named) -> None:
        here = self.objects[stream]

        def contents() -> np.ndarray[Any, Any]:
            tensor = named.tensor()
            return tensor.key.memory.to_numpy(tensor.memory, tensor.geometry.numel, tensor.dtype)

        here.give(lambda: self.answer(ticket, here, contents))

    def free(self, numbers: Sequence[int]) -> None:
        for each in numbers:
            freed = self.objects.pop(each, None)  # None if what would have made it was interrupted
            if isinstance(freed, Stream):
                self.spare.append(freed)

    def allocated(self, ticket: int) -> None:
        slots = [each for each in list(self.objects.values()) if isinstance(each, Slot) and each.error is None]
        self.reply(ticket, sum(each.elements * each.key.dtype.itemsize for each in slots))

    # -- kernels --------------------------------------------------------------

    def run(self, stream: int, operator: str, dtype: str, results: Sequence[Named], args: Any, out: Any) -> None:
        """Run a kernel whose results have names already."""
        here = self.objects[stream]

        def work() -> None:
            try:
                made = tensors_in(self.call(operator, dtype, args, out))
                for each, (slot, place) in zip(made if results else (), results, strict=True):
                    slot.fill(_laid_out(each, place).memory)
            except BaseException as error:
                found = failure(operator, error)
                here.error = here.error or found
                for slot, _ in results:
                    slot.error = found

        here.give(work)

    def run_and_tell(self, ticket: int, stream: int, operator: str, dtype: str, args: Any) -> None:
        """Run a kernel, and tell what it returns."""
        here = self.objects[stream]
        here.give(lambda: self.answer(ticket, here, lambda: self.call(operator, dtype, args, None), operator))

    def call(self, operator: str, dtype: str, args: Any, out: Any) -> Any:
        kernel = self.kernels.get((operator, dtype))
        if kernel is None:
            kernel = self.kernels[operator, dtype] = self.families[operator].build(KEYS[dtype])  # type: ignore[assignment]
        args = _tensors(args)
        options = {} if out is None else {"out": out.tensor()}
        start = time.monotonic_ns()
        result = kernel(*args, **options)
        if self.profile is not None:
            self.profile.append((operator, start / 1e3, (time.monotonic_ns() - start) / 1e3))
        return result

    def profiling(self, ticket: int, on: bool) -> None:
        found, self.profile = self.profile, [] if on else None
        self.reply(ticket, found)

    def hook(self, ticket: int, name: str, args: Any) -> None:
        """One of the hosted backend's own, such as ``set_num_threads``."""
        here = self.streams[0]
        here.give(lambda: self.answer(ticket, here, lambda: hosted_backend().hooks[name](*args), name))

    # -- streams and events ---------------------------------------------------

    def open(self, number: int) -> None:
        if not self.spare:
            self.streams.append(Stream())
            self.spare.append(self.streams[-1])
        self.objects[number] = self.spare.pop()

    def idle(self, ticket: int, stream: int) -> None:
        here = self.objects[stream]
        self.reply(ticket, here.given == here.done)

    def finish(self, ticket: int, stream: int | None) -> None:
        """Answer when a stream, or each, has come here, with the first error that was not told yet."""
        meant = list(self.streams) if stream is None else [self.objects[stream]]

        def tell() -> None:
            errors = [each.error for each in meant if each.error is not None]
            for each in meant:
                each.error = None
            self.reply(ticket, errors[0] if errors else None)

        together = threading.Barrier(len(meant), tell)
        for each in meant:
            each.give(together.wait)

    def record(self, stream: int, number: int) -> None:
        here = self.objects[stream]
        moment = self.objects[number] = Moment(here)
        here.give(moment.note)

    def wait(self, stream: int, number: int) -> None:
        self.objects[stream].give(self.objects[number].happened.wait)

    def happened(self, ticket: int, number: int) -> None:
        self.reply(ticket, self.objects[number].happened.is_set())

    def when(self, ticket: int, number: int) -> None:
        """Answer with an event's time, once it has happened; the reader goes on meanwhile."""
        moment = self.objects[number]

        def tell() -> None:
            moment.happened.wait()
            self.answer(ticket, moment.stream, lambda: moment.time)

        threading.Thread(target=tell, daemon=True).start()


def _end_with_the_parent() -> None:
    """Standard input is a pipe whose other end closes when the parent ends, however it does."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(0)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    Worker(socket.socket(fileno=int(sys.argv[1]))).serve()
    os._exit(0)


if __name__ == "__main__":
    main()
