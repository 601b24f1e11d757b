"""Random numbers: events and their probabilities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...dtype import float32, float64, int64
from ..operands import Draw, Operand
from ..samples import Event, draws

Drawn = tuple[tuple[Any, ...], list[Event]]


def _below(limit: float, probability: float) -> Event:
    return Event(f"x < {limit:g}", lambda x: x < limit, probability)


def _near(center: float, distance: float, probability: float) -> Event:
    return Event(f"|x - {center:g}| < {distance:g}", lambda x: abs(x - center) < distance, probability)


def _is(number: float, probability: float) -> Event:
    return Event(f"x = {number:g}", lambda x: x == number, probability)


def _zeros(draw: Draw, count: int) -> Operand:
    return draw.of(np.zeros(count))


@draws("uniform_")
def _uniform(draw: Draw, count: int) -> Drawn:
    quarters = [_below(2 + q, q / 4) for q in (1, 2, 3)]
    inside = Event("2 <= x <= 6", lambda x: (x >= 2) & (x <= 6), 1)
    return (_zeros(draw, count), 2.0, 6.0), [*quarters, inside]


@draws("normal_")
def _normal(draw: Draw, count: int) -> Drawn:
    within = [_near(1, 2 * s, math.erf(s / math.sqrt(2))) for s in (1, 2)]
    return (_zeros(draw, count), 1.0, 2.0), [_below(1, 0.5), *within]


@draws("exponential_")
def _exponential(draw: Draw, count: int) -> Drawn:
    return (_zeros(draw, count), 2.0, 0.0), [_below(math.log(2) / 2, 0.5), Event("x >= 0", lambda x: x >= 0, 1)]


@draws("cauchy_")
def _cauchy(draw: Draw, count: int) -> Drawn:
    return (_zeros(draw, count), 1.0, 2.0), [_below(1, 0.5), _near(1, 2, 0.5)]


@draws("geometric_")
def _geometric(draw: Draw, count: int) -> Drawn:
    whole = Event("x is 1, 2, ...", lambda x: (x >= 1) & (x % 1 == 0), 1)
    return (_zeros(draw, count), 1 / math.log1p(-0.25), 0.0), [_is(1, 0.25), _below(3, 1 - 0.75**2), whole]


@draws("integers_")
def _integers(draw: Draw, count: int) -> Drawn:
    low, size = (0, 2) if draw.dtype.kind == "b" else (3, 4)
    return (_zeros(draw, count), low, size), [_is(n, 1 / size) for n in range(low, low + size)]


_BITS = Event("x is 0 or 1", lambda x: (x == 0) | (x == 1), 1)


@draws("bernoulli_number_")
def _bernoulli_number(draw: Draw, count: int) -> Drawn:
    return (_zeros(draw, count), round(0.25 * 2**32), 0), [_is(1, 0.25), _BITS]


@draws("bernoulli_each_")
def _bernoulli_each(draw: Draw, count: int) -> Drawn:
    odds = Operand(np.full(count, 0.25), float64 if draw.dtype in (float64, int64) else float32)
    return (_zeros(draw, count), odds), [_is(1, 0.25), _BITS]


@draws("bernoulli")
def _bernoulli(draw: Draw, count: int) -> Drawn:
    return (draw.of(np.full(count, 0.25)),), [_is(1, 0.25), _BITS]


@draws("poisson")
def _poisson(draw: Draw, count: int) -> Drawn:
    return (draw.of(np.full(count, 2)),), [_is(0, math.exp(-2)), _below(3, 5 * math.exp(-2))]


@draws("multinomial")
def _multinomial(draw: Draw, count: int) -> Drawn:
    return (draw.of([1, 0, 3]), count, True), [_is(2, 0.75), _is(1, 0)]


@draws("permutation_")
def _permutation(draw: Draw, count: int) -> Drawn:
    once = Event("each number comes once", lambda x: np.sort(x) == np.arange(x.size), 1)
    return (_zeros(draw, count),), [
        once,
        Event("the first half comes early", lambda x: x[: x.size // 2] < x.size // 2, 0.5),
    ]


@draws("drop")
def _drop(draw: Draw, count: int) -> Drawn:
    kept = Event("x is 0 or 1 / (1 - p)", lambda x: (x == 0) | (x == 2), 1)
    return (draw.of(np.ones(count)), 0.5), [_is(0, 0.5), kept]


# ---------------------------------------------------------------- composites


@draws("log_normal_")
def _log_normal(draw: Draw, count: int) -> Drawn:
    return (_zeros(draw, count), 1.0, 2.0), [_below(math.e, 0.5), Event("x >= 0", lambda x: x >= 0, 1)]


@draws("random_")
def _random(draw: Draw, count: int) -> Drawn:
    return (_zeros(draw, count), 3, 7), [_is(n, 0.25) for n in range(3, 7)]


@draws("bernoulli_")
def _bernoulli_filled(draw: Draw, count: int) -> Drawn:
    return (_zeros(draw, count), 0.25), [_is(1, 0.25), _BITS]


@draws("normal")
def _normal_around(draw: Draw, count: int) -> Drawn:
    return (draw.of(np.ones(count)), 2.0), [_below(1, 0.5), _near(1, 2, math.erf(1 / math.sqrt(2)))]


@draws("gumbel_softmax")
def _gumbel_softmax(draw: Draw, count: int) -> Drawn:
    return (draw.of(np.zeros((count, 2))), 1.0, True), [_is(1, 0.5), _BITS]
