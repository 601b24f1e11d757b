"""What the oneDNN plug-in contributes: kernels of the CPU's strided tensors, before those of the CPU plug-in."""

from __future__ import annotations

import os

from flambeau.backend import Backend, hookimpl

from . import __version__, cache, convolution, layers, product
from .native import ffi, lib

__all__ = ["flambeau_backends"]


def _default_threads() -> int:
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted):
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


lib.fm_set_threads(_default_threads())


@hookimpl
def flambeau_backends() -> list[Backend]:
    return [
        Backend(
            name="mkldnn", device="cpu", version=__version__, priority=10,
            kernels={**convolution.KERNELS, **product.KERNELS, **layers.KERNELS},
            hooks={
                "set_num_threads": lib.fm_set_threads, "get_num_threads": lib.fm_get_threads,
                "empty_cache": cache.clear, "library": lambda: ffi.string(lib.fm_version()).decode(),
            },
        )
    ]  # fmt: skip
