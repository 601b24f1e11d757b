"""Launcher of embedding.c."""

from __future__ import annotations

from typing import Any, Final

from flambeau.backend import BoundsError, Key, Tensor, contiguous, empty

from .._kernels import ffi, lib
from ..launch import find


def _flat(tensor: Tensor) -> Tensor:
    return tensor if tensor.geometry.contiguous else tensor.contiguous()  # type: ignore[attr-defined,no-any-return]


class _Bags:
    """Sums of rows in bags, for each dtype that C has."""

    predicate = None

    def build(self, key: Key) -> Any:
        kernel = find("bags", key.dtype)
        if kernel is None:
            return None

        def launch(
            weight: Tensor, rows: Tensor, bag: Tensor, factors: Tensor | None, bags: int, sparse: bool
        ) -> Tensor:
            weight, rows, bag = _flat(weight), _flat(rows), _flat(bag)
            height, width = weight.geometry.shape
            out = empty(key, contiguous((bags, width)))
            scale = ffi.NULL if factors is None else _flat(factors).memory
            q = ffi.new("int64_t[]", (height, width, rows.geometry.numel, bags))
            none = ffi.NULL
            code = lib.fb_call(kernel, out.memory, weight.memory, rows.memory, bag.memory, scale, none, none, none, q)
            if code:
                value = rows[code - 1].item()  # type: ignore[index]
                raise BoundsError(f"index {value} is out of bounds: expected a row number from 0 to {height - 1}.")
            return out

        return launch


KERNELS: Final[dict[str, Any]] = {"bag_sums": _Bags()}
