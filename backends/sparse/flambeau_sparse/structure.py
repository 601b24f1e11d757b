"""Kernels that make sparse tensors, look inside, and convert them."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.backend import ArgumentError, Kernel, MissingKernelError, ShapeError, Tensor, int64, sparse_coo

from . import native
from .coordinates import Coordinates, array_of, coordinates, narrow, replace, sparse, tensor_of, wide, zeros

__all__ = ["KERNELS", "add_into", "coalesced", "numbered", "to_dense"]


def coalesced(tensor: Tensor) -> Tensor:
    """The tensor with sorted places, each named once; itself if it is so."""
    held = coordinates(tensor)
    if held.coalesced:
        return tensor
    indices = array_of(held.indices)
    numbers = native.places(indices, tuple(tensor.shape[: len(indices)]))
    ordered = native.order(numbers)
    starts = native.runs(numbers, ordered)
    firsts = indices[:, ordered[starts[:-1]]]
    sums = narrow(native.sum_runs(wide(held.values), ordered, starts), tensor.key)
    return sparse(sums, tensor_of(firsts, tensor.key, int64), tensor.shape, True)


def numbered(tensor: Tensor) -> np.ndarray[Any, Any]:
    """The places of a tensor as numbers, which rise if it is coalesced."""
    indices = array_of(coordinates(tensor).indices)
    return native.places(indices, tuple(tensor.shape[: len(indices)]))


def add_into(out: Tensor, tensor: Tensor) -> None:
    """Add a sparse tensor to a row-major dense one of its shape, of the dtype that kernels compute in.

    A place that is named several times is summed before, as in the sum with ``tensor.to_dense()``.
    """
    tensor = coalesced(tensor)
    native.scatter(array_of(out), numbered(tensor), wide(coordinates(tensor).values))


def to_dense(tensor: Tensor) -> Tensor:
    out = zeros(tensor.shape, tensor.key)
    native.scatter(array_of(out), numbered(tensor), wide(coordinates(tensor).values))
    return narrow(out, tensor.key)


def lookup(tensor: Tensor, indices: Tensor) -> Tensor:
    held = coordinates(coalesced(tensor))
    count = held.indices.shape[0]
    if indices.shape[0] != count:
        raise ShapeError(
            f"Expected sparse tensors of one sparse_dim, got {count} and {indices.shape[0]} for shape {list(tensor.shape)}."
            "\nConvert one with x.to_dense()."
        )
    numbers = native.places(array_of(held.indices), tuple(tensor.shape[:count]))
    found = native.find(numbers, native.places(array_of(indices), tuple(tensor.shape[:count])))
    values = array_of(held.values)
    out = np.zeros((found.size, *values.shape[1:]), values.dtype)
    out[found >= 0] = values[found[found >= 0]]
    return tensor_of(out, tensor.key)


# ---------------------------------------------------------------- copies


def clone(tensor: Tensor) -> Tensor:
    held = coordinates(tensor)
    return sparse(held.values.clone(), held.indices.clone(), tensor.shape, held.coalesced)


def cast(tensor: Tensor, dtype: Any) -> Tensor:
    held = coordinates(tensor)
    return sparse(held.values.to(dtype), held.indices.clone(), tensor.shape, held.coalesced)


def copy_(target: Any, source: Any) -> None:
    if target.layout is not sparse_coo:
        target.detach().copy_(to_dense(source))
    elif source.layout is not sparse_coo:
        raise MissingKernelError(
            f'"copy_" not implemented from a dense tensor (shape {list(source.shape)}) into a sparse_coo one.\n'
            "Copy from x.to_sparse(), or into y.to_dense()."
        )
    else:
        replace(target, clone(cast(source, target.dtype)).memory)


def fill_(target: Tensor, value: Tensor) -> None:
    number = value.item()
    if number != 0:
        raise ArgumentError(
            f"fill_: a sparse_coo tensor can only be filled with zeros, got {number}.\nFill x.to_dense() instead."
        )
    held = coordinates(target)
    replace(target, Coordinates(held.indices[:, :0].clone(), held.values[:0].clone()))


KERNELS = {
    "sparse_tensor": Kernel(sparse),
    "sparse_indices": Kernel(lambda self: coordinates(self).indices.detach()),
    "sparse_values": Kernel(lambda self: coordinates(self).values.detach()),
    "is_coalesced": Kernel(lambda self: coordinates(self).coalesced),
    "coalesce": Kernel(coalesced, native.DTYPES),
    "to_dense": Kernel(to_dense, native.DTYPES),
    "sparse_lookup": Kernel(lookup, native.DTYPES),
    "clone": Kernel(clone),
    "cast": Kernel(cast),
    "copy_": Kernel(copy_),
    "fill_": Kernel(fill_),
}
