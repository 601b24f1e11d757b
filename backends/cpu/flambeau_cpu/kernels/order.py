"""Launchers of order.c and unique.c."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flambeau.backend import AllocationError, Key, ShapeError, Tensor, contiguous, int64, make

from ..lines import Routine, call, dense, fresh, line_block, parameters, run


def _checked(code: int) -> None:
    if code == 2:
        raise ShapeError("Lines of 2**32 elements and more cannot be sorted.\nSplit the tensor first.")


def _sort(key: Key, kernel: Any) -> Callable[..., Any]:
    index_key = key.of(int64)

    def launch(a: Tensor, dim: int, descending: bool) -> Any:
        shape = a.geometry.shape
        values, indices = fresh(key, shape), fresh(index_key, shape)
        _checked(call(kernel, (values, dense(a), indices), line_block(shape, dim, descending)))
        return values, indices

    return launch


def _topk(key: Key, kernel: Any) -> Callable[..., Any]:
    index_key = key.of(int64)

    def launch(a: Tensor, k: int, dim: int, largest: bool) -> Any:
        shape = a.geometry.shape
        found = (*shape[:dim], k, *shape[dim + 1 :]) if shape else () if k else (0,)
        values, indices = fresh(key, found), fresh(index_key, found)
        if values.geometry.numel:
            _checked(call(kernel, (values, dense(a), indices), line_block(shape, dim, k, largest)))
        return values, indices

    return launch


def _without(shape: tuple[int, ...], dim: int, keepdim: bool) -> tuple[int, ...]:
    return (*shape[:dim], *((1,) if keepdim and shape else ()), *shape[dim + 1 :])


def _select(key: Key, kernel: Any, extra: Callable[..., tuple[int, ...]]) -> Callable[..., Any]:
    index_key = key.of(int64)

    def launch(a: Tensor, *args: Any) -> Any:
        *first, dim, keepdim = args
        shape = a.geometry.shape
        found = _without(shape, dim, keepdim)
        values, indices = fresh(key, found), fresh(index_key, found)
        _checked(call(kernel, (values, dense(a), indices), line_block(shape, dim, *extra(*first))))
        return values, indices

    return launch


def _selecting(extra: Callable[..., tuple[int, ...]]) -> Callable[[Key, Any], Callable[..., Any]]:
    return lambda key, kernel: _select(key, kernel, extra)


def _unique(key: Key, kernel: Any) -> Callable[..., Any]:
    index_key = key.of(int64)

    def launch(a: Tensor, inverse: bool, counts: bool) -> Any:
        size = a.geometry.numel
        values = fresh(key, (size,))
        to = fresh(index_key, (size,)) if inverse else None
        counted = fresh(index_key, (size,)) if counts else None
        found = run(kernel, (values, dense(a), to, counted), parameters((size,)))
        if found < 0:
            raise AllocationError("The host has no memory left for finding distinct values.")
        return _first(values, found), to, None if counted is None else _first(counted, found)

    return launch


def _first(tensor: Tensor, count: int) -> Tensor:
    """The first elements, in memory of their own if that saves much."""
    part: Any = make(tensor.key, contiguous((count,)), tensor.memory)
    return part.clone() if 2 * count < tensor.geometry.numel else part  # type: ignore[no-any-return]


KERNELS: Final[dict[str, Any]] = {
    "sort": Routine("sort", _sort),
    "topk": Routine("topk", _topk),
    "kthvalue": Routine("kthvalue", _selecting(lambda k: (k, 0))),
    "median_over": Routine("kthvalue", _selecting(lambda: (0, 1))),
    "nanmedian_over": Routine("kthvalue", _selecting(lambda: (0, 2))),
    "mode": Routine("mode", _selecting(lambda: ())),
    "unique_of_all": Routine("unique", _unique),
}
