"""Sums, products, truth, moments, norms and extremes over dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from ...dispatch.operator import operators
from ...dtype import dtype as Dtype, int64
from ..operands import Draw
from ..samples import samples

#: Arguments after the folded dimensions, given the dtype of what is folded.
_EXTRA: Final = {
    "sum": lambda dtype: (dtype if dtype.category >= 2 else int64,),
    "prod": lambda dtype: (dtype if dtype.category >= 2 else int64,),
    "var": lambda _: (1.0,),
    "std": lambda _: (0.0,),
    "lp_norm": lambda _: (3.0,),
}
#: Reductions that have a value for nothing.
_OF_NOTHING: Final = frozenset({"sum", "prod", "any", "all", "mean"})
_ADDING: Final = frozenset({"sum", "mean", "var"})


def _over(name: str, draw: Draw) -> Iterator[tuple[Any, ...]]:
    dtype: Dtype = draw.dtype
    extra = _EXTRA.get(name, lambda _: ())(dtype)
    low = 0.5 if name == "prod" else -3

    def of(*shape: int) -> Any:
        return draw(*shape, low=low) if name != "std" else draw.distinct(*shape)

    for shape, dims, keepdim in (
        ((3, 5), (0, 1), False), ((3, 5), (0,), False), ((3, 5), (1,), True), ((2, 3, 4), (0, 2), False),
        ((2, 3, 4), (1,), False), ((40,), (0,), False), ((1, 5), (0,), True),
    ):  # fmt: skip
        yield of(*shape), dims, keepdim, *extra
    for shape, dims in (((67, 301), (1,)), ((67, 301), (0,)), ((9001,), (0,)), ((41, 3, 59), (0, 2))):
        few = draw(*shape, low=0.98, high=1.02) if name == "prod" and not draw.exact else of(*shape)
        yield "large", few, dims, False, *extra
    if name != "var":
        yield "0-dim", of(), (), False, *extra
    if name in _OF_NOTHING:
        yield "empty", of(0), (0,), False, *extra
        yield "empty", of(2, 0, 3), (0, 1, 2), False, *extra
        yield "empty", of(2, 0, 3), (1,), True, *extra
    yield "empty", of(0, 3), (1,), False, *extra
    if draw.floating and name not in ("std", "var"):
        yield "NaN", draw.of([[1, math.nan, 2], [math.nan, 1, 2], [1, 2, math.nan]]), (1,), False, *extra
        infinities = [[math.inf, 1, 2], [-math.inf, 1, 2], [-math.inf, math.inf, 1]]
        yield "infinity", draw.of(infinities), (1,), False, *extra
    if dtype is int64 and name in ("sum", "prod"):
        info = np.iinfo(np.int64)
        yield "integer overflow", draw.of([info.max, 2]), (0,), False, *extra
    if dtype.kind in "iu" and name == "sum":
        yield "accumulation", draw.of(np.full(300, np.iinfo(dtype.numpy).max)), (0,), False, *extra
    if draw.floating and name in _ADDING:
        tall = draw.of(1 + draw.rng.random((2, 20000)) / 8)
        yield "accumulation", tall, (1,), False, *extra
    if draw.floating and name == "var":
        yield "accumulation", draw.of(1000 + draw.rng.random(4000) * 8), (0,), False, *extra


for _name in ("sum", "prod", "mean", "any", "all", "var", "std", "lp_norm", "amax", "amin"):
    assert _name in operators
    samples(_name)(lambda draw, name=_name: _over(name, draw))


def _ties(draw: Draw) -> Any:
    return draw.of([[1, 3, 3, 2, 3], [0, 0, 0, 0, 0], [2, 1, 1, 2, 1]])


@samples("max_over", "min_over")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for shape, dim, keepdim in (((3, 5), 0, False), ((3, 5), 1, True), ((2, 3, 4), 1, False), ((33,), 0, False)):
        yield draw.distinct(*shape), dim, keepdim
    for dim in (0, 1):
        yield "large", draw.distinct(67, 301), dim, False
    yield "0-dim", draw(), 0, False
    yield "empty", draw(0, 3), 1, False
    yield "ties", _ties(draw), 1, False
    yield "ties", _ties(draw), 0, False
    if draw.floating:
        yield "NaN", draw.of([[1, math.nan, 2, math.nan], [math.inf, 1, math.nan, 2]]), 1, False
        yield "infinity", draw.of([[-math.inf, 1, math.inf, 2], [-math.inf] * 4, [math.inf] * 4]), 1, False


@samples("argmax", "argmin")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for shape, dim, keepdim in (
        ((3, 5), None, False), ((3, 5), 0, False), ((3, 5), 1, True), ((2, 3, 4), 1, False), ((33,), 0, False),
    ):  # fmt: skip
        yield draw.distinct(*shape), dim, keepdim
    for dim in (None, 0, 1):
        yield "large", draw.distinct(67, 301), dim, False
    yield "0-dim", draw(), None, False
    yield "empty", draw(0, 3), 1, False
    for dim in (None, 0, 1):
        yield "ties", _ties(draw), dim, False
    if draw.floating:
        yield "NaN", draw.of([[1, math.nan, 2, math.nan], [math.inf, 1, math.nan, 2]]), 1, False
        yield "infinity", draw.of([[-math.inf, 1, math.inf, 2], [-math.inf] * 4, [math.inf] * 4]), 1, False


@samples("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for shape, dim in (((3, 5), 0), ((3, 5), 1), ((2, 3, 4), 1), ((33,), 0)):
        yield draw(*shape, low=-1.5, high=1.5), dim
    yield "0-dim", draw(), 0
    yield "empty", draw(0), 0
    yield "empty", draw(2, 0, 3), 2
    yield "ties", _ties(draw), 1
    if draw.floating:
        yield "NaN", draw.of([[1, math.nan, 2], [3, 1, math.nan]]), 1
        yield "infinity", draw.of([[1, math.inf, 2], [2, -math.inf, 1]]), 1


@samples("recurrence")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for shape, dim in (((3, 5), 0), ((2, 3, 4), 1), ((9,), 0)):
        for reverse in (False, True):
            for own in (False, True):
                yield draw(*shape, low=-1, high=1), draw(*shape), dim, reverse, own
    yield "empty", draw(0, 3), draw(0, 3), 0, False, True


@samples("softmax", "log_softmax")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for shape, dim in (((3, 5), 1), ((3, 5), 0), ((2, 3, 4), 1), ((40,), 0)):
        yield draw(*shape), dim
    for dim in (0, 1):
        yield "large", draw(67, 301), dim
    yield "0-dim", draw(), 0
    yield "empty", draw(0, 3), 1
    yield "empty", draw(3, 0), 1
    if draw.floating:
        yield "NaN", draw.of([[1, math.nan, 2], [1, 2, 3]]), 1
        yield "infinity", draw.of([[-math.inf, 1, 2], [-math.inf, -math.inf, 0], [500, 0, -500], [6e4, 6e4, -6e4]]), 1


@samples("softmax_backward", "log_softmax_backward")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for shape, dim in (((3, 5), 1), ((3, 5), 0), ((2, 3, 4), 1), ((40,), 0)):
        yield draw(*shape), draw(*shape, low=0.1, high=0.5), dim
    yield "0-dim", draw(), draw(), 0
    yield "empty", draw(0, 3), draw(0, 3), 1
