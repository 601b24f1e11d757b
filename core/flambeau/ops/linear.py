"""Linear layers as operators: a matrix product with its bias, and the bilinear form."""

from __future__ import annotations

from typing import Any, Final, cast

import numpy as np

from ..autograd.grad_mode import mode
from ..autograd.node import record
from ..dispatch.operator import composite, primitive
from ..errors import ShapeError
from ..geometry import broadcast_shapes
from ..tensor import Tensor
from .linalg import fits, fitting, rows_of, same_key, wrong_sizes

__all__ = ["bilinear", "linear"]


@primitive("input weight bias? |", namespaces="nn.functional", method=False)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``input @ weight.T + bias``.

    Args:
        input: (*, in).
        weight: (out, in), or (in) for a result of shape (*).
        bias: (out), or none.

    Raises:
        RuntimeError: the sizes do not fit, or the dtypes differ.
    """
    try:
        key = input.key
        if key is weight.key and (bias is None or bias.key is key):
            fit = (input.geometry, weight.geometry, None if bias is None else bias.geometry) in fits
            kernel = _linear_table.get(key)
            if fit and kernel is not None:
                result: Tensor = kernel(input, weight, bias)
                if mode.enabled and (
                    input.node is not None or weight.node is not None or (bias is not None and bias.node is not None)
                ):
                    record(linear.op, (input, weight, bias), result)
                return result
    except AttributeError:
        same_key("linear", *[each for each in (input, weight, bias) if each is not None])
        raise
    return _checked_linear(input, weight, bias)


_linear_table: Final = linear.op.table


def _checked_linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    same_key("linear", *[each for each in (input, weight, bias) if each is not None])
    x, w = input.geometry.shape, weight.geometry.shape
    if not x or not 1 <= len(w) <= 2 or x[-1] != w[-1]:
        raise ShapeError(
            "linear: input and weight shapes cannot be multiplied, expected (*, in) and (out, in), got "
            f"{list(x)} and {list(w)}."
        )
    if (
        bias is not None
        and bias.geometry.shape != w[:-1]
        and broadcast_shapes(bias.shape, x[:-1] + w[:-1]) != x[:-1] + w[:-1]
    ):
        raise wrong_sizes("linear", f"a bias that broadcasts to {list(x[:-1] + w[:-1])}", bias)
    fitting(input.geometry, weight.geometry, None if bias is None else bias.geometry)
    return cast(Tensor, linear.run(input, weight, bias))


def _linear_weight(grad: Any, input: Any, weight_shape: tuple[int, ...]) -> Any:
    if len(weight_shape) == 1:
        return rows_of(input).t().mv(grad.reshape(-1))
    return rows_of(grad).t().mm(rows_of(input))


def _linear_input(grad: Any, weight: Any) -> Any:
    if weight.geometry.ndim != 2:
        return grad.unsqueeze(-1) * weight
    return grad.mm(weight) if grad.geometry.ndim == 2 else grad.matmul(weight)


def _linear_bias(grad: Any, bias_shape: tuple[int, ...]) -> Any:
    # One sum over all rows; a bias of another shape is left to the engine.
    return rows_of(grad).sum(0) if grad.geometry.ndim > 1 and len(bias_shape) == 1 else grad


linear.gradient(input=_linear_input, weight=_linear_weight, bias=_linear_bias)
linear.reference(lambda x, weight, bias: np.matmul(x, weight.T) + (0 if bias is None else bias))


@linear.composite
def _linear(input: Any, weight: Any, bias: Any) -> Any:
    product = input.matmul(weight.t() if weight.ndim == 2 else weight)
    return product if bias is None else product + bias


@composite(namespaces=("", "nn.functional"), method=False)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``sum over i and j of input1[..., i] * weight[:, i, j] * input2[..., j]``, plus bias.

    Args:
        input1: (*, in1).
        input2: (*, in2), with the same leading sizes.
        weight: (out, in1, in2).
        bias: (out), or none.

    Raises:
        RuntimeError: the sizes do not fit.
    """
    a, b, w = cast(Any, input1), cast(Any, input2), cast(Any, weight)
    same_key("bilinear", *[each for each in (input1, input2, weight, bias) if each is not None])
    if (
        w.ndim != 3
        or not a.ndim
        or not b.ndim
        or a.shape[:-1] != b.shape[:-1]
        or (a.shape[-1], b.shape[-1]) != w.shape[1:]
    ):
        raise wrong_sizes("bilinear", "(*, in1), (*, in2) and a weight (out, in1, in2)", a, b, w)
    if bias is not None and bias.shape != w.shape[:1]:
        raise wrong_sizes("bilinear", f"a bias of {w.shape[0]}", bias)
    outputs, first, second = w.shape
    left, right = rows_of(a), rows_of(b)
    inner = right.mm(w.reshape(outputs * first, second).t()).reshape(right.shape[0], outputs, first)
    result = inner.matmul(left.unsqueeze(-1)).reshape((*a.shape[:-1], outputs))
    return cast(Tensor, result if bias is None else result + bias)
