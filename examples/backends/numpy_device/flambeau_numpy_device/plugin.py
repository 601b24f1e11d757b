"""What flambeau reads: the device, its memory and its kernels."""

from flambeau.backend import ArrayMemory, Backend, hookimpl

from . import drawing, folding, places, pointwise, windows

KERNELS = {}
for family in (pointwise, folding, places, windows, drawing):
    KERNELS |= family.KERNELS


@hookimpl
def flambeau_backends():
    return [
        Backend(
            name="numpy",
            device="numpy",
            version="0.1.0",
            memory=ArrayMemory(),
            kernels=KERNELS,
            capabilities=frozenset({"rng"}),
        )
    ]
