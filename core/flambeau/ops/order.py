"""Sorting, selecting and counting distinct values."""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any, cast

import numpy as np

from ..dispatch.operator import composite, primitive
from ..dispatch.pointwise import finish_out, finish_outs
from ..dtype import bool_, int64
from ..errors import ArgumentTypeError, DtypeError, MissingKernelError, ShapeError, shown
from ..geometry import axis
from ..tensor import Tensor
from .extrema import place_back
from .reduction import require_elements

__all__ = ["argsort", "histc", "kthvalue", "median", "mode", "msort", "nanmedian", "sort", "topk", "unique"]


def _pair(name: str) -> Any:
    return namedtuple(name, "values indices")


def _taken(grad: Any, self_shape: Any, dim: int, others: Any) -> Any:
    return place_back(grad, self_shape, dim, True, others[0])


def _selected(grad: Any, self_shape: Any, dim: int, keepdim: bool, others: Any) -> Any:
    return place_back(grad, self_shape, dim, keepdim, others[0])


# ---------------------------------------------------------------- sorting

_Sort = _pair("sort")


@primitive("self | dim descending")
def sort(self: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = None, *, out: Any = None) -> Any:
    """Sort along a dimension; the result is a pair (values, indices).

    NaN counts as larger than any number.  The order is always stable.

    Args:
        dim: the dimension.
        descending: largest first.
        stable: accepted and ignored.
        out: a pair that receives the result.

    Raises:
        IndexError: there is no such dimension.
    """
    if out is not None:
        return finish_outs("sort", out, (self,), lambda: sort(self, dim, descending))
    if isinstance(dim, bool):  # sort(descending) and sort(stable=...) of old and new code
        descending, dim = dim, -1
    return _Sort(*sort.run(self, axis(dim, self.geometry.ndim), bool(descending)))


sort.gradient(self=_taken)


def _numpy_order(a: Any, dim: int, descending: bool) -> Any:
    if not a.ndim:
        return np.zeros((), np.int64)
    keys = np.argsort(a, axis=dim, kind="stable")
    if descending:  # stable: the reverse of the stable order of the reversed line
        keys = np.flip(a.shape[dim] - 1 - np.argsort(np.flip(a, dim), axis=dim, kind="stable"), dim)
    return keys


def _numpy_sort(a: Any, dim: int, descending: bool) -> Any:
    order = _numpy_order(a, dim, descending)
    return (np.take_along_axis(a, order, dim) if a.ndim else a), order


sort.reference(_numpy_sort)


@composite
def argsort(self: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = None) -> Tensor:
    """The indices that sort along a dimension; arguments as of :func:`sort`."""
    return cast(Tensor, sort(cast(Any, self).detach(), dim, descending)[1])


@composite
def msort(self: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The values sorted along the first dimension."""
    if out is not None:
        return finish_out("msort", out, (self,), lambda: cast(Tensor, msort(self)))
    return cast(Tensor, sort(self, 0)[0])


_Topk = _pair("topk")


@primitive("self | k dim largest")
def topk(self: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, out: Any = None) -> Any:
    """The k largest (or least) elements along a dimension, as a pair (values, indices).

    Of equal elements the first come first; NaN counts as larger than any number.

    Args:
        k: how many.
        dim: the dimension.
        largest: the largest, else the least.
        sorted: accepted; the result always is.
        out: a pair that receives the result.

    Raises:
        RuntimeError: ``k`` is negative or more than there are, or the tensor is bool.
    """
    if out is not None:
        return finish_outs("topk", out, (self,), lambda: topk(self, k, dim, largest))
    dim = axis(dim, self.geometry.ndim)
    size = self.geometry.shape[dim] if self.geometry.ndim else 1
    if isinstance(k, Tensor):
        k = int(cast(Any, k).item())
    if not 0 <= k <= size:
        raise ShapeError(f"topk(): selected index k out of range: expected 0 to {size} (dimension {dim}), got {k}.")
    if self.key.dtype is bool_:
        raise DtypeError("topk does not support bool dtypes.\nConvert with x.byte().")
    return _Topk(*topk.run(self, k, dim, bool(largest)))


topk.gradient(self=_taken)


def _numpy_topk(a: Any, k: int, dim: int, largest: bool) -> Any:
    if not a.ndim:
        return (a, np.zeros((), np.int64)) if k else (np.empty(0, a.dtype), np.empty(0, np.int64))
    order = np.take(_numpy_order(a, dim, largest), range(k), axis=dim)
    return np.take_along_axis(a, order, dim), order


topk.reference(_numpy_topk)


# ---------------------------------------------------------------- selecting one


def _no_bool(name: str, self: Tensor) -> None:
    if self.key.dtype is bool_:
        raise MissingKernelError(f'"{name}" not implemented for bool.\nConvert with x.byte().')


_Kthvalue = _pair("kthvalue")


@primitive("self | k dim keepdim")
def kthvalue(self: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The k-th least element along a dimension, as a pair (values, indices); NaN counts as larger than any number.

    Args:
        k: from 1.
        dim: the dimension.
        keepdim: keep it with size 1.
        out: a pair that receives the result.

    Raises:
        RuntimeError: ``k`` is not from 1 to the dimension's size.
        IndexError: the dimension has size 0.
    """
    if out is not None:
        return finish_outs("kthvalue", out, (self,), lambda: kthvalue(self, k, dim, keepdim))
    dim = axis(dim, self.geometry.ndim)
    if self.geometry.ndim:
        require_elements("kthvalue", self, (dim,))
    size = self.geometry.shape[dim] if self.geometry.ndim else 1
    if not 1 <= k <= size:
        raise ShapeError(
            f"kthvalue(): selected number k out of range for dimension {dim}: expected 1 to {size}, got {k}."
        )
    _no_bool("kthvalue", self)
    return _Kthvalue(*kthvalue.run(self, k, dim, keepdim))


kthvalue.gradient(self=_selected)


def _median(name: str, ignore_nan: bool, nan_rule: str) -> Any:
    pair = _pair(name)

    def over(self: Tensor, dim: int, keepdim: bool = False) -> Any:
        """The median over one dimension."""
        dim = axis(dim, self.geometry.ndim)
        if self.geometry.ndim:
            require_elements(name, self, (dim,))
        _no_bool(name, self)
        return pair(*declared.run(self, dim, keepdim))

    declared = primitive("self | dim keepdim", name=f"{name}_over", method=False, namespaces=())(over)
    declared.gradient(self=_selected)

    def public(self: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
        if dim is not None:
            if out is not None:
                return finish_outs(name, out, (self,), lambda: over(self, dim, keepdim))
            return over(self, dim, keepdim)
        if out is not None:
            return finish_out(name, out, (self,), lambda: cast(Tensor, public(self)))
        if not self.geometry.numel:
            nothing = math.nan if self.key.dtype.category >= 2 else -(1 << 63) if self.key.dtype is int64 else 0
            return cast(Any, self).new_full((), nothing)
        return over(cast(Any, self).reshape(-1), 0)[0]

    public.__name__ = public.__qualname__ = name
    public.__doc__ = f"""The median: of all elements, or over one dimension as a pair (values, indices).

    Of an even number of elements it is the lower of the two in the middle.  {nan_rule}

    Args:
        dim: a dimension; all elements if not given.
        keepdim: keep it with size 1.
        out: receives the result.

    Raises:
        IndexError: the dimension has size 0 or does not exist.
    """
    return composite(public), declared


median, median_over = _median("median", False, "NaN if there is one.")
nanmedian, nanmedian_over = _median("nanmedian", True, "NaN is left out; NaN if there is nothing else.")

_Mode = _pair("mode")


@primitive("self | dim keepdim")
def mode(self: Tensor, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The most frequent element along a dimension and the last place of it, as a pair (values, indices).

    Of equally frequent elements it is the least.

    Args:
        dim: the dimension.
        keepdim: keep it with size 1.
        out: a pair that receives the result.

    Raises:
        IndexError: the dimension has size 0 or does not exist.
    """
    if out is not None:
        return finish_outs("mode", out, (self,), lambda: mode(self, dim, keepdim))
    dim = axis(dim, self.geometry.ndim)
    if self.geometry.ndim:
        require_elements("mode", self, (dim,))
    return _Mode(*mode.run(self, dim, keepdim))


mode.gradient(self=_selected)


# ---------------------------------------------------------------- distinct values


@primitive("self | inverse counts", name="unique_of_all", method=False, namespaces=())
def _unique_of_all(self: Tensor, inverse: bool, counts: bool) -> Any:
    """Distinct values of a vector in ascending order, the inverse map and the counts (None if not asked for)."""
    return _unique_of_all.run(self, inverse, counts)


_unique_of_all.nondifferentiable()


@composite
def unique(
    self: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements in ascending order, or the distinct slices along a dimension.

    Every NaN is distinct, as NaN equals nothing.

    Args:
        sorted: accepted; the result always is.
        return_inverse: also return, for each element (or slice), its place in the result.
        return_counts: also return how often each occurs.
        dim: compare slices along it; single elements if not given.

    Returns:
        The distinct values, or a tuple of them with what else was asked for, in the order above.
    """
    x = cast(Any, self).detach()
    if dim is None:
        values, inverse, counts = _unique_of_all.run(x.reshape(-1), return_inverse, return_counts)
        inverse = inverse.reshape(self.shape) if return_inverse else None
    else:
        values, inverse, counts = _unique_slices(x, axis(dim, self.geometry.ndim))
    extra = [each for each, wanted in ((inverse, return_inverse), (counts, return_counts)) if wanted]
    return (values, *extra) if extra else values


def _unique_slices(x: Any, dim: int) -> tuple[Any, Any, Any]:
    if not x.ndim:
        values, inverse, counts = _unique_of_all.run(x.reshape(-1), True, True)
        return values.reshape(()), inverse.reshape(()), counts
    size = x.shape[dim]
    rows = x.movedim(dim, 0).reshape(size, -1) if x.numel() else x.new_zeros((size, 0))
    # Rank by the first element, then refine the ranks element by element.
    ranks = x.new_zeros((size,), dtype=int64)
    for column in range(rows.shape[1]):
        here = _unique_of_all.run(rows.select(1, column).contiguous(), True, False)[1]
        ranks = _unique_of_all.run(ranks * (size + 1) + here, True, False)[1]
    found, inverse, counts = _unique_of_all.run(ranks, True, True)
    first = found.new_zeros(found.shape)
    first.scatter_(0, inverse, _positions(inverse))
    return x.index_select(dim, first), inverse, counts


def _positions(beside: Any) -> Any:
    return beside.new_ones(beside.shape).cumsum(0) - 1


@composite
def histc(self: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None) -> Tensor:
    """How many elements fall into each of ``bins`` equal parts of a range; others and NaN are not counted.

    Args:
        bins: number of parts.
        min, max: the range; the least and largest element if both are equal.
        out: receives the result, of the tensor's dtype.

    Raises:
        RuntimeError: there are no bins, or the range is empty or not finite.
    """
    if out is not None:
        return finish_out("histc", out, (self,), lambda: cast(Tensor, histc(self, bins, min, max)))
    if self.key.dtype.category != 2:
        raise MissingKernelError(f'"histc" not implemented for {self.key.dtype.name}.\nConvert with x.float().')
    if isinstance(bins, bool) or not isinstance(bins, int):
        raise ArgumentTypeError(f"histc(): bins must be an int, got {type(bins).__name__} {shown(bins)}.")
    if bins <= 0:
        raise ShapeError(f"histc(): bins must be > 0, but got {bins}.")
    x = cast(Any, self).detach().reshape(-1)
    low, high = float(min), float(max)
    if low == high and x.numel():
        low, high = float(x.amin()), float(x.amax())
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ShapeError(f"histc(): range of [{low}, {high}] is not finite.")
    if low > high:
        raise ShapeError(f"histc(): max must be larger than min, got min={low} and max={high}.")
    inside = x.masked_select((x >= low) & (x <= high))
    place = ((inside - low) * bins / (high - low)).long().clamp(max=bins - 1)
    return cast(Tensor, x.new_zeros((bins,)).scatter_add(0, place, inside.new_ones(inside.shape)))
