"""Sorting, selecting, running extremes, distinct values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..operands import Draw
from ..samples import definition, samples


@samples("sort")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for shape, dim in (((3, 5), 1), ((3, 5), 0), ((2, 3, 4), 1), ((40,), 0)):
        for descending in (False, True):
            yield draw.distinct(*shape), dim, descending
    yield "large", draw.distinct(7, 1031), 1, True
    yield "large", draw.distinct(1031, 7), 0, False
    yield "0-dim", draw(), 0, False
    yield "empty", draw(0), 0, False
    yield "empty", draw(2, 0), 0, True
    for descending in (False, True):
        yield "ties", draw.of([[1, 3, 3, 0, 3, 1], [2, 2, 2, 2, 2, 2]]), 1, descending
    if draw.floating:
        yield "NaN", draw.of([[1, math.nan, -2, math.nan, 0]]), 1, False
        yield "infinity", draw.of([[1, math.inf, -2, -math.inf, 0]]), 1, True


@samples("topk")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for shape, k, dim in (((3, 5), 2, 1), ((3, 5), 3, 0), ((2, 3, 4), 1, 1), ((40,), 40, 0)):
        for largest in (True, False):
            yield draw.distinct(*shape), k, dim, largest
    yield "large", draw.distinct(7, 1031), 33, 1, True
    yield "0-dim", draw(), 1, 0, True
    yield "empty", draw(3, 5), 0, 1, True
    yield "ties", draw.of([[1, 3, 3, 0, 3, 1], [2, 2, 2, 2, 2, 2]]), 4, 1, True
    if draw.floating:
        yield "NaN", draw.of([[1, math.nan, -2, 3, 0]]), 3, 1, True


@samples("kthvalue")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for shape, k, dim, keepdim in (
        ((3, 5), 2, 1, False),
        ((3, 5), 3, 0, True),
        ((2, 3, 4), 1, 1, False),
        ((40,), 40, 0, False),
    ):
        yield draw.distinct(*shape), k, dim, keepdim
    yield "0-dim", draw(), 1, 0, False
    yield "empty", draw(0, 3), 1, 1, False


@samples("median_over", "nanmedian_over", "mode")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for shape, dim, keepdim in (
        ((3, 5), 1, False),
        ((3, 6), 1, False),
        ((3, 5), 0, True),
        ((2, 3, 4), 1, False),
        ((40,), 0, False),
    ):
        yield draw.distinct(*shape), dim, keepdim
    yield "0-dim", draw(), 0, False
    yield "empty", draw(0, 3), 1, False
    if draw.floating:
        yield "NaN", draw.of([[1, math.nan, -2, 3, 0], [1, 5, -2, 3, 0]]), 1, False


@samples("unique_of_all")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for inverse in (True, False):
        for counts in (True, False):
            yield draw.of([3, 1, 2, 3, 1, 3, 0]), inverse, counts
    yield "empty", draw(0), True, True
    if draw.dtype.kind in "if":
        yield draw.of([-1, 2, -1, 0]), True, True


# ---------------------------------------------------------------- definitions


def _chosen(a: Any, order: Any, k: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    """The elements that stand at places ``k`` of a stable order, and their indices."""
    k = np.expand_dims(np.broadcast_to(k, np.delete(a.shape, dim)), dim)
    places = np.take_along_axis(order, k, dim)
    values = np.take_along_axis(a, places, dim)
    return (values, places) if keepdim else (np.squeeze(values, dim), np.squeeze(places, dim))


def _select(a: Any, dim: int, keepdim: bool, place: Any) -> tuple[Any, Any]:
    if not a.ndim:
        return a, np.int64(0)
    order = np.argsort(a, axis=dim, kind="stable")
    return _chosen(a, order, place(a, dim), dim, keepdim)


@definition("kthvalue")
def _kthvalue(a: Any, k: int, dim: int, keepdim: bool) -> Any:
    return _select(a, dim, keepdim, lambda a, dim: k - 1)


@definition("median_over")
def _median(a: Any, dim: int, keepdim: bool) -> Any:
    def place(a: Any, dim: int) -> Any:
        size = a.shape[dim]
        unordered = np.isnan(a).sum(dim) if a.dtype.kind == "f" else 0
        return np.where(unordered, size - unordered, (size - 1) // 2)  # NaN sorts last

    return _select(a, dim, keepdim, place)


@definition("nanmedian_over")
def _nanmedian(a: Any, dim: int, keepdim: bool) -> Any:
    def place(a: Any, dim: int) -> Any:
        kept = a.shape[dim] - (np.isnan(a).sum(dim) if a.dtype.kind == "f" else 0)
        return np.maximum(kept - 1, 0) // 2

    return _select(a, dim, keepdim, place)


@definition("mode")
def _mode(a: Any, dim: int, keepdim: bool) -> Any:
    if not a.ndim:
        return a, np.int64(0)

    def of_line(line: Any) -> int:
        equal = (line[:, None] == line) | ((line != line)[:, None] & (line != line))
        often = equal.sum(1)
        least = min(line[often == often.max()], key=lambda each: (each != each, each))
        return int(np.flatnonzero((line == least) | ((line != line) & (least != least)))[-1])

    lines = np.moveaxis(a, dim, -1)
    places = np.array([of_line(line) for line in lines.reshape(-1, a.shape[dim])], np.int64).reshape(lines.shape[:-1])
    places = np.expand_dims(places, dim)
    values = np.take_along_axis(a, places, dim)
    return (values, places) if keepdim else (np.squeeze(values, dim), np.squeeze(places, dim))


@definition("unique_of_all")
def _unique(a: Any, inverse: bool, counts: bool) -> Any:
    values, to, often = np.unique(a, return_inverse=True, return_counts=True, equal_nan=False)
    return values, to.reshape(-1) if inverse else None, often if counts else None


def _running(a: Any, dim: int, beats: Any) -> Any:
    if not a.ndim or not a.size:
        return a, np.zeros(a.shape, np.int64)
    lines = np.moveaxis(a, dim, 0)
    values, places = np.array(lines), np.zeros(lines.shape, np.int64)
    for i in range(1, len(lines)):
        new = beats(lines[i], values[i - 1]) | (lines[i] != lines[i])
        values[i] = np.where(new, lines[i], values[i - 1])
        places[i] = np.where(new, i, places[i - 1])
    return np.moveaxis(values, 0, dim), np.moveaxis(places, 0, dim)


@definition("cummax")
def _cummax(a: Any, dim: int) -> Any:
    return _running(a, dim, np.greater_equal)


@definition("cummin")
def _cummin(a: Any, dim: int) -> Any:
    return _running(a, dim, np.less_equal)
