"""Making a batch of samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from ...dtype import float64
from ...errors import ArgumentTypeError, DeviceError, ShapeError
from ...ops.creation import as_tensor, tensor
from ...ops.joining import stack
from ...tensor import Tensor

__all__ = ["default_collate", "default_convert", "pinned"]


def _rebuilt(kind: type, items: Sequence[Any]) -> Any:
    """A sequence of the same kind with other items."""
    if hasattr(kind, "_fields"):  # a namedtuple
        return kind(*items)
    if kind in (list, tuple):
        return kind(items)
    try:
        return kind(items)
    except TypeError:
        return list(items)


def _mapped(data: Any, change: Callable[[Any], Any]) -> Any:
    """Containers with their leaves changed."""
    if isinstance(data, Mapping):
        changed = {key: _mapped(value, change) for key, value in data.items()}
        try:
            return cast(Any, type(data))(changed)
        except TypeError:
            return changed
    if isinstance(data, (list, tuple)):
        return _rebuilt(type(data), [_mapped(each, change) for each in data])
    return change(data)


def default_convert(data: Any) -> Any:
    """NumPy arrays and numbers inside of containers as tensors; the rest as it is."""

    def convert(leaf: Any) -> Any:
        numeric = isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype.kind in "biufc"
        return as_tensor(leaf) if numeric else leaf

    return _mapped(data, convert)


def default_collate(batch: Sequence[Any]) -> Any:
    """One sample of batches from a batch of samples.

    Tensors and arrays are stacked, numbers become a tensor (Python floats float64), mappings, tuples and
    lists are collated item by item, text stays a list.

    Raises:
        RuntimeError: samples have different sizes.
        TypeError: something can be none of these.

    >>> import flambeau
    >>> flambeau.utils.data.default_collate([(1, "a"), (2, "b")])
    [tensor([1, 2]), ('a', 'b')]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(list(batch), 0)
    if isinstance(first, (np.ndarray, np.generic)) and first.dtype.kind in "biufc":
        return stack([as_tensor(each) for each in batch], 0)
    if isinstance(first, float):
        return tensor(list(batch), dtype=float64)
    if isinstance(first, (bool, int, complex)):
        return tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        collated = {key: default_collate([each[key] for each in batch]) for key in first}
        try:
            return cast(Any, type(first))(collated)
        except TypeError:
            return collated
    if isinstance(first, Sequence):
        sizes = {len(each) for each in batch}
        if len(sizes) > 1:
            raise ShapeError(f"each element in list of batch should be of equal size, got sizes {sorted(sizes)}.")
        columns = [default_collate(column) for column in zip(*batch, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise ArgumentTypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {type(first)}.\nPass collate_fn."
    )


def pinned(data: Any) -> Any:
    """Containers with their tensors in pinned memory."""

    def pin(leaf: Any) -> Any:
        return leaf.pin_memory() if hasattr(leaf, "pin_memory") else leaf

    return _mapped(data, pin)


def can_pin() -> bool:
    """Whether some device offers pinned memory."""
    try:
        cast(Any, tensor(0.0)).pin_memory()
    except DeviceError:
        return False
    return True
