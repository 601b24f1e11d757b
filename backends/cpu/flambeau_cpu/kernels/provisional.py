"""Kernels on NumPy, until each family has its C file."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from flambeau.backend import Kernel, Tensor, bfloat16, contiguous, from_bfloat16, make, to_bfloat16


def array(tensor: Tensor) -> np.ndarray[Any, Any]:
    key, geometry = tensor.key, tensor.geometry
    flat = key.memory.to_numpy(tensor.memory, max(geometry.span, 1), key.dtype)[: geometry.span]
    step = key.dtype.itemsize
    return np.lib.stride_tricks.as_strided(flat, geometry.shape, [each * step for each in geometry.strides])


def read(tensor: Tensor) -> np.ndarray[Any, Any]:
    return from_bfloat16(array(tensor)) if tensor.key.dtype is bfloat16 else array(tensor)


def wrap(key: Any, values: Any) -> Tensor:
    values = np.asarray(values)
    with np.errstate(all="ignore"):
        values = to_bfloat16(values.astype(np.float32)) if key.dtype is bfloat16 else values.astype(key.dtype.numpy)
    values = np.array(values, order="C")
    return make(key, contiguous(values.shape), key.memory.from_numpy(values.reshape(-1), key.device, key.dtype))


def copy_(target: Tensor, source: Tensor) -> None:
    values = read(source)
    with np.errstate(all="ignore"):
        array(target)[...] = to_bfloat16(values) if target.key.dtype is bfloat16 else values


def clone(a: Tensor) -> Tensor:
    result = make(a.key, a.geometry if a.geometry.dense else contiguous(a.shape), a.key.allocate(a.geometry.numel))
    if a.geometry.numel:
        copy_(result, a)
    return result


KERNELS: Final[dict[str, Any]] = {
    "copy_": Kernel(copy_),
    "fill_": Kernel(copy_),
    "clone": Kernel(clone),
    "cast": Kernel(lambda a, dtype: wrap(a.key.of(dtype), read(a))),
    "sum": Kernel(lambda a, dims, keepdim, dtype: wrap(a.key.of(dtype), np.sum(read(a), axis=dims, keepdims=keepdim, dtype=dtype.numpy))),
}
