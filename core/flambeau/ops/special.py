"""Gamma and its relatives, and the inverse of the error function."""

from __future__ import annotations

import math
from typing import Any, Final, cast

import numpy as np

from ..dispatch.operator import offer
from ..dispatch.pointwise import FLOAT, pointwise
from ..errors import DtypeError
from ..tensor import Tensor

__all__ = ["digamma", "erfinv", "lgamma", "mvlgamma", "polygamma"]

_HALF_ROOT_PI: Final = math.sqrt(math.pi) / 2


@pointwise(promote=FLOAT)
def lgamma(self: Tensor) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""


lgamma.gradient(self=lambda grad, self: grad * self.digamma())
lgamma.reference(np.vectorize(lambda x: math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x), otypes=[float]))


@pointwise(promote=FLOAT)
def digamma(self: Tensor) -> Tensor:
    """The logarithmic derivative of the gamma function; NaN at negative integers."""


digamma.gradient(self=lambda grad, self: grad * self.polygamma(1))


@pointwise(name="polygamma", promote=FLOAT, method=False, namespaces=())
def derivative(self: Tensor, order: Any) -> Tensor:
    """The derivative of the given order of :func:`digamma`."""


derivative.gradient(self=lambda grad, self, order: grad * derivative(self, order + 1))


def _order(n: Any) -> int:
    if n < 0:
        raise DtypeError(f"polygamma(n, x) does not support negative n, got {n}.")
    if n > 10_000:
        raise DtypeError(f"polygamma(n, x): expected n of at most 10000, got {n}.")
    return int(n)


@offer(method=False)
def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of order ``n`` of :func:`digamma`.

    Raises:
        RuntimeError: ``n`` is negative.
    """
    return cast(Tensor, derivative(input, _order(n), out=out))


@offer(name="polygamma", namespaces=())
def _polygamma(self: Tensor, n: int) -> Tensor:
    """The derivative of order ``n`` of :func:`digamma`."""
    return polygamma(n, self)


@offer(name="polygamma_", namespaces=())
def _polygamma_(self: Tensor, n: int) -> Tensor:
    """In-place form of :func:`polygamma`."""
    return cast(Tensor, cast(Any, derivative.op).body_of_inplace(self, _order(n)))


@offer()
def mvlgamma(self: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension ``p``.

    Raises:
        RuntimeError: ``p`` is less than 1.
    """
    if not 1 <= p <= 1000:
        raise DtypeError(f"p has to be greater than or equal to 1 (and at most 1000), got {p}")
    x = cast(Any, self)
    total = p * (p - 1) / 4 * math.log(math.pi)
    for index in range(p):
        total = (x - 0.5 * index).lgamma() + total
    return cast(Tensor, total)


@pointwise(promote=FLOAT)
def erfinv(self: Tensor) -> Tensor:
    """The number whose error function is given; infinite at -1 and 1, NaN beyond."""


erfinv.gradient(self=lambda grad, result: grad * (_HALF_ROOT_PI * (result * result).exp()))
