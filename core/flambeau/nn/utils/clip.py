"""Bounding gradients, and parameters as one vector."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any

from ...autograd.grad_mode import no_grad
from ...errors import ArgumentTypeError, AutogradError, ShapeError
from ...ops.creation import tensor
from ...ops.views import declared
from ...tensor import Tensor

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "get_total_norm", "parameters_to_vector",
    "vector_to_parameters",
]  # fmt: skip


def _gradients(parameters: Any) -> list[Any]:
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [each.grad for each in listed if each.grad is not None]


def get_total_norm(tensors: Iterable[Any], norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Any:
    """The norm of all tensors' elements together.

    Args:
        norm_type: p; may be infinite.

    Raises:
        RuntimeError: it is not finite and ``error_if_nonfinite``.
    """
    listed: list[Any] = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not listed:
        return tensor(0.0)
    with no_grad():
        norms = [each.norm(float(norm_type)) for each in listed]
        total = norms[0] if len(norms) == 1 else declared("stack")(norms).norm(float(norm_type))
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise AutogradError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot "
            f"be clipped. "
            "To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Scale gradients in place so that their norm together is at most ``max_norm``; returns the norm before.

    Args:
        parameters: one tensor or several; those without a gradient do not count.
        norm_type: p; may be infinite.

    Source: Pascanu et al., "On the difficulty of training recurrent neural networks", 2013.
    """
    grads = _gradients(parameters)
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    if grads:
        with no_grad():
            factor = (float(max_norm) / (total + 1e-6)).clamp(max=1.0)
            for each in grads:
                each.mul_(factor.to(device=each.device, dtype=each.dtype))
    return total


def clip_grad_norm(parameters: Any, max_norm: float, norm_type: float = 2.0) -> Any:
    """Deprecated: use :func:`clip_grad_norm_`."""
    warnings.warn("clip_grad_norm is deprecated in favor of clip_grad_norm_.", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Bound every element of the gradients, in place, to [-clip_value, clip_value]."""
    bound = float(clip_value)
    with no_grad():
        for each in _gradients(parameters):
            each.clamp_(min=-bound, max=bound)


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """All elements as one vector; differentiable."""
    return declared("cat")([each.reshape(-1) for each in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Let parameters view consecutive parts of a vector.

    Raises:
        TypeError: ``vec`` is no tensor.
        RuntimeError: it has more or fewer elements than the parameters together.
    """
    if not isinstance(vec, Tensor):
        raise ArgumentTypeError(f"expected Tensor, but got: {type(vec).__name__}")
    parameters = list(parameters)
    needed = sum(each.numel() for each in parameters)
    if vec.geometry.shape != (needed,):
        raise ShapeError(f"expected a vector of the parameters' {needed} elements, got shape {list(vec.shape)}.")
    start = 0
    for each in parameters:
        count = each.numel()
        each.data = vec[start : start + count].view_as(each).data  # type: ignore[index]
        start += count
