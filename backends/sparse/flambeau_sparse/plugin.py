"""What the sparse plug-in contributes: the layout and its kernels."""

from __future__ import annotations

from flambeau.backend import Backend, hookimpl, sparse_coo

from . import __version__, arithmetic, native, structure
from .coordinates import SparseMemory

__all__ = ["flambeau_backends"]


@hookimpl
def flambeau_backends() -> list[Backend]:
    return [
        Backend(
            name="sparse", device="cpu", version=__version__, layout=sparse_coo, memory=SparseMemory(),
            kernels={**structure.KERNELS, **arithmetic.KERNELS},
            hooks={"set_num_threads": native.set_threads, "get_num_threads": native.get_threads},
        )
    ]  # fmt: skip
