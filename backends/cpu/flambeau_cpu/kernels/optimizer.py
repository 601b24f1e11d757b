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


class _Words(dict[Any, list[int]]):
    """Parameter words by their values: hyper-parameters rarely change between steps."""

    def __missing__(self, values: tuple[Any, ...]) -> list[int]:
        if len(self) > _MOST:
            self.clear()
        bits = [struct.unpack("q", struct.pack("d", each))[0] if type(each) is float else int(each) for each in values]
        self[values] = bits
        return bits


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
            block = ffi.new("int64_t[]", [param.geometry.numel, *words[numbers]])
            call(kernel, param.memory, grad.memory, *memory, block)

        return launch


class _Steps:
    """The same step over many parameters in one call; gives the positions of those that it leaves alone."""

    predicate = None

    def __init__(self, name: str, state: int, arguments: Callable[..., tuple[Any, ...]]) -> None:
        #: how many lists of tensors there are beside parameters and gradients
        self.name, self.state, self.arguments = name, state, arguments

    def build(self, key: Key) -> Callable[..., list[int]] | None:
        kernel = find(self.name, key.dtype)
        if kernel is None:
            return None
        words, arguments, state, call, null = _Words(), self.arguments, self.state, lib.fb_call_n, ffi.NULL
        new, pointers, integers = ffi.new, ffi.typeof("void *[]"), ffi.typeof("int64_t[]")
        nothing = (None,) * state

        def launch(params: list[Tensor], grads: list[Tensor], *rest: Any) -> list[int]:
            lists, numbers = rest[:state], arguments(*nothing, *rest[state:])[1]
            memory: list[Any] = []
            sizes: list[int] = []
            left: list[int] = []
            for position, tensors in enumerate(zip(params, grads, *lists)):
                geometry = tensors[0].geometry
                found = []
                for each in tensors:
                    if each is None:
                        found.append(null)
                    elif each.geometry is geometry and each.key is key:
                        found.append(each.memory)
                if len(found) == len(tensors) and geometry.dense:
                    memory += found
                    sizes.append(geometry.numel)
                else:
                    left.append(position)
            call(kernel, new(pointers, memory), new(integers, [len(sizes), *words[numbers], *sizes]))
            return left

        return launch


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


KERNELS: Final[dict[str, Any]] = {
    "sgd_step_": _Step("sgd", _sgd),
    "sgd_steps_": _Steps("sgd_many", 1, _sgd),
    "adam_step_": _Step("adam", _adam),
    "adam_steps_": _Steps("adam_many", 3, _adam),
}
