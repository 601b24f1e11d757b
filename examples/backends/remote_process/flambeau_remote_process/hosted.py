"""The backend whose kernels run in the worker: both processes look it up, the worker runs it."""

from __future__ import annotations

import importlib
import os
from importlib import metadata

from flambeau.backend import Backend, PluginError

__all__ = ["HOSTED", "hosted_backend"]

#: its device type
HOSTED = os.environ.get("FLAMBEAU_REMOTE_HOSTS", "numpy")


def hosted_backend() -> Backend:
    """Its description.

    Raises:
        RuntimeError: no installed plug-in brings such a device.
    """
    for point in metadata.entry_points(group="flambeau.backends", name=HOSTED):
        for backend in importlib.import_module(point.value).flambeau_backends():
            if backend.brings_device and backend.device == HOSTED:
                return backend
    raise PluginError(
        f"The device 'remote' runs the kernels of the device {HOSTED!r}, which no installed plug-in brings.\n"
        f"Install one, or name another device in FLAMBEAU_REMOTE_HOSTS."
    )
