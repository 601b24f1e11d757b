"""What a device may have beyond memory and kernels, and the functions that its plug-in brings for it.

A device that declares a capability brings every hook listed for it; one that does not brings none of them.
Using what a device has not got raises.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from .device import device as Device
from .errors import DeviceError
from .key import devices
from .plugins import plugins

__all__ = ["CAPABILITIES", "capabilities", "current_accelerator", "function", "meant", "option", "require"]

#: Capability to its hooks: what each is called with, and what it does.  ``device`` is a
#: :class:`flambeau.device`; streams and events are the plug-in's own objects, which the core only hands around.
CAPABILITIES: Final[Mapping[str, Mapping[str, str]]] = {
    "streams": {
        "new_stream": "(device, priority) -> stream",
        "current_stream": "(device) -> stream: the one that this thread's kernels go to",
        "set_stream": "(device, stream): this thread's kernels go there from now on",
        "query_stream": "(device, stream) -> bool: whether all of its work is done",
        "synchronize_stream": "(device, stream): wait until it is",
        "synchronize": "(device): wait until all work on the device is done",
    },
    "events": {
        "new_event": "(device, timing) -> event: one that can tell times, if asked",
        "record_event": "(device, event, stream): it happens when the stream's work so far is done",
        "wait_event": "(device, event, stream): later work of the stream waits for it",
        "query_event": "(device, event) -> bool: whether it has happened",
        "synchronize_event": "(device, event): wait until it has",
        "elapsed_time": "(device, start, end) -> float: milliseconds between two events",
    },
    "rng": {},  # generators are the core's; the drawing kernels take a seed and a position
    "pinned_memory": {
        "pin_memory": "(tensor) -> Tensor: a copy on the host from which the device copies by itself",
        "is_pinned": "(tensor) -> bool",
        "upload": "(tensor, device) -> Tensor: a pinned tensor's copy on the device, which may still be under way",
    },
    "profiling": {
        "start_profiling": "(device): note when each kernel runs",
        "stop_profiling": "(device) -> list of (name, start, duration) in microseconds, by the host's monotonic clock",
    },
}

#: What to say after "The device ... has no ...".
_INSTEAD: Final = {
    "streams": "Its kernels have finished when a call returns: leave streams and synchronize() out on this device.",
    "events": "Its kernels have finished when a call returns: measure with time.perf_counter() on this device.",
    "rng": "Draw on another device and move the result there with .to({device!r}).",
    "pinned_memory": "Leave pin_memory out: ordinary host memory works everywhere.",
    "profiling": "Measure with time.perf_counter() on this device.",
}
_TITLES: Final = {
    "rng": "random number generator", "pinned_memory": "pinned memory", "profiling": "profiling of its own",
}  # fmt: skip


def capabilities(device: Any = None) -> frozenset[str]:
    """What a device has of :data:`CAPABILITIES`; the default device if none is named.

    Raises:
        RuntimeError: no plug-in provides the device.
    """
    kind = plugins.default() if device is None else Device(device).type
    plugins.find_memory(kind)
    return frozenset().union(
        *(each.capabilities for plugin in plugins for each in plugin.backends if each.device == kind)
    )


def current_accelerator(check_available: bool = False) -> Device | None:
    """The device type beside the host: the default device, or else the first by name that works; None without one.

    Args:
        check_available: accepted for compatibility; a device that does not work is none anyway.
    """
    kinds = sorted({each.device for each in plugins})
    with contextlib.suppress(DeviceError):
        kinds.insert(0, plugins.default())
    for kind in kinds:
        try:
            memory = plugins.find_memory(kind)
        except RuntimeError:  # broken or absent: `python -m flambeau backends` tells
            continue
        if not memory.host and option(Device(kind), "device_count", lambda: 1)():
            return Device(kind)
    return None


def meant(device: Any) -> Device:
    """A device; the accelerator if none is named, or the one of an index.

    Raises:
        RuntimeError: there is no accelerator.
    """
    if device is not None and not isinstance(device, int):
        return Device(device)
    kind = current_accelerator()
    if kind is None:
        raise DeviceError("No installed plug-in provides an accelerator.\nName a device, or install its plug-in.")
    return kind if device is None else Device(kind.type, device)


def require(device: Any, capability: str) -> Device:
    """The device with its index, if it has a capability.

    Raises:
        RuntimeError: it has not, or there is no such device.
    """
    place = Device(device)
    if capability not in capabilities(place):
        raise DeviceError(
            f"The device {str(place)!r} has no {_TITLES.get(capability, capability)}.\n"
            + _INSTEAD[capability].format(device=str(place))
        )
    return devices(place).canonical(place)


def option(device: Device, hook: str, otherwise: Callable[..., Any] | None) -> Any:
    """A hook that the plug-in of a device may bring, or what stands in for it."""
    plugins.load(device.type)
    for plugin in plugins:
        for each in plugin.backends:
            if each.device == device.type and each.brings_device and hook in each.hooks:
                return each.hooks[hook]
    return otherwise


def function(device: Device, hook: str) -> Callable[..., Any]:
    """A hook of a device.

    Raises:
        RuntimeError: its plug-in brings none of this name.
    """
    found = option(device, hook, None)
    if found is None:
        raise DeviceError(f"The device {str(device)!r} offers no {hook!r}.")
    return found  # type: ignore[no-any-return]
