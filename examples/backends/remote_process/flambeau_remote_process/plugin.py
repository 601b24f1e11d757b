"""The device ``remote``: the kernels of another backend, in a process of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.backend import CAPABILITIES, Backend, hookimpl

from . import __version__, streams
from .hosted import hosted_backend
from .kernels import RemoteKernel
from .link import DEVICE, LINK
from .memory import RemoteMemory

__all__ = ["flambeau_backends"]

ASYNCHRONOUS = ("streams", "events", "profiling")


def _there(name: str) -> Callable[..., Any]:
    """A hook of the hosted backend, called in the worker."""
    return lambda *args: LINK.ask("hook", name, args)


@hookimpl
def flambeau_backends() -> list[Backend]:
    hosted = hosted_backend()
    own = {name: getattr(streams, name) for each in ASYNCHRONOUS for name in CAPABILITIES[each]}
    own["memory_allocated"] = lambda: LINK.ask("allocated")
    return [
        Backend(
            name=DEVICE, device=DEVICE, version=__version__, memory=RemoteMemory(),
            kernels={name: RemoteKernel(name, family) for name, family in hosted.kernels.items()},
            capabilities=hosted.capabilities & {"rng"} | {*ASYNCHRONOUS},
            hooks={**{name: _there(name) for name in hosted.hooks}, **own},
        )
    ]  # fmt: skip
