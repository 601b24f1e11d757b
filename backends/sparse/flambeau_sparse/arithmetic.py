"""Kernels that work element by element, and products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from flambeau.backend import Kernel, MissingKernelError, ShapeError, Tensor, int64, sparse_coo

from . import native
from .coordinates import array_of, coordinates, replace, sparse, tensor_of
from .structure import add_into, coalesced, ordered_places, to_dense

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
    indices = np.concatenate([array_of(first.indices), array_of(second.indices)], 1)
    values = np.concatenate([array_of(first.values), array_of(second.values)])
    result = sparse(tensor_of(values, a.key), tensor_of(indices, a.key, int64), a.shape, False)
    return coalesced(result) if first.coalesced and second.coalesced else result


def add(a: Any, b: Any, out: Any = None, name: str = "add") -> Any:
    if a.ndim != b.ndim and not (a.ndim and b.ndim):
        _refuse(name, "a number added to every element leaves none zero")
    _same_shape(name, a, b)
    if a.layout is b.layout:
        return _stored(_joined(a, b), out)
    dense, rest = (a, b) if b.layout is sparse_coo else (b, a)
    if out is dense and dense.is_contiguous():
        if dense.numel():
            add_into(dense.key.memory.to_numpy(dense.memory, dense.numel(), dense.dtype).reshape(dense.shape), rest)
        return out
    total = np.array(array_of(dense))
    add_into(total, rest)
    return _stored(tensor_of(total, rest.key), out)


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
    there = array_of(dense)[tuple(array_of(held.indices))]
    if not held.indices.shape[0]:
        there = np.broadcast_to(array_of(dense), held.values.shape)
    return _stored(sparse(held.values * tensor_of(there, rest.key), held.indices, rest.shape, held.coalesced), out)


def _met(a: Tensor, b: Tensor) -> Tensor:
    """The product of two sparse tensors: the places that both have."""
    a, b = coalesced(a), coalesced(b)
    first, second = coordinates(a), coordinates(b)
    if first.indices.shape[0] != second.indices.shape[0]:
        _refuse("mul", f"their sparse dimensions differ, {first.indices.shape[0]} and {second.indices.shape[0]}")
    found = native.find(ordered_places(b), ordered_places(a))
    both = found >= 0
    values = array_of(first.values)[both] * array_of(second.values)[found[both]]
    return sparse(tensor_of(values, a.key), tensor_of(array_of(first.indices)[:, both], a.key, int64), a.shape, True)


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


def _rows(tensor: Tensor) -> tuple[Any, Any, Any]:
    """Row numbers, column numbers and values of a coalesced matrix."""
    ordered_places(tensor)  # looks at each
    held = coordinates(tensor)
    indices = array_of(held.indices)
    return indices[0], np.ascontiguousarray(indices[1]), array_of(held.values)


def _matrix(tensor: Any) -> Any:
    """A dense matrix as an array, in whatever order it lies."""
    return array_of(tensor.t()).T if tensor.t().is_contiguous() else array_of(tensor)


def product(matrix: Tensor, dense: Tensor) -> Tensor:
    rows, columns, values = _rows(coalesced(matrix))
    starts = np.searchsorted(rows, np.arange(matrix.shape[0] + 1)).astype(np.int64)
    return tensor_of(native.sorted_product(starts, columns, values, _matrix(dense)), matrix.key)


def sampled_product(mask: Tensor, a: Tensor, b: Tensor) -> Tensor:
    rows, columns, _ = _rows(mask)
    values = native.sampled(np.ascontiguousarray(rows), columns, _matrix(a), _matrix(b))
    return sparse(tensor_of(values, mask.key), coordinates(mask).indices, mask.shape, True)


def sspaddmm(self: Tensor, matrix: Tensor, dense: Any, beta: float, alpha: float) -> Tensor:
    if dense.layout is sparse_coo:
        raise ShapeError("sspaddmm: expected a dense mat2, got a sparse one.\nUse mat2.to_dense().")
    rows, columns, values = _rows(coalesced(matrix))
    filled, starts = np.unique(rows, return_index=True)
    found = native.sorted_product(np.append(starts, rows.size).astype(np.int64), columns, values, _matrix(dense))
    width = dense.shape[1]
    places = np.stack([np.repeat(filled, width), np.tile(np.arange(width), filled.size)])
    added = sparse(tensor_of(found.reshape(-1), self.key), tensor_of(places, self.key, int64), self.shape, True)
    return _joined(_times(self, beta), _times(added, alpha))


KERNELS = {
    "add": Kernel(add, native.DTYPES),
    "sub": Kernel(sub, native.NUMBERS),
    "add_scaled": Kernel(add_scaled, native.NUMBERS),
    "eq": _comparison("eq"),
    "ne": _comparison("ne"),
    "mul": Kernel(mul, native.DTYPES),
    "div": Kernel(div, [each for each in native.REAL if each.is_floating_point]),  # others come converted
    "pow": Kernel(power, native.REAL),
    "neg": Kernel(lambda self, out=None: _stored(_negative(self), out), native.NUMBERS),
    "abs": Kernel(lambda self, out=None: _mapped(self, lambda values: values.abs(), out), native.REAL),
    "sign": Kernel(lambda self, out=None: _mapped(self, lambda values: values.sign(), out), native.REAL),
    "sparse_product": Kernel(product, native.NUMBERS),
    "sampled_product": Kernel(sampled_product, native.NUMBERS),
    "sspaddmm": Kernel(sspaddmm, native.NUMBERS),
}
