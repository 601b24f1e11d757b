"""Launchers of unary.c."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flambeau.backend import Key, Tensor, bool_

from ..launch import Loop, find

__all__ = ["KERNELS"]

_SAME: Final = (
    "abs acos asin atan bitwise_not cos cosh erf erfc exp expm1 frac log log10 log1p log2 neg reciprocal rsqrt sigmoid sign "
    "sin sinh sqrt tan tanh"
)


class _Rounding(Loop):
    """Rounding, which leaves integers as they are."""

    def build(self, key: Key) -> Callable[..., Tensor] | None:
        if key.dtype.category != 1:
            return super().build(key)
        return Loop("copy", 1).build(key)


class _Predicate(Loop):
    """Whether a number is special; an integer is not, and NaN differs from itself: else it is a comparison with itself."""

    def build(self, key: Key) -> Callable[..., Tensor] | None:
        if find(self.name, key.dtype) is not None:
            return super().build(key)
        compare = Loop("eq" if self.name == "isfinite" else "ne", 2, bool_).build(key)
        return compare and (lambda a: compare(a, a))


KERNELS: Final[dict[str, Any]] = {
    **{name: Loop(name, 1) for name in _SAME.split()},
    **{name: _Rounding(name, 1) for name in ("ceil", "floor", "round", "trunc")},
    **{name: _Predicate(name, 1, bool_) for name in ("isnan", "isinf", "isfinite")},
    "logical_not": Loop("logical_not", 1, bool_),
}
