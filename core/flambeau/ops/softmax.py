"""Softmax and its logarithm."""

from __future__ import annotations

import warnings
from typing import Any, cast

import numpy as np

from ..dispatch.operator import composite, primitive
from ..dispatch.pointwise import finish_out
from ..dtype import dtype as Dtype
from ..errors import MissingKernelError
from ..geometry import axis
from ..tensor import Tensor
from .conversion import cast_to

__all__ = ["log_softmax", "softmax", "softmin"]


def _arguments(name: str, self: Tensor, dim: int | None, dtype: Any) -> tuple[Tensor, int]:
    """The operand converted, and the dimension; 0.4.0 code may leave it to be guessed."""
    ndim = self.geometry.ndim
    if dim is None:
        warnings.warn(f"{name}: the choice of dim is deprecated where it is not given; pass dim=...", stacklevel=3)
        dim = 0 if ndim in (0, 1, 3) else 1
    dim = axis(dim, ndim)
    if isinstance(dtype, Dtype) and dtype is not self.key.dtype:
        self = cast_to(self, dtype)
    if self.key.dtype.category != 2:
        raise MissingKernelError(
            f'"{name}" not implemented for {self.key.dtype.name}.\nPass dtype=flambeau.float32, or convert with x.float().'
        )
    return self, dim


@primitive("self | dim", namespaces=("", "nn.functional"))
def softmax(
    self: Tensor,
    dim: int | None = None,
    dtype: Any = None,
    _stacklevel: int = 3,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Exponentials divided by their sum along a dimension.

    Args:
        dim: the dimension.
        dtype: converted to first.
        out: receives the result.

    Raises:
        NotImplementedError: the dtype is not floating point.
    """
    if out is not None:
        return finish_out("softmax", out, (self,), lambda: cast(Tensor, softmax(self, dim, dtype)))
    return cast(Tensor, softmax.run(*_arguments("softmax", self, dim, dtype)))


@primitive("self | dim", namespaces=("", "nn.functional"))
def log_softmax(
    self: Tensor,
    dim: int | None = None,
    dtype: Any = None,
    _stacklevel: int = 3,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The logarithm of :func:`softmax`, without its loss of precision; same arguments."""
    if out is not None:
        return finish_out("log_softmax", out, (self,), lambda: cast(Tensor, log_softmax(self, dim, dtype)))
    return cast(Tensor, log_softmax.run(*_arguments("log_softmax", self, dim, dtype)))


@primitive("grad output | dim", method=False, namespaces=())
def softmax_backward(grad: Tensor, output: Tensor, dim: int) -> Tensor:
    """``output * (grad - sum(grad * output))``."""
    return cast(Tensor, softmax_backward.run(grad, output, dim))


@primitive("grad output | dim", method=False, namespaces=())
def log_softmax_backward(grad: Tensor, output: Tensor, dim: int) -> Tensor:
    """``grad - exp(output) * sum(grad)``."""
    return cast(Tensor, log_softmax_backward.run(grad, output, dim))


softmax.gradient(self=lambda grad, result, dim: softmax_backward.run(grad, result, dim))
log_softmax.gradient(self=lambda grad, result, dim: log_softmax_backward.run(grad, result, dim))


@softmax_backward.gradients
def _(needs: Any, second: Any, grad: Any, output: Any, dim: int) -> Any:
    first = softmax_backward.run(second, output, dim) if needs[0] else None
    if not needs[1]:
        return first, None
    total = (grad * output).sum(dim, True)
    return first, second * (grad - total) - grad * (second * output).sum(dim, True)


@log_softmax_backward.gradients
def _(needs: Any, second: Any, grad: Any, output: Any, dim: int) -> Any:
    share = output.exp()
    first = second - (second * share).sum(dim, True) if needs[0] else None
    return first, -second * share * grad.sum(dim, True) if needs[1] else None


def _numpy_log_softmax(a: Any, dim: int) -> Any:
    dim = dim if a.ndim else None  # type: ignore[assignment]
    shifted = a - np.max(a, axis=dim, keepdims=True, initial=-np.inf)
    return shifted - np.log(np.sum(np.exp(shifted), axis=dim, keepdims=True))


log_softmax.reference(_numpy_log_softmax)
softmax.reference(lambda a, dim: np.exp(_numpy_log_softmax(a, dim)))
softmax_backward.reference(lambda grad, output, dim: output * (grad - np.sum(grad * output, axis=dim, keepdims=True)))
log_softmax_backward.reference(lambda grad, output, dim: grad - np.exp(output) * np.sum(grad, axis=dim, keepdims=True))


@composite(namespaces="nn.functional", method=False)
def softmin(self: Tensor, dim: int | None = None, dtype: Any = None, _stacklevel: int = 3) -> Tensor:
    """Softmax of the negated elements; arguments as of :func:`softmax`."""
    self, dim = _arguments("softmin", self, dim, dtype)
    return cast(Tensor, softmax.run(-cast(Any, self), dim))
