"""Launchers of ranges.c."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flambeau.backend import Key, Tensor

from .._kernels import ffi, lib
from ..launch import find
from .random import bits


class Range:
    """A C routine that fills a contiguous target from the position of each element."""

    predicate = None

    def __init__(self, name: str) -> None:
        self.name = name

    def build(self, key: Key) -> Callable[..., None] | None:
        kernel = find(self.name, key.dtype)
        if kernel is None:
            return None
        encode: Any = bits if key.dtype.category == 2 else _word

        def launch(target: Tensor, start: float, step: float, end: float = 0, half: int = 0) -> None:
            q = ffi.new("int64_t[]", (target.geometry.numel, encode(start), encode(step), encode(end), half))
            null = ffi.NULL
            lib.fb_call(kernel, target.memory, null, null, null, null, null, null, null, q)

        return launch


def _word(number: int) -> int:
    """The 64 bits of an integer, as a signed one."""
    return ((number + (1 << 63)) % (1 << 64)) - (1 << 63)


KERNELS: Final[dict[str, Any]] = {"arange_": Range("arange"), "linspace_": Range("linspace")}
