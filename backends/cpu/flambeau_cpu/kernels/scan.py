"""Launchers of scan.c."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flambeau.backend import Key, Tensor, int64

from ..lines import Routine, call, dense, fresh, halves_by_float, line_block


def _running(key: Key, kernel: Any) -> Callable[..., Tensor]:
    def launch(a: Tensor, dim: int) -> Tensor:
        out = fresh(key, a.geometry.shape)
        call(kernel, (out, dense(a)), line_block(a.geometry.shape, dim))
        return out

    return launch


def _running_extreme(key: Key, kernel: Any) -> Callable[..., Any]:
    index_key = key.of(int64)

    def launch(a: Tensor, dim: int) -> Any:
        out, indices = fresh(key, a.geometry.shape), fresh(index_key, a.geometry.shape)
        call(kernel, (out, dense(a), indices), line_block(a.geometry.shape, dim))
        return out, indices

    return launch


def _recurrence(key: Key, kernel: Any) -> Callable[..., Tensor]:
    def launch(coefficient: Tensor, drive: Tensor, dim: int, reverse: bool, own: bool) -> Tensor:
        out = fresh(key, drive.geometry.shape)
        block = line_block(drive.geometry.shape, dim, reverse, own)
        call(kernel, (out, dense(coefficient), dense(drive)), block)
        return out

    return launch


KERNELS: Final[dict[str, Any]] = {
    "cumsum": Routine("cumsum", _running),
    "cumprod": Routine("cumprod", _running),
    "logcumsumexp": Routine("logcumsumexp", _running),
    "cummax": Routine("cummax", _running_extreme),
    "cummin": Routine("cummin", _running_extreme),
    "recurrence": halves_by_float(Routine("recurrence", _recurrence)),
}
