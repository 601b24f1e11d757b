"""Products of matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..operands import Draw, Operand
from ..samples import samples


def _long(draw: Draw, *shape: int) -> Operand:
    """Numbers whose sums lose digits if they are added up in half precision, or one by one."""
    return draw.of(1 + draw.rng.random(shape) / 8)


@samples("mm")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for n, m, p in ((3, 4, 5), (1, 7, 1), (17, 9, 33)):
        yield draw(n, m), draw(m, p)
    yield "empty", draw(0, 3), draw(3, 2)
    yield "empty", draw(2, 0), draw(0, 3)
    yield "large", draw(131, 67), draw(67, 259)
    if draw.floating:
        yield "accumulation", _long(draw, 2, 4000), _long(draw, 4000, 2)
        yield "NaN", draw.of([[np.nan, 1], [1, 2]]), draw.of([[0, 1], [1, 0]])


@samples("bmm")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw(2, 3, 4), draw(2, 4, 5)
    yield draw(1, 1, 6), draw(1, 6, 1)
    yield "empty", draw(0, 3, 4), draw(0, 4, 2)
    yield "empty", draw(2, 3, 0), draw(2, 0, 2)


@samples("mv")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw(3, 4), draw(4)
    yield draw(1, 9), draw(9)
    yield "empty", draw(3, 0), draw(0)


@samples("dot")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw(7), draw(7)
    yield draw(40), draw(40)
    yield "empty", draw(0), draw(0)
    if draw.floating:
        yield "accumulation", _long(draw, 20000), draw.of(np.ones(20000))


@samples("matmul")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for a, b in (
        ((3, 4), (4, 5)), ((4,), (4,)), ((4,), (4, 2)), ((3, 4), (4,)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)),
        ((2, 1, 3, 4), (5, 4, 2)), ((2, 3, 4), (4,)),
    ):  # fmt: skip
        yield draw(*a), draw(*b)
    yield "empty", draw(0, 3), draw(3, 2)
    yield "empty", draw(2, 0), draw(0, 3)


@samples("addmm")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for beta, alpha in ((1, 1), (2, 3), (0, 1)):
        yield draw(3, 5), draw(3, 4), draw(4, 5), beta, alpha
    yield "broadcasting", draw(5), draw(3, 4), draw(4, 5), 1, 1
    yield "empty", draw(3, 2), draw(3, 0), draw(0, 2), 1, 1
    if draw.floating:
        yield "NaN", draw.of([[np.nan]]), draw(1, 2), draw(2, 1), 0, 1


@samples("baddbmm")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for beta, alpha in ((1, 1), (2, 3), (0, 1)):
        yield draw(2, 3, 5), draw(2, 3, 4), draw(2, 4, 5), beta, alpha
    yield "empty", draw(0, 3, 2), draw(0, 3, 4), draw(0, 4, 2), 1, 1


@samples("linear")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw(3, 4), draw(5, 4), draw(5)
    yield draw(2, 3, 4), draw(5, 4), None
    yield draw(4), draw(5, 4), draw(5)
    yield "empty", draw(0, 4), draw(5, 4), draw(5)
    if draw.floating:
        yield "accumulation", _long(draw, 2, 4000), _long(draw, 2, 4000), draw(2)
