"""Launchers of softmax.c."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flambeau.backend import Key, Tensor

from ..lines import Routine, call, dense, fresh, halves_by_float, line_shape, parameters


def _along(key: Key, kernel: Any) -> Callable[..., Tensor]:
    blocks: dict[Any, Any] = {}

    def launch(*args: Any) -> Tensor:
        *tensors, dim = args
        geometry = tensors[0].geometry
        block = blocks.get((geometry, dim))
        if block is None:
            if len(blocks) > 1024:
                blocks.clear()
            block = blocks[geometry, dim] = parameters(line_shape(geometry.shape, dim))
        out = fresh(key, geometry.shape)
        call(kernel, (out, *[dense(each) for each in tensors]), block)
        return out

    return launch


KERNELS: Final[dict[str, Any]] = {
    name: halves_by_float(Routine(name, _along))
    for name in ("softmax", "log_softmax", "softmax_backward", "log_softmax_backward")
}
