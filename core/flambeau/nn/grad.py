"""The gradients of convolutions as functions, for code that has no graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.engine import grad as gradient_of
from ..autograd.grad_mode import enable_grad
from ..ops.creation import empty
from . import functional as F

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _gradient(dims: int, x: Any, weight: Any, grad_output: Any, of_input: bool, options: tuple[Any, ...]) -> Any:
    stride, padding, dilation, groups = options
    with enable_grad():
        of = (x if of_input else weight).requires_grad_()
        result = getattr(F, f"conv{dims}d")(x, weight, None, stride, padding, dilation, groups)
        return gradient_of(result, of, grad_output)[0]


def _blank(like: Any, size: Any) -> Any:
    return empty(tuple(size), dtype=like.dtype, device=like.device).zero_()


def _gradients(dims: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The two gradients of the convolution over ``dims`` dimensions."""

    def of_input(
        input_size: Any,
        weight: Any,
        grad_output: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        x = _blank(grad_output, input_size)
        return _gradient(dims, x, weight.detach(), grad_output, True, (stride, padding, dilation, groups))

    def of_weight(
        input: Any,
        weight_size: Any,
        grad_output: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        weight = _blank(grad_output, weight_size)
        return _gradient(dims, input.detach(), weight, grad_output, False, (stride, padding, dilation, groups))

    for function, what in ((of_input, "input"), (of_weight, "weight")):
        function.__name__ = function.__qualname__ = f"conv{dims}d_{what}"
        function.__doc__ = f"The gradient of conv{dims}d with respect to its {what}, of shape ``{what}_size``."
    return of_input, of_weight


conv1d_input, conv1d_weight = _gradients(1)
conv2d_input, conv2d_weight = _gradients(2)
conv3d_input, conv3d_weight = _gradients(3)
