"""Seeding and the states of the default generators."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from .capabilities import capabilities
from .device import device as Device
from .generator import Generator, default_generators
from .key import devices
from .plugins import default_device
from .tensor import Tensor

__all__ = ["default", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


def default(device: Any = None) -> Generator:
    """The default generator of a device, the default one if none is named."""
    place = default_device() if device is None else Device(device)
    return default_generators[devices(place).canonical(place)]


def manual_seed(seed: int) -> Generator:
    """Seed the default generators of all devices; returns that of the default device.

    Args:
        seed: a whole number in [-2**63, 2**64).

    Raises:
        RuntimeError: the default device draws no random numbers.
    """
    first = default().manual_seed(seed)
    default_generators.seed = first.initial_seed()
    for generator in default_generators.values():
        generator.manual_seed(seed)
    return first


def seed() -> int:
    """Seed the default generators of all devices from the operating system; returns the seed."""
    value = default().seed()
    manual_seed(value)
    return value


def initial_seed() -> int:
    """The seed of the default device's generator."""
    return default().initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default device's generator, a uint8 tensor."""
    return default().get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Put the default device's generator into a state from :func:`get_rng_state`."""
    default().set_state(new_state)


@contextlib.contextmanager
def fork_rng(
    devices: Sequence[Any] | None = None, enabled: bool = True, device_type: str | None = None
) -> Iterator[None]:
    """Within the block, whatever is drawn or seeded leaves the generators outside as they were.

    Args:
        devices: accepted for compatibility; the generators of all devices are kept, which costs nothing.
        enabled: whether to do anything.
        device_type: accepted for compatibility.
    """
    if not enabled:
        yield
        return
    kept = {device: (each.seed_, each.offset) for device, each in default_generators.items()}
    common = default_generators.seed
    if "rng" in capabilities():
        first = default()
        kept.setdefault(first.device, (first.seed_, first.offset))
    try:
        yield
    finally:
        default_generators.seed = common
        for device, (seed, offset) in kept.items():
            default_generators[device].seed_, default_generators[device].offset = seed, offset
