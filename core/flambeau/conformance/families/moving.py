"""Copies, conversions and rearrangements: numbers move, and none may change on the way."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...dtype import DTYPES, dtype as Dtype, float32
from ..operands import Draw
from ..samples import definition, samples, telling


@samples("clone")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield (draw(3, 5),)
    yield (draw(2, 3, 4),)
    yield (draw(67, 301),)
    yield "0-dim", draw()
    yield "empty", draw(0, 3)
    yield from telling(draw)


@samples("copy_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw(3, 5), draw(3, 5)
    yield draw(2, 3, 4), draw(2, 3, 4)
    yield draw(67, 301), draw(67, 301)
    yield "0-dim", draw(), draw()
    yield "empty", draw(0, 3), draw(0, 3)
    for about, numbers in telling(draw):
        yield about, draw(*numbers.values.shape), numbers
    for source in _convertible(draw.dtype):
        yield "conversion", draw(3, 5), Draw(source)(3, 5, low=0.0)
    if draw.dtype.kind == "i":
        yield "rounding", draw(6), Draw(float32).of([-2.5, -1.5, -0.5, 0.5, 1.5, 2.9])


def _convertible(dtype: Dtype) -> Iterator[Dtype]:
    return (each for each in DTYPES if each is not dtype and (dtype.is_complex or not each.is_complex))


@samples("fill_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw(3, 5), draw.of(2)
    yield draw(40), draw.of(1)
    yield "0-dim", draw(), draw.of(1)
    yield "empty", draw(0, 3), draw.of(1)
    for about, numbers in telling(draw):
        yield about, draw(3), draw.of(numbers.values.reshape(-1)[-1])


@samples("cast")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    targets = [each for each in DTYPES if each.is_complex or not draw.dtype.is_complex]
    for target in targets:
        if target is not draw.dtype:
            yield draw(3, 5, low=0.0), target
    yield "0-dim", draw(low=0.0), targets[-1]
    yield "empty", draw(0, 3), targets[-1]
    for target in targets:
        if draw.floating and target.kind == "i":
            yield "rounding", draw.of([-2.5, -1.5, -0.5, 0.5, 1.5, 2.75]), target
        if draw.dtype.kind == "i" and target.kind in "iu":
            info = np.iinfo(draw.dtype.numpy)
            yield "integer overflow", draw.of([-1, int(info.max), int(info.min), 5]), target
        if draw.floating and target.kind == "f" and target is not draw.dtype:
            yield "NaN", draw.of([math.nan, 1]), target
            yield "infinity", draw.of([math.inf, -math.inf, 7e4]), target
            yield "signed zero", draw.of([-0.0, 0.0]), target
            yield (
                "rounding",
                draw.of([1 + 2.0**-9, 1 + 2.0**-8, 1 + 3 * 2.0**-9, 1 + 2.0**-11, 1 + 3 * 2.0**-11]),
                target,
            )
        if draw.dtype.kind == "i" and draw.dtype.itemsize == 8 and target.kind == "f":
            yield "rounding", draw.of([2**24 + 1, 2**24 + 3, -(2**24) - 1, 2**53 + 1]), target


@samples("cat")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield [draw(3, 5), draw(3, 2)], 1
    yield [draw(2, 5), draw(3, 5), draw(1, 5)], 0
    yield [draw(2, 1, 4), draw(2, 3, 4)], 1
    yield [draw(3, 5)], 0
    yield "empty", [draw(0, 5), draw(2, 5)], 0
    yield "empty", [draw(0), draw(0)], 0
    for about, numbers in telling(draw):
        yield about, [numbers, numbers], 0


@samples("tril", "triu")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for diagonal in (0, 1, -2):
        yield draw(4, 5), diagonal
    yield draw(2, 3, 3), 0
    yield "empty", draw(0, 3), 0


@samples("flip")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for dims in ((0,), (1,), (0, 1), ()):
        yield draw(3, 5), dims
    yield "empty", draw(0, 3), (1,)


@samples("constant_pad_nd")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    value = True if draw.dtype.kind == "b" else 2
    for pad in ((1, 2), (1, 0, 0, 2), (-1, 2), (0, 0)):
        yield draw(3, 5), pad, value
    yield "empty", draw(0, 3), (1, 1), value


@samples("where")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw(3, 5), draw(3, 5), draw.mask(3, 5)
    yield draw(40), draw(40), draw.mask(40)
    yield "0-dim", draw(), draw(), draw.mask()
    yield "empty", draw(0, 3), draw(0, 3), draw.mask(0, 3)
    for shapes in (((3, 1), (1, 5), (3, 5)), ((), (3, 5), (5,)), ((3, 5), (5,), ())):
        yield "broadcasting", draw(*shapes[0]), draw(*shapes[1]), draw.mask(*shapes[2])
    for about, numbers in telling(draw):
        count = numbers.values.size
        yield about, numbers, draw.of(numbers.values[::-1]), draw.mask(count)


@samples("arange_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for start, step in ((0, 1), (3, 2), (5, -1)) if draw.exact else ((0.0, 1.0), (0.5, 0.25), (5.0, -1.5)):
        yield draw(6 if step > 0 or draw.dtype.kind == "i" or not draw.exact else 5), start, step
    yield "empty", draw(0), 0 if draw.exact else 0.0, 1 if draw.exact else 1.0


@samples("linspace_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for count in (1, 2, 7, 40):
        yield draw(count), -1.5, 4 / (count - 1) if count > 1 else 0.0, 2.5, (count + 1) // 2
    yield "empty", draw(0), 0.0, 0.0, 1.0, 0


# ---------------------------------------------------------------- definitions


@definition("clone")
def _clone(a: Any) -> Any:
    return a


@definition("copy_")
def _copy(a: Any, source: Any) -> Any:
    return np.broadcast_to(source, a.shape)


@definition("fill_")
def _fill(a: Any, value: Any) -> Any:
    return np.broadcast_to(value, a.shape)


@definition("cast")
def _cast(a: Any, dtype: Dtype) -> Any:
    return a.astype(dtype.numpy)


@definition("arange_")
def _arange(a: Any, start: Any, step: Any) -> Any:
    return start + np.arange(a.size) * step


@definition("linspace_")
def _linspace(a: Any, start: float, step: float, end: float, half: int) -> Any:
    places = np.arange(a.size)
    return np.where(places < half, start + step * places, end - step * (a.size - 1 - places))
