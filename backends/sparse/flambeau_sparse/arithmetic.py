"""Kernels that work element by element, and products of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from flambeau.backend import Kernel, MissingKernelError, ShapeError, Tensor, int64, sparse_coo

from . import native
from .coordinates import array_of, coordinates, narrow, replace, sparse, tensor_of, wide, widened, zeros
from .structure import add_into, coalesced, numbered, to_dense

__all__ = ["KERNELS"]


def _refuse(name: str, why: str) -> NoReturn:
    raise MissingKernelError(
        f'"{name}" not implemented for these operands (sparse_coo): {why}.\nConvert with x.to_dense() first.'
    )


def _same_shape(name: str, a: Tensor, b: Tensor) -> None:
    if a.shape != b.shape:
        _refuse(name, f"sparse tensors are not broadcast, got shapes {list(a.shape)} and {list(b.shape)}")


def _is_number(tensor: Tensor, beside: Tensor) -> bool:
    """Whether an operand without dimensions stands beside one with them."""
    return tensor.ndim == 0 and beside.ndim > 0


def _number(tensor: Any) -> Any:
    """The value of an operand without dimensions, as a dense tensor."""
    return coordinates(tensor).values[0] if tensor.layout is sparse_coo else tensor.detach()


def _stored(result: Any, out: Any) -> Any:
    """The result; or ``out``, which takes its values."""
    if out is None:
        return result
    if out.layout is not sparse_coo:
        out.detach().copy_(to_dense(result) if result.layout is sparse_coo else result)
    elif result.layout is sparse_coo:
        replace(out, result.memory)
    else:
        _refuse("copy_", "the result is dense, and cannot be written into a sparse tensor")
    return out


# ---------------------------------------------------------------- sums


def _joined(a: Tensor, b: Tensor) -> Tensor:
    """The sum of two sparse tensors: places of both, one after the other, coalesced if both are."""
    first, second = coordinates(a), coordinates(b)
    if not second.indices.shape[1]:
        return sparse(first.values.clone(), first.indices.clone(), a.shape, first.coalesced)
    if not first.indices.shape[1]:
        return sparse(second.values.clone(), second.indices.clone(), a.shape, second.coalesced)
    dims = [each.indices.shape[0] for each in (first, second)]
    if dims[0] != dims[1]:
        _refuse("add", f"their sparse dimensions differ, {dims[0]} and {dims[1]} of shape {list(a.shape)}")
    if first.coalesced and second.coalesced:
        from_a, from_b = native.merge(numbered(a), numbered(b))
        values = native.add_merged(wide(first.values), from_a, wide(second.values), from_b)
        places = native.merged_indices(array_of(first.indices), from_a, array_of(second.indices), from_b)
        return sparse(narrow(values, a.key), tensor_of(places, a.key, int64), a.shape, True)
    indices = np.concatenate([array_of(first.indices), array_of(second.indices)], 1)
    values = np.concatenate([array_of(first.values), array_of(second.values)])
    return sparse(tensor_of(values, a.key), tensor_of(indices, a.key, int64), a.shape, False)


def add(a: Any, b: Any, out: Any = None, name: str = "add") -> Any:
    if a.ndim != b.ndim and not (a.ndim and b.ndim):
        _refuse(name, "a number added to every element leaves none zero")
    _same_shape(name, a, b)
    if a.layout is b.layout:
        return _stored(_joined(a, b), out)
    dense, rest = (a, b) if b.layout is sparse_coo else (b, a)
    if out is dense and dense.is_contiguous() and dense.dtype not in native.HALVES:
        add_into(dense, rest)
        return out
    total = widened(dense).contiguous().clone()
    add_into(total, rest)
    return _stored(narrow(total, rest.key), out)


def _linear(tensor: Any, function: Callable[[Any], Any]) -> Any:
    """A linear function of each element: places may stay repeated."""
    if tensor.layout is not sparse_coo:
        return function(tensor.detach())
    held = coordinates(tensor)
    return sparse(function(held.values), held.indices, tensor.shape, held.coalesced)


def _times(tensor: Any, number: Any) -> Any:
    return _linear(tensor, lambda values: values * number)


def _negative(tensor: Any) -> Any:
    return _linear(tensor, lambda values: -values)


def sub(a: Any, b: Any, out: Any = None) -> Any:
    return add(a, _negative(b), out, "sub")


def add_scaled(a: Any, b: Any, alpha: Any, out: Any = None) -> Any:
    return add(a, _times(b, _number(alpha)), out=out)


# ---------------------------------------------------------------- comparison


def _comparison(name: str) -> Kernel:
    """Equal elements, as a dense tensor: where neither holds one, both are zero."""

    def compare(a: Any, b: Any, out: Any = None) -> Any:
        sides = [_number(one) if _is_number(one, other) else _as_dense(one) for one, other in ((a, b), (b, a))]
        return _stored(getattr(sides[0], name)(sides[1]), out)

    return Kernel(compare, native.DTYPES)


def _as_dense(tensor: Any) -> Any:
    return to_dense(tensor) if tensor.layout is sparse_coo else tensor.detach()


# ---------------------------------------------------------------- products and quotients


def mul(a: Any, b: Any, out: Any = None) -> Any:
    if _is_number(a, b):
        return _stored(_times(b, _number(a)), out)
    if _is_number(b, a):
        return _stored(_times(a, _number(b)), out)
    _same_shape("mul", a, b)
    if a.layout is b.layout:
        return _stored(_met(a, b), out)
    dense, rest = (a, b) if b.layout is sparse_coo else (b, a)
    held = coordinates(rest)
    rows = array_of(dense).reshape(math.prod(rest.shape[: held.indices.shape[0]]), *held.values.shape[1:])
    there = tensor_of(rows[numbered(rest)], rest.key)
    return _stored(sparse(held.values * there, held.indices, rest.shape, held.coalesced), out)


def _met(a: Tensor, b: Tensor) -> Tensor:
    """The product of two sparse tensors: the places that both have."""
    a, b = coalesced(a), coalesced(b)
    first, second = coordinates(a), coordinates(b)
    if first.indices.shape[0] != second.indices.shape[0]:
        _refuse("mul", f"their sparse dimensions differ, {first.indices.shape[0]} and {second.indices.shape[0]}")
    found = native.merge(numbered(a), numbered(b))
    both = (found[0] >= 0) & (found[1] >= 0)
    here, there = (tensor_of(each[both], a.key, int64) for each in found)
    values = first.values.index_select(0, here) * second.values.index_select(0, there)
    return sparse(values, first.indices.index_select(1, here), a.shape, True)


def div(a: Any, b: Any, out: Any = None) -> Any:
    if not _is_number(b, a):
        _refuse("div", "a sparse tensor is divided by a number only, as 0 / 0 is not zero")
    return _stored(_linear(a, lambda values: values / _number(b)), out)


def power(a: Any, b: Any, out: Any = None) -> Any:
    if not _is_number(b, a) or not _number(b).item() > 0:
        _refuse("pow", "a sparse tensor is raised to a positive number only, as others do not keep zeros")
    return _mapped(a, lambda values: values ** _number(b), out)


def _mapped(tensor: Tensor, function: Callable[[Any], Any], out: Any = None) -> Any:
    """A function that keeps zeros, of each element."""
    tensor = coalesced(tensor)
    held = coordinates(tensor)
    return _stored(sparse(function(held.values), held.indices, tensor.shape, True), out)


# ---------------------------------------------------------------- matrices


def _elements(tensor: Tensor) -> tuple[Any, Any, Any]:
    """Row numbers, column numbers and values of a matrix."""
    numbered(tensor)  # looks at each
    held = coordinates(tensor)
    return *array_of(held.indices), wide(held.values)


def _matrix(tensor: Any) -> Any:
    """A dense matrix as an array, in whatever order it lies."""
    return wide(tensor.t()).T if tensor.t().is_contiguous() else wide(tensor)


def product(matrix: Tensor, dense: Tensor) -> Tensor:
    out = zeros((matrix.shape[0], dense.shape[1]), matrix.key)
    native.product(array_of(out), *_elements(matrix), _matrix(dense))
    return narrow(out, matrix.key)


def sampled_product(mask: Tensor, a: Tensor, b: Tensor) -> Tensor:
    rows, columns, _ = _elements(mask)
    values = native.sampled(rows, columns, _matrix(a), _matrix(b))
    return sparse(narrow(values, mask.key), coordinates(mask).indices, mask.shape, True)


def sspaddmm(self: Tensor, matrix: Tensor, dense: Any, beta: float, alpha: float) -> Tensor:
    if dense.layout is sparse_coo:
        raise ShapeError("sspaddmm: expected a dense mat2, got a sparse one.\nUse mat2.to_dense().")
    rows, columns, values = _elements(matrix)
    filled, rows = np.unique(rows, return_inverse=True)
    width = dense.shape[1]
    found = zeros((filled.size, width), self.key)
    native.product(array_of(found), rows, columns, values, _matrix(dense))
    places = np.stack([np.repeat(filled, width), np.tile(np.arange(width), filled.size)])
    added = sparse(narrow(found, self.key).reshape(-1), tensor_of(places, self.key, int64), self.shape, True)
    return _joined(_times(self, beta), _times(added, alpha))


# ---------------------------------------------------------------- norms


def _dims(input: Tensor, dim: int | Sequence[int] | None) -> set[int]:
    """The dimensions that a norm is taken over."""
    named = range(input.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    return {each % input.ndim for each in named}


def norm(input: Tensor, p: float, dim: Any, keepdim: bool) -> Tensor:
    """Sizes to the power of p, folded as they come into a dense array of the dimensions that stay."""
    tensor, dims = coalesced(input), _dims(input, dim)
    held = coordinates(tensor)
    count, shape = held.indices.shape[0], tuple(tensor.shape)
    kept = [each for each in range(count) if each not in dims]
    outer, inner = ([each for each in range(count, len(shape)) if (each in dims) is folds] for folds in (False, True))
    values = wide(held.values.permute(0, *[each - count + 1 for each in outer + inner]))
    across, within = (math.prod(shape[each] for each in some) for some in (outer, inner))
    where = native.places(array_of(held.indices)[kept], tuple(shape[each] for each in kept))
    out: Any = zeros((math.prod(shape[each] for each in kept), across), tensor.key)
    native.fold(array_of(out), where, values.reshape(len(values), across, within), p)
    if p not in (0, 1, math.inf):
        out = out.sqrt() if p == 2 else out.pow(1 / p)
    sizes = [1 if each in dims else size for each, size in enumerate(shape) if keepdim or each not in dims]
    return narrow(out.reshape(sizes), tensor.key)


def _folds(input: Tensor, p: float, dim: Any, keepdim: bool) -> bool:
    """Whether zeros add nothing, and some dimension stays: the norm of all values is that of a dense tensor."""
    return input.ndim > 0 and p >= 0 and len(_dims(input, dim)) < input.ndim and input.numel() > 0


KERNELS = {
    "add": Kernel(add, native.DTYPES),
    "sub": Kernel(sub, native.NUMBERS),
    "add_scaled": Kernel(add_scaled, native.NUMBERS),
    "eq": _comparison("eq"),
    "ne": _comparison("ne"),
    "mul": Kernel(mul, native.DTYPES),
    "div": Kernel(div, [each for each in native.DTYPES if each.is_floating_point or each.is_complex]),
    "pow": Kernel(power, native.REAL),
    "neg": Kernel(lambda self, out=None: _stored(_negative(self), out), native.NUMBERS),
    "abs": Kernel(lambda self, out=None: _mapped(self, lambda values: values.abs(), out), native.REAL),
    "sign": Kernel(lambda self, out=None: _mapped(self, lambda values: values.sign(), out), native.REAL),
    "sparse_product": Kernel(product, native.NUMBERS),
    "sampled_product": Kernel(sampled_product, native.NUMBERS),
    "sspaddmm": Kernel(sspaddmm, native.NUMBERS),
    "sparse.norm": Kernel(norm, native.FLOATING, _folds),
}
