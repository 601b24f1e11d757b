"""Launchers of softmax.c."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flambeau.backend import Key, Tensor

from ..lines import Routine, call, dense, fresh, halves_by_float, line_block


def _forward(key: Key, kernel: Any) -> Callable[..., Tensor]:
    def launch(a: Tensor, dim: int) -> Tensor:
        shape = a.geometry.shape
        out = fresh(key, shape)
        call(kernel, (out, dense(a)), line_block(shape, dim))
        return out

    return launch


def _backward(key: Key, kernel: Any) -> Callable[..., Tensor]:
    def launch(grad: Tensor, output: Tensor, dim: int) -> Tensor:
        shape = output.geometry.shape
        out = fresh(key, shape)
        call(kernel, (out, dense(grad), dense(output)), line_block(shape, dim))
        return out

    return launch


KERNELS: Final[dict[str, Any]] = {
    "softmax": halves_by_float(Routine("softmax", _forward)),
    "log_softmax": halves_by_float(Routine("log_softmax", _forward)),
    "softmax_backward": halves_by_float(Routine("softmax_backward", _backward)),
    "log_softmax_backward": halves_by_float(Routine("log_softmax_backward", _backward)),
}
