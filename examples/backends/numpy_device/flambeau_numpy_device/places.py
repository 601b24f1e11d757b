"""Elements chosen, moved and put together; products of matrices."""

import numpy as np

from flambeau.backend import BoundsError, int64, returning, writing

from .dtypes import ALL, NUMBERS


def _checked(index, size, wrap=False):
    """An index, each element of which is one of ``size`` places."""
    low = -size if wrap else 0
    if index.size and (index.min() < low or index.max() >= size):
        raise BoundsError(
            f"An index is out of range: expected {low} to {size - 1}, got {index.min()} to {index.max()}."
        )
    return index


def _index_select(x, index, dim):
    if not x.ndim:
        return np.take(x, _checked(index, 1).reshape(-1)[:1]).reshape(())
    return np.take(x, _checked(index, x.shape[dim]).reshape(-1), dim)


def _gather(x, index, dim):
    if not x.ndim:
        return np.take(x, _checked(index, 1))
    _checked(index, x.shape[dim])
    corner = x[tuple(slice(None if at == dim else size) for at, size in enumerate(index.shape))]
    return np.take_along_axis(corner, index, dim)


#: how what is scattered is put together with what was there; otherwise the last counts
COMBINE = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scatter(x, index, source, dim, reduce):
    result = np.array(x)
    flat = result.reshape(1) if not x.ndim else result
    index, source = (index.reshape(-1), source.reshape(-1)) if not x.ndim else (index, source)
    _checked(index, flat.shape[dim])
    corner = source[tuple(map(slice, index.shape))]
    places = list(np.indices(index.shape, sparse=True))
    places[dim] = index
    if reduce in COMBINE:
        COMBINE[reduce].at(flat, tuple(places), corner)
    else:
        flat[tuple(places)] = corner
    return result


def _index_add(x, index, source, dim):
    result = np.array(x)
    if not x.ndim:
        _checked(index, 1)
        return result + source.sum(dtype=x.dtype)
    np.add.at(np.moveaxis(result, dim, 0), _checked(index, x.shape[dim]).reshape(-1), np.moveaxis(source, dim, 0))
    return result


def _take(x, index):
    return np.take(x.reshape(-1), _checked(index, x.size, wrap=True))


def _nonzero(x):
    return np.argwhere(x) if x.ndim else np.empty((int(x != 0), 0))


KERNELS = {
    "where": returning(lambda x, other, condition: np.where(condition, x, other), ALL),
    "copy_": writing(lambda x, source: source.astype(x.dtype), ALL),
    "fill_": writing(lambda x, value: value, ALL),
    "clone": returning(np.array, ALL),
    "cast": returning(
        lambda x, dtype: x.astype(dtype.numpy),
        ALL,
        result=lambda x, dtype: dtype,
        predicate=lambda x, dtype: dtype in ALL,
    ),
    "cat": returning(np.concatenate, ALL),
    "flip": returning(np.flip, ALL),
    "gather": returning(_gather, ALL),
    "index_select": returning(_index_select, ALL),
    "index_add_": writing(_index_add, ALL),
    "scatter_": writing(_scatter, ALL),
    "take": returning(_take, ALL),
    "masked_select": returning(lambda x, mask: x[mask], ALL),
    "masked_fill_": writing(lambda x, mask, value: np.where(mask, value, x), ALL),
    "nonzero": returning(_nonzero, ALL, result=int64),
    "mm": returning(np.matmul, NUMBERS),
    "bmm": returning(np.matmul, NUMBERS),
}
