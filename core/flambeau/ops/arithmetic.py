"""Sums, products, quotients and powers, element by element."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ..dispatch.pointwise import pointwise
from ..tensor import Tensor

__all__ = ["add", "add_scaled", "mul"]


@pointwise(name="add", operator=("__add__", "__radd__"), method=False, namespaces=())
def plus(self: Tensor, other: Any) -> Tensor:
    """Return ``self + other``, broadcast together."""


plus.gradient(self=lambda grad: grad, other=lambda grad: grad)
plus.reference(np.add)


@pointwise(method=False, namespaces=())
def add_scaled(self: Tensor, other: Any, alpha: Any) -> Tensor:
    """Return ``self + alpha * other``, broadcast together."""


add_scaled.gradient(
    self=lambda grad: grad, other=lambda grad, alpha: grad * alpha, alpha=lambda grad, other: (grad * other)
)
add_scaled.reference(lambda a, b, alpha: a + alpha * b)


def add(self: Tensor, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """Return ``self + alpha * other``, broadcast together.

    Args:
        other: a tensor or a number.
        alpha: factor of ``other``.
        out: receives the result.

    Raises:
        RuntimeError: the shapes do not broadcast.
    """
    if alpha == 1:
        return cast(Tensor, plus(self, other) if out is None else plus(self, other, out=out))
    return cast(Tensor, add_scaled(self, other, alpha, out=out))


@pointwise(operator=("__mul__", "__rmul__"))
def mul(self: Tensor, other: Any) -> Tensor:
    """Return ``self * other``, broadcast together."""


mul.gradient(self=lambda grad, other: grad * other, other=lambda grad, self: grad * self)
mul.reference(np.multiply)
