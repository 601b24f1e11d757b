"""Rows of a table by number: embeddings, bags of them, and one-hot rows."""

from __future__ import annotations

from typing import Any, cast

from ..autograd.grad_mode import no_grad
from ..dispatch.operator import composite, primitive
from ..dtype import int32, int64
from ..errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError, shown
from ..key import intern
from ..layout import sparse_coo
from ..tensor import Tensor
from .creation import tensor
from .sparse import sparse_tensor
from .views import positions

__all__ = ["embedding", "embedding_bag", "one_hot"]


def _rows(input: Any, name: str) -> Tensor:
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(f"{name}(): argument 'indices' must be Tensor, not {type(input).__name__}.")
    if input.key.dtype is int64:
        return input
    if input.key.dtype is int32:
        return cast(Tensor, cast(Any, input).long())
    raise DtypeError(
        f"Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got {input.dtype.name} "
        f"instead in {name}().\nConvert it with .long()."
    )


def _padding(padding_idx: int | None, weight: Tensor) -> int:
    """The row that gets no gradient, counted from 0; -1 for none."""
    if padding_idx is None:
        return -1
    count = weight.shape[0]
    if not -count <= padding_idx < count:
        raise _PaddingError(f"Padding_idx must be within num_embeddings, got {padding_idx} for {count} rows.")
    return int(padding_idx % count)


class _PaddingError(ArgumentError, AssertionError):
    """A padding row that does not exist."""


def _renormalise(weight: Tensor, rows: Tensor, max_norm: float, norm_type: float) -> None:
    """Shorten the rows that are used and longer than ``max_norm``, in place."""
    with no_grad():
        used = cast(Any, rows).reshape(-1)
        part = cast(Any, weight).index_select(0, used)
        norms = part.norm(norm_type, 1, keepdim=True)
        scale = (max_norm / (norms + 1e-7)).masked_fill(norms <= max_norm, 1.0)
        cast(Any, weight).index_copy_(0, used, part * scale)


@primitive(
    "weight indices | padding_idx scale_grad_by_freq sparse", name="embedding", method=False, namespaces="nn.functional"
)
def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """The rows of a table that ``input`` names.

    Args:
        input: row numbers (int64 or int32), of any shape.
        weight: the table, of shape (rows, width).
        padding_idx: a row that gets no gradient; negative ones count from the end.
        max_norm: shorten rows that are used and longer than this, in place, before they are read.
        norm_type: which norm that is.
        scale_grad_by_freq: divide gradients by how often their row occurs in ``input``.
        sparse: let the gradient of ``weight`` be a sparse tensor of the rows that were used.

    Returns:
        A tensor of shape ``(*input.shape, width)``.

    Raises:
        IndexError: a row number is out of range.
        RuntimeError: ``input`` is not int64 or int32, or ``weight`` is no matrix.
    """
    indices = _rows(input, "embedding")
    if weight.ndim != 2:
        raise ShapeError(f"'weight' must be 2-D, got shape {list(weight.shape)}.")
    padding = _padding(padding_idx, weight)
    if max_norm is not None:
        _renormalise(weight, indices, max_norm, norm_type)
    return cast(Tensor, embedding.run(weight, indices, padding, bool(scale_grad_by_freq), _sparsely(sparse, weight)))


def _sparsely(sparse: bool, weight: Tensor) -> bool:
    """Whether gradients are sparse, for which there must be a plug-in."""
    if sparse:
        intern(weight.key.device, sparse_coo, weight.key.dtype)
    return bool(sparse)


def _embedding_gradient(
    grad: Any, indices: Any, weight_shape: Any, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Any:
    flat, rows = indices.reshape(-1), grad.reshape(-1, weight_shape[1])
    if scale_grad_by_freq:
        counts = grad.new_zeros(weight_shape[0]).index_add_(0, flat, grad.new_ones(flat.shape))
        rows = rows / counts.index_select(0, flat).unsqueeze(1)
    if sparse:
        if padding_idx >= 0:
            kept = (flat != padding_idx).nonzero(as_tuple=True)[0]
            flat, rows = flat.index_select(0, kept), rows.index_select(0, kept)
        return sparse_tensor(rows, flat.unsqueeze(0), weight_shape, False)
    whole = grad.new_zeros(weight_shape).index_add_(0, flat, rows)
    return whole if padding_idx < 0 else whole.index_fill_(0, tensor([padding_idx], device=grad.device), 0)


embedding.gradient(weight=_embedding_gradient)
embedding.reference(lambda weight, indices, padding_idx, scale_grad_by_freq, sparse: weight[indices])


@embedding.composite
def _embedding(weight: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> Any:
    return weight.index_select(0, indices.reshape(-1)).reshape(*indices.shape, weight.shape[1])


def _bags(input: Tensor, offsets: Tensor | None, include_last_offset: bool) -> tuple[Any, Any, int]:
    """Row numbers in one line, the bag of each, and the number of bags."""
    if input.ndim == 2:
        if offsets is not None:
            raise ArgumentError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. "
                f"However, found offsets of shape {list(offsets.shape)}."
            )
        bags, length = input.shape
        return (
            cast(Any, input).reshape(-1),
            cast(Any, positions(input, bags)).unsqueeze(1).expand(bags, length).reshape(-1),
            bags,
        )
    if input.ndim != 1:
        raise ArgumentError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    if not isinstance(offsets, Tensor):
        raise ArgumentError(
            "offsets has to be a 1D Tensor but got None"
            if offsets is None
            else f"offsets has to be a 1D Tensor, got {type(offsets).__name__}"
        )
    if offsets.ndim != 1:
        raise ArgumentError(f"offsets has to be a 1D Tensor, got shape {list(offsets.shape)}")
    starts = cast(Any, _rows(offsets, "embedding_bag")).tolist()
    count = input.shape[0]
    if starts and starts[0] != 0:
        raise ShapeError(
            f"offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got {starts[0]}"
        )
    if starts and starts[-1] > count:
        raise ShapeError(
            f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of {starts[-1]}"
        )
    for bag, (start, following) in enumerate(zip(starts, starts[1:])):
        if following < start:
            raise ShapeError(f"offsets must not fall, got {start} and then {following} at position {bag + 1}.")
    if include_last_offset:
        starts = starts[:-1]
    numbers: list[int] = []
    for bag, start in enumerate(starts):
        numbers += [bag] * ((starts[bag + 1] if bag + 1 < len(starts) else count) - start)
    return input, tensor(numbers, dtype=int64, device=input.device), len(starts)


@primitive("weight rows bag factors? | bags sparse", method=False, namespaces=())
def bag_sums(weight: Tensor, rows: Tensor, bag: Tensor, factors: Tensor | None, bags: int, sparse: bool) -> Tensor:
    """For each bag the sum of ``weight[rows[k]] * factors[k]`` over the k whose ``bag[k]`` it is; ``bag`` never falls.

    Args:
        sparse: whether the gradient of ``weight`` is.

    Raises:
        IndexError: a row number is out of range.
    """
    return cast(Tensor, bag_sums.run(weight, rows, bag, factors, bags, sparse))


@bag_sums.composite
def _bag_sums(weight: Any, rows: Any, bag: Any, factors: Any, bags: int, sparse: bool) -> Any:
    found = weight.index_select(0, rows)
    found = found if factors is None else found * factors.unsqueeze(1)
    return found.new_zeros(bags, weight.shape[1]).index_add(0, bag, found)


def _table_gradient(grad: Any, weight_shape: Any, rows: Any, bag: Any, factors: Any, sparse: bool) -> Any:
    each = grad.index_select(0, bag)
    each = each if factors is None else each * factors.unsqueeze(1)
    if sparse:
        return sparse_tensor(each, rows.unsqueeze(0), weight_shape, False)
    return grad.new_zeros(weight_shape).index_add(0, rows, each)


bag_sums.gradient(
    weight=_table_gradient,
    factors=lambda grad, weight, rows, bag: (grad.index_select(0, bag) * weight.index_select(0, rows)).sum(1),
)


@composite(method=False, namespaces="nn.functional")
def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """Sums, means or maxima of bags of rows of a table.

    Args:
        input: row numbers: one bag in each row of a matrix, or bags one after another in a vector.
        weight: the table, of shape (rows, width).
        offsets: where in the vector each bag starts.
        mode: ``"sum"``, ``"mean"`` or ``"max"``.
        sparse: let the gradient of ``weight`` be a sparse tensor of the rows that were used.
        per_sample_weights: factors of the rows, for ``"sum"`` only.
        include_last_offset: the last offset is the end of the last bag.
        padding_idx: a row that counts as absent.

    Returns:
        A tensor of shape (bags, width); empty bags give zeros.

    Raises:
        ValueError: the arguments do not go together.
        IndexError: a row number is out of range.
    """
    if (
        isinstance(weight, Tensor)
        and weight.key.dtype is int64
        and isinstance(input, Tensor)
        and input.key.dtype.category == 2
    ):
        input, weight = weight, input
    if mode not in ("sum", "mean", "max"):
        raise ArgumentError(f"mode has to be one of sum, mean or max, got {shown(mode)}")
    if per_sample_weights is not None:
        if input.shape != per_sample_weights.shape:
            raise ArgumentError(
                f"embedding_bag: If per_sample_weights ({list(per_sample_weights.shape)}) is not None, then it must have the same shape "
                f"as the input ({list(input.shape)})"
            )
        if mode != "sum":
            raise NotImplementedError(
                f"embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got mode='{mode}')."
            )
    if not isinstance(weight, Tensor) or weight.geometry.ndim != 2:
        what = f"shape {list(weight.shape)}" if isinstance(weight, Tensor) else type(weight).__name__
        raise ShapeError(f"embedding_bag: expected a weight with 2 dimensions, got {what}.")
    rows, bag, bags = _bags(_rows(input, "embedding_bag"), offsets, include_last_offset)
    padding = _padding(padding_idx, weight)
    if max_norm is not None:
        _renormalise(weight, rows, max_norm, norm_type)
    factors = None if per_sample_weights is None else cast(Any, per_sample_weights).reshape(-1)
    if padding >= 0:
        kept = (rows != padding).nonzero(as_tuple=True)[0]
        rows, bag = rows.index_select(0, kept), bag.index_select(0, kept)
        factors = None if factors is None else factors.index_select(0, kept)
    if mode == "max":
        return _largest(embedding(rows, weight, sparse=sparse), bag, bags)
    if scale_grad_by_freq:
        found: Any = embedding(rows, weight, scale_grad_by_freq=True, sparse=sparse)
        total: Any = bag_sums(found, positions(found, found.shape[0]), bag, factors, bags, False)
    else:
        total = bag_sums(weight, rows, bag, factors, bags, _sparsely(sparse, weight))
    if mode == "sum":
        return cast(Tensor, total)
    if input.ndim == 2 and padding < 0:
        return cast(Tensor, total / max(input.shape[1], 1))
    counts = total.new_zeros(bags).index_add_(0, bag, total.new_ones(bag.shape)).clamp(min=1)
    return cast(Tensor, total / counts.unsqueeze(1))


def _largest(found: Any, bag: Any, bags: int) -> Tensor:
    """The largest element of each column in each bag; the first of equals takes the gradient."""
    with no_grad():
        where = bag.unsqueeze(1).expand(found.shape)
        top = found.new_full((bags, found.shape[1]), -float("inf")).scatter_(0, where, found, reduce="amax")
        hit = found == top.index_select(0, bag)
        order = positions(found, found.shape[0]).unsqueeze(1).expand(found.shape)
        first = order.new_full((bags, found.shape[1]), found.shape[0])
        first.scatter_(0, where, order.masked_fill(~hit, found.shape[0]), reduce="amin")
        absent = first == found.shape[0]
        first.masked_fill_(absent, 0)
    if not found.shape[0]:
        return cast(Tensor, found.new_zeros(bags, found.shape[1]))
    return cast(Tensor, found.gather(0, first).masked_fill(absent, 0))


@composite(method=False, namespaces="nn.functional")
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """For each class number a row that is 1 there and 0 elsewhere; int64, of shape ``(*input.shape, classes)``.

    Args:
        num_classes: the largest number plus 1 if not given.

    Raises:
        RuntimeError: a number is negative or not below ``num_classes``, or ``input`` is not int64.
    """
    numbers: Any = input
    if input.key.dtype is not int64:
        raise DtypeError(f"one_hot is only applicable to index tensor of type LongTensor, got {input.dtype.name}.")
    if not input.geometry.numel:
        if num_classes <= 0:
            raise ShapeError("Can not infer total number of classes from empty tensor.")
        return cast(Tensor, numbers.new_zeros(*input.shape, num_classes))
    low, high = int(numbers.min()), int(numbers.max())
    if low < 0:
        raise ShapeError(f"Class values must be non-negative, got {low}.")
    if num_classes == -1:
        num_classes = high + 1
    elif num_classes < 1:
        raise ShapeError(f"num_classes should be positive, got {num_classes}")
    elif high >= num_classes:
        raise ShapeError(f"Class values must be smaller than num_classes ({num_classes}), got {high}.")
    return cast(Tensor, numbers.new_zeros(*input.shape, num_classes).scatter_(-1, numbers.unsqueeze(-1), 1))
