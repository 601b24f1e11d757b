"""Launchers of optimizer.c."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any, Final

from flambeau.backend import Key, Tensor

from .._kernels import ffi, lib
from ..launch import find

__all__ = ["KERNELS"]

_MOST: Final = 256


class _Words(dict[Any, Any]):
    """Parameter blocks by their values: hyper-parameters rarely change between steps."""

    def __missing__(self, values: tuple[Any, ...]) -> Any:
        if len(self) > _MOST:
            self.clear()
        count, *numbers = values
        words = [struct.unpack("q", struct.pack("d", each))[0] if type(each) is float else int(each) for each in numbers]
        self[values] = block = ffi.new("int64_t[]", [count, *words])
        return block


class _Step:
    """A fused step; it serves tensors of one dense geometry."""

    def __init__(self, name: str, arguments: Callable[..., tuple[Any, ...]]) -> None:
        self.name, self.arguments = name, arguments

    @staticmethod
    def predicate(param: Tensor, *args: Any) -> bool:
        geometry = param.geometry
        if not geometry.dense:
            return False
        for each in args:
            if isinstance(each, Tensor) and (each.geometry is not geometry or each.key is not param.key):
                return False
        return True

    def build(self, key: Key) -> Callable[..., None] | None:
        kernel = find(self.name, key.dtype)
        if kernel is None:
            return None
        words, arguments, call, null = _Words(), self.arguments, lib.fb_call, ffi.NULL

        def launch(param: Tensor, grad: Tensor, *rest: Any) -> None:
            tensors, numbers = arguments(*rest)
            memory = [null if each is None else each.memory for each in tensors]
            memory += [null] * (6 - len(memory))
            call(kernel, param.memory, grad.memory, *memory, words[param.geometry.numel, *numbers])

        return launch

    def source(self) -> str:
        return f"flambeau_cpu/kernels/optimizer.c ({self.name})"


def _sgd(buffer: Any, lr: float, momentum: float, dampening: float, decay: float, nesterov: bool, first: bool) -> Any:
    return (buffer,), (float(lr), float(momentum), float(dampening), float(decay), nesterov, first)


def _adam(
    mean: Any, square: Any, most: Any, lr: float, beta1: float, beta2: float, eps: float, decay: float, decoupled: bool,
    step: int,
) -> Any:  # fmt: skip
    size = lr / (1 - beta1**step)
    root = math.sqrt(1 - beta2**step)
    shrink, pull = (1 - lr * decay, 0.0) if decoupled else (1.0, float(decay))
    return (mean, square, most), (size, float(beta1), float(beta2), float(eps), root, pull, shrink)


KERNELS: Final[dict[str, Any]] = {"sgd_step_": _Step("sgd", _sgd), "adam_step_": _Step("adam", _adam)}
