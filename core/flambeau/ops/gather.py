"""Reading and writing along one dimension, or in the flattened tensor, at the places an index tensor names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ..dispatch.operator import composite, primitive
from ..dispatch.pointwise import finish_out
from ..dispatch.writes import writable
from ..dtype import int32, int64, uint8
from ..errors import ArgumentTypeError, BoundsError, DtypeError, ShapeError, shown
from ..geometry import axis
from ..tensor import Tensor, constant, number_of
from .arithmetic import scale_of

__all__ = [
    "gather", "index_add", "index_add_", "index_copy", "index_copy_", "index_fill", "index_fill_", "index_select", "put",
    "put_", "scatter", "scatter_", "scatter_add", "scatter_add_", "take",
]  # fmt: skip


def places(index: Any, name: str) -> Tensor:
    """An index tensor as int64.

    Raises:
        TypeError: it is no tensor.
        RuntimeError: its dtype is neither int32 nor int64.
    """
    if not isinstance(index, Tensor):
        raise ArgumentTypeError(f"{name}(): argument 'index' must be Tensor, not {type(index).__name__}.")
    dtype = index.key.dtype
    if dtype is int64:
        return index
    if dtype is int32 or dtype is uint8:
        return cast(Tensor, cast(Any, index).long())
    raise DtypeError(
        f"{name}(): Expected dtype int32/int64 for index, got {dtype.name}.\nConvert it with index.long()."
    )


def _vector(index: Any, name: str) -> Tensor:
    index = places(index, name)
    if index.geometry.ndim > 1:
        raise BoundsError(f"{name}(): Index is supposed to be a vector, got shape {list(index.shape)}.")
    return cast(Tensor, index)


def _same_dtype(name: str, self: Tensor, source: Tensor, what: str) -> None:
    if source.key.dtype is not self.key.dtype:
        raise DtypeError(
            f"{name}(): Expected self.dtype to be equal to {what}.dtype, got {self.dtype.name} and {source.dtype.name}."
        )


def _functional(name: str, inplace: Callable[..., Tensor], order: str, doc: str) -> Any:
    """The out-of-place form of an operator that writes: a clone is written."""

    def function(self: Tensor, *args: Any, out: Tensor | None = None, **kwargs: Any) -> Tensor:
        if out is not None:
            tensors = [each for each in (self, *args, *kwargs.values()) if isinstance(each, Tensor)]
            return finish_out(name, out, tensors, lambda: inplace(cast(Any, self).clone(), *args, **kwargs))
        return inplace(cast(Any, self).clone(), *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc}\n\nLike :meth:`Tensor.{name}_`, which says what ``{order}`` are, on a copy."
    return composite(name=name)(function)


def exact_out(name: str, out: Any, inputs: tuple[Tensor, ...], compute: Callable[[], Tensor]) -> Tensor:
    """``out=`` of an operator that moves elements: of the first input's dtype, and in memory of its own.

    Raises:
        RuntimeError: it is not.
    """
    if isinstance(out, Tensor):
        if out.key.dtype is not inputs[0].key.dtype:
            raise DtypeError(
                f"{name}(): Expected out tensor to have dtype {inputs[0].dtype.name}, but got {out.dtype.name} instead"
            )
        writable(out, name)
        for each in inputs:
            shared = each.shared is not None and out.shared is not None and each.shared.memory is out.shared.memory
            if each is out or shared:
                raise ShapeError(
                    f"unsupported operation: some elements of the input tensor and the written-to tensor of {name}() refer to a "
                    "single memory location.\nPlease clone() the tensor before performing the operation."
                )
    return finish_out(name, out, inputs, compute)


# ---------------------------------------------------------------- gather and scatter


def _inside(name: str, self: Tensor, index: Tensor, dim: int, src: Tensor | None) -> None:
    """Check that index (and what it takes from src) stays inside the other dimensions."""
    shape, wanted = self.geometry.shape, index.geometry.shape
    if (len(shape) or 1) != (len(wanted) or 1):
        raise ShapeError(
            f"{name}(): Index tensor must have the same number of dimensions as self tensor, got {list(wanted)} and {list(shape)}."
        )
    if src is not None and (len(src.geometry.shape) or 1) != (len(wanted) or 1):
        raise ShapeError(
            f"{name}(): Index tensor must have the same number of dimensions as src tensor, got {list(wanted)} and {list(src.shape)}."
        )
    for at, size in enumerate(wanted):
        limits = [shape[at]] if at != dim and at < len(shape) else []
        if src is not None and at < len(src.geometry.shape):
            limits.append(src.geometry.shape[at])
        if any(size > limit for limit in limits):
            raise ShapeError(
                f"{name}(): Expected index {list(wanted)} to be no larger than self {list(shape)} apart from dimension {dim}"
                + (f" and to be no larger size than src {list(src.shape)}" if src is not None else "")
            )


@primitive("self index | dim")
def gather(self: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Tensor | None = None) -> Tensor:
    """``result[i][j] = self[index[i][j]][j]`` for ``dim`` 0, and so on for other dimensions.

    Args:
        index: int64, no larger than ``self`` but along ``dim``; the result has its shape.

    Raises:
        RuntimeError: an index is out of range, or the shapes do not fit.
    """
    if out is not None:
        return exact_out("gather", out, (self, index), lambda: cast(Tensor, gather(self, dim, index)))
    at = axis(dim, self.geometry.ndim)
    index = places(index, "gather")
    if index.geometry.numel:
        _inside("gather", self, index, at, None)
    return cast(Tensor, gather.run(self, index, at))


gather.gradient(self=lambda grad, index, dim, self_shape: grad.new_zeros(self_shape).scatter_add_(dim, index, grad))


@gather.reference
def _(a: Any, index: Any, dim: int) -> Any:
    if not a.ndim or not index.ndim:
        return np.take(a, index)
    corner = a[tuple(slice(None if at == dim else size) for at, size in enumerate(index.shape))]
    return np.take_along_axis(corner, index, dim)


_REDUCTIONS = {
    "add": "add", "sum": "add", "multiply": "mul", "prod": "mul", "amax": "max", "amin": "min",
}  # fmt: skip


@primitive("self index src | dim reduce", mutates=True, namespaces=())
def scatter_(
    self: Tensor, dim: int, index: Tensor, src: Any = None, *, reduce: str | None = None, value: Any = None
) -> Tensor:
    """``self[index[i][j]][j] = src[i][j]`` for ``dim`` 0, and so on; where several name one place, the last wins.

    Args:
        index: int64, no larger than ``self`` but along ``dim``, and no larger than ``src``.
        src: a tensor of the same dtype, or a number.
        reduce: ``"add"`` or ``"multiply"`` to combine with what is there instead.

    Raises:
        RuntimeError: an index is out of range, or shapes or dtypes do not fit; nothing is written then.
    """
    at = axis(dim, self.geometry.ndim)
    index = places(index, "scatter")
    if src is None:
        src = value
    if reduce is not None and reduce not in _REDUCTIONS:
        raise ShapeError(f"reduce argument must be either add or multiply, got {shown(reduce)}.")
    if not isinstance(src, Tensor):
        if index.geometry.numel:
            _inside("scatter", self, index, at, None)
        src = cast(Any, constant(self.key, src)).expand(index.shape)
    else:
        _same_dtype("scatter", self, src, "src")
        if index.geometry.numel:
            _inside("scatter", self, index, at, src)
    return cast(Tensor, scatter_.run(self, index, src, at, "" if reduce is None else _REDUCTIONS[reduce]))


def _scatter_gradient(
    needs: tuple[bool, ...], grad: Any, index: Any, dim: int, reduce: str, src_shape: Any
) -> list[Any]:
    if reduce not in ("", "add"):
        raise NotImplementedError(f"the derivative of scatter with reduce={shown(reduce)} is not implemented")
    own = (grad if reduce else grad.scatter(dim, index, 0)) if needs[0] else None
    return [own, None, _spread(grad.gather(dim, index), src_shape) if needs[2] else None]


def _spread(grad: Any, shape: Any) -> Any:
    """The gradient of what an index took from the leading corner of a tensor of this shape."""
    if grad.shape == shape:
        return grad
    whole = grad.new_zeros(shape)
    corner = whole
    for dim, size in enumerate(grad.shape):
        corner = corner.narrow(dim, 0, size)
    corner.copy_(grad)
    return whole


scatter_.gradients(_scatter_gradient)
scatter = _functional(
    "scatter", scatter_, "dim, index, src", "Write a tensor's or one number's values at places along a dimension."
)


@composite(namespaces=())
def scatter_add_(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """``self[index[i][j]][j] += src[i][j]`` for ``dim`` 0, and so on.

    The sum at each place is taken in the order of ``src``, whatever the number of threads.

    Raises:
        RuntimeError: an index is out of range, or shapes or dtypes do not fit; nothing is written then.
    """
    return cast(Tensor, scatter_(self, dim, index, src, reduce="add"))


scatter_add = _functional(
    "scatter_add", scatter_add_, "dim, index, src", "Add a tensor's values at places along a dimension."
)


# ---------------------------------------------------------------- whole slices


@primitive("self index | dim")
def index_select(self: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The slices of a dimension that an index vector names, in its order.

    Raises:
        IndexError: an index is out of range or negative, or ``index`` is no vector.
    """
    if out is not None:
        return exact_out("index_select", out, (self, index), lambda: cast(Tensor, index_select(self, dim, index)))
    at = axis(dim, self.geometry.ndim)
    index = _vector(index, "index_select")
    if not self.geometry.ndim and index.geometry.numel != 1:
        raise BoundsError(f"index_select(): Index to scalar can have only 1 value, got {index.geometry.numel} value(s)")
    return cast(Tensor, index_select.run(self, index, at))


index_select.gradient(self=lambda grad, index, dim, self_shape: grad.new_zeros(self_shape).index_add_(dim, index, grad))
index_select.reference(lambda a, index, dim: np.take(a, index.reshape(-1), dim))


def _slices(name: str, self: Tensor, dim: int, index: Tensor, source: Tensor) -> None:
    """Check that source has a slice for each index."""
    if source.geometry.ndim != self.geometry.ndim and self.geometry.ndim and source.geometry.ndim:
        raise _SliceError(
            f"{name}(): source and self must have the same number of dimensions, got {list(source.shape)} and {list(self.shape)}."
        )
    shape = source.geometry.shape
    count = shape[dim] if shape else 1
    if index.geometry.numel != count:
        raise _SliceError(
            f"{name}(): Number of indices ({index.geometry.numel}) should be equal to source.size(dim): ({count}), for dim: {dim}"
        )
    for at, (own, other) in enumerate(zip(self.geometry.shape, shape, strict=False)):
        if at != dim and own != other:
            raise ShapeError(
                f"{name}(): source/destination slice shapes must match: got {list(shape)} for {list(self.shape)} at dimension {at}."
            )


class _SliceError(ShapeError, BoundsError):
    """A source that does not fit its index."""


@primitive("self index source | dim", mutates=True, namespaces=())
def index_add_(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """Add ``alpha`` times the slices of ``source`` to those of ``self`` that the index vector names.

    Raises:
        RuntimeError: an index is out of range, or shapes or dtypes do not fit; nothing is written then.
    """
    at = axis(dim, self.geometry.ndim)
    index = _vector(index, "index_add")
    _same_dtype("index_add", self, source, "source")
    _slices("index_add", self, at, index, source)
    if alpha != 1:
        source = cast(Any, source) * scale_of("index_add", alpha, source)
        _same_dtype("index_add", self, source, "alpha * source")
    return cast(Tensor, index_add_.run(self, index, source, at))


index_add_.gradient(
    self=lambda grad: grad,
    source=lambda grad, index, dim, source_shape: grad.index_select(dim, index).reshape(source_shape),
)
index_add = _functional(
    "index_add", index_add_, "dim, index, source", "Add slices to those that an index vector names."
)


@primitive("self index source | dim", mutates=True, namespaces=())
def index_copy_(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Replace the slices of ``self`` that the index vector names by those of ``source``; the last of several wins.

    Raises:
        IndexError: an index is out of range.
        RuntimeError: shapes or dtypes do not fit; nothing is written then.
    """
    at = axis(dim, self.geometry.ndim)
    index = _vector(index, "index_copy_")
    if source.key.dtype is not self.key.dtype:
        raise DtypeError(
            f"index_copy_(): self and source expected to have the same dtype, but got (self) {self.dtype.name} and "
            f"(source) {source.dtype.name}"
        )
    _slices("index_copy_", self, at, index, source)
    return cast(Tensor, index_copy_.run(self, index, source, at))


index_copy_.gradient(
    self=lambda grad, index, dim: grad.index_fill(dim, index, 0),
    source=lambda grad, index, dim, source_shape: grad.index_select(dim, index).reshape(source_shape),
)
index_copy = _functional(
    "index_copy", index_copy_, "dim, index, source", "Replace the slices that an index vector names."
)


@primitive("self index value | dim", mutates=True, namespaces=())
def index_fill_(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Fill the slices that the index vector names with a number (or a 0-dim tensor); negative indices count from the end.

    Raises:
        IndexError: an index is out of range; nothing is written then.
        RuntimeError: the value is a tensor with dimensions.
    """
    at = axis(dim, self.geometry.ndim)
    index = _vector(index, "index_fill_")
    return cast(Tensor, index_fill_.run(self, index, scalar(self, value, "index_fill_"), at))


def scalar(self: Tensor, value: Any, name: str) -> Tensor:
    """A number or 0-dim tensor as a 0-dim tensor of this dtype.

    Raises:
        RuntimeError: it has dimensions, or the dtype cannot hold it.
    """
    if not isinstance(value, Tensor):
        return constant(self.key, number_of(self.key.dtype, value))
    if value.geometry.ndim:
        raise ShapeError(
            f"{name} only supports a 0-dimensional value tensor, but got tensor with {value.geometry.ndim} dimension(s) "
            f"(shape {list(value.shape)})."
        )
    return value if value.key is self.key else cast(Tensor, cast(Any, value).to(self.key.device, self.key.dtype))


def _filled_gradient(grad: Any, index: Any, dim: int) -> Any:
    """The sum over filled places, each counted once however often the index names it."""
    filled = grad.new_zeros(grad.shape[dim] if grad.ndim else 1).index_fill_(0, index, 1)
    return (grad * filled.reshape([-1 if at == dim else 1 for at in range(grad.ndim)])).sum()


index_fill_.gradient(self=lambda grad, index, dim: grad.index_fill(dim, index, 0), value=_filled_gradient)
index_fill = _functional("index_fill", index_fill_, "dim, index, value", "Fill the slices that an index vector names.")


# ---------------------------------------------------------------- the flattened tensor


@primitive("self index |")
def take(self: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements of the flattened tensor that ``index`` names, in its shape; negative indices count from the end.

    Raises:
        IndexError: an index is out of range.
        RuntimeError: ``index`` is not int64.
    """
    if out is not None:
        return exact_out("take", out, (self, index), lambda: cast(Tensor, take(self, index)))
    if not isinstance(index, Tensor) or index.key.dtype is not int64:
        raise DtypeError(
            f"take(): Expected a long tensor for index, but got {getattr(index, 'dtype', type(index).__name__)}"
        )
    if not self.geometry.numel and index.geometry.numel:
        raise BoundsError("take(): tried to take from an empty tensor")
    return cast(Tensor, take.run(self, index))


take.gradient(self=lambda grad, index, self_shape: grad.new_zeros(self_shape).put_(index, grad, True))
take.reference(lambda a, index: np.take(a, index))


@primitive("self index source | accumulate", mutates=True, namespaces=())
def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Write ``source`` into the flattened tensor at ``index``; negative indices count from the end.

    Args:
        accumulate: add to what is there instead of replacing it.

    Raises:
        IndexError: an index is out of range; nothing is written then.
        RuntimeError: dtypes differ, or there are not as many values as indices.
    """
    if not isinstance(index, Tensor) or index.key.dtype is not int64:
        raise DtypeError(
            f"put_(): Expected a long tensor for index, but got {getattr(index, 'dtype', type(index).__name__)}"
        )
    _same_dtype("put_", self, source, "source")
    if index.geometry.numel != source.geometry.numel:
        raise ShapeError(
            f"put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.geometry.numel}, index.numel() = {index.geometry.numel}"
        )
    if not self.geometry.numel and index.geometry.numel:
        raise BoundsError("put_(): tried to put elements into an empty tensor")
    return cast(Tensor, put_.run(self, index, source, bool(accumulate)))


put_.gradient(
    self=lambda grad, index, accumulate: grad if accumulate else grad.put(index, grad.new_zeros(index.shape)),
    source=lambda grad, index, source_shape: grad.take(index).reshape(source_shape),
)
put = _functional("put", put_, "index, source, accumulate", "Write into the flattened tensor.")
