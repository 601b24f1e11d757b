"""What is declared of operators for conformance: samples, faults, definitions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from .operands import Draw, Operand

__all__ = [
    "DEFINITIONS", "DRAWS", "FAULTS", "SAMPLES", "VALUES", "Event", "Sample", "definition", "draws", "faults", "faults_of",
    "samples", "samples_of", "telling",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])

#: An ordinary call.
VALUES: Final = "values"


class Sample(NamedTuple):
    """The arguments of one call, tensors as operands, and what it is about."""

    about: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Event(NamedTuple):
    """What of the numbers that are drawn happens with a known probability."""

    what: str
    happens: Callable[[Any], Any]
    probability: float


SAMPLES: Final[dict[str, Callable[[Draw], Iterable[tuple[Any, ...]]]]] = {}
FAULTS: Final[dict[str, Callable[[Draw], Iterator[tuple[Any, ...]]]]] = {}
DEFINITIONS: Final[dict[str, Callable[..., Any]]] = {}
DRAWS: Final[dict[str, Callable[[Draw, int], tuple[tuple[Any, ...], list[Event]]]]] = {}


def _entering(table: dict[str, Callable[..., Any]], names: tuple[str, ...]) -> Callable[[F], F]:
    def enter(function: F) -> F:
        for name in names:
            assert name not in table, f"{name} is there twice"
            table[name] = function
        return function

    return enter


def samples(*names: str) -> Callable[[F], F]:
    """Declare the inputs of some operators."""
    return _entering(SAMPLES, names)


def faults(*names: str) -> Callable[[F], F]:
    """Declare calls of some operators that must fail: what is wrong, then the arguments."""
    return _entering(FAULTS, names)


def definition(*names: str) -> Callable[[F], F]:
    """Give the meaning of operators whose declaration has no reference."""
    return _entering(DEFINITIONS, names)


def draws(*names: str) -> Callable[[F], F]:
    """Declare how to draw a count of numbers (the arguments but seed and offset), and events with their probabilities."""
    return _entering(DRAWS, names)


def faults_of(name: str, draw: Draw) -> Iterator[Sample]:
    """The calls of an operator that must fail, in one dtype."""
    for about, *args in FAULTS[name](draw) if name in FAULTS else ():
        yield Sample(about, tuple(args), {})


def samples_of(name: str, draw: Draw) -> Iterator[Sample]:
    """The inputs of an operator in one dtype."""
    for given in SAMPLES[name](draw) if name in SAMPLES else ():
        titled = isinstance(given[0], str) and name != "einsum"  # whose first argument is a text
        about, args = (given[0], given[1:]) if titled else (VALUES, given)
        kwargs = args[-1] if isinstance(args[-1], dict) else {}
        yield Sample(about, args[: len(args) - bool(kwargs)], kwargs)


def telling(draw: Draw) -> Iterator[tuple[str, Operand]]:
    """Numbers of which a detour by another dtype would lose something."""
    if draw.dtype.kind in "iu":
        info = np.iinfo(draw.dtype.numpy)
        yield "every bit", draw.of([int(info.min), int(info.max), int(info.max) - 1, int(info.max) // 3])
    if draw.floating:
        yield "every bit", draw.of([1 / 3, -1 / 3, math.pi, 1e-3])
        yield "NaN", draw.of([math.nan, 1])
        yield "infinity", draw.of([math.inf, -math.inf])
        yield "signed zero", draw.of([0.0, -0.0])
