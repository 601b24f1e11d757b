"""Random number generators: a seed and a position in its stream, one default for each device.

Kernels are counter-based: number i of a stream is a function of the seed and of i, so
a generator only has to remember how far it has come.  Every kernel reserves its part of the stream
beforehand, by a rule that knows the number of elements alone: results depend on
neither threads nor instruction sets.
"""

from __future__ import annotations

import os
from typing import Any, Final

import numpy as np

from .capabilities import require
from .device import device as Device
from .dtype import uint8
from .errors import ArgumentTypeError, DeviceError, ShapeError
from .geometry import contiguous
from .key import devices, intern
from .plugins import default_device, some_default
from .tensor import Tensor, make

__all__ = ["Generator", "chosen", "default_generators"]

#: The seed of a Generator that was not given one.
UNSEEDED: Final = 67280421310721
_WORD: Final = 1 << 64


class Generator:
    """A stream of random numbers for one device.

    Args:
        device: the device whose kernels use it; the default device if not given.

    Raises:
        RuntimeError: the device draws no random numbers.

    >>> import flambeau
    >>> generator = flambeau.Generator().manual_seed(7)
    >>> flambeau.rand(1, generator=generator) == flambeau.rand(1, generator=generator.manual_seed(7))
    tensor([True])
    """

    __slots__ = ("device", "offset", "seed_")

    def __init__(self, device: Any = None) -> None:
        place = default_device() if device is None else Device(device)
        self.device = require(place, "rng")
        self.seed_, self.offset = UNSEEDED, 0

    def __repr__(self) -> str:
        return f"<Generator on {self.device}: seed {self.initial_seed()}, block {self.offset}>"

    def reserve(self, elements: int) -> tuple[int, int]:
        """The seed and the first block for a kernel that makes this many numbers; moves on past them."""
        blocks = (elements + 31) // 32 * 16
        offset = self.offset
        self.offset = offset + blocks
        return self.seed_, offset

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of a seed, a whole number of 64 bits (negative ones count from 2**64).

        Raises:
            RuntimeError: the seed is outside [-2**63, 2**64).
        """
        if isinstance(seed, Tensor):
            seed = int(seed.item())
        if not hasattr(seed, "__index__") and not isinstance(seed, float):
            raise ArgumentTypeError(f"manual_seed() expects an int, got {type(seed).__name__} {seed!r:.60}.")
        value = int(seed)
        if not -(_WORD >> 1) <= value < _WORD:
            raise ShapeError(f"Overflow when unpacking long: a seed lies in [-2**63, 2**64), got {value}.")
        # Kernels take it as a signed word.
        self.seed_ = value - _WORD if value >= _WORD >> 1 else value
        self.offset = 0
        return self

    def seed(self) -> int:
        """Start a stream whose seed comes from the operating system; returns the seed."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self.initial_seed()

    def initial_seed(self) -> int:
        """The seed of the stream."""
        return self.seed_ % _WORD

    def get_state(self) -> Tensor:
        """Seed and position, as a uint8 tensor on the default device (on this one, where there is no default)."""
        words = np.array([self.seed_, self.offset], np.int64).view(np.uint8)
        key = intern(some_default() or self.device, dtype=uint8)
        return make(key, contiguous((16,)), key.memory.from_numpy(words, key.device, uint8))

    def set_state(self, state: Tensor) -> Generator:
        """Go to where :meth:`get_state` was called.

        Raises:
            TypeError: the state is no uint8 tensor.
            RuntimeError: it is not one of ours.
        """
        if not isinstance(state, Tensor) or state.key.dtype is not uint8:
            raise ArgumentTypeError(
                f"expected a uint8 tensor from get_state(), got {getattr(state, 'dtype', type(state).__name__)}."
            )
        values = np.array(state.tolist(), np.uint8)
        if values.shape != (16,):
            raise ShapeError(
                f"RNG state is wrong size: expected 16 bytes from get_state(), got shape {list(state.shape)}."
            )
        self.seed_, self.offset = map(int, values.view(np.int64))
        return self

    def clone_state(self) -> Generator:
        """Another generator at the same place."""
        twin = Generator(self.device)
        twin.seed_, twin.offset = self.seed_, self.offset
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (str(self.device), self.seed_, self.offset)


def _restored(device: str, seed: int, offset: int) -> Generator:
    generator = Generator(device)
    generator.seed_, generator.offset = seed, offset
    return generator


class _Defaults(dict[Device, Generator]):
    """The default generator of each device; ``seed`` is what later ones start from, once it was chosen."""

    seed: int | None = None

    def __missing__(self, device: Device) -> Generator:
        generator = self[device] = Generator(device)
        if self.seed is None:
            generator.seed()
        else:
            generator.manual_seed(self.seed)
        return generator

    def forget(self, kind: str) -> None:
        """Drop the generators of a device type that no longer exists."""
        for device in [each for each in self if each.type == kind]:
            del self[device]


default_generators: Final = _Defaults()
devices.followers.append(default_generators.forget)


def chosen(generator: Generator | None, device: Device) -> Generator:
    """The generator for a call on a device: the one given, else the device's default.

    Raises:
        RuntimeError: the one given is another device's.
    """
    if generator is None:
        return default_generators[device]
    if not isinstance(generator, Generator):
        raise ArgumentTypeError(f"generator: expected a flambeau.Generator, got {type(generator).__name__}.")
    if generator.device is not device:
        raise DeviceError(
            f"Expected a {device.type!r} device type for generator but found {generator.device.type!r}.\n"
            f"Use flambeau.Generator({str(device)!r})."
        )
    return generator
