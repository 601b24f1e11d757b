"""Launchers of normalization.c."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flambeau.backend import Key, Tensor

from ..lines import Routine, bits, call, dense, fresh, halves_by_float, parameters


def _dense(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else dense(tensor)


def _channels(a: Tensor) -> tuple[int, int, int]:
    """(N, C, L)"""
    batch, channels = a.geometry.shape[:2]
    return batch, channels, a.geometry.numel // max(batch * channels, 1)


def _batch_norm_train(key: Key, kernel: Any) -> Callable[..., Any]:
    def launch(a: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Any:
        batch, channels, length = _channels(a)
        out, mean, variance = fresh(key, a.geometry.shape), fresh(key, (channels,)), fresh(key, (channels,))
        block = parameters((batch, channels, length, bits(eps), 1))
        call(kernel, (out, dense(a), _dense(weight), _dense(bias), mean, variance), block)
        return out, mean, variance

    return launch


def _batch_norm_eval(key: Key, kernel: Any) -> Callable[..., Any]:
    def launch(
        a: Tensor, mean: Tensor, variance: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
    ) -> Tensor:
        out = fresh(key, a.geometry.shape)
        block = parameters((*_channels(a), bits(eps), 0))
        call(kernel, (out, dense(a), _dense(weight), _dense(bias), dense(mean), dense(variance)), block)
        return out

    return launch


def _batch_norm_backward(key: Key, kernel: Any) -> Callable[..., Any]:
    def launch(grad: Tensor, a: Tensor, weight: Tensor | None, mean: Tensor, variance: Tensor, eps: float) -> Any:
        batch, channels, length = _channels(a)
        outs = fresh(key, a.geometry.shape), fresh(key, (channels,)), fresh(key, (channels,))
        block = parameters((batch, channels, length, bits(eps)))
        call(kernel, (*outs, dense(grad), dense(a), _dense(weight), dense(mean), dense(variance)), block)
        return outs

    return launch


def _rows(a: Tensor, groups: int, weights: int) -> tuple[int, int, int, int]:
    """(rows, groups, weights of a row, positions)"""
    if not groups:
        return a.geometry.numel // max(weights, 1), 1, weights, 1
    batch, _, length = _channels(a)
    return batch * groups, groups, weights // groups, length


def _row_norm(key: Key, kernel: Any) -> Callable[..., Any]:
    def launch(a: Tensor, weight: Tensor | None, bias: Tensor | None, groups: int, weights: int, eps: float) -> Any:
        rows = _rows(a, groups, weights)
        out, mean, rstd = fresh(key, a.geometry.shape), fresh(key, (rows[0],)), fresh(key, (rows[0],))
        call(kernel, (out, dense(a), _dense(weight), _dense(bias), mean, rstd), parameters((*rows, bits(eps))))
        return out, mean, rstd

    return launch


def _row_norm_backward(key: Key, kernel: Any) -> Callable[..., Any]:
    def launch(
        grad: Tensor, a: Tensor, weight: Tensor | None, mean: Tensor, rstd: Tensor, groups: int, weights: int
    ) -> Any:
        outs = fresh(key, a.geometry.shape), fresh(key, (weights,)), fresh(key, (weights,))
        block = parameters(_rows(a, groups, weights))
        call(kernel, (*outs, dense(grad), dense(a), _dense(weight), dense(mean), dense(rstd)), block)
        return outs

    return launch


KERNELS: Final[dict[str, Any]] = {
    "batch_norm_train": halves_by_float(Routine("batch_norm", _batch_norm_train)),
    "batch_norm_eval": halves_by_float(Routine("batch_norm", _batch_norm_eval)),
    "batch_norm_train_backward": halves_by_float(Routine("batch_norm_backward", _batch_norm_backward)),
    "row_norm": halves_by_float(Routine("row_norm", _row_norm)),
    "row_norm_backward": halves_by_float(Routine("row_norm_backward", _row_norm_backward)),
}
