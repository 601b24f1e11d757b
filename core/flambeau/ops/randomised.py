"""Randomised layers made of other operators: pooling over random windows, and soft samples of categories."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from ..dispatch.operator import composite
from ..dtype import int64
from ..errors import ArgumentError, ShapeError, shown
from ..tensor import Tensor
from .creation import tensor

__all__ = ["fractional_max_pool2d", "fractional_max_pool3d", "gumbel_softmax"]

F = TypeVar("F", bound=Callable[..., Any])


def _function(function: F) -> F:
    return cast(F, composite(namespaces="nn.functional", method=False)(function))


@_function
def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Any:
    """A differentiable sample of a category: the softmax of ``(logits + Gumbel noise) / tau``.

    Args:
        tau: the temperature; the lower, the closer to one category.
        hard: give the category itself as zeros and a one; the gradient is that of the soft sample.
        dim: of the categories.

    Source: Jang et al., "Categorical reparameterization with Gumbel-softmax", 2017.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", UserWarning, stacklevel=3)
    x: Any = logits
    # Exponential noise e gives Gumbel noise -log(e).
    noise = -x.detach().new_empty(x.shape).exponential_().log()
    soft = ((x + noise) / tau).softmax(dim)
    if not hard:
        return soft
    sample = soft.detach().new_zeros(soft.shape).scatter(dim, soft.detach().argmax(dim, keepdim=True), 1.0)
    return sample - soft.detach() + soft


def _fractional(
    name: str, input: Any, kernel: Any, output_size: Any, output_ratio: Any, samples: Any, return_indices: bool,
    dims: int,
) -> Any:  # fmt: skip
    x = input
    single = x.geometry.ndim == dims + 1
    if x.geometry.ndim not in (dims + 1, dims + 2):
        raise ShapeError(f"{name}: expected input with {dims + 1} or {dims + 2} dimensions, got {list(x.shape)}.")
    if output_size is None and output_ratio is None:
        raise ArgumentError(f"{name} requires specifying either an output_size or an output_ratio")
    x = x.unsqueeze(0) if single else x
    olds = x.shape[2:]

    def each(given: Any, what: str) -> tuple[Any, ...]:
        found = tuple(given) if isinstance(given, Sequence) else (given,) * dims
        if len(found) != dims or not all(isinstance(number, (int, float)) for number in found):
            raise ArgumentError(f"{name}: expected {what} to be a number or {dims} numbers, got {shown(given)}.")
        return found

    sizes = each(kernel, "kernel_size")
    if output_size is None:
        ratios = each(output_ratio, "output_ratio")
        news: tuple[int, ...] = tuple(int(old * ratio) for old, ratio in zip(olds, ratios))
    else:
        news = each(output_size, "output_size")
    for old, new, size in zip(olds, news, sizes, strict=True):
        if new <= 0 or new + size - 1 > old:
            raise ShapeError(
                f"{name}: expected an output size of 1 to {old - size + 1} for input {list(input.shape)} and kernel "
                f"{list(sizes)}, got {list(news)}."
            )
    batch, channels = x.shape[:2]
    if samples is None:
        samples = x.new_empty((batch, channels, dims)).uniform_()
    index: Any = None
    for dim in range(dims):
        old, new, size = olds[dim], news[dim], sizes[dim]
        u = samples[:, :, dims - 1 - dim if dims == 2 else dim].unsqueeze(2)
        steps = tensor([float(i) for i in range(new)], dtype=u.dtype, device=u.device)
        alpha = (old - size) / (new - 1) if new > 1 else 0.0
        starts = ((steps + u) * alpha).floor() - (u * alpha).floor()
        last = tensor([i == new - 1 for i in range(new)], device=u.device)
        starts = starts.masked_fill(last, float(old - size)).to(dtype=int64)
        taps = starts.unsqueeze(3) + tensor(list(range(size)), device=u.device)
        # (batch, channels, new..., size...): this dimension's places, broadcast against the others.
        shape = [batch, channels] + [1] * (2 * dims)
        shape[2 + dim], shape[2 + dims + dim] = new, size
        taps = taps.reshape(shape)
        index = taps if index is None else index * old + taps
    window = math.prod(sizes)
    count = math.prod(news)
    index = index.reshape(batch, channels, count, window)
    flat = x.reshape(batch, channels, math.prod(olds))
    values = flat.gather(2, index.reshape(batch, channels, count * window)).reshape(index.shape)
    best, where = values.max(3)
    result = best.reshape(batch, channels, *news)
    result = result.squeeze(0) if single else result
    if not return_indices:
        return result
    places = index.gather(3, where.unsqueeze(3)).reshape(batch, channels, *news)
    return result, places.squeeze(0) if single else places


@_function
def fractional_max_pool2d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:  # fmt: skip
    """The largest value of windows at random steps over (N, C, H, W).  Source: Graham, "Fractional max-pooling", 2014.

    Args:
        kernel_size: of the windows.
        output_size: of the result; or
        output_ratio: its share of the input's size.
        return_indices: also return where in the flattened image each value was.
    """
    return _fractional(
        "fractional_max_pool2d", input, kernel_size, output_size, output_ratio, _random_samples, return_indices, 2
    )


@_function
def fractional_max_pool3d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:  # fmt: skip
    """Like :func:`fractional_max_pool2d` over (N, C, D, H, W)."""
    return _fractional(
        "fractional_max_pool3d", input, kernel_size, output_size, output_ratio, _random_samples, return_indices, 3
    )
