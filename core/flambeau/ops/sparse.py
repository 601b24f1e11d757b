"""Tensors that keep only some elements: their coordinates, and the values there.

A sparse tensor of layout ``sparse_coo`` has ``sparse_dim`` dimensions that are named by columns of an int64
matrix, its indices, and ``dense_dim`` more that each value has.  A place may be named several times, and then holds
the sum; coalescing sorts the places and names each once.

The plug-in of the layout brings the few primitives; the rest is made of them and of ordinary operators on values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from ..autograd.grad_mode import mode
from ..autograd.node import record, tracked
from ..device import device as Device
from ..dispatch.operator import composite, offer, primitive
from ..dtype import dtype as Dtype, int64
from ..errors import ArgumentTypeError, AutogradError, BoundsError, DtypeError, ShapeError
from ..geometry import axis
from ..key import intern
from ..layout import sparse_coo, strided
from ..tensor import Tensor, touch
from .creation import as_tensor, finish
from .reduction import reduced_dims, with_dims
from .views import permute, sizes

__all__ = ["sparse_coo_tensor"]


def require_sparse(name: str, tensor: Any) -> Tensor:
    """Refuse what is no sparse tensor.

    Raises:
        RuntimeError: it is dense.
        TypeError: it is no tensor.
    """
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(f"{name}() expects a sparse Tensor, got {type(tensor).__name__}.")
    if tensor.key.layout is not sparse_coo:
        raise DtypeError(
            f"{name} expected sparse coordinate tensor layout but got {tensor.key.layout.name} "
            f"(shape {list(tensor.shape)}).\nConvert it with x.to_sparse()."
        )
    return tensor


# ---------------------------------------------------------------- making


@primitive("values indices | size coalesced", method=False, namespaces=())
def sparse_tensor(values: Tensor, indices: Tensor, size: Sequence[int], coalesced: bool) -> Tensor:
    """A sparse tensor over values and indices that fit ``size``; both are shared, and not looked at."""
    return cast(Tensor, sparse_tensor.run(values, indices, tuple(size), coalesced))


def _run_sparse_tensor(values: Tensor, indices: Tensor, *rest: Any) -> Tensor:
    """Runs the kernel of the result's layout, as there is no other."""
    op, key = sparse_tensor.op, intern(values.device, sparse_coo, values.dtype)
    result: Tensor = (op.table.get(key) or op.resolve(key))(values, indices, *rest)
    if values.node is not None and mode.enabled:
        record(op, (values, indices, *rest), result)
    return result


sparse_tensor.run = _run_sparse_tensor
sparse_tensor.gradient(values=lambda grad, indices: values_at(grad, indices))


def sparse_coo_tensor(
    indices: Any = None, values: Any = None, size: Any = None, *, dtype: Dtype | None = None, device: Any = None,
    requires_grad: bool = False, is_coalesced: bool = False,
) -> Tensor:  # fmt: skip
    """A sparse tensor from the places of its elements and their values.

    Args:
        indices: whole numbers, (sparse_dim, n): each column is a place.  Or, without values, the size of a tensor
            that holds nothing.
        values: (n, ...): the value at each place; where places are repeated, values add up.
        size: the shape; by default the smallest that holds all places.
        dtype: that of the values if not given.
        device: that of the values if not given.
        requires_grad: whether operators on it record history.
        is_coalesced: promises that places are sorted and differ.

    Raises:
        RuntimeError: the shapes do not go together, a place is outside, or no plug-in serves the layout.

    >>> import flambeau
    >>> flambeau.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    if values is None:
        shape = sizes((indices,) if size is None else (size,))
        indices, values = _nothing(len(shape), dtype, device)
        size = shape
    values = as_tensor(values, dtype=dtype, device=device)
    intern(values.device, sparse_coo, values.dtype)  # says so if nothing serves it
    indices = _index_matrix(indices, values.device)
    if not values.geometry.ndim:
        values = cast(Any, values).expand(indices.shape[1])
    if indices.shape[1] != values.shape[0]:
        raise ShapeError(
            "sparse_coo_tensor: indices and values must have same nnz, but got nnz from indices: "
            f"{indices.shape[1]}, nnz from values: {values.shape[0]}."
        )
    shape = _inferred(indices, values) if size is None else sizes((size,))
    _check_places(indices, values, shape)
    result = sparse_tensor(values, indices, shape, is_coalesced)
    return finish(result if not requires_grad else cast(Any, result).detach(), requires_grad)


def _nothing(ndim: int, dtype: Dtype | None, device: Any) -> tuple[Any, Any]:
    values: Any = as_tensor([], dtype=dtype, device=device)
    return values.new_zeros((ndim, 0), dtype=int64), values


def _index_matrix(given: Any, device: Device) -> Tensor:
    found: Any = as_tensor(given, device=device)
    if found.dtype.category != 1 and found.numel():
        raise DtypeError(
            f"sparse_coo_tensor: indices must be an int64 tensor, got {found.dtype.name}.\nConvert them with .long()."
        )
    if found.ndim != 2:
        raise ShapeError(f"sparse_coo_tensor: indices must be sparse_dim x nnz, but got shape {list(found.shape)}.")
    return cast(Tensor, found.long())


def _inferred(indices: Any, values: Any) -> tuple[int, ...]:
    if not indices.shape[1]:
        return (*[0] * indices.shape[0], *values.shape[1:])
    return (*[int(each) + 1 for each in indices.max(1)[0].tolist()], *values.shape[1:])


def _check_places(indices: Any, values: Any, shape: tuple[int, ...]) -> None:
    count, dense = indices.shape[0], values.ndim - 1
    if len(shape) != count + dense:
        raise ShapeError(
            f"sparse_coo_tensor: number of dimensions must be sparse_dim ({count}) + dense_dim ({dense}), "
            f"but got {len(shape)}: size {list(shape)}."
        )
    if tuple(values.shape[1:]) != tuple(shape[count:]):
        raise ShapeError(
            f"sparse_coo_tensor: values has incorrect size, expected {[indices.shape[1], *shape[count:]]}, "
            f"got {list(values.shape)}."
        )
    if min(shape, default=0) < 0:
        raise ShapeError(f"sparse_coo_tensor: sizes are not negative, got {list(shape)}.")
    _check_numbering("sparse_coo_tensor", shape[:count])
    if not (indices.shape[1] and count):
        return
    for dim, (low, high) in enumerate(zip(indices.min(1)[0].tolist(), indices.max(1)[0].tolist(), strict=True)):
        if low < 0:
            raise _PlaceError(f"sparse_coo_tensor: found negative index {low} for dim {dim}.")
        if high >= shape[dim]:
            raise _PlaceError(
                f"sparse_coo_tensor: size is inconsistent with indices: for dim {dim}, size is {shape[dim]} "
                f"but found index {high}."
            )


def _check_numbering(name: str, shape: tuple[int, ...]) -> None:
    if math.prod(shape) >= 2**63:
        raise ShapeError(f"{name}: places are numbered below 2**63, got sparse sizes {list(shape)}.")


class _PlaceError(ShapeError, BoundsError):
    """A place outside of the tensor."""


@composite(namespaces=())
def to_sparse(self: Tensor, sparse_dim: int | None = None) -> Tensor:
    """The tensor as a sparse one that holds what is not zero.

    Args:
        sparse_dim: how many leading dimensions are sparse; all if not given.

    Raises:
        RuntimeError: there are fewer dimensions.
    """
    if self.key.layout is sparse_coo:
        return self
    ndim = self.geometry.ndim
    count = ndim if sparse_dim is None else sparse_dim
    if not (min(ndim, 1) <= count <= ndim):
        raise ShapeError(
            f"to_sparse: sparse_dim is from {min(ndim, 1)} to {ndim} for shape {list(self.shape)}, got {sparse_dim}."
        )
    held: Any = cast(Any, self).detach() != 0
    if count < ndim:
        held = held.flatten(count).any(-1)
    indices = held.nonzero().t().contiguous()
    return cast(Tensor, sparse_tensor(values_at(self, indices), indices, self.shape, True))


# ---------------------------------------------------------------- looking inside


@primitive("self |", method=False, namespaces=())
def sparse_indices(self: Tensor) -> Tensor:
    """The places, (sparse_dim, n); shared with the tensor."""
    return cast(Tensor, sparse_indices.run(require_sparse("_indices", self)))


sparse_indices.nondifferentiable()


@primitive("self |", namespaces=())
def is_coalesced(self: Tensor) -> bool:
    """Whether places are known to be sorted and to differ."""
    return bool(is_coalesced.run(require_sparse("is_coalesced", self)))


is_coalesced.nondifferentiable()


@primitive("self |", method=False, namespaces=())
def sparse_values(self: Tensor) -> Tensor:
    """The values, (n, ...); shared with the tensor.  Gradients are those of a coalesced one."""
    return cast(Tensor, sparse_values.run(require_sparse("_values", self)))


sparse_values.gradient(
    self=lambda grad, self: sparse_tensor(grad, sparse_indices(self), self.shape, is_coalesced(self))
)


@primitive("self |", namespaces=())
def coalesce(self: Tensor) -> Tensor:
    """The tensor with sorted places, each named once; itself if it is so already."""
    return self if is_coalesced(self) else cast(Tensor, coalesce.run(self))


coalesce.gradient(self=lambda grad: grad)


@offer(name="_indices", namespaces=())
def _indices(self: Tensor) -> Tensor:
    return cast(Tensor, sparse_indices(self))


@offer(name="_values", namespaces=())
def _values(self: Tensor) -> Tensor:
    return cast(Tensor, sparse_values(cast(Any, self).detach()))


@offer(namespaces=())
def indices(self: Tensor) -> Tensor:
    """The places of a coalesced tensor, (sparse_dim, n).

    Raises:
        RuntimeError: it is not coalesced.
    """
    return cast(Tensor, sparse_indices(_coalesced("indices", self)))


@offer(namespaces=())
def values(self: Tensor) -> Tensor:
    """The values of a coalesced tensor, (n, ...); gradients flow through.

    Raises:
        RuntimeError: it is not coalesced.
    """
    return cast(Tensor, sparse_values(_coalesced("values", self)))


def _coalesced(name: str, tensor: Tensor) -> Tensor:
    if not is_coalesced(tensor):
        raise ShapeError(
            f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first.\n"
            f"x._{name}() gives them as they are."
        )
    return tensor


@offer(name="_nnz", namespaces=())
def nnz(self: Tensor) -> int:
    """How many places are named."""
    return int(sparse_indices(self).shape[1])


@offer(namespaces=())
def sparse_dim(self: Tensor) -> int:
    """The number of dimensions that the indices name."""
    return int(sparse_indices(self).shape[0])


@offer(namespaces=())
def dense_dim(self: Tensor) -> int:
    """The number of dimensions that each value has."""
    return self.geometry.ndim - sparse_dim(self)


offer(name="_dimI", namespaces=())(sparse_dim)
offer(name="_dimV", namespaces=())(dense_dim)


# ---------------------------------------------------------------- to and from dense


@primitive("self indices |", method=False, namespaces=())
def sparse_lookup(self: Tensor, indices: Tensor) -> Tensor:
    """The values of a sparse tensor at given places, zeros where it holds none."""
    return cast(Tensor, sparse_lookup.run(self, indices))


sparse_lookup.gradient(self=lambda grad, indices, self_shape: sparse_tensor(grad, indices, self_shape, False))


def values_at(source: Any, indices: Any) -> Any:
    """The values of a tensor of whatever layout at the places that ``indices`` names: (n, ...)."""
    if source.layout is not strided:
        return sparse_lookup(source, indices)
    if not indices.shape[0]:
        return source.unsqueeze(0).expand(indices.shape[1], *source.shape)
    return source[tuple(indices.unbind(0))]


@offer(namespaces=())
def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """A sparse tensor of the elements that ``mask``, a sparse tensor, has places for.

    Raises:
        RuntimeError: the shapes differ, or the mask is not sparse.
    """
    require_sparse("sparse_mask", mask)
    if self.shape != mask.shape:
        raise ShapeError(
            f"sparse_mask: operands have incompatible sizes; self has size {list(self.shape)} but mask has size "
            f"{list(mask.shape)}."
        )
    places = sparse_indices(coalesce(cast(Any, mask).detach()))
    return cast(Tensor, sparse_tensor(values_at(self, places), places, self.shape, True))


@primitive("self |", namespaces=())
def to_dense(self: Tensor) -> Tensor:
    """The tensor with all its elements; itself if it is dense."""
    return self if self.key.layout is strided else cast(Tensor, to_dense.run(self))


to_dense.gradient(self=lambda grad, self: sparse_mask(grad, self))


@primitive("self | dims", namespaces="", method=False)
def permute_copy(self: Tensor, dims: Sequence[int]) -> Tensor:
    """The tensor with its dimensions in another order, in memory of its own.

    Raises:
        RuntimeError: not every dimension is named exactly once; or sparse and dense ones would change places.
    """
    ndim = self.geometry.ndim
    order = tuple(axis(each, ndim) for each in sizes((dims,), "dims"))
    if sorted(order) != list(range(ndim)):
        raise ShapeError(f"permute_copy: each of {ndim} dimensions is named exactly once, got {list(dims)}.")
    if self.key.layout is not strided:
        count = sparse_dim(self)
        if max(order[:count], default=-1) >= count:
            raise ShapeError(
                f"permute: the {count} sparse dimensions change places among themselves only, got {list(order)}.\n"
                "Convert with x.to_dense() first."
            )
    return cast(Tensor, permute_copy.run(self, order))


permute_copy.gradient(self=permute.op.formulas["self"])


@permute_copy.composite
def _permute_copy(self: Any, dims: tuple[int, ...]) -> Any:
    if self.layout is strided:
        return self.permute(dims).clone()
    count = sparse_dim(self)
    first, rest = list(dims[:count]), [dim - count + 1 for dim in dims[count:]]
    places: Any = sparse_indices(self)
    places = places.index_select(0, as_tensor(first, dtype=int64, device=self.device))
    numbers: Any = sparse_values(self)
    if rest != sorted(rest):
        numbers = numbers.permute(0, *rest)
    still = first == sorted(first) and is_coalesced(self)
    return sparse_tensor(numbers, places, [self.shape[dim] for dim in dims], still)


# ---------------------------------------------------------------- other sizes


@offer(namespaces=())
def sparse_resize_(self: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Tensor:
    """Give a sparse tensor another size in place; what it holds stays where it is.

    Args:
        size: of sparse_dim + dense_dim dimensions.
        sparse_dim, dense_dim: as they are, unless the tensor holds nothing.

    Raises:
        RuntimeError: a place or a value would not fit, the tensor requires grad, or it is dense.
    """
    old: Any = sparse_values(_resizable("sparse_resize_", self).detach())
    places = sparse_indices(self)
    shape, count = _dimensions("sparse_resize_", size, sparse_dim, dense_dim), places.shape[0]
    if not old.shape[0]:
        return sparse_resize_and_clear_(self, shape, sparse_dim, dense_dim)
    kept = count == sparse_dim and len(shape) == self.geometry.ndim
    if not kept or any(new < before for new, before in zip(shape, self.shape)):
        raise ShapeError(
            f"sparse_resize_: a tensor that holds {old.shape[0]} values keeps its {count} sparse and "
            f"{self.geometry.ndim - count} dense dimensions, none smaller than {list(self.shape)}; got "
            f"{sparse_dim} and {dense_dim}, {list(shape)}.\n"
            "Use sparse_resize_and_clear_, or make a new tensor."
        )
    if tuple(old.shape[1:]) == shape[count:]:
        numbers = old
    else:
        numbers = old.new_zeros((old.shape[0], *shape[count:]))
        numbers[tuple(slice(each) for each in old.shape)] = old
    return _become(self, sparse_tensor(numbers, places, shape, is_coalesced(self)))


@offer(namespaces=())
def sparse_resize_and_clear_(self: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Tensor:
    """Give a sparse tensor another size in place, and let it hold nothing.

    Raises:
        RuntimeError: the sizes are not those of sparse_dim + dense_dim dimensions, the tensor requires grad, or it is
            dense.
    """
    held: Any = sparse_values(_resizable("sparse_resize_and_clear_", self).detach())
    shape = _dimensions("sparse_resize_and_clear_", size, sparse_dim, dense_dim)
    places = held.new_zeros((sparse_dim, 0), dtype=int64)
    return _become(self, sparse_tensor(held.new_zeros((0, *shape[sparse_dim:])), places, shape, True))


def _resizable(name: str, tensor: Tensor) -> Any:
    if tracked(require_sparse(name, tensor)):
        raise AutogradError(
            f"{name}: cannot resize a tensor that requires grad (shape {list(tensor.shape)}).\nUse x.detach()."
        )
    return tensor


def _dimensions(name: str, size: Sequence[int], sparse_dim: int, dense_dim: int) -> tuple[int, ...]:
    shape = sizes((size,))
    if min(sparse_dim, dense_dim, *shape, 0) < 0 or len(shape) != sparse_dim + dense_dim:
        raise ShapeError(
            f"{name}: number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({dense_dim}), none of a "
            f"negative size, but got {len(shape)}: size {list(shape)}."
        )
    _check_numbering(name, shape[:sparse_dim])
    return shape


def _become(self: Tensor, other: Tensor) -> Tensor:
    """Let a sparse tensor stand for what another one is; who saved it for a gradient is told."""
    touch(self)
    self.geometry, self.memory = other.geometry, other.memory
    return self


# ---------------------------------------------------------------- folding


def _folded(self: Tensor, numbers: Any, dims: tuple[int, ...]) -> tuple[Any, Any, list[int]]:
    """Values summed over the dense ones of some dimensions; the places left; the shape left."""
    count = sparse_dim(self)
    inner = tuple(each - count + 1 for each in dims if each >= count)
    if inner:
        numbers = numbers.sum(inner)
    kept = [each for each in range(count) if each not in dims]
    places: Any = sparse_indices(self)
    places = places.index_select(0, as_tensor(kept, dtype=int64, device=self.device))
    return numbers, places, [size for at, size in enumerate(self.shape) if at not in dims]


@composite(name="sparse.sum", method=False, namespaces="sparse")
def sparse_sum(input: Tensor, dim: Any = None, dtype: Dtype | None = None, keepdim: bool = False) -> Tensor:
    """The sum of a sparse tensor over some of its dimensions, or all.

    The result is sparse unless all sparse dimensions are summed over.

    Args:
        dim: one or several dimensions; all if not given.
        dtype: converted to first.
        keepdim: keep the dimensions with size 1; the result is dense then.

    Raises:
        RuntimeError: the tensor is not sparse.
    """
    self: Any = require_sparse("sum", input)
    dims = reduced_dims(dim, self.ndim)
    if dtype is not None or self.key.dtype.category < 2:
        self = self.to(dtype or int64)
    self = coalesce(self)
    if len(dims) == self.ndim:
        return cast(Tensor, with_dims(sparse_values(self).sum(), dims, not keepdim))
    numbers, places, shape = _folded(self, sparse_values(self), dims)
    result: Any = sparse_tensor(numbers, places, shape, False) if places.shape[0] else numbers.sum(0)
    return cast(Tensor, with_dims(to_dense(result), dims, False) if keepdim else result)


@composite(name="sparse.norm", method=False, namespaces=())
def sparse_norm(input: Tensor, p: float, dim: Any, keepdim: bool) -> Tensor:
    """The p-norm of a sparse tensor over some of its dimensions; dense."""
    self: Any = coalesce(require_sparse("norm", input))
    dims = reduced_dims(dim, self.ndim)
    count = sparse_dim(self)
    if len(dims) == self.ndim and p > 0:
        if nnz(self) or not math.isinf(p):
            return cast(Tensor, with_dims(sparse_values(self).norm(p), dims, not keepdim))
        return cast(Tensor, with_dims(sparse_values(self).sum(), dims, not keepdim))
    if p <= 0 or math.isinf(p) or any(each >= count for each in dims):
        return cast(Tensor, to_dense(self).norm(p, dims, keepdim))
    size: Any = sparse_values(self).abs()
    numbers, places, shape = _folded(self, size if p == 1 else size.pow(p), dims)
    total: Any = to_dense(sparse_tensor(numbers, places, shape, False)) if places.shape[0] else numbers.sum(0)
    empty = total.detach() == 0
    root = total if p == 1 else total.masked_fill(empty, 1).pow(1 / p).masked_fill(empty, 0)
    return cast(Tensor, with_dims(root, dims, not keepdim))
