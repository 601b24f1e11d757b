"""Losses made of other operators: likelihoods, divergences, margins, embeddings."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ..dispatch.operator import composite
from ..errors import ArgumentError, ShapeError
from ..geometry import broadcast_shapes
from ..tensor import Tensor
from .loss import binary_cross_entropy_with_logits, declare_loss, reduce_loss, reduction_of, same_shape

__all__ = [
    "cosine_embedding_loss", "cosine_similarity", "gaussian_nll_loss", "hinge_embedding_loss",
    "kl_div", "margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "pairwise_distance", "poisson_nll_loss", "soft_margin_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


def _distance(function: F) -> F:
    return cast(F, composite(namespaces=("", "nn.functional"), method=False)(function))


# ---------------------------------------------------------------- likelihoods and divergences


@declare_loss
def kl_div(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", log_target: bool = False,
) -> Tensor:  # fmt: skip
    """The Kullback-Leibler divergence ``target * (log(target) - input)`` of each element.

    Args:
        input: log-probabilities.
        target: probabilities, or log-probabilities if ``log_target``; broadcast to ``input``.
        reduction: also ``'batchmean'``: the sum divided by the size of dimension 0.
    """
    batchmean = reduction == "batchmean"
    reduction = "sum" if batchmean else reduction_of(reduction, size_average, reduce)
    x: Any = input
    t: Any = target
    if log_target:
        values = t.exp() * (t - x)
    else:
        values = t * t.masked_fill(t == 0, 1).log() - t * x  # 0 log(0) is 0
    reduced = reduce_loss(values, reduction)
    return reduced / x.shape[0] if batchmean and x.geometry.ndim else reduced  # type: ignore[no-any-return]


@declare_loss
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: bool | None = None,
    eps: float = 1e-8, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The negative log likelihood of counts ``target`` under a Poisson distribution with rate ``input``.

    Args:
        log_input: ``input`` is the log of the rate.
        full: add Stirling's approximation of ``log(target!)`` for targets above 1.
        eps: keeps the logarithm finite if not ``log_input``.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    x: Any = input
    t: Any = target
    values = x.exp() - t * x if log_input else x - t * (x + eps).log()
    if full:
        stirling = t * t.log() - t + 0.5 * (2 * math.pi * t).log()
        values = values + stirling.masked_fill(t <= 1, 0)
    return reduce_loss(values, reduction)  # type: ignore[no-any-return]


@declare_loss
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """The negative log likelihood of ``target`` under normal distributions of mean ``input`` and variance ``var``.

    Args:
        var: of the shape of ``input``, or without (or with size 1 in) its last dimension, or a number.
        full: add the constant ``log(2 pi) / 2``.
        eps: the smallest variance.

    Raises:
        ValueError: a variance is negative, or the shapes do not fit.
    """
    x: Any = input
    t: Any = target
    v: Any = x.new_full(x.shape, var) if isinstance(var, (int, float)) else var
    if v.shape != x.shape:
        if v.shape == x.shape[:-1]:
            v = v.unsqueeze(-1)
        elif v.geometry.ndim != x.geometry.ndim or v.shape[:-1] != x.shape[:-1] or v.shape[-1] != 1:
            raise ArgumentError(
                f"var is of incorrect size: expected {list(x.shape)} or one less dimension, got {list(v.shape)}."
            )
    if bool((v < 0).any()):
        raise ArgumentError("var has negative entry/entries")
    v = v + (v.detach().clamp(min=eps) - v.detach())  # the bound does not touch the gradient
    values = 0.5 * (v.log() + (x - t) ** 2 / v)
    if full:
        values = values + 0.5 * math.log(2 * math.pi)
    return reduce_loss(values, reduction_of(reduction))  # type: ignore[no-any-return]


# ---------------------------------------------------------------- margins


@declare_loss
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``input`` where ``target`` is 1, ``max(0, margin - input)`` where it is -1; shapes broadcast."""
    reduction = reduction_of(reduction, size_average, reduce)
    x: Any = input
    t: Any = target
    apart = (margin - x).clamp(min=0).masked_fill(t == 1, 0)
    together = x.masked_fill(t == -1, 0)
    return reduce_loss(apart + together, reduction)  # type: ignore[no-any-return]


@declare_loss
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """``log(1 + exp(-target * input))`` for targets of 1 and -1, of the shape of ``input``."""
    reduction = reduction_of(reduction, size_average, reduce)
    x, t = same_shape("soft_margin_loss", input, target)
    z = -t * x
    return reduce_loss(z.clamp(min=0) + (-z.abs()).exp().log1p(), reduction)  # type: ignore[no-any-return]


@declare_loss
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``max(0, -target * (input1 - input2) + margin)``: 1 ranks ``input1`` higher, -1 ``input2``.

    Raises:
        RuntimeError: the three have different numbers of dimensions.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    a: Any = input1
    b: Any = input2
    t: Any = target
    if not a.geometry.ndim == b.geometry.ndim == t.geometry.ndim:
        raise ShapeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {list(a.shape)}, input2: {list(b.shape)}, target: {list(t.shape)} "
        )
    return reduce_loss((-t * (a - b) + margin).clamp(min=0), reduction)  # type: ignore[no-any-return]


@declare_loss
def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The mean over the wrong classes of ``max(0, margin - input[target] + input[class]) ** p``.

    Args:
        input: scores (N, C) or (C).
        target: class numbers (N) or ().
        p: 1 or 2.
        weight: of each target class.

    Raises:
        ValueError: ``p`` is neither 1 nor 2.
        RuntimeError: the shapes do not fit.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ArgumentError(f"only p == 1 and p == 2 supported, got {p}.")
    x: Any = input
    single = x.geometry.ndim < 2
    x = x.reshape(1, -1) if single else x
    t: Any = target
    t = t.reshape(-1) if single else t
    if x.geometry.ndim != 2 or x.shape[1] == 0 or t.shape != x.shape[:1]:
        raise ShapeError(
            f"multi_margin_loss: expected input (N, C) or (C) and target (N) or (), got {list(input.shape)} and "
            f"{list(target.shape)}."
        )
    if weight is not None and weight.ndim != 1:
        raise ArgumentError(f"multi_margin_loss: weight must be one-dimensional, got shape {list(weight.shape)}.")
    if weight is not None and weight.shape != x.shape[1:]:
        raise ShapeError(
            f"multi_margin_loss: inconsistent weight size, expected [{x.shape[1]}], got {list(weight.shape)}."
        )
    at = t.unsqueeze(1)
    gaps = (margin - x.gather(1, at) + x).clamp(min=0)
    if p == 2:
        gaps = gaps * gaps
    if weight is not None:
        gaps = gaps * weight[target].reshape(-1, 1)  # type: ignore[index]
    values = gaps.scatter(1, at, 0.0).sum(1) / x.shape[1]
    if reduction == "none":
        return values.reshape(target.shape)  # type: ignore[no-any-return]
    return reduce_loss(values, reduction)  # type: ignore[no-any-return]


@declare_loss
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """For each target class, the sum over the other classes of ``max(0, 1 - input[target] + input[class])``, over C.

    Args:
        input: scores (N, C) or (C).
        target: class numbers of the same shape; the first -1 in a row ends it.

    Raises:
        RuntimeError: the shapes do not fit, or a target is no class.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    x: Any = input
    t: Any = target
    if x.shape != t.shape or x.geometry.ndim > 2 or x.shape[-1:] == (0,):
        raise ShapeError(
            f"multilabel_margin_loss: inconsistent target size: {list(t.shape)} for input of size: {list(x.shape)}."
        )
    single = x.geometry.ndim < 2
    if single:
        x, t = x.reshape(1, -1), t.reshape(1, -1)
    classes = x.shape[1]
    if x.geometry.numel and (int(t.min()) < -1 or int(t.max()) >= classes):
        raise ShapeError(
            f"multilabel_margin_loss: target out of range, expected class numbers below {classes} and -1 to end."
        )
    valid = (t < 0).to(dtype=t.dtype).cumsum(1) == 0
    safe = t.masked_fill(~valid, 0)
    wanted = t.new_zeros(t.shape).scatter_add(1, safe, valid.to(dtype=t.dtype)) > 0
    # (N, target, class): every target against every class that is none.
    gaps = (1 - x.gather(1, safe).unsqueeze(2) + x.unsqueeze(1)).clamp(min=0)
    counted = valid.unsqueeze(2) & ~wanted.unsqueeze(1)
    values = gaps.masked_fill(~counted, 0).sum((1, 2)) / classes
    return reduce_loss(values[0] if single else values, reduction)  # type: ignore[no-any-return]


@declare_loss
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The mean over the classes (last dimension) of the binary cross entropy of ``sigmoid(input)``.

    Args:
        target: 0 or 1, of the shape of ``input``.
        weight: of each class.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    x, t = same_shape("multilabel_soft_margin_loss", input, target)
    values: Any = binary_cross_entropy_with_logits(x, t, reduction="none")
    if weight is not None:
        values = values * weight
    return reduce_loss(values.mean(-1), reduction)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- distances and embeddings


@_distance
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along a dimension; the inputs broadcast.

    Args:
        eps: the smallest norm to divide by.
    """
    a: Any = x1
    b: Any = x2
    shape = broadcast_shapes(a.shape, b.shape)
    a, b = a.expand(shape), b.expand(shape)
    return (_unit(a, dim, eps) * _unit(b, dim, eps)).sum(dim)  # type: ignore[no-any-return]


def _unit(x: Any, dim: int, eps: float) -> Any:
    norm = (x * x).sum(dim, keepdim=True)
    # Below eps the norm counts as eps, and sqrt must not see 0: its slope there is infinite.
    small = norm.detach() <= eps * eps
    return x / norm.masked_fill(small, eps * eps).sqrt()


@_distance
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of ``x1 - x2 + eps`` over the last dimension; the inputs broadcast."""
    a: Any = x1
    return (a - x2 + eps).norm(p, -1, keepdim)  # type: ignore[no-any-return]


@declare_loss
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``1 - cos`` where ``target`` is 1, ``max(0, cos - margin)`` where it is -1.

    Args:
        input1, input2: vectors (N, D) or (D).
        target: (N) or ().

    Raises:
        RuntimeError: the shapes do not fit.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    a: Any = input1
    b: Any = input2
    t: Any = target
    ndim = t.geometry.ndim
    if ndim > 1 or a.geometry.ndim != ndim + 1 or b.geometry.ndim != ndim + 1:
        expected = "1D input tensors for a 0D target" if ndim == 0 else "2D input tensors for a 1D target"
        raise ShapeError(
            f"cosine_embedding_loss: expected {expected}, got inputs {list(a.shape)}, {list(b.shape)} and "
            f"target {list(t.shape)}."
        )
    cos = _cosine(a, b, ndim)
    values = (1 - cos).masked_fill(t != 1, 0) + (cos - margin).clamp(min=0).masked_fill(t != -1, 0)
    return reduce_loss(values, reduction)  # type: ignore[no-any-return]


def _cosine(a: Any, b: Any, dim: int) -> Any:
    # A tiny constant instead of a bound keeps the gradient smooth at 0.
    product, a2, b2 = (a * b).sum(dim), (a * a).sum(dim) + 1e-12, (b * b).sum(dim) + 1e-12
    return product / (a2 * b2).sqrt()


@declare_loss
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6,
    swap: bool = False, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``max(0, |anchor - positive| - |anchor - negative| + margin)`` with p-norms over the last dimension.

    Args:
        swap: use the distance of positive and negative if it is smaller than that of anchor and negative.
            Source: Balntas et al., "Learning shallow convolutional feature descriptors with triplet losses", 2016.

    Raises:
        RuntimeError: the three have different numbers of dimensions.
        ValueError: ``margin`` is not positive.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if margin <= 0:
        raise ArgumentError(f"margin must be greater than 0, got {margin}")
    sizes = [each.shape for each in (anchor, positive, negative)]
    if len({len(each) for each in sizes}) != 1:
        raise ShapeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {len(sizes[0])}D, positive {len(sizes[1])}D, and negative {len(sizes[2])}D inputs"
        )
    return _triplet(anchor, positive, negative, lambda a, b: pairwise_distance(a, b, p, eps), margin, swap, reduction)  # type: ignore[no-any-return]


@declare_loss
def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0, swap: bool = False,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Like :func:`triplet_margin_loss` with any distance; the Euclidean one if not given."""
    if margin <= 0:
        raise ArgumentError(f"margin must be greater than 0, got {margin}")
    distance = pairwise_distance if distance_function is None else distance_function
    return _triplet(anchor, positive, negative, distance, margin, swap, reduction_of(reduction))  # type: ignore[no-any-return]


def _triplet(
    anchor: Any, positive: Any, negative: Any, distance: Any, margin: float, swap: bool, reduction: str
) -> Any:
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduce_loss((near - far + margin).clamp(min=0), reduction)
