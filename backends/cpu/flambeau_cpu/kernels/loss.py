"""Launchers of loss.c."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from flambeau.backend import BoundsError, Geometry, Key, Tensor, contiguous, empty

from .._kernels import ffi, lib
from ..launch import find

_REDUCTIONS: Final = {"none": 0, "mean": 1, "sum": 2}
_SCALAR: Final = contiguous(())
_NULL: Final = ffi.NULL


@lru_cache(4096)
def _numbers(*values: int) -> Any:
    return ffi.new("int64_t[]", values)


@lru_cache(256)
def _bits(value: float) -> int:
    return int(struct.unpack("q", struct.pack("d", value))[0])


def _flat(tensor: Tensor) -> Tensor:
    return tensor if tensor.geometry.contiguous else tensor.contiguous()  # type: ignore[attr-defined,no-any-return]


class _Family:
    """Kernels that are built from the C functions ``names`` of a dtype."""

    predicate = None

    def __init__(self, launcher: Callable[[Key, dict[str, Any]], Any], names: dict[str, str]) -> None:
        self.launcher, self.names = launcher, names

    def build(self, key: Key) -> Any:
        found = {kind: find(name, key.dtype) for kind, name in self.names.items()}
        return None if None in found.values() else self.launcher(key, found)


def _pair(key: Key, kernels: dict[str, Any]) -> Any:
    call = lib.fb_call

    def launch(x: Tensor, t: Tensor, kind: str, reduction: str, parameter: float) -> Tensor:
        geometry = x.geometry
        if geometry is not t.geometry or not geometry.dense:
            x, t = _flat(x), _flat(t)
            geometry = x.geometry
        out = empty(key, geometry if reduction == "none" else _SCALAR)
        q = _numbers(geometry.numel, _REDUCTIONS[reduction], _bits(parameter))
        call(kernels[kind], out.memory, x.memory, t.memory, _NULL, _NULL, _NULL, _NULL, _NULL, q)
        return out

    return launch


def _pair_backward(key: Key, kernels: dict[str, Any]) -> Any:
    call = lib.fb_call

    def launch(grad: Tensor, x: Tensor, t: Tensor, kind: str, reduction: str, parameter: float) -> Tensor:
        geometry = x.geometry
        if geometry is not t.geometry or not geometry.dense or (reduction == "none" and grad.geometry is not geometry):
            grad, x, t = _flat(grad), _flat(x), _flat(t)
            geometry = x.geometry
        out = empty(key, geometry)
        q = _numbers(geometry.numel, _REDUCTIONS[reduction], _bits(parameter))
        call(kernels[kind], out.memory, grad.memory, x.memory, t.memory, _NULL, _NULL, _NULL, _NULL, q)
        return out

    return launch


@lru_cache(1024)
def _sizes(geometry: Geometry, reduction: str, ignored: int, normalise: bool) -> Any:
    outer, classes, *rest = geometry.shape
    return _numbers(outer, classes, math.prod(rest), _REDUCTIONS[reduction], ignored, int(normalise))


def _classes(key: Key, kernels: dict[str, Any]) -> Any:
    call, kernel = lib.fb_call, kernels["classes"]

    def launch(
        x: Tensor, target: Tensor, weight: Tensor | None, scratch: Tensor, normalise: bool, reduction: str, ignored: int
    ) -> Tensor:
        if not (x.geometry.contiguous and target.geometry.contiguous):
            x, target = _flat(x), _flat(target)
        out = empty(key, contiguous(target.geometry.shape) if reduction == "none" else _SCALAR)
        factors = _NULL if weight is None else _flat(weight).memory
        q = _sizes(x.geometry, reduction, ignored, normalise)
        code = call(kernel, out.memory, x.memory, target.memory, factors, scratch.memory, _NULL, _NULL, _NULL, q)
        if code:
            value = target.reshape(-1)[code - 1].item()  # type: ignore[attr-defined]
            raise BoundsError(
                f"Target {value} is out of bounds: expected a class number from 0 to {x.geometry.shape[1] - 1}, "
                f"or the ignored {ignored}."
            )
        return out

    return launch


def _classes_backward(key: Key, kernels: dict[str, Any]) -> Any:
    call, kernel = lib.fb_call, kernels["classes"]

    def launch(
        grad: Tensor, x: Tensor, target: Tensor, weight: Tensor | None, scratch: Tensor, normalise: bool,
        reduction: str,
        ignored: int,
    ) -> Tensor:  # fmt: skip
        if not (grad.geometry.contiguous and x.geometry.contiguous and target.geometry.contiguous):
            grad, x, target = _flat(grad), _flat(x), _flat(target)
        out = empty(key, x.geometry)
        factors = _NULL if weight is None else _flat(weight).memory
        q = _sizes(x.geometry, reduction, ignored, normalise)
        call(kernel, out.memory, grad.memory, x.memory, target.memory, factors, scratch.memory, _NULL, _NULL, q)
        return out

    return launch


_PAIRS: Final = ("l1", "mse", "smooth_l1", "huber", "bce_logits", "bce")

KERNELS: Final[dict[str, Any]] = {
    "pair_loss": _Family(_pair, {kind: f"loss_{kind}" for kind in _PAIRS}),
    "pair_loss_backward": _Family(_pair_backward, {kind: f"loss_{kind}_slope" for kind in _PAIRS}),
    "class_loss": _Family(_classes, {"classes": "loss_classes"}),
    "class_loss_backward": _Family(_classes_backward, {"classes": "loss_classes_slope"}),
}
