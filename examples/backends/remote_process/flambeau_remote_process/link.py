"""The way to the worker: commands go one way and are gathered; answers come back when they are asked for."""

from __future__ import annotations

import atexit
import io
import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NoReturn

from flambeau import backend, device
from flambeau.backend import DeviceError, Tensor, intern, make, strided

from .channel import Channel
from .hosted import HOSTED
from .messages import TYPES, Failure, Place, pack, unpack

__all__ = ["DEVICE", "LINK", "Owned"]

DEVICE = "remote"
#: A message is sent when it has this many commands, or bytes, or when an answer is wanted.
MOST_COMMANDS, MOST_BYTES = 16, 1 << 18


#: Numbers that the worker may forget.  The garbage collector adds some at any time, in any thread.
_UNUSED: deque[int] = deque()
_NUMBERS = itertools.count(1)


class Owned:
    """Something that the worker keeps for this process, under a number, until this object goes."""

    __slots__ = ("number",)

    def __init__(self, number: int | None = None) -> None:
        self.number = next(_NUMBERS) if number is None else number

    def __del__(self, let_go: Callable[[int], None] = _UNUSED.append) -> None:
        let_go(self.number)


def _place(tensor: Tensor) -> Place:
    """A tensor's name for the worker."""
    (owned, offset), geometry = tensor.memory, tensor.geometry
    return Place(owned.number, offset, tuple(geometry.shape), geometry.strides, tensor.dtype.name)


def _found(place: Place) -> Tensor:
    """A tensor that the worker made."""
    key = intern(device(DEVICE), dtype=TYPES[place.dtype])
    return make(key, strided(place.shape, place.strides), (Owned(place.number), place.offset))


class Link:
    """A worker process, started when it is first needed, and what goes to it."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._tickets = itertools.count(1)
        #: why the worker cannot be reached any more
        self._lost: str | None = None
        self._renew()
        os.register_at_fork(after_in_child=self._forked)
        atexit.register(self._close)

    def _renew(self) -> None:
        self._lock, self._message, self._commands = threading.RLock(), io.BytesIO(), 0

    def send(self, command: str, *args: Any) -> None:
        """Let the worker do something.

        Raises:
            RuntimeError: it has ended, or is another process's.
        """
        with self._lock:
            self._add(command, *args)
            if self._commands >= MOST_COMMANDS or self._message.tell() >= MOST_BYTES:
                self._flush()

    def ask(self, command: str, *args: Any) -> Any:
        """Let the worker do something, and wait for its answer.

        Raises:
            RuntimeError: it has ended, or is another process's.
            Exception: what a kernel raised, this one or one that nobody waited for.
        """
        with self._lock:
            ticket = next(self._tickets)
            self._add(command, ticket, *args)
            self._flush()
            answered = None
            while answered != ticket:  # an earlier one was asked for by somebody who was interrupted
                try:
                    message = self._channel.receive()
                except (EOFError, OSError):
                    self._mourn()
                answered, value = next(unpack(message, _found))
        if isinstance(value, Failure):
            name, text = value.args
            raise getattr(backend, name)(text)
        return value

    def _add(self, *command: Any) -> None:
        if self._lost is None and self.process is None:
            self._start()
        if self._lost is None and self._channel.torn:
            self._lost = (
                f"A message between the device {DEVICE!r} and its worker process was interrupted: the tensors on the "
                "device are lost.\nStart the program again."
            )
        if self._lost is not None:
            raise DeviceError(self._lost)
        unused = []
        while _UNUSED:
            unused.append(_UNUSED.popleft())
        if unused:
            self._pack(("free", unused))
        self._pack(command)

    def _pack(self, command: Any) -> None:
        start = self._message.tell()
        try:
            pack(command, self._message, _place)
        except BaseException:
            self._message.seek(start)
            self._message.truncate()
            raise
        self._commands += 1

    def _flush(self) -> None:
        self._channel.torn = True
        self._channel.put(self._message.getvalue())
        self._message, self._commands = io.BytesIO(), 0
        self._channel.torn = False
        try:
            self._channel.flush()
        except (EOFError, OSError):
            self._mourn()

    def _mourn(self) -> NoReturn:
        """Say how the worker ended."""
        assert self.process is not None
        try:
            status = self.process.wait(5)
            how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        except subprocess.TimeoutExpired:
            how = "closed the connection"
        self._lost = (
            f"The worker process {self.process.pid} of the device {DEVICE!r} {how}: the tensors on the device are lost.\n"
            "Start the program again; flambeau.save and .cpu() keep what must not be lost."
        )
        raise DeviceError(self._lost) from None

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        self._channel = Channel(ours)
        self.process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.worker", str(theirs.fileno())],
            stdin=subprocess.PIPE, pass_fds=[theirs.fileno()],
            env={
                **os.environ, "FLAMBEAU_DEFAULT_DEVICE": HOSTED, "PYTHONPATH": os.pathsep.join(sys.path),
                "PYTHONSAFEPATH": "1",
            },
        )  # fmt: skip
        theirs.close()

    def _close(self) -> None:
        """End the worker; what it has not done yet is not done."""
        if self.process is not None and self.process.stdin is not None:
            self._channel.close()
            self.process.stdin.close()

    def _forked(self) -> None:
        """In a forked process: leave the parent's worker alone, whose pipes must not stay open here."""
        if self.process is None:
            return
        self._renew()
        self._close()
        self._lost = (
            f"The device {DEVICE!r} was in use before this process was forked, and its worker serves process "
            f"{os.getppid()} alone.\nFork before the device is used, or start processes with the method 'spawn'."
        )


LINK = Link()
