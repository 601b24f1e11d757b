"""Launchers of ternary.c."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flambeau.backend import Key, Tensor, broadcast_shapes, contiguous, empty

from ..launch import Loop, find, walk

__all__ = ["KERNELS"]


class _Where:
    """Elements of two tensors chosen by a bool tensor."""

    predicate = None

    def build(self, key: Key) -> Callable[..., Tensor] | None:
        kernel = find("where", key.dtype)

        def launch(a: Tensor, b: Tensor, condition: Tensor) -> Tensor:
            shape = broadcast_shapes(a.geometry.shape, b.geometry.shape, condition.geometry.shape)
            out = empty(key, contiguous(shape))
            if out.geometry.numel:
                walk(kernel, (out, condition, a, b))
            return out

        return launch


KERNELS: Final[dict[str, Any]] = {
    "where": _Where(),
    "clip_numbers": Loop("clip", 3),
    "hardtanh": Loop("clip", 3),
    "between_backward": Loop("clip_backward", 4),
    "clamp": Loop("clamp", 3),
    "addcmul": Loop("addcmul", 4),
    "addcdiv": Loop("addcdiv", 4),
    "lerp": Loop("lerp", 3),
}
