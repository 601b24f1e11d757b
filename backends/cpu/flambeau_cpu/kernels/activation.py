"""Launchers of activation.c."""

from __future__ import annotations

from typing import Any, Final

from ..launch import Loop

__all__ = ["KERNELS"]

#: operator (and C kernel) to its number of inputs and parameters
_LOOPS: Final = {
    "relu": 1, "logsigmoid": 1, "silu": 1, "gelu": 1, "gelu_tanh": 1, "threshold": 3, "leaky_relu": 2, "elu": 4,
    "softplus": 3, "hardshrink": 2, "softshrink": 2, "logsigmoid_backward": 2, "sigmoid_backward": 2, "tanh_backward": 2,
    "threshold_backward": 3, "leaky_relu_backward": 3, "softplus_backward": 4, "hardtanh_backward": 4,
    "hardshrink_backward": 3,
}  # fmt: skip

KERNELS: Final[dict[str, Any]] = {name: Loop(name, inputs) for name, inputs in _LOOPS.items()}
