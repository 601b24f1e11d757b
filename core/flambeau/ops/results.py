"""What the kernels of the primitives return: shape and dtype from the arguments, for calls that are only explained.

Of operators with a composite body only those are here whose body looks at values, and those that devices with
kernels of their own shall not have to wait for (``flambeau.backend.results_of``), as the body tells the rest; neither are
those whose results have as many elements as the values decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from ..dispatch.abstract import Unknown
from ..dispatch.operator import operators
from ..dtype import bool_, int64, uint8
from ..geometry import broadcast_shapes
from ..tensor import Tensor
from .indexing import result_shape

__all__ = ["VALUE_DEPENDENT", "declare"]

#: Operators whose results have as many elements as values decide.
VALUE_DEPENDENT: Final = frozenset({"masked_select", "nonzero", "unique_of_all"})


def _like_first(self: Tensor, *_: Any) -> Any:
    return self.shape


def _in_place(self: Tensor, *_: Any) -> Any:
    return self.geometry if self.geometry.dense else self.shape


def _folded(self: Tensor, dims: Sequence[int], keepdim: bool, *_: Any) -> tuple[int, ...]:
    return tuple(1 if at in dims else size for at, size in enumerate(self.shape) if keepdim or at not in dims)


def _folded_to(self: Tensor, dims: Sequence[int], keepdim: bool, dtype: Any) -> Any:
    return _folded(self, dims, keepdim), dtype


def _truth(self: Tensor, dims: Sequence[int], keepdim: bool) -> Any:
    return _folded(self, dims, keepdim), uint8 if self.key.dtype is uint8 else bool_


def _place(self: Tensor, dim: int | None, keepdim: bool) -> Any:
    dims = range(self.geometry.ndim) if dim is None else (dim,)
    return _folded(self, dims, keepdim), int64


def _with_place(self: Tensor, dim: int, keepdim: bool) -> list[Any]:
    return [_folded(self, (dim,), keepdim), (_folded(self, (dim,), keepdim), int64)]


def _kth(self: Tensor, k: int, dim: int, keepdim: bool) -> list[Any]:
    return _with_place(self, dim, keepdim)


def _with_index(self: Tensor, *_: Any) -> list[Any]:
    return [self.shape, (self.shape, int64)]


def _with_size(self: Tensor, dim: int, size: int) -> tuple[int, ...]:
    return tuple(size if at == dim else each for at, each in enumerate(self.shape))


def _top(self: Tensor, k: int, dim: int, largest: bool) -> list[Any]:
    shape = _with_size(self, dim, k) if self.geometry.ndim or k else (0,)
    return [shape, (shape, int64)]


def _cat(tensors: Sequence[Tensor], dim: int) -> tuple[int, ...]:
    return _with_size(tensors[0], dim, sum(each.shape[dim] for each in tensors))


def _matmul(self: Tensor, other: Tensor) -> tuple[int, ...]:
    rows = self.shape[-2:-1]
    columns = other.shape[-1:] if other.geometry.ndim > 1 else ()
    return (*broadcast_shapes(self.shape[:-2], other.shape[:-2]), *rows, *columns)


def _windows(size: Sequence[int], kernel: Sequence[int], stride: Any, padding: Any, dilation: Any) -> list[int]:
    return [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    ]


def _conv(input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    size = _windows(input.shape[2:], weight.shape[2:], stride, padding, dilation)
    return (input.shape[0], weight.shape[0], *size)


def _conv_input(output: Tensor, weight: Tensor, bias: Any, size: Sequence[int], *rest: Any) -> Any:
    return (output.shape[0], weight.shape[1] * rest[-1], *size)


def _conv_weight(input: Tensor, output: Tensor, size: Sequence[int], *rest: Any) -> Any:
    return (output.shape[1], input.shape[1] // rest[-1], *size)


def _im2col(self: Tensor, kernel: Sequence[int], dilation: Any, padding: Any, stride: Any) -> Any:
    windows = math.prod(_windows(self.shape[2:], kernel, stride, padding, dilation))
    return self.shape[0], self.shape[1] * math.prod(kernel), windows


def _col2im(self: Tensor, size: Sequence[int], kernel: Sequence[int], *_: Any) -> Any:
    return (self.shape[0], self.shape[1] // math.prod(kernel), *size)


def _planes(self: Tensor, size: Sequence[int], *_: Any) -> Any:
    return (*self.shape[: self.geometry.ndim - len(size)], *size)


def _planes_with_index(self: Tensor, size: Sequence[int], *_: Any) -> list[Any]:
    return [_planes(self, size), (_planes(self, size), int64)]


def _batch_norm(input: Tensor, *_: Any) -> list[Any]:
    return [input.shape, input.shape[1:2], input.shape[1:2]]


def _batch_norm_backward(grad: Tensor, input: Tensor, *_: Any) -> list[Any]:
    return _batch_norm(input)


def _row_norm(input: Tensor, weight: Any, bias: Any, groups: int, weights: int, eps: float) -> list[Any]:
    rows = input.shape[0] * groups if groups else input.geometry.numel // weights if weights else 0
    return [input.shape, (rows,), (rows,)]


def _what_is_left(*_: Any) -> Any:
    raise Unknown("which parameters a kernel for many leaves to the one for each shows when it has run")


def _held(*_: Any) -> Any:
    raise Unknown("what a tensor of another layout holds shows when the kernel has run")


def _row_norm_backward(
    grad: Tensor, input: Tensor, weight: Any, mean: Any, rstd: Any, groups: int, weights: int
) -> Any:
    return [input.shape, (weights,), (weights,)]


_RULES: Final[dict[Callable[..., Any], str]] = {
    _like_first: "bernoulli poisson tril triu flip batch_norm_eval cumsum cumprod recurrence logcumsumexp softmax "
    "log_softmax softmax_backward log_softmax_backward",
    _in_place: "clone",
    _folded: "mean var std lp_norm amax amin",
    _folded_to: "sum prod",
    _truth: "any all",
    _place: "argmax argmin",
    _with_place: "max_over min_over median_over nanmedian_over mode",
    _kth: "kthvalue",
    _with_index: "sort cummax cummin",
    _top: "topk",
    _cat: "cat",
    _matmul: "matmul",
    _conv: "conv",
    _conv_input: "conv_input",
    _conv_weight: "conv_weight",
    _im2col: "im2col",
    _col2im: "col2im",
    _planes: "avg_pool avg_pool_backward adaptive_avg_pool adaptive_avg_pool_backward",
    _planes_with_index: "max_pool adaptive_max_pool",
    _batch_norm: "batch_norm_train",
    _batch_norm_backward: "batch_norm_train_backward",
    _row_norm: "row_norm",
    _row_norm_backward: "row_norm_backward",
    _held: "sparse_tensor sparse_indices sparse_values is_coalesced coalesce sparse_lookup to_dense sparse_product "
    "sampled_product sspaddmm",
    _what_is_left: "sgd_steps_ adam_steps_",
    lambda self, dtype: (_in_place(self), dtype): "cast",
    lambda self, target, weight, scratch, normalise, reduction, _: (
        () if reduction != "none" else target.shape
    ): "class_loss",
    lambda grad, self, *_: self.shape: "class_loss_backward",
    lambda self, other: (self.shape[0], other.shape[1]): "mm",
    lambda self, other: (*self.shape[:2], other.shape[2]): "bmm",
    lambda self, *_: self.shape[:1]: "mv",
    lambda *_: (): "dot",
    lambda input, weight, bias: (*input.shape[:-1], *weight.shape[:-1]): "linear",
    lambda self, one, other, *_: (*one.shape[:-1], other.shape[-1]): "addmm baddbmm",
    lambda weight, indices, *_: (*indices.shape, *weight.shape[1:]): "embedding",
    lambda *tensors: broadcast_shapes(*[each.shape for each in tensors]): "where normal",
    lambda self, count, *_: ((*self.shape[:-1], count), int64): "multinomial",
    lambda self, *_: [self.shape, (self.shape, bool_)]: "drop",
    lambda self, index, *_: index.shape: "gather take",
    lambda self, index, dim: _with_size(self, dim, index.geometry.numel): "index_select",
    lambda self, indices: result_shape(self.shape, indices): "index",
}


def declare() -> None:
    """Give every operator of the table its rule; called once all are declared."""
    for rule, names in _RULES.items():
        for name in names.split():
            operators[name].returns(rule)
    operators["move"].returns(lambda self, device, _: (self.shape, self.key.dtype, device), opaque=True)
