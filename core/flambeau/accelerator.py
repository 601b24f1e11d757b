"""The device beside the host, whatever its name: which it is, how many there are, its streams.

Functions take a device, an index of the accelerator, or nothing for the current one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .capabilities import current_accelerator, function, meant, option, require
from .errors import DeviceError
from .streams import current_stream, set_stream, synchronize

__all__ = [
    "current_accelerator", "current_device_index", "current_stream", "device_count", "device_index", "empty_cache",
    "is_available", "profile", "set_device_index", "set_stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Whether there is an accelerator that works."""
    return current_accelerator() is not None


def device_count() -> int:
    """How many accelerators of the current type there are; 0 without one."""
    kind = current_accelerator()
    return 0 if kind is None else int(option(kind, "device_count", lambda: 1)())


def current_device_index() -> int:
    """The index of the current accelerator.

    Raises:
        RuntimeError: there is no accelerator.
    """
    return int(option(meant(None), "current_device", lambda: 0)())


def set_device_index(device: Any, /) -> None:
    """Make another accelerator the current one.

    Raises:
        RuntimeError: there is no such device.
    """
    wanted = meant(device)
    index = wanted.index or 0
    count = int(option(wanted, "device_count", lambda: 1)())
    if index >= count:
        raise DeviceError(f"Expected a device index below {count}, the number of {wanted.type} devices, got {index}.")
    if count > 1:
        function(wanted, "set_device")(index)


@contextmanager
def device_index(device: Any, /) -> Iterator[None]:
    """Within the block, another accelerator is the current one; None leaves it as it is."""
    if device is None:
        yield
        return
    before = current_device_index()
    set_device_index(device)
    try:
        yield
    finally:
        set_device_index(before)


def empty_cache(device: Any = None, /) -> None:
    """Give memory that no tensor uses back to the system.

    Raises:
        RuntimeError: the device keeps no such memory.
    """
    function(meant(device), "empty_cache")()


@contextmanager
def profile(device: Any = None, /) -> Iterator[list[tuple[str, float, float]]]:
    """Within the block the device notes its kernels; afterwards the list has (name, start, duration) of each.

    Times are microseconds of the host's monotonic clock.

    Raises:
        RuntimeError: the device has no profiling of its own.
    """
    place = require(meant(device), "profiling")
    kernels: list[tuple[str, float, float]] = []
    function(place, "start_profiling")(place)
    try:
        yield kernels
    finally:
        kernels += function(place, "stop_profiling")(place)
