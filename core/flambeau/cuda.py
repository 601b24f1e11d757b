"""PyTorch's names for CUDA devices, over whichever plug-in provides the device type ``cuda``.

Scripts ask :func:`is_available` and go on with another device where it is False; everything else then says what to
install.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from . import streams
from .capabilities import function, option
from .device import device as Device
from .errors import DeviceError
from .legacy import types_of
from .plugins import plugins
from .random import default as default_generator
from .streams import Event

__all__ = [
    "Event", "Stream", "current_device", "current_stream", "device", "device_count", "empty_cache", "init", "is_available",
    "manual_seed", "manual_seed_all", "memory_allocated", "memory_cached", "set_device", "set_stream", "stream", "synchronize",
]  # fmt: skip

_KIND: Final = "cuda"
globals().update(types_of(_KIND))


def is_available() -> bool:
    """Whether a CUDA device works here."""
    return device_count() > 0


def device_count() -> int:
    """How many CUDA devices there are; 0 if no plug-in for them is installed, or it does not work."""
    if not any(each.device == _KIND for each in plugins):
        return 0
    try:
        return int(option(Device(_KIND), "device_count", lambda: 1)())
    except (RuntimeError, ImportError):  # `python -m flambeau doctor` tells why
        return 0


def _place(given: Any = None) -> Device:
    """A CUDA device: the current one, or that of an index.

    Raises:
        RuntimeError: there is none.
    """
    place = Device(_KIND, given) if isinstance(given, int) else Device(_KIND if given is None else given)
    plugins.find_memory(place.type)
    if place.type != _KIND:
        raise DeviceError(f"Expected a CUDA device, got {str(place)!r}.")
    return place


def init() -> None:
    """Load the plug-in now, instead of when a device is first used."""
    _place()


def current_device() -> int:
    """The index of the current device."""
    return int(option(_place(), "current_device", lambda: 0)())


def set_device(device: Any) -> None:
    """Make a device the current one; a negative index leaves it as it is."""
    if not isinstance(device, int) or device >= 0:
        place = _place(device)
        function(place, "set_device")(place.index or 0)


@contextmanager
def device(device: Any) -> Iterator[None]:
    """Within the block, another device is the current one; None or -1 leaves it as it is."""
    before = None if device is None or device == -1 else current_device()
    if before is not None:
        set_device(device)
    try:
        yield
    finally:
        if before is not None:
            set_device(before)


def synchronize(device: Any = None) -> None:
    """Wait until all work on a device is done."""
    streams.synchronize(_place(device))


def Stream(device: Any = None, priority: int = 0) -> streams.Stream:
    """A queue of work on a CUDA device."""
    return streams.Stream(_place(device), priority=priority)


def current_stream(device: Any = None) -> streams.Stream:
    """The stream that this thread's kernels on a device go to."""
    return streams.current_stream(_place(device))


def set_stream(stream: streams.Stream) -> None:
    """Let this thread's kernels go to a stream from now on."""
    streams.set_stream(stream)


@contextmanager
def stream(stream: streams.Stream | None) -> Iterator[None]:
    """Within the block, this thread's kernels go to a stream; None changes nothing."""
    if stream is None:
        yield
        return
    with stream:
        yield


def empty_cache() -> None:
    """Give memory that no tensor uses back; nothing to do without a device."""
    if is_available():
        function(_place(), "empty_cache")()


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors on a device take."""
    return int(function(_place(device), "memory_allocated")())


def memory_cached(device: Any = None) -> int:
    """Bytes that a device's allocator keeps for later tensors."""
    return int(function(_place(device), "memory_cached")())


def manual_seed(seed: int) -> None:
    """Seed the generator of the current device; nothing to do without one."""
    if is_available():
        default_generator(Device(_KIND, current_device())).manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all CUDA devices; nothing to do without one."""
    for index in range(device_count()):
        default_generator(Device(_KIND, index)).manual_seed(seed)
