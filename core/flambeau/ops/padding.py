"""Padding: more elements around a tensor's dimensions, constant or taken from the tensor itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import numpy as np

from ..dispatch.operator import composite, primitive
from ..dtype import int64
from ..errors import ArgumentTypeError, MissingKernelError, ShapeError, shown
from ..geometry import contiguous
from ..tensor import Tensor, make

__all__ = ["constant_pad_nd", "index_tensor", "pad"]


def index_tensor(beside: Tensor, values: np.ndarray[Any, Any]) -> Tensor:
    """Indices that were computed here, as an int64 tensor on the device of another one."""
    key = beside.key.of(int64)
    flat = np.ascontiguousarray(values, np.int64)
    return make(key, contiguous(flat.shape), key.memory.from_numpy(flat.reshape(-1), key.device, int64))


def _check_sizes(name: str, shape: Sequence[int], pads: Sequence[int]) -> list[int]:
    """The size of every dimension with its padding; pads come in pairs, last dimension first."""
    size = list(shape)
    for i in range(len(pads) // 2):
        dim = len(shape) - 1 - i
        size[dim] += pads[2 * i] + pads[2 * i + 1]
        if size[dim] < 0:
            raise ShapeError(
                f"{name}: the input size {shape[dim]}, plus negative padding {pads[2 * i]} and "
                f"{pads[2 * i + 1]} resulted in a "
                f"negative output size, which is invalid. Check dimension {dim} of your input."
            )
    return size


@primitive("self | pad value", method=False)
def constant_pad_nd(self: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """Extend dimensions by a constant, or cut them where the padding is negative.

    Args:
        pad: elements before and after the last dimension, then the one before it, and so on.
        value: the constant.

    Raises:
        RuntimeError: the padding is odd in number, names too many dimensions, or cuts more than there is.
    """
    pads = tuple(pad)
    if len(pads) % 2 or len(pads) > 2 * self.ndim:
        raise ShapeError(
            "constant_pad_nd: padding length must be divisible by 2 and at most twice the input's dimensions "
            f"({self.ndim}), "
            f"got {len(pads)}: {list(pads)}."
        )
    _check_sizes("constant_pad_nd", self.shape, pads)
    return cast(Tensor, constant_pad_nd.run(self, pads, value))


constant_pad_nd.gradient(self=lambda grad, pad: constant_pad_nd(grad, tuple(-each for each in pad), 0))


@constant_pad_nd.composite
def _constant_pad_nd(self: Any, pad: Sequence[int], value: float) -> Any:
    size = _check_sizes("constant_pad_nd", self.shape, pad)
    result = self.new_full(size, value)
    target = result
    for i in range(len(pad) // 2):
        dim = self.ndim - 1 - i
        before, after = pad[2 * i], pad[2 * i + 1]
        first = max(-before, 0)
        length = self.shape[dim] - first - max(-after, 0)
        if length <= 0:
            return result
        self = self.narrow(dim, first, length)
        target = target.narrow(dim, max(before, 0), length)
    target.copy_(self)
    return result


@constant_pad_nd.reference
def _(a: Any, pad: Sequence[int], value: float) -> Any:
    widths = [(0, 0)] * a.ndim
    for i in range(len(pad) // 2):
        before, after = pad[2 * i], pad[2 * i + 1]
        kept = slice(max(-before, 0), a.shape[-1 - i] - max(-after, 0))
        at: tuple[Any, ...] = (Ellipsis, kept, *(slice(None) for _ in range(i)))
        a = a[at]
        widths[-1 - i] = (max(before, 0), max(after, 0))
    return np.pad(a, widths, constant_values=value)


# ---------------------------------------------------------------- from the tensor itself


def _reflected(length: int, before: int, after: int) -> np.ndarray[Any, Any]:
    at = np.abs(np.arange(-before, length + after))
    return np.where(at >= length, 2 * (length - 1) - at, at)


def _replicated(length: int, before: int, after: int) -> np.ndarray[Any, Any]:
    return np.clip(np.arange(-before, length + after), 0, length - 1)


def _circular(length: int, before: int, after: int) -> np.ndarray[Any, Any]:
    kept = np.arange(max(-before, 0), length - max(-after, 0))  # what is cut is not wrapped around
    return kept[np.arange(-max(before, 0), len(kept) + max(after, 0)) % len(kept)]


#: For each mode: the source of each position, and by how much the padding may exceed the length.
_MODES: Final[dict[str, tuple[Callable[[int, int, int], np.ndarray[Any, Any]], int | None]]] = {
    "reflect": (_reflected, -1),
    "replicate": (_replicated, None),
    "circular": (_circular, 0),
}


@composite(namespaces="nn.functional", method=False)
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Extend dimensions, or cut them where the padding is negative.

    Args:
        pad: elements before and after the last dimension, then the one before it, and so on.
        mode: ``"constant"``, or where the new elements come from: ``"reflect"`` (mirrored at the border element),
            ``"replicate"`` (the border element), ``"circular"`` (the other end).  All but the constant pad the last
            one to three dimensions of a tensor with at least one more.
        value: the constant; 0 if not given.

    Raises:
        RuntimeError: the padding is odd in number, too long, or cuts more than there is.
        NotImplementedError: the mode is unknown, or does not pad these dimensions.
    """
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(f"pad(): input must be a Tensor, got {type(input).__name__}.")
    pads = tuple(int(each) for each in pad)
    if len(pads) % 2 or len(pads) > 2 * input.ndim:
        raise ShapeError(
            f"pad: padding length must be divisible by 2 and at most twice the input's dimensions ({input.ndim}), "
            f"got {len(pads)}: {list(pads)}."
        )
    if mode == "constant":
        return constant_pad_nd(input, pads, 0 if value is None else value)  # type: ignore[no-any-return]
    if mode not in _MODES:
        raise MissingKernelError(
            f"pad: unrecognised padding mode {shown(mode)}; it is 'constant', {', '.join(map(repr, _MODES))}."
        )
    if value is not None and value != 0:
        raise ShapeError(f"pad: padding mode {shown(mode)} doesn't take in value argument, got {value}.")
    dims = len(pads) // 2
    if not 1 <= dims <= 3 or input.ndim not in (dims + 1, dims + 2):
        raise MissingKernelError(
            f"pad: mode {shown(mode)} pads the last 1, 2 or 3 dimensions of a tensor with one or two more, got "
            f"{len(pads)} numbers for "
            f"input {list(input.shape)}."
        )
    if not all(input.shape[-dims - 1 :]) and not (mode == "circular" and all(input.shape[-dims:])):
        raise ShapeError(
            f"pad: expected an input whose dimensions besides the batch are not empty, got {list(input.shape)}."
        )
    sources, excess = _MODES[mode]
    if any(each < 1 for each in _check_sizes("pad", input.shape, pads)[-dims:]):
        raise ShapeError(f"pad: the result would be empty, input {list(input.shape)} with padding {list(pads)}.")
    result: Any = input
    for i in range(dims):
        dim = input.ndim - 1 - i
        length, before, after = input.shape[dim], pads[2 * i], pads[2 * i + 1]
        if excess is not None and max(before, after) > length + excess:
            limit = (
                "less than the corresponding input dimension"
                if excess
                else "at most the input dimension (one wrap around)"
            )
            raise ShapeError(
                f"pad: padding size should be {limit}, but got: padding ({before}, {after}) at dimension {dim} "
                "of input "
                f"{list(input.shape)}."
            )
        if before or after:
            result = result.index_select(dim, index_tensor(input, sources(length, before, after)))
    return cast(Tensor, result.clone() if result is input else result)
