"""Reading and writing where index tensors and masks say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...dtype import bool_
from ..operands import Draw, Operand
from ..samples import definition, faults, samples

_RANGE, _NEGATIVE = "index out of range", "negative index"


@samples("gather")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for shape, dim, wanted in (((3, 5), 1, (3, 2)), ((3, 5), 0, (4, 5)), ((2, 3, 4), 1, (2, 5, 3)), ((9,), 0, (20,))):
        yield draw(*shape), draw.index(shape[dim], *wanted), dim
    yield "0-dim", draw(), draw.places(0), 0
    yield "empty", draw(3, 5), draw.index(1, 3, 0), 1


@samples("index_select")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for shape, dim, count in (((3, 5), 1, 2), ((3, 5), 0, 6), ((2, 3, 4), 1, 3), ((9,), 0, 20)):
        yield draw(*shape), draw.index(shape[dim], count), dim
    yield "large", draw(67, 301), draw.index(67, 100), 0
    yield "empty", draw(3, 5), draw.index(1, 0), 1
    yield "empty", draw(3, 0), draw.places([1, 1]), 0


@samples("take")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw(3, 5), draw.index(15, 4)
    yield draw(3, 5), draw.places([[-1, 0], [-15, 14]])
    yield "0-dim", draw(3, 5), draw.places(7)
    yield "empty", draw(3, 5), draw.index(1, 0)


@samples("embedding")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw(6, 3), draw.index(6, 4), -1, False, False
    yield draw(6, 3), draw.index(6, 2, 3), 2, True, False
    yield "empty", draw(6, 3), draw.index(1, 0), -1, False, False


@samples("bag_sums")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw(6, 3), draw.index(6, 5), draw.places([0, 0, 1, 3, 3]), None, 4, False
    yield draw(6, 3), draw.index(6, 5), draw.places([0, 0, 1, 3, 3]), draw(5), 4, False
    yield "empty", draw(6, 3), draw.index(1, 0), draw.index(1, 0), None, 2, False


@samples("scatter_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    reductions = ("", "add", "mul", "max", "min") if draw.dtype.kind in "iuf" else ("", "add")
    for shape, dim, wanted in (((3, 5), 1, (3, 4)), ((3, 5), 0, (2, 5)), ((2, 3, 4), 1, (2, 5, 3)), ((9,), 0, (20,))):
        for reduce in reductions:
            yield draw(*shape), draw.index(shape[dim], *wanted), draw(*wanted, low=-2, high=2), dim, reduce
    yield "repeated indices", draw(4), draw.places([1, 1, 3, 1]), draw(4), 0, "add"
    yield "repeated indices", draw(4), draw.places([1, 1, 3, 1]), draw(4), 0, ""
    yield "0-dim", draw(), draw.places(0), draw(), 0, ""
    yield "empty", draw(3, 5), draw.index(1, 3, 0), draw(3, 0), 1, "add"


@samples("index_add_", "index_copy_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for shape, dim, count in (((3, 5), 1, 4), ((3, 5), 0, 6), ((2, 3, 4), 1, 3), ((9,), 0, 20)):
        source = (*shape[:dim], count, *shape[dim + 1 :])
        yield draw(*shape), draw.index(shape[dim], count), draw(*source), dim
    yield "repeated indices", draw(3, 5), draw.places([2, 2, 0, 2]), draw(4, 5), 0
    yield "empty", draw(3, 5), draw.index(1, 0), draw(3, 0), 1


@samples("index_fill_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for shape, dim, count in (((3, 5), 1, 2), ((2, 3, 4), 1, 3), ((9,), 0, 4)):
        yield draw(*shape), draw.index(shape[dim], count), draw.of(2), dim
    yield draw(3, 5), draw.places([-1, 0]), draw.of(1), 1
    yield "empty", draw(3, 5), draw.index(1, 0), draw.of(1), 1


@samples("put_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for accumulate in (False, True):
        yield draw(3, 5), draw.places([0, 14, -2, 7]), draw(4), accumulate
    yield "repeated indices", draw(3, 5), draw.places([[3, 3], [3, 4]]), draw(2, 2), True
    yield "empty", draw(3, 5), draw.index(1, 0), draw(0), True


@samples("masked_fill_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw(3, 5), draw.mask(3, 5), draw.of(2)
    yield draw(40), draw.mask(40), draw.of(1)
    yield "0-dim", draw(), draw.mask(), draw.of(1)
    yield "empty", draw(0, 3), draw.mask(0, 3), draw.of(1)


@samples("masked_select")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw(3, 5), draw.mask(3, 5)
    yield draw(40), draw.mask(40)
    yield "empty", draw(0, 3), draw.mask(0, 3)


@samples("masked_scatter_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw(3, 5), draw.mask(3, 5), draw(15)
    yield draw(2, 3, 4), draw.mask(2, 3, 4), draw(30)
    yield "empty", draw(0, 3), draw.mask(0, 3), draw(1)


@samples("nonzero")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield (draw.of([[0, 1, 0], [2, 0, 3]]),)
    yield (draw.of([0, 0, 1, 0]),)
    yield "empty", draw.of(np.zeros((2, 3)))
    yield "empty", draw(2, 0)
    if draw.floating:
        yield "NaN", draw.of([0, float("nan"), -0.0, 1])


@samples("index")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw(3, 5), [draw.index(3, 4)]
    yield draw(3, 5), [None, draw.places([[0, -1], [4, 2]])]
    yield draw(3, 5), [draw.index(3, 4), draw.index(5, 4)]
    yield draw(2, 3, 4), [draw.index(2, 2, 1), None, draw.index(4, 3)]
    yield draw(2, 3, 4), [None, draw.index(3, 2, 2), draw.index(4, 2)]
    yield "empty", draw(3, 5), [draw.index(1, 0)]
    yield "empty", draw(3, 0), [draw.index(3, 2)]


@samples("index_put_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for accumulate in (False, True):
        yield draw(3, 5), [draw.places([2, 0])], draw(2, 5), accumulate
        yield draw(3, 5), [None, draw.places([4, -5, 2])], draw(3), accumulate
        yield draw(2, 3, 4), [draw.places([0, 1, 0]), None, draw.places([3, 2, 0])], draw(3, 3), accumulate
    yield "repeated indices", draw(3, 5), [draw.places([1, 1, 1])], draw(3, 5), True
    yield "empty", draw(3, 5), [draw.index(1, 0)], draw(0, 5), False


@samples("plane_add", "plane_put")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw(2, 3, 4), draw.index(12, 2, 3, 4), (12,)
    yield draw(2, 2, 3), draw.index(20, 2, 2, 3), (4, 5)


@samples("plane_get")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw(2, 3, 4), draw.index(4, 2, 3, 6), 1
    yield draw(2, 4, 5), draw.index(20, 2, 2, 3), 2


# ---------------------------------------------------------------- faults


@faults("gather")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield _RANGE, draw(3, 5), draw.places([[0, 5], [0, 0]]), 1
    yield _NEGATIVE, draw(3, 5), draw.places([[0, -1], [0, 0]]), 1


@faults("index_select")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield _RANGE, draw(3, 5), draw.places([0, 5]), 1
    yield _NEGATIVE, draw(3, 5), draw.places([0, -1]), 1


@faults("index_fill_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield _RANGE, draw(3, 5), draw.places([0, 5]), draw.of(1), 1


@faults("embedding")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield _RANGE, draw(6, 3), draw.places([0, 6]), -1, False, False
    yield _NEGATIVE, draw(6, 3), draw.places([0, -1]), -1, False, False


@faults("bag_sums")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield _RANGE, draw(6, 3), draw.places([0, 6]), draw.places([0, 1]), None, 2, False


@faults("take")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield _RANGE, draw(3, 5), draw.places([0, 15])
    yield _RANGE, draw(3, 5), draw.places([-16, 0])


@faults("put_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield _RANGE, draw(3, 5), draw.places([0, 15]), draw(2), False


@faults("scatter_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield _RANGE, draw(3, 5), draw.places([[0, 5], [0, 0]]), draw(2, 2), 1, ""
    yield _NEGATIVE, draw(3, 5), draw.places([[0, -1], [0, 0]]), draw(2, 2), 1, "add"


@faults("index_add_", "index_copy_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield _RANGE, draw(3, 5), draw.places([0, 5]), draw(3, 2), 1


@faults("index")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield _RANGE, draw(3, 5), [draw.places([0, 3])]
    yield _RANGE, draw(3, 5), [None, draw.places([-6, 0])]


@faults("index_put_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield _RANGE, draw(3, 5), [draw.places([0, 3])], draw(2, 5), False


@faults("masked_scatter_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield "a source too short", draw(3, 5), Operand(np.ones((3, 5), bool), bool_), draw(4)


# ---------------------------------------------------------------- definitions


def _at_least_1d(*arrays: Any) -> list[Any]:
    return [np.array(np.atleast_1d(each)) for each in arrays]


_COMBINE: Any = {"": None, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@definition("scatter_")
def _scatter(a: Any, index: Any, src: Any, dim: int, reduce: str) -> Any:
    result, at, given = _at_least_1d(a, index, src)
    combine = _COMBINE[reduce]
    for place in np.ndindex(at.shape):
        to = (*place[:dim], at[place], *place[dim + 1 :])
        if at[place] < 0:
            raise IndexError(f"index {at[place]} is out of range")
        result[to] = given[place] if combine is None else combine(result[to], given[place])
    return result.reshape(a.shape)


@definition("index_add_")
def _index_add(a: Any, index: Any, source: Any, dim: int) -> Any:
    result, given = _at_least_1d(a, source)
    np.add.at(np.moveaxis(result, dim, 0), index.reshape(-1), np.moveaxis(given, dim, 0))
    return result.reshape(a.shape)


@definition("index_copy_")
def _index_copy(a: Any, index: Any, source: Any, dim: int) -> Any:
    result, given = _at_least_1d(a, source)
    for place, to in enumerate(index.reshape(-1)):
        np.moveaxis(result, dim, 0)[to] = np.moveaxis(given, dim, 0)[place]
    return result.reshape(a.shape)


@definition("index_fill_")
def _index_fill(a: Any, index: Any, value: Any, dim: int) -> Any:
    (result,) = _at_least_1d(a)
    np.moveaxis(result, dim, 0)[index.reshape(-1)] = value
    return result.reshape(a.shape)


@definition("put_")
def _put(a: Any, index: Any, source: Any, accumulate: bool) -> Any:
    result = np.array(a)
    flat = result.reshape(-1)
    for to, value in zip(index.reshape(-1), source.reshape(-1), strict=True):
        flat[to] = flat[to] + value if accumulate else value
    return flat.reshape(a.shape)


@definition("masked_fill_")
def _masked_fill(a: Any, mask: Any, value: Any) -> Any:
    return np.where(mask, value, a)


@definition("masked_scatter_")
def _masked_scatter(a: Any, mask: Any, source: Any) -> Any:
    result = np.array(a)
    result[mask] = source.reshape(-1)[: int(mask.sum())]
    return result


def _places(indices: list[Any]) -> tuple[Any, ...]:
    return tuple(slice(None) if each is None else each for each in indices)


@definition("index")
def _index(a: Any, indices: list[Any]) -> Any:
    return a[_places(indices)]


@definition("index_put_")
def _index_put(a: Any, indices: list[Any], value: Any, accumulate: bool) -> Any:
    result = np.array(a)
    if accumulate:
        np.add.at(result, _places(indices), value)
    else:
        result[_places(indices)] = value
    return result
