"""Kernels that serve some calls only, and say why not the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Final

from flambeau.backend import Geometry, Key, Tensor, bfloat16, contiguous, dtype, empty, float32, make, source_of

from .native import lib

__all__ = ["ALWAYS", "DTYPES", "Family", "fresh", "plain", "unfit"]

#: bfloat16 where the machine's instructions allow it
DTYPES: Final = (float32, bfloat16) if lib.fm_has_bfloat16() else (float32,)
#: serve what oneDNN computes, also where the CPU plug-in is faster: to prove it, or to measure
ALWAYS: Final = os.environ.get("FLAMBEAU_MKLDNN_ALWAYS", "") not in ("", "0")
_LARGEST: Final = 2**31 - 1


class Family:
    """The kernels of one operator.

    Args:
        launcher: makes the kernel of a key.
        cannot: given a call's arguments, why oneDNN does not compute it; None if it does.
        loses: where the CPU plug-in is faster, in words; None where oneDNN is.
        dtypes: those served.
    """

    def __init__(
        self,
        launcher: Callable[[Key], Callable[..., Any]],
        cannot: Callable[..., str | None],
        loses: Callable[..., str | None] = lambda *_: None,
        dtypes: Sequence[dtype] = DTYPES,
    ) -> None:
        self.launcher, self.cannot, self.loses, self.dtypes = launcher, cannot, loses, dtypes

    def _reason(self, *args: Any) -> str | None:
        return (None if ALWAYS else self.loses(*args)) or self.cannot(*args)

    def build(self, key: Key) -> Callable[..., Any] | None:
        return self.launcher(key) if key.dtype in self.dtypes else None

    def predicate(self, *args: Any) -> bool:
        return self._reason(*args) is None

    def declines(self, *args: Any) -> str:
        return f"declines: {self._reason(*args)}"

    def source(self) -> str:
        return source_of(self.launcher)


def unfit(*tensors: Tensor) -> str | None:
    """Why oneDNN does not take some tensors, whatever the operator."""
    for each in tensors:
        if not each.geometry.numel:
            return "nothing to compute"
        if each.geometry.numel > _LARGEST:
            return "more than 2**31 elements"
    return None


def plain(tensor: Tensor) -> Tensor:
    """The tensor as memory without gaps or repetitions: itself, or a copy without history."""
    if tensor.geometry.dense:
        return tensor
    bare: Any = make(tensor.key, tensor.geometry, tensor.memory)
    return bare.contiguous()  # type: ignore[no-any-return]


def fresh(key: Key, shape: Sequence[int]) -> Tensor:
    """A row-major tensor with undefined contents."""
    geometry: Geometry = contiguous(tuple(shape))
    return empty(key, geometry)
