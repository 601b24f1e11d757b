"""Comparisons, element by element and of whole tensors."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ..dispatch.operator import composite, offer
from ..dispatch.pointwise import BOOL, NUMBERS, pointwise
from ..errors import ArgumentTypeError, DtypeError
from ..tensor import Tensor

__all__ = ["allclose", "eq", "equal", "ge", "gt", "isclose", "le", "lt", "ne"]


@pointwise(promote=BOOL, tensor_first=True)
def eq(self: Tensor, other: Any) -> Tensor:
    """Whether ``self == other``, broadcast together."""


@pointwise(promote=BOOL, tensor_first=True)
def ne(self: Tensor, other: Any) -> Tensor:
    """Whether ``self != other``, broadcast together."""


@pointwise(promote=BOOL, tensor_first=True, operator="__lt__")
def lt(self: Tensor, other: Any) -> Tensor:
    """Whether ``self < other``, broadcast together."""


@pointwise(promote=BOOL, tensor_first=True, operator="__le__")
def le(self: Tensor, other: Any) -> Tensor:
    """Whether ``self <= other``, broadcast together."""


@pointwise(promote=BOOL, tensor_first=True, operator="__gt__")
def gt(self: Tensor, other: Any) -> Tensor:
    """Whether ``self > other``, broadcast together."""


@pointwise(promote=BOOL, tensor_first=True, operator="__ge__")
def ge(self: Tensor, other: Any) -> Tensor:
    """Whether ``self >= other``, broadcast together."""


for _each, _oracle in (
    (eq, np.equal), (ne, np.not_equal), (lt, np.less), (le, np.less_equal), (gt, np.greater), (ge, np.greater_equal)
):  # fmt: skip
    _each.nondifferentiable()
    _each.reference(_oracle)


@offer(name="__eq__", namespaces=())
def _eq(self: Tensor, other: Any) -> Any:
    """``self == other``; False for what is neither a tensor nor a number."""
    if isinstance(other, (Tensor, *NUMBERS, np.generic)):
        return eq(self, other)
    return NotImplemented


@offer(name="__ne__", namespaces=())
def _ne(self: Tensor, other: Any) -> Any:
    """``self != other``; True for what is neither a tensor nor a number."""
    if isinstance(other, (Tensor, *NUMBERS, np.generic)):
        return ne(self, other)
    return NotImplemented


@composite
def isclose(self: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether ``|self - other| <= atol + rtol * |other|``; infinities are close to themselves.

    Args:
        rtol: relative tolerance, at least 0.
        atol: absolute tolerance, at least 0.
        equal_nan: whether NaN is close to NaN.

    Raises:
        RuntimeError: the dtypes differ, or a tolerance is negative.
    """
    if not isinstance(self, Tensor) or not isinstance(other, Tensor):
        raise ArgumentTypeError(f"isclose() expects two tensors, got {type(self).__name__} and {type(other).__name__}.")
    if self.dtype is not other.dtype:
        raise DtypeError(
            f"{self.dtype.name} did not match {other.dtype.name} in isclose().\nConvert one to the other's dtype."
        )
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise DtypeError(f"isclose(): {name} must be greater than or equal to zero, but got {value}")
    a, b = cast(Any, self), cast(Any, other)
    close = a == b
    floating = self.dtype.is_floating_point
    if equal_nan and floating:
        close = close | ((a != a) & (b != b))
    if not rtol and not atol:
        return cast(Tensor, close)
    if not floating:
        a, b = a.double(), b.double()
    error = (a - b).abs()
    near = error <= atol + (rtol * b).abs()
    # An infinite difference is within no tolerance, whatever the tolerance is.
    return cast(Tensor, close | (near & (error < float("inf"))))


@composite
def allclose(self: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements are close: see :func:`isclose`."""
    return bool(cast(Any, isclose(self, other, rtol, atol, equal_nan)).all())


@composite
def equal(self: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same size and elements.

    Raises:
        RuntimeError: the tensors are on different devices.
    """
    if not isinstance(self, Tensor) or not isinstance(other, Tensor):
        raise ArgumentTypeError(f"equal() expects two tensors, got {type(self).__name__} and {type(other).__name__}.")
    if self.shape != other.shape:
        return False
    return not self.geometry.numel or bool(cast(Any, eq(self, other)).all())
