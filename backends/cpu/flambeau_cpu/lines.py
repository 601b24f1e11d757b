"""What launchers of C routines share: operands as (outer, n, inner), parameter blocks, error codes."""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Iterable
from typing import Any, Final

from flambeau.backend import (
    AllocationError,
    Key,
    Size,
    Tensor,
    bfloat16,
    contiguous,
    dtype,
    empty,
    float16,
    float32,
    make,
    source_of,
)

from ._kernels import ffi, lib
from .launch import find

__all__ = [
    "Routine",
    "bits",
    "call",
    "dense",
    "halves_by_float",
    "fresh",
    "line_block",
    "line_shape",
    "parameters",
    "run",
]

_NULL: Final = ffi.NULL
_PADDING: Final = [(ffi.NULL,) * (8 - count) for count in range(9)]


def bits(number: float) -> int:
    """A double as the integer of the same bits: how it travels in a parameter block."""
    return int(struct.unpack("q", struct.pack("d", float(number)))[0])


def parameters(values: Iterable[int]) -> Any:
    """A parameter block."""
    return ffi.new("int64_t[]", list(values))


def run(kernel: Any, tensors: Iterable[Tensor | None], block: Any) -> int:
    """Run a routine on tensors' memory (None: no such operand); returns what it returns."""
    pointers = [_NULL if each is None else each.memory for each in tensors]
    found: int = lib.fb_call(kernel, *pointers, *_PADDING[len(pointers)], block)
    return found


def call(kernel: Any, tensors: Iterable[Tensor | None], block: Any) -> int:
    """Run a routine that returns an error code, 0 for none.

    Raises:
        MemoryError: the routine found no memory to work in.
    """
    code = run(kernel, tensors, block)
    if code == 1:
        raise AllocationError(
            "The host has no memory left for a kernel's working space.\nUse smaller batches or free tensors first."
        )
    return code


def dense(tensor: Tensor) -> Tensor:
    """The tensor with its rows one after another, without history."""
    if tensor.geometry.contiguous:
        return tensor
    bare: Any = make(tensor.key, tensor.geometry, tensor.memory)
    return bare.contiguous()  # type: ignore[no-any-return]


@functools.lru_cache(1024)
def line_shape(shape: Size, dim: int) -> tuple[int, int, int]:
    """A contiguous tensor as (outer, n, inner) around a dimension."""
    if not shape:
        return 1, 1, 1
    return math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :])


@functools.lru_cache(1024)
def line_block(shape: Size, dim: int, *extra: int) -> Any:
    """The parameter block that starts with outer, n, inner."""
    return parameters((*line_shape(shape, dim), *extra))


class Routine:
    """Kernels made by ``make(key, kernel)`` for every dtype for which C has ``name``.

    Args:
        name: of the C routine.
        make: a launcher for a key, given the C kernel.
    """

    predicate: Callable[..., bool] | None = None

    def __init__(self, name: str, make: Callable[[Key, Any], Callable[..., Any]]) -> None:
        self.name, self.make = name, make

    def source(self) -> str:
        return source_of(self.make)

    def build(self, key: Key) -> Callable[..., Any] | None:
        kernel = find(self.name, key.dtype)
        return None if kernel is None else self.make(key, kernel)


class halves_by_float:
    """The float32 kernels of a routine, for float16 and bfloat16 too: converted on the way in and out."""

    predicate: Callable[..., bool] | None = None

    def __init__(self, family: Routine) -> None:
        self.family = family

    def source(self) -> str:
        return self.family.source()

    def build(self, key: Key) -> Callable[..., Any] | None:
        if key.dtype not in (float16, bfloat16):
            return self.family.build(key)
        wide = self.family.build(key.of(float32))
        assert wide is not None

        def launch(*args: Any) -> Any:
            result = wide(*[_to(each, key.dtype, float32) for each in args])
            return (
                tuple([_to(each, float32, key.dtype) for each in result])
                if isinstance(result, tuple)
                else _to(result, float32, key.dtype)
            )

        return launch


def _to(value: Any, from_: dtype, to: dtype) -> Any:
    if not isinstance(value, Tensor) or value.key.dtype is not from_:
        return value
    bare: Any = make(value.key, value.geometry, value.memory)
    return bare.to(to)


def fresh(key: Key, shape: tuple[int, ...]) -> Tensor:
    """A contiguous tensor with undefined contents."""
    return empty(key, contiguous(shape))
