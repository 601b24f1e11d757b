"""Operands as NumPy arrays in a wide type, and how they become tensors on a device.

Values are kept wide (float64 for every floating-point dtype, complex128 for complex ones) but
are always such as their dtype holds exactly, so that a reference computes from the very numbers
that the device was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, cast

import numpy as np

from ..device import device as Device
from ..dtype import bfloat16, bool_, complex64, complex128, dtype as Dtype, float16, float32, float64, int64
from ..geometry import Geometry, Size, contiguous, contiguous_strides, strided
from ..key import intern
from ..layout import strided as strided_layout
from ..ops.conversion import host_array
from ..ops.sparse import sparse_coo_tensor
from ..tensor import Tensor, from_bfloat16, make, to_bfloat16, view

__all__ = [
    "EPSILON",
    "SUBNORMAL",
    "Array",
    "Draw",
    "Operand",
    "bits",
    "narrow",
    "place",
    "placed",
    "read",
    "rounded",
    "widen",
]

Array = np.ndarray[Any, Any]

#: Distance from 1 to the next number of each floating-point dtype.
EPSILON: Final = {
    float16: 2.0**-10, bfloat16: 2.0**-7, float32: 2.0**-23, float64: 2.0**-52, complex64: 2.0**-23, complex128: 2.0**-52,
}  # fmt: skip
#: The smallest positive number of each real one.
SUBNORMAL: Final = {float16: 6e-8, bfloat16: 9.2e-41, float32: 1.4e-45, float64: 5e-324}
#: What lies between the elements of a view: whoever reads it is found out.
_GARBAGE: Final = {"b": True, "u": 93, "i": 93, "f": np.nan, "c": np.nan}


class Operand(NamedTuple):
    """The values of a tensor and its dtype.

    Attributes:
        values: in the wide type.
        dtype: of the tensor.
        places: whether they are places in another tensor.
        sparse: whether the tensor is of the layout sparse_coo.
    """

    values: Array
    dtype: Dtype
    places: bool = False
    sparse: bool = False


def widen(array: Array, dtype: Dtype) -> Array:
    """An array in the memory format of ``dtype`` as numbers of the wide type."""
    if dtype.category < 2:
        return array
    numbers = from_bfloat16(array) if dtype is bfloat16 else array
    wide: Array = numbers.astype(np.complex128 if dtype.is_complex else np.float64)
    return wide


def narrow(values: Any, dtype: Dtype) -> Array:
    """Numbers in the memory format of ``dtype``."""
    with np.errstate(all="ignore"):
        if dtype is bfloat16:
            values = to_bfloat16(np.asarray(values, np.float32)).reshape(np.shape(values))
        return np.array(values, dtype.numpy)


def rounded(values: Any, dtype: Dtype) -> Array:
    """The nearest numbers that ``dtype`` holds."""
    return widen(narrow(values, dtype), dtype)


def read(tensor: Tensor) -> Array:
    """A tensor's values in the wide type, by way of its device's memory alone: no kernel runs, unless it is sparse."""
    if tensor.layout is not strided_layout:
        tensor = cast(Any, tensor).detach().to_dense()
    return np.array(widen(np.array(host_array(tensor)), tensor.dtype))


def bits(tensor: Tensor) -> bytes:
    """A tensor's elements as they lie in memory, or would if it were strided."""
    if tensor.layout is not strided_layout:
        tensor = cast(Any, tensor).detach().to_dense()
    return bytes(np.ascontiguousarray(host_array(tensor)).tobytes())


# ---------------------------------------------------------------- placing


def _buffer(operand: Operand, geometry: Geometry, shift: int, device: Device) -> tuple[Tensor, Tensor]:
    """A view of a larger vector that holds garbage elsewhere, and the vector."""
    key = intern(device, dtype=operand.dtype)
    # An index that is read from a gap must not lead out of the indexed tensor.
    garbage = 0 if operand.places else _GARBAGE[operand.dtype.kind]
    flat = np.array(narrow(np.full(shift + geometry.span + 3, garbage), operand.dtype))
    window = np.lib.stride_tricks.as_strided(
        flat[shift:], geometry.shape, [each * flat.itemsize for each in geometry.strides]
    )
    window[...] = narrow(operand.values, operand.dtype)
    whole = make(key, contiguous(flat.shape), key.memory.from_numpy(flat, device, operand.dtype))
    return view(whole, geometry, shift), whole


def _gapped(shape: Sequence[int]) -> Geometry:
    """Strides that grow from the first dimension to the last, with a gap after each element."""
    strides, step = [], 2
    for size in shape:
        strides.append(step)
        step *= max(size, 1)
    return strided(Size(shape), tuple(strides))


def place(operand: Operand, device: Device, how: str = "contiguous") -> Tensor:
    """A tensor on a device that holds an operand.

    Args:
        operand: what to hold.
        device: where.
        how: ``contiguous``; ``strided``: transposed and with gaps; or ``offset``: contiguous, inside of a longer vector.
            A sparse one is coalesced, or ``uncoalesced``: it names each place twice.
    """
    if operand.sparse:
        return _sparse(operand, device, how == "uncoalesced")
    return placed(operand, device, how)[0]


def _sparse(operand: Operand, device: Device, twice: bool) -> Tensor:
    tensor: Any = place(operand._replace(sparse=False), device).to_sparse()
    if not twice:
        return cast(Tensor, tensor)
    places, values = np.argwhere(operand.values).T, operand.values[operand.values != 0]
    # 2 x and -x, x - 1 and 1, or true and true: sums that are exact, of parts from which other functions give other sums.
    first = values if operand.dtype.kind == "b" else values - 1 if operand.dtype.kind == "u" else 2 * values
    second = values if operand.dtype.kind == "b" else values - first
    parts = np.concatenate([first, second])
    return sparse_coo_tensor(
        place(Operand(np.concatenate([places, places], 1)[:, ::-1], int64), device),
        place(Operand(parts[::-1], operand.dtype), device), operand.values.shape,
    )  # fmt: skip


def placed(operand: Operand, device: Device, how: str) -> tuple[Tensor, Tensor]:
    """Like :func:`place`; also the whole vector that the tensor is in."""
    shape = operand.values.shape
    if how == "strided":
        return _buffer(operand, _gapped(shape), 1, device)
    if how == "offset":
        return _buffer(operand, strided(Size(shape), contiguous_strides(shape)), 5, device)
    key = intern(device, dtype=operand.dtype)
    array = np.array(narrow(operand.values, operand.dtype).reshape(-1))
    tensor = make(key, contiguous(shape), key.memory.from_numpy(array, device, operand.dtype))
    return tensor, tensor


# ---------------------------------------------------------------- drawing


class Draw:
    """Makes operands of one dtype, the same ones each time."""

    def __init__(self, dtype: Dtype, seed: int = 0) -> None:
        self.dtype = dtype
        self.rng = np.random.default_rng(seed)

    def __call__(self, *shape: int, low: float = -3, high: float = 3) -> Operand:
        """Random numbers of [low, high]; whole ones (not negative, if need be) for an integer dtype."""
        kind = self.dtype.kind
        if kind == "b":
            return Operand(np.array(self.rng.random(shape) < 0.5), self.dtype)
        values: Any = self.rng.uniform(low, high, shape)
        if kind == "c":
            values = values + 1j * self.rng.uniform(low, high, shape)
        if kind == "i":
            values = np.rint(values)
        if kind == "u":
            values = np.rint(np.abs(values))
        return self.of(values)

    def of(self, values: Any) -> Operand:
        """Given numbers, as near as the dtype has them."""
        return Operand(rounded(np.asarray(values), self.dtype), self.dtype)

    def sparse(self, *shape: int) -> Operand:
        """Numbers about half of which are zero, in a tensor that holds the others alone."""
        numbers = self(*shape)
        return Operand(np.where(self.mask(*shape).values, numbers.values, 0), self.dtype, sparse=True)

    def distinct(self, *shape: int) -> Operand:
        """Numbers no two of which are equal, in random order; bools have to repeat themselves."""
        count = int(np.prod(shape))
        values = self.rng.permutation(count).reshape(shape)
        if self.dtype.kind == "b":
            return Operand(values % 2 == 0, self.dtype)
        return self.of(values - (0 if self.dtype.kind == "u" else count // 2))

    def index(self, size: int, *shape: int) -> Operand:
        """Places in a dimension of a size, as int64."""
        return Operand(np.asarray(self.rng.integers(0, size, shape), np.int64), int64, True)

    def places(self, values: Any) -> Operand:
        """Given places, as int64."""
        return Operand(np.asarray(values, np.int64), int64, True)

    def mask(self, *shape: int) -> Operand:
        """True and false at random."""
        return Operand(np.asarray(self.rng.random(shape) < 0.5), bool_)

    @property
    def floating(self) -> bool:
        """Whether the dtype is a real floating-point one."""
        return self.dtype.kind == "f"

    @property
    def exact(self) -> bool:
        """Whether the dtype is bool or an integer one."""
        return self.dtype.category < 2
