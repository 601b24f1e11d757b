"""Launchers of unary.c."""

from __future__ import annotations

from typing import Any, Final

from flambeau.backend import bool_

from ..launch import Loop

__all__ = ["KERNELS"]

_SAME: Final = (
    "abs acos asin atan bitwise_not ceil cos cosh erf erfc exp expm1 floor frac log log10 log1p log2 neg reciprocal round "
    "rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
)

KERNELS: Final[dict[str, Any]] = {
    **{name: Loop(name, 1) for name in _SAME.split()},
    **{name: Loop(name, 1, bool_) for name in ("isnan", "isinf", "isfinite", "logical_not")},
}
