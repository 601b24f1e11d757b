"""What the CPU plug-in contributes: the host's memory and the kernels of every family."""

from __future__ import annotations

import os
from typing import Any

from flambeau.backend import Backend, hookimpl

from . import __version__, blas
from ._kernels import lib
from .kernels import KERNELS
from .memory import HostMemory

__all__ = ["flambeau_backends"]

SETS = ("avx512", "avx2", "baseline")


def _choose_instructions() -> str:
    """Use the widest instruction set the machine has, or the one that FLAMBEAU_CPU_ISA names."""
    wanted = os.environ.get("FLAMBEAU_CPU_ISA")
    for each in SETS if wanted is None else (wanted,):
        if lib.fb_use(each.encode()):
            return each
    raise RuntimeError(
        f"FLAMBEAU_CPU_ISA={wanted!r} is not available on this machine.\nUse one of "
        f"{', '.join(each for each in SETS if lib.fb_supports(each.encode()))}, or unset it."
    )


INSTRUCTIONS = _choose_instructions()
BLAS = blas.load()


def _default_threads() -> int:
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted):
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


lib.fb_set_threads(_default_threads())


@hookimpl
def flambeau_backends() -> list[Backend]:
    hooks: dict[str, Any] = {
        "set_num_threads": lib.fb_set_threads,
        "get_num_threads": lib.fb_get_threads,
        "set_flush_denormal": lib.fb_flush_denormal,
        "empty_cache": lambda: lib.fb_trim(0),
        "memory_cached": lib.fb_cached_bytes,
        "memory_allocated": lib.fb_live_bytes,
        "instructions": lambda: INSTRUCTIONS,
        "blas": lambda: BLAS,
    }
    return [
        Backend(
            name="cpu", device="cpu", version=__version__, memory=HostMemory(), kernels=KERNELS,
            capabilities=frozenset({"rng"}), hooks=hooks,
        )
    ]  # fmt: skip
