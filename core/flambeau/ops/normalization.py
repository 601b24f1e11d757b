"""Normalisation: over the batch, over layers, groups and channels, and to a norm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ..autograd.grad_mode import mode, no_grad
from ..dispatch.operator import composite, primitive
from ..dispatch.pointwise import finish_out
from ..errors import ArgumentError, DtypeError, ShapeError
from ..geometry import axis
from ..tensor import Tensor
from .reduction import lp_norm

__all__ = [
    "batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "normalize", "renorm",
]  # fmt: skip


def _floating(name: str, input: Tensor) -> None:
    if input.key.dtype.category != 2:
        raise DtypeError(
            f"{name}(): expected a floating-point input, got {input.key.dtype.name}.\nConvert with x.float()."
        )


def _matching(name: str, what: str, values: Tensor | None, count: int, input: Tensor) -> Tensor | None:
    """Check a per-channel vector; of another floating-point dtype it is converted."""
    if values is None:
        return None
    if values.geometry.numel != count or values.geometry.ndim != 1:
        raise ShapeError(
            f"{name}(): {what} should contain {count} elements not {values.geometry.numel} "
            f"(shape {list(values.shape)}, input {list(input.shape)})."
        )
    return values if values.key.dtype is input.key.dtype else cast(Tensor, cast(Any, values).to(input.key.dtype))


# ---------------------------------------------------------------- over the batch


def _channels(values: Any, ndim: int) -> Any:
    """A vector of channels, shaped to broadcast against (N, C, ...)."""
    return values.reshape(1, -1, *[1] * (ndim - 2))


def _all_but_channels(input: Any) -> tuple[int, ...]:
    return (0, *range(2, input.ndim))


@primitive("input weight? bias? | eps", name="batch_norm_train", method=False, namespaces=())
def _batch_norm_train(input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Any:
    """Output, and each channel's mean and biased variance, which are constants to autograd."""
    return _batch_norm_train.run(input, weight, bias, eps)


@primitive("grad input weight? mean variance | eps", name="batch_norm_train_backward", method=False, namespaces=())
def _batch_norm_train_backward(*args: Any) -> Any:
    """Gradients of input, weight and bias."""
    return _batch_norm_train_backward.run(*args)


_batch_norm_train_backward.nondifferentiable()


@_batch_norm_train.gradients
def _(needs: Any, grad: Any, input: Any, weight: Any, eps: float, others: Any) -> Any:
    dims = _all_but_channels(input)
    if not input.numel():  # the statistics of nothing are NaN, and their gradient is 0
        zeros = grad.new_zeros(input.shape[1])
        return grad if needs[0] else None, zeros if needs[1] else None, zeros if needs[2] else None
    if not mode.enabled:
        with_x, with_weight, with_bias = _batch_norm_train_backward.run(grad, input, weight, *others, eps)
        return with_x, with_weight if needs[1] else None, with_bias if needs[2] else None
    count = input.numel() // input.shape[1]
    variance, mean = input.var(dims, False, True), input.mean(dims, True)
    rstd = (variance + eps).rsqrt()
    normal = (input - mean) * rstd
    scaled = grad if weight is None else grad * _channels(weight, input.ndim)
    inner = scaled * count - scaled.sum(dims, True) - normal * (scaled * normal).sum(dims, True)
    return (
        inner * rstd / count if needs[0] else None,
        (grad * normal).sum(dims) if needs[1] else None,
        grad.sum(dims) if needs[2] else None,
    )


def _numpy_channels(values: Any, ndim: int, otherwise: float) -> Any:
    return otherwise if values is None else values.reshape(1, -1, *[1] * (ndim - 2))


def _numpy_batch_norm_train(input: Any, weight: Any, bias: Any, eps: float) -> Any:
    dims = (0, *range(2, input.ndim))
    mean, variance = input.mean(dims, keepdims=True), input.var(dims, keepdims=True)
    output = (input - mean) / np.sqrt(variance + eps) * _numpy_channels(weight, input.ndim, 1)
    return output + _numpy_channels(bias, input.ndim, 0), mean.reshape(-1), variance.reshape(-1)


_batch_norm_train.reference(_numpy_batch_norm_train)


@primitive("input mean variance weight? bias? | eps", name="batch_norm_eval", method=False, namespaces=())
def _batch_norm_eval(*args: Any) -> Any:
    """``(input - mean) / sqrt(variance + eps) * weight + bias`` by channels."""
    return _batch_norm_eval.run(*args)


@_batch_norm_eval.gradients
def _(needs: Any, grad: Any, input: Any, mean: Any, variance: Any, weight: Any, eps: float) -> Any:
    dims, ndim = _all_but_channels(input), input.ndim
    rstd = _channels((variance + eps).rsqrt(), ndim)
    scaled = grad * rstd if weight is None else grad * (rstd * _channels(weight, ndim))
    off = input - _channels(mean, ndim)
    return (
        scaled if needs[0] else None,
        -scaled.sum(dims) if needs[1] else None,
        (scaled * off * rstd * rstd).sum(dims) * -0.5 if needs[2] else None,
        (grad * off * rstd).sum(dims) if needs[3] else None,
        grad.sum(dims) if needs[4] else None,
    )


@composite(namespaces=("", "nn.functional"), method=False)
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Normalise each channel over the batch and all positions (S. Ioffe, C. Szegedy, 2015).

    Args:
        input: (N, C, ...).
        running_mean, running_var: (C,); used if not ``training``, else updated in place if given.
        weight, bias: (C,); scale and shift.
        training: use the batch's own statistics.
        momentum: weight of the batch in the running statistics.
        eps: added to the variance.
        cudnn_enabled: accepted and ignored.

    Raises:
        RuntimeError: sizes do not fit, or there are no statistics to use.
        ValueError: in training, a channel has only one value.
    """
    _floating("batch_norm", input)
    if input.geometry.ndim < 2:
        if not input.geometry.numel:
            return cast(Tensor, cast(Any, input).clone())
        raise ShapeError(f"batch_norm(): expected input (N, C, ...), got shape {list(input.shape)}.")
    channels = input.geometry.shape[1]
    weight = _matching("batch_norm", "weight", weight, channels, input)
    bias = _matching("batch_norm", "bias", bias, channels, input)
    if not training:
        if running_mean is None or running_var is None:
            missing = "running_mean" if running_mean is None else "running_var"
            raise ShapeError(f"batch_norm(): {missing} must be defined in evaluation mode.\nPass it, or training=True.")
        mean = _matching("batch_norm", "running_mean", running_mean, channels, input)
        variance = _matching("batch_norm", "running_var", running_var, channels, input)
        return cast(Tensor, _batch_norm_eval.run(input, mean, variance, weight, bias, eps))
    count = input.geometry.numel // channels if channels else 0
    if count == 1:
        raise ArgumentError(f"Expected more than 1 value per channel when training, got input size {input.shape}.")
    _matching("batch_norm", "running_mean", running_mean, channels, input)
    _matching("batch_norm", "running_var", running_var, channels, input)
    output, mean, variance = _batch_norm_train.run(input, weight, bias, eps)
    if (running_mean is not None or running_var is not None) and count:
        with no_grad():
            for running, now in ((running_mean, mean), (running_var, variance)):
                if running is not None:
                    share = momentum if running is running_mean else momentum * count / (count - 1)
                    cast(Any, running).mul_(1 - momentum).add_(now.detach() * share)
    return cast(Tensor, output)


@composite(namespaces=("", "nn.functional"), method=False)
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Normalise each channel of each sample over its positions (D. Ulyanov et al., 2016).

    Args:
        input: (N, C, L...).
        running_mean, running_var: (C,); used if not ``use_input_stats``, else updated in place if given.
        weight, bias: (C,); scale and shift.
        use_input_stats: normalise by the input's own statistics.
        momentum: weight of the input in the running statistics.
        eps: added to the variance.
        cudnn_enabled: accepted and ignored.

    Raises:
        ValueError: there is only one position.
        RuntimeError: sizes do not fit.
    """
    if not use_input_stats:
        return cast(Tensor, batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps))
    _floating("instance_norm", input)
    if input.geometry.ndim < 3:
        raise ShapeError(f"instance_norm(): expected input (N, C, L...), got shape {list(input.shape)}.")
    batch, channels = input.geometry.shape[:2]
    if math.prod(input.geometry.shape[2:]) == 1:
        raise ArgumentError(f"Expected more than 1 spatial element when training, got input size {input.shape}.")
    weight = _matching("instance_norm", "weight", weight, channels, input)
    bias = _matching("instance_norm", "bias", bias, channels, input)
    for name, running in (("running_mean", running_mean), ("running_var", running_var)):
        if running is not None and running.geometry.shape != (channels,):
            raise ShapeError(f"instance_norm(): expected {name} of shape {[channels]}, got {list(running.shape)}.")
    if (running_mean is not None or running_var is not None) and input.geometry.numel:
        x = cast(Any, input).detach().reshape(batch, channels, -1)
        with no_grad():
            for running, now in ((running_mean, x.mean(2)), (running_var, x.var(2))):
                if running is not None:
                    cast(Any, running).mul_(1 - momentum).add_(now.mean(0) * momentum)
    return cast(Tensor, _row_norm.run(input, weight, bias, channels, channels, eps)[0])


# ---------------------------------------------------------------- over the features


@primitive("input weight? bias? | groups weights eps", name="row_norm", method=False, namespaces=())
def _row_norm(*args: Any) -> Any:
    """Normalise rows; returns the output and each row's mean and reciprocal standard deviation, constants to autograd.

    With ``groups`` = 0 a row has ``weights`` elements, one weight for each.  Else the input is (N, C, ...) with
    C = ``weights``; a row is a group of neighbouring channels of a sample, and each channel has one weight.
    """
    return _row_norm.run(*args)


@primitive("grad input weight? mean rstd | groups weights", name="row_norm_backward", method=False, namespaces=())
def _row_norm_backward(*args: Any) -> Any:
    """Gradients of input, and of weight and bias as vectors."""
    return _row_norm_backward.run(*args)


_row_norm_backward.nondifferentiable()


def _as_rows(values: Any, groups: int, weights: int) -> Any:
    """(rows, weights of a row, positions)"""
    if not groups:
        return values.reshape(-1, weights, 1)
    return values.reshape(values.shape[0] * groups, weights // groups, -1)


@_row_norm.gradients
def _(needs: Any, grad: Any, input: Any, weight: Any, groups: int, weights: int, eps: float, others: Any) -> Any:
    if not input.numel():  # the statistics of nothing are NaN, and their gradient is 0
        zeros = grad.new_zeros(weights if weight is None else weight.shape)
        return grad if needs[0] else None, zeros if needs[1] else None, zeros if needs[2] else None
    if not mode.enabled:
        with_x, with_weight, with_bias = _row_norm_backward.run(grad, input, weight, *others, groups, weights)
        shape = None if weight is None else weight.shape
        return (
            with_x,
            with_weight.reshape(shape) if needs[1] else None,
            (with_bias if shape is None else with_bias.reshape(shape)) if needs[2] else None,
        )
    x, g = _as_rows(input, groups, weights), _as_rows(grad, groups, weights)
    count = x.shape[1] * x.shape[2]
    mean, variance = x.mean((1, 2), True), x.var((1, 2), False, True)
    rstd = (variance + eps).rsqrt()
    normal = (x - mean) * rstd
    parts = max(groups, 1)
    scaled = g
    if weight is not None:
        scaled = (g.reshape(-1, parts, *g.shape[1:]) * weight.reshape(parts, -1, 1)).reshape(g.shape)
    inner = scaled * count - scaled.sum((1, 2), True) - normal * (scaled * normal).sum((1, 2), True)

    def folded(values: Any) -> Any:
        vector = values.sum(2).reshape(-1, parts, values.shape[1]).sum(0)
        return vector.reshape(-1 if weight is None else weight.shape)

    return (
        (inner * rstd / count).reshape(input.shape) if needs[0] else None,
        folded(g * normal) if needs[1] else None,
        folded(g) if needs[2] else None,
    )


def _numpy_row_norm(input: Any, weight: Any, bias: Any, groups: int, weights: int, eps: float) -> Any:
    x = _as_rows(input, groups, weights)
    mean, variance = x.mean((1, 2), keepdims=True), x.var((1, 2), keepdims=True)
    rstd = 1 / np.sqrt(variance + eps)
    shape = (-1, max(groups, 1), *x.shape[1:])
    normal = ((x - mean) * rstd).reshape(shape)
    scale = 1 if weight is None else weight.reshape(shape[1], -1, 1)
    output = normal * scale + (0 if bias is None else bias.reshape(shape[1], -1, 1))
    return output.reshape(input.shape), mean.reshape(-1), rstd.reshape(-1)


_row_norm.reference(_numpy_row_norm)


@composite(namespaces=("", "nn.functional"), method=False)
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """Normalise over the last dimensions (J. L. Ba, J. R. Kiros, G. E. Hinton, 2016).

    Args:
        input: (..., *normalized_shape).
        normalized_shape: sizes of the dimensions to normalise over.
        weight, bias: ``normalized_shape``; scale and shift.
        eps: added to the variance.
        cudnn_enable: accepted and ignored.

    Raises:
        RuntimeError: the sizes do not fit.
    """
    _floating("layer_norm", input)
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape:
        raise ShapeError("layer_norm(): expected normalized_shape to be at least 1-dimensional, got ().")
    if tuple(input.shape[-len(shape) :]) != shape or input.geometry.ndim < len(shape):
        raise ShapeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], "
            f"but got input of size {list(input.shape)}."
        )
    for what, each in (("weight", weight), ("bias", bias)):
        if each is not None and tuple(each.shape) != shape:
            raise ShapeError(
                f"layer_norm(): expected {what} to be of same shape as normalized_shape, "
                f"but got {what} of shape {list(each.shape)} and normalized_shape = {list(shape)}."
            )
    if bias is not None and weight is None:
        return cast(Tensor, cast(Any, _row_norm.run(input, None, None, 0, math.prod(shape), eps)[0]) + bias)
    return cast(Tensor, _row_norm.run(input, weight, bias, 0, math.prod(shape), eps)[0])


@composite(namespaces=("", "nn.functional"), method=False)
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Normalise groups of channels of each sample (Y. Wu, K. He, 2018).

    Args:
        input: (N, C, ...).
        num_groups: into how many groups the channels are divided.
        weight, bias: (C,); scale and shift.
        eps: added to the variance.
        cudnn_enabled: accepted and ignored.

    Raises:
        RuntimeError: the channels cannot be divided so, or sizes do not fit.
        ValueError: a group has only one value.
    """
    _floating("group_norm", input)
    if input.geometry.ndim < 2:
        raise ShapeError(f"group_norm(): expected at least 2 dimensions for input tensor but received {input.ndim}.")
    batch, channels = input.geometry.shape[:2]
    if num_groups <= 0 or channels % num_groups:
        raise ShapeError(
            "Expected number of channels in input to be divisible by num_groups, "
            f"but got input of shape {list(input.shape)} and num_groups={num_groups}."
        )
    if batch * channels // num_groups * math.prod(input.geometry.shape[2:]) == 1:
        raise ArgumentError(
            f"Expected more than 1 value per channel when training, got input size {list(input.shape)}."
        )
    weight = _matching("group_norm", "weight", weight, channels, input)
    bias = _matching("group_norm", "bias", bias, channels, input)
    return cast(Tensor, _row_norm.run(input, weight, bias, num_groups, channels, eps)[0])


@composite(namespaces="nn.functional", method=False)
def local_response_norm(
    input: Tensor,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    k: float = 1.0,
) -> Tensor:
    """Divide by ``(k + alpha * mean of squares over `size` neighbouring channels) ** beta`` (A. Krizhevsky et al., 2012).

    Args:
        input: (N, C, L...).
        size: number of channels; beyond the first and last there are zeros.
        alpha, beta, k: constants of the formula.

    Raises:
        ValueError: there are fewer than three dimensions.
    """
    if input.geometry.ndim < 3:
        raise ArgumentError(f"Expected 3D or higher dimensionality input (got {input.geometry.ndim} dimensions).")
    x = cast(Any, input)
    if not input.geometry.numel:
        return input
    before, after = size // 2, (size - 1) // 2
    square = x * x
    shape = list(input.shape)
    total = square.new_zeros([shape[0], shape[1] + before + after, *shape[2:]]).slice_scatter(
        square, 1, before, before + shape[1]
    )
    sums = total.unfold(1, size, 1).sum(-1)
    mean = sums / size if input.key.dtype.category >= 2 else sums // size
    return cast(Tensor, x / (mean * alpha + k).pow(beta))


# ---------------------------------------------------------------- to a norm


@composite(namespaces="nn.functional", method=False)
def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """Divide by the p-norm along a dimension, or by ``eps`` if that is larger.

    Args:
        p: the exponent.
        dim: one or several dimensions.
        eps: least divisor.
        out: receives the result.
    """
    if out is not None:
        return finish_out("normalize", out, (input,), lambda: cast(Tensor, normalize(input, p, dim, eps)))
    x = cast(Any, input)
    return cast(Tensor, x / cast(Any, lp_norm(input, p, dim, True)).clamp(min=eps).expand(x.shape))


@composite(inplace="renorm_")
def renorm(self: Tensor, p: float, dim: int, maxnorm: float, *, out: Tensor | None = None) -> Tensor:
    """Scale each slice along a dimension whose p-norm is larger than ``maxnorm`` down to it.

    Args:
        p: the exponent, positive.
        dim: the dimension that numbers the slices.
        maxnorm: the largest norm.
        out: receives the result.

    Raises:
        RuntimeError: ``p`` is not positive, ``maxnorm`` is negative, or there are fewer than two dimensions.
    """
    if out is not None:
        return finish_out("renorm", out, (self,), lambda: cast(Tensor, renorm(self, p, dim, maxnorm)))
    if p <= 0:
        raise ShapeError(f"renorm: non-positive-norm not supported, got p={p}.")
    if maxnorm < 0:
        raise ShapeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}.")
    if self.geometry.ndim < 2:
        raise ShapeError(f"renorm: input needs at least 2 dimensions, got {self.geometry.ndim} dimensions.")
    dim = axis(dim, self.geometry.ndim)
    dims = tuple(each for each in range(self.geometry.ndim) if each != dim)
    size = cast(Any, lp_norm(self, p, dims, True))
    factor = (maxnorm / (size + 1e-7)).masked_fill(size <= maxnorm, 1.0)
    return cast(Tensor, cast(Any, self) * factor)
