"""Normalisation, losses, recurrent layers and optimiser steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...dtype import float32
from ..operands import Draw, Operand
from ..samples import definition, faults, samples


def _positive(draw: Draw, *shape: int) -> Operand:
    return draw(*shape, low=0.5, high=2)


@samples("batch_norm_train")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for shape in ((6, 3), (2, 3, 5), (2, 4, 3, 3)):
        yield draw(*shape), draw(shape[1]), draw(shape[1]), 1e-3
    yield draw(4, 3), None, None, 1e-3
    if draw.floating:
        yield "accumulation", draw.of(8 + draw.rng.random((500, 2))), None, None, 1e-3


@samples("batch_norm_train_backward")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for shape in ((6, 3), (2, 4, 3, 3)):
        x = draw(*shape)
        dims = (0, *range(2, len(shape)))
        mean, variance = draw.of(x.values.mean(dims)), draw.of(x.values.var(dims))
        yield draw(*shape), x, draw(shape[1]), mean, variance, 1e-3
        yield draw(*shape), x, None, mean, variance, 1e-3


@samples("batch_norm_eval")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for shape in ((6, 3), (2, 3, 5), (2, 4, 3, 3)):
        c = shape[1]
        yield draw(*shape), draw(c), _positive(draw, c), draw(c), draw(c), 1e-3
    yield draw(4, 3), draw(3), _positive(draw, 3), None, None, 1e-3
    yield "empty", draw(0, 3), draw(3), _positive(draw, 3), None, None, 1e-3


@samples("row_norm")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw(4, 6), draw(6), draw(6), 0, 6, 1e-3
    yield draw(2, 3, 5), None, None, 0, 5, 1e-3
    yield draw(2, 4, 3, 3), draw(4), draw(4), 2, 4, 1e-3
    yield draw(2, 4, 5), draw(4), draw(4), 4, 4, 1e-3
    yield "empty", draw(0, 6), draw(6), draw(6), 0, 6, 1e-3


@samples("row_norm_backward")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for shape, groups, weights in (((4, 6), 0, 6), ((2, 4, 3, 3), 2, 4), ((2, 4, 5), 4, 4)):
        x = draw(*shape)
        rows = x.values.reshape(-1, weights) if not groups else x.values.reshape(shape[0] * groups, -1)
        mean, rstd = draw.of(rows.mean(1)), draw.of(1 / np.sqrt(rows.var(1) + 1e-3))
        yield draw(*shape), x, draw(weights), mean, rstd, groups, weights
        yield draw(*shape), x, None, mean, rstd, groups, weights


def _pairs(draw: Draw) -> Iterator[tuple[Any, ...]]:
    """Arguments of the losses that compare two tensors, but for the number that some of them take."""
    for kind in ("l1", "mse", "smooth_l1", "huber", "bce_logits", "bce"):
        low, high = (0.1, 0.9) if kind.startswith("bce") else (-3, 3)
        for reduction in ("none", "mean", "sum"):
            x = draw(3, 5) if kind != "bce" else draw(3, 5, low=low, high=high)
            yield x, draw(3, 5, low=low, high=high), kind, reduction


@samples("pair_loss")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for pair in _pairs(draw):
        yield *pair, 0.75


@samples("pair_loss_backward")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for *pair, reduction in _pairs(draw):
        yield draw(3, 5) if reduction == "none" else draw(), *pair, reduction, 0.75


def _scratch(draw: Draw, elements: int) -> Operand:
    dtype = draw.dtype if draw.dtype.itemsize >= 4 else float32
    return Operand(np.zeros(elements), dtype)


@samples("class_loss")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for reduction in ("none", "mean", "sum"):
        for normalise in (True, False):
            yield draw(4, 5), draw.places([0, 4, 2, 1]), None, _scratch(draw, 5), normalise, reduction, -100
    yield draw(4, 5), draw.places([0, 4, -100, 1]), _positive(draw, 5), _scratch(draw, 5), True, "mean", -100
    yield draw(2, 3, 2), draw.places([[0, 2], [1, 1]]), None, _scratch(draw, 5), True, "mean", -100
    yield draw(2, 3, 2), draw.places([[0, 2], [1, 1]]), _positive(draw, 3), _scratch(draw, 5), False, "none", 1


@faults("class_loss")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield "target out of range", draw(2, 5), draw.places([0, 5]), None, _scratch(draw, 3), True, "mean", -100


@samples("recurrent_layer")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    width = 3
    for kind, blocks in (("lstm", 4), ("gru", 3), ("tanh", 1), ("relu", 1)):
        for sizes, reverse in (((2, 2, 1), False), ((2, 1), True)):
            cx = draw(2, width) if kind == "lstm" else None
            bias = draw(blocks * width) if kind == "gru" else None
            gates, weight = draw(sum(sizes), blocks * width), draw(blocks * width, width, low=-1, high=1)
            state = (gates, draw(2, width), cx, weight, bias)
            kept = {"lstm": 5, "gru": 4}.get(kind)
            yield *state, draw.of(np.zeros(sum(sizes) * width * kept)) if kept else None, kind, sizes, reverse
            yield "without history", *state, None, kind, sizes, reverse


@samples("sgd_step_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw(3, 5), draw(3, 5), None, 0.5, 0.0, 0.0, 0.0, False, False
    yield draw(3, 5), draw(3, 5), draw(3, 5), 0.5, 0.75, 0.25, 0.125, False, False
    yield draw(7), draw(7), draw(7), 0.5, 0.75, 0.0, 0.125, True, False
    yield draw(7), draw(7), draw(7), 0.5, 0.75, 0.0, 0.0, False, True


@samples("sgd_steps_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    tensors = ([draw(3, 5), draw(7)] for _ in range(3))
    yield *tensors, 0.5, 0.75, 0.25, 0.125, False, False
    yield [draw(3, 5)], [draw(3, 5)], [None], 0.5, 0.0, 0.0, 0.0, False, False


@samples("adam_steps_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    squares = [_positive(draw, 3, 5), _positive(draw, 7)]
    moving = ([draw(3, 5), draw(7)] for _ in range(3))
    yield *moving, squares, [None, None], 0.25, 0.875, 0.75, 1e-3, 0.125, False, 3


@samples("adam_step_")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for most, decay, decoupled in ((False, 0.0, False), (True, 0.125, False), (False, 0.125, True)):
        state = (draw(7), _positive(draw, 7), _positive(draw, 7) if most else None)
        yield draw(7), draw(7), *state, 0.25, 0.875, 0.75, 1e-3, decay, decoupled, 3


# ---------------------------------------------------------------- definitions


@definition("batch_norm_eval")
def _batch_norm_eval(x: Any, mean: Any, variance: Any, weight: Any, bias: Any, eps: float) -> Any:
    shape = (1, -1, *[1] * (x.ndim - 2))
    scale = 1 if weight is None else weight.reshape(shape)
    off = (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + eps)
    return off * scale + (0 if bias is None else bias.reshape(shape))


def _normal_backward(grad: Any, normal: Any, rstd: Any, dims: tuple[int, ...]) -> Any:
    """The gradient through ``normal = (x - mean) * rstd``, whose statistics are taken over ``dims``."""
    along = normal * (grad * normal).mean(dims, keepdims=True)
    return (grad - grad.mean(dims, keepdims=True) - along) * rstd


@definition("batch_norm_train_backward")
def _batch_norm_train_backward(grad: Any, x: Any, weight: Any, mean: Any, variance: Any, eps: float) -> Any:
    shape, dims = (1, -1, *[1] * (x.ndim - 2)), (0, *range(2, x.ndim))
    rstd = 1 / np.sqrt(variance.reshape(shape) + eps)
    normal = (x - mean.reshape(shape)) * rstd
    scaled = grad if weight is None else grad * weight.reshape(shape)
    return _normal_backward(scaled, normal, rstd, dims), (grad * normal).sum(dims), grad.sum(dims)


@definition("row_norm_backward")
def _row_norm_backward(grad: Any, x: Any, weight: Any, mean: Any, rstd: Any, groups: int, weights: int) -> Any:
    parts = max(groups, 1)
    shape = (-1, 1, weights, 1) if not groups else (x.shape[0], groups, weights // groups, -1)
    rows, upstream = x.reshape(shape), grad.reshape(shape)
    mean, rstd = (each.reshape(-1, parts, 1, 1) for each in (mean, rstd))
    normal = (rows - mean) * rstd
    scaled = upstream if weight is None else upstream * weight.reshape(parts, -1, 1)
    sums = [each.sum((0, 3)).reshape(-1) for each in (upstream * normal, upstream)]
    return _normal_backward(scaled, normal, rstd, (2, 3)).reshape(x.shape), *sums
