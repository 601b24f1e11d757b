"""Dimensions folded, scanned and sorted."""

import numpy as np

from flambeau.backend import int64, returning

from .dtypes import ALL, FLOATS, NUMBERS


def _total(fold):
    """Numbers with a point are folded in double precision: many small terms get lost in single."""

    def run(x, dims, keepdim, wanted):
        return fold(x, axis=dims, keepdims=keepdim, dtype=np.float64 if wanted in FLOATS else wanted.numpy)

    return run


def _over(fold):
    return lambda x, dims, keepdim: fold(x, axis=dims, keepdims=keepdim)


def _moment(fold):
    return lambda x, dims, keepdim, correction: fold(x, axis=dims, keepdims=keepdim, ddof=correction, dtype=np.float64)


def _place(extreme):
    return lambda x, dim, keepdim: extreme(x, axis=dim, keepdims=keepdim)


def _extreme_at(extreme):
    """The extreme of each line, and where the first of them is."""

    def run(x, dim, keepdim):
        if not x.ndim:
            return x, np.int64(0)
        where = extreme(x, axis=dim, keepdims=True)
        found = np.take_along_axis(x, where, dim), where
        return found if keepdim else tuple([each.squeeze(dim) for each in found])

    return run


def _running(scan):
    def run(x, dim):
        return scan(x, axis=dim, dtype=np.float64 if x.dtype.kind == "f" else x.dtype) if x.ndim else x

    return run


def _order(x, dim, descending):
    """A stable order; NaN is the largest."""
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    return np.flip(x.shape[dim] - 1 - np.argsort(np.flip(x, dim), axis=dim, kind="stable"), dim)


def _sort(x, dim, descending):
    if not x.ndim:
        return x, np.int64(0)
    order = _order(x, dim, descending)
    return np.take_along_axis(x, order, dim), order


def _topk(x, k, dim, largest):
    found = _sort(x, dim, largest)
    return tuple([np.take(each, range(k), dim) for each in found]) if x.ndim else found


def _wanted(x, dims, keepdim, wanted):
    return wanted


KERNELS = {
    "sum": returning(_total(np.sum), ALL, result=_wanted),
    "prod": returning(_total(np.prod), ALL, result=_wanted),
    "amax": returning(_over(np.max), ALL),
    "amin": returning(_over(np.min), ALL),
    "var": returning(_moment(np.var), FLOATS),
    "std": returning(_moment(np.std), FLOATS),
    "argmax": returning(_place(np.argmax), NUMBERS, result=int64),
    "argmin": returning(_place(np.argmin), NUMBERS, result=int64),
    "max_over": returning(_extreme_at(np.argmax), ALL, result=(None, int64)),
    "min_over": returning(_extreme_at(np.argmin), ALL, result=(None, int64)),
    "cumsum": returning(_running(np.cumsum), NUMBERS),
    "cumprod": returning(_running(np.cumprod), NUMBERS),
    "sort": returning(_sort, ALL, result=(None, int64)),
    "topk": returning(_topk, NUMBERS, result=(None, int64)),
}
