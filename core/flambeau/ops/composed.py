"""What primitives are made of where a backend has no kernel of their own: few kernels carry many operators.

``add``, ``mul``, ``div``, ``eq``, ``lt``, ``where``, ``exp``, ``log``, ``sqrt``, ``sum``, ``amax``, ``argmax`` and ``copy_``
are at the bottom; a body is exact where its operator is, and rounds some times more where it rounds.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ..dispatch.operator import operators, overwrite
from ..dtype import bool_, uint8
from ..geometry import contiguous
from ..tensor import constant, empty
from . import (  # noqa: F401, they declare
    activation,
    arithmetic,
    comparison,
    conversion,
    dropout,
    extrema,
    joining,
    masking,
    normalization,
    random,
    ranges,
    reduction,
    softmax,
    ternary,
    unary,
)  # fmt: skip
from .creation import tensor
from .ranges import arange
from .ternary import where

__all__ = ["OTHERS", "POINTWISE"]


def _negative(x: Any) -> Any:
    return x * (255 if x.dtype is uint8 else -1)


def _mirrored(x: Any) -> Any:
    """The numbers in reverse order: -x, but -1 - x of whole ones, which exists for each."""
    return x.eq(False) if x.dtype is bool_ else _negative(x if x.is_floating_point() else x + 1)


def _above(x: Any, low: Any, otherwise: Any) -> Any:
    """``otherwise`` where ``x <= low``, which no NaN is, 0 there."""
    return where(x <= low, constant(otherwise.key, 0), otherwise)


def _infinite(x: Any) -> Any:
    return x.eq(math.inf) + x.eq(-math.inf) if x.is_floating_point() else x.ne(x)


def _finite(x: Any) -> Any:
    return (x - x).eq(0) if x.is_floating_point() else x.eq(x)


POINTWISE: Final[dict[str, Any]] = {
    "sub": lambda a, b: a + _negative(b),
    "neg": _negative,
    "reciprocal": lambda x: constant(x.key, 1) / x,
    "rsqrt": lambda x: x.sqrt().reciprocal(),
    "add_scaled": lambda a, b, alpha: a + b * alpha,
    "addcmul": lambda x, a, b, value: x + a * b * value,
    "addcdiv": lambda x, a, b, value: x + a / b * value,
    "maximum": lambda a, b: where(a.lt(b) + b.ne(b), b, a),
    "minimum": lambda a, b: where(b.lt(a) + b.ne(b), b, a),
    "abs": lambda x: x.clone() if x.dtype is bool_ else where(x.le(0), x.neg() + 0, x),
    "clip_numbers": lambda x, low, high: x.maximum(low).minimum(high),
    "ne": lambda a, b: a.eq(b).eq(False),
    "gt": lambda a, b: b.lt(a),
    "le": lambda a, b: a.lt(b) + a.eq(b),
    "ge": lambda a, b: b.lt(a) + a.eq(b),
    "logical_not": lambda x: x.eq(0),
    "logical_and": lambda a, b: a.ne(0) * b.ne(0),
    "logical_or": lambda a, b: a.ne(0) + b.ne(0),
    "logical_xor": lambda a, b: a.ne(0).ne(b.ne(0)),
    "isnan": lambda x: x.ne(x),
    "isinf": _infinite,
    "isfinite": _finite,
    "relu": lambda x: x.maximum(0),
    "threshold_backward": lambda upstream, x, limit: _above(x, limit, upstream),
    "sigmoid": lambda x: (x.neg().exp() + 1).reciprocal(),
    "sigmoid_backward": lambda upstream, output: upstream * (1 - output) * output,
    "tanh_backward": lambda upstream, output: upstream * (1 - output * output),
    "silu": lambda x: x * x.sigmoid(),
}


def _softmax(x: Any, dim: int) -> Any:
    powers = (x - x.amax(dim, True)).exp()
    return powers / powers.sum(dim, True)


def _log_softmax(x: Any, dim: int) -> Any:
    shifted = x - x.amax(dim, True)
    return shifted - shifted.exp().sum(dim, True).log()


def _any(x: Any, dims: Any, keepdim: bool) -> Any:
    return x.ne(0).sum(dims, keepdim).ne(0).to(x.dtype if x.dtype is uint8 else None)


def _cast(x: Any, dtype: Any) -> Any:
    return overwrite(empty(x.key.of(dtype), contiguous(x.shape)), x)


def _cat(tensors: Any, dim: int) -> Any:
    first, start = tensors[0], 0
    shape = list(first.shape)
    shape[dim] = sum(each.shape[dim] for each in tensors)
    result: Any = empty(first.key, contiguous(tuple(shape)))
    for each in tensors:
        overwrite(result.narrow(dim, start, each.shape[dim]), each)
        start += each.shape[dim]
    return result


def _below(x: Any, diagonal: int) -> Any:
    """Whether elements of matrices are on or below a diagonal."""
    rows, columns = x.shape[-2:]
    return arange(columns, device=x.device).le(arange(rows, device=x.device).unsqueeze(1) + diagonal)


def _arange(x: Any, start: Any, step: Any) -> Any:
    return overwrite(x, tensor(start + np.arange(x.shape[0]) * step, dtype=x.dtype, device=x.device))


def _variance(x: Any, dims: Any, keepdim: bool, correction: float) -> Any:
    off = x - x.mean(dims, True)
    count = math.prod(x.shape[each] for each in dims) - correction
    return (off * off).sum(dims, keepdim) / max(count, 0)


def _scaled(normal: Any, weight: Any, bias: Any, shape: Any) -> Any:
    if weight is not None:
        normal = normal * weight.view(shape)
    return normal if bias is None else normal + bias.view(shape)


def _normal_back(grad: Any, normal: Any, rstd: Any, dims: Any) -> Any:
    """The gradient through ``normal = (x - mean) * rstd``, whose statistics are taken over ``dims``."""
    return (grad - grad.mean(dims, True) - normal * (grad * normal).mean(dims, True)) * rstd


def _channelwise(x: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The dimensions that a channel's statistics are taken over, and the shape of what is one for each channel."""
    return (0, *range(2, x.ndim)), (1, -1, *(1,) * (x.ndim - 2))


def _batch_norm_train(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    dims, _ = _channelwise(x)
    mean, variance = x.mean(dims), _variance(x, dims, False, 0)
    return _batch_norm_eval(x, mean, variance, weight, bias, eps), mean, variance


def _batch_norm_eval(x: Any, mean: Any, variance: Any, weight: Any, bias: Any, eps: float) -> Any:
    shape = _channelwise(x)[1]
    return _scaled((x - mean.view(shape)) * (variance + eps).rsqrt().view(shape), weight, bias, shape)


def _batch_norm_train_backward(grad: Any, x: Any, weight: Any, mean: Any, variance: Any, eps: float) -> Any:
    dims, shape = _channelwise(x)
    rstd = (variance + eps).rsqrt().view(shape)
    normal = (x - mean.view(shape)) * rstd
    return (
        _normal_back(_scaled(grad, weight, None, shape), normal, rstd, dims),
        (grad * normal).sum(dims),
        grad.sum(dims),
    )


def _rows(x: Any, groups: int, weights: int) -> tuple[Any, Any]:
    """(rows, parts, weights of a part, elements that share one), and the shape of the weights."""
    shape = (x.shape[0], groups, weights // groups, -1) if groups else (-1, 1, weights, 1)
    return x.reshape(shape), (max(groups, 1), -1, 1)


def _row_norm(x: Any, weight: Any, bias: Any, groups: int, weights: int, eps: float) -> Any:
    rows, shape = _rows(x, groups, weights)
    mean, rstd = rows.mean((2, 3), True), (_variance(rows, (2, 3), True, 0) + eps).rsqrt()
    return _scaled((rows - mean) * rstd, weight, bias, shape).reshape(x.shape), mean.view(-1), rstd.view(-1)


def _row_norm_backward(grad: Any, x: Any, weight: Any, mean: Any, rstd: Any, groups: int, weights: int) -> Any:
    (rows, shape), (upstream, _) = _rows(x, groups, weights), _rows(grad, groups, weights)
    mean, rstd = (each.view(-1, max(groups, 1), 1, 1) for each in (mean, rstd))
    normal = (rows - mean) * rstd
    back = _normal_back(_scaled(upstream, weight, None, shape), normal, rstd, (2, 3))
    return back.reshape(x.shape), *[each.sum((0, 3)).view(-1) for each in (upstream * normal, upstream)]


def _drop(x: Any, p: float, seed: int, offset: int) -> Any:
    numbers: Any = empty(x.key, contiguous(x.shape))
    uniform = operators["uniform_"]
    (uniform.table.get(x.key) or uniform.resolve(x.key))(numbers, 0.0, 1.0, seed, offset)
    kept = numbers.ge(p)
    return where(kept, x / (1 - p), constant(x.key, 0)), kept


OTHERS: Final[dict[str, Any]] = {
    "cast": _cast,
    "fill_": lambda x, value: overwrite(x, value.expand(x.shape)),
    "masked_fill_": lambda x, mask, value: overwrite(x, where(mask, value, x)),
    "arange_": _arange,
    "cat": _cat,
    "tril": lambda x, diagonal: where(_below(x, diagonal), x, constant(x.key, 0)),
    "triu": lambda x, diagonal: where(_below(x, diagonal - 1), constant(x.key, 0), x),
    "amin": lambda x, dims, keepdim: _mirrored(_mirrored(x).amax(dims, keepdim)),
    "argmin": lambda x, dim, keepdim: _mirrored(x).argmax(dim, keepdim),
    "mean": lambda x, dims, keepdim: x.sum(dims, keepdim) / math.prod(x.shape[each] for each in dims),
    "var": _variance,
    "std": lambda *args: _variance(*args).sqrt(),
    "batch_norm_train": _batch_norm_train,
    "batch_norm_train_backward": _batch_norm_train_backward,
    "batch_norm_eval": _batch_norm_eval,
    "row_norm": _row_norm,
    "row_norm_backward": _row_norm_backward,
    "drop": _drop,
    "any": _any,
    "all": lambda x, dims, keepdim: x.eq(0).any(dims, keepdim).eq(0).to(x.dtype if x.dtype is uint8 else None),
    "softmax": lambda x, dim: _softmax(x, dim) if x.numel() else x.clone(),
    "log_softmax": lambda x, dim: _log_softmax(x, dim) if x.numel() else x.clone(),
    "softmax_backward": lambda grad, output, dim: output * (grad - (grad * output).sum(dim, True)),
    "log_softmax_backward": lambda grad, output, dim: grad - output.exp() * grad.sum(dim, True),
}

for _name, _body in {**POINTWISE, **OTHERS}.items():
    operators[_name].composite(_body, strided=True)
