"""Element types and how they combine.

Promotion follows PyTorch: bool < integers < floating point < complex, and within
a category the wider type wins; uint8 with a signed type gives the next wider
signed one (https://pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from .errors import ArgumentTypeError, shown

__all__ = [
    "DTYPES",
    "bfloat16",
    "bool_",
    "can_cast",
    "complex64",
    "complex128",
    "default",
    "dtype",
    "float16",
    "float32",
    "float64",
    "from_numpy_dtype",
    "int8",
    "int16",
    "int32",
    "int64",
    "of_scalar",
    "promote_types",
    "uint8",
]


class dtype:
    """An element type: ``flambeau.float32`` and its siblings.

    Attributes:
        name: ``"float32"``.
        itemsize: bytes of one element.
        kind: one of ``b`` (bool), ``u``, ``i`` (integers), ``f`` (floating point), ``c`` (complex).
        numpy: the NumPy dtype of its memory; bfloat16, which NumPy lacks, travels as uint16.
        category: rank of the kind in type promotion, 0 (bool) to 3 (complex).
    """

    __slots__ = ("category", "is_complex", "is_floating_point", "is_signed", "itemsize", "kind", "name", "numpy")

    def __init__(self, name: str, kind: str, numpy: str) -> None:
        self.name = name
        self.kind = kind
        self.numpy = np.dtype(numpy)
        self.itemsize = self.numpy.itemsize
        self.category = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}[kind]
        self.is_floating_point = kind == "f"
        self.is_complex = kind == "c"
        self.is_signed = kind in "ifc"

    def __repr__(self) -> str:
        return f"flambeau.{self.name}"

    def __reduce__(self) -> str:
        return self.name if self.name != "bool" else "bool_"

    def to_real(self) -> dtype:
        """The type of the real and imaginary parts."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)


bool_: Final = dtype("bool", "b", "bool")
uint8: Final = dtype("uint8", "u", "uint8")
int8: Final = dtype("int8", "i", "int8")
int16: Final = dtype("int16", "i", "int16")
int32: Final = dtype("int32", "i", "int32")
int64: Final = dtype("int64", "i", "int64")
float16: Final = dtype("float16", "f", "float16")
bfloat16: Final = dtype("bfloat16", "f", "uint16")
float32: Final = dtype("float32", "f", "float32")
float64: Final = dtype("float64", "f", "float64")
complex64: Final = dtype("complex64", "c", "complex64")
complex128: Final = dtype("complex128", "c", "complex128")

#: All element types, in the order of promotion.
DTYPES: Final = (
    bool_,
    uint8,
    int8,
    int16,
    int32,
    int64,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
)
_RANK: Final = {each: rank for rank, each in enumerate(DTYPES)}
_FROM_NUMPY: Final = {each.numpy: each for each in DTYPES if each is not bfloat16}


def _promote(a: dtype, b: dtype) -> dtype:
    low, high = sorted((a, b), key=_RANK.__getitem__)
    if low is high or low.category < high.category:
        if high.is_complex and low is float64:
            return complex128
        return high
    if low is uint8:
        return int16 if high is int8 else high
    if low is float16 and high is bfloat16:
        return float32
    return high


_PROMOTED: Final = {(a, b): _promote(a, b) for a in DTYPES for b in DTYPES}


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest type that holds values of both.

    >>> import flambeau
    >>> flambeau.promote_types(flambeau.uint8, flambeau.int8)
    flambeau.int16
    """
    try:
        return _PROMOTED[type1, type2]
    except (KeyError, TypeError):
        raise ArgumentTypeError(f"Two dtypes are expected, got {shown(type1)} and {shown(type2)}.") from None


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether an in-place operation may store a ``from_`` result in a ``to`` tensor.

    >>> import flambeau
    >>> flambeau.can_cast(flambeau.float32, flambeau.int64)
    False
    """
    if type(from_) is not dtype or type(to) is not dtype:
        raise ArgumentTypeError(f"Two dtypes are expected, got {shown(from_)} and {shown(to)}.")
    return from_.category <= to.category


def from_numpy_dtype(numpy: np.dtype) -> dtype | None:
    """The element type with this NumPy dtype (native byte order), or None."""
    found = _FROM_NUMPY.get(numpy)
    if found is None and numpy.isnative and numpy.kind in "iufc":
        # longlong and its like have a number of their own but the memory of a sized type.
        found = _FROM_NUMPY.get(np.dtype(f"{numpy.kind}{numpy.itemsize}"))
    return found


class _Default:
    """The default floating-point type, which factories and Python floats take."""

    __slots__ = ("dtype",)

    def __init__(self) -> None:
        self.dtype = float32


default: Final = _Default()


def of_scalar(kind: type) -> dtype:
    """The type that a Python number has when nothing else decides."""
    if kind is bool:
        return bool_
    if kind is int:
        return int64
    if kind is float:
        return default.dtype
    if kind is not complex:
        raise ArgumentTypeError(f"Tensors and numbers are expected, got {kind.__name__}.")
    return complex128 if default.dtype is float64 else complex64
