"""Sparse tensors: what they are made of, and arithmetic on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...dtype import complex64, complex128, float32, float64, int64
from ..operands import Draw, Operand
from ..samples import definition, samples


def _nothing(draw: Draw, *shape: int) -> Operand:
    return Operand(draw.of(np.zeros(shape)).values, draw.dtype, sparse=True)


@samples("sparse_tensor", "sparse_tensor (sparse_coo)")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw(4), draw.places([[0, 2, 1, 0], [3, 0, 4, 1]]), (3, 5), False
    yield draw(2, 3), draw.places([[1, 0]]), (4, 3), False
    yield "repeated indices", draw(3), draw.places([[2, 2, 0]]), (4,), False
    yield "empty", draw(0), draw.places(np.zeros((2, 0))), (3, 5), True


@samples(
    "neg (sparse_coo)",
    "abs (sparse_coo)",
    "sign (sparse_coo)",
    "clone (sparse_coo)",
    "coalesce (sparse_coo)",
    "to_dense (sparse_coo)",
)
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield (draw.sparse(3, 5),)
    yield (draw.sparse(2, 3, 4),)
    yield (draw.sparse(17),)
    yield "empty", _nothing(draw, 3, 5)
    yield "empty", _nothing(draw, 0, 3)


@samples("add (sparse_coo)", "sub (sparse_coo)", "mul (sparse_coo)", "eq (sparse_coo)", "ne (sparse_coo)")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw.sparse(3, 5), draw.sparse(3, 5)
    yield draw.sparse(2, 3, 4), draw.sparse(2, 3, 4)
    yield draw(3, 5), draw.sparse(3, 5)
    yield "empty", _nothing(draw, 3, 5), draw.sparse(3, 5)
    yield "empty", draw.sparse(3, 5), _nothing(draw, 3, 5)
    yield "empty", _nothing(draw, 0, 3), _nothing(draw, 0, 3)


@samples("add_scaled (sparse_coo)")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw.sparse(3, 5), draw.sparse(3, 5), 2
    yield "empty", _nothing(draw, 3, 5), draw.sparse(3, 5), 2


@samples("div (sparse_coo)", "pow (sparse_coo)")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw.sparse(3, 5), 2
    yield draw.sparse(2, 3, 4), 2
    yield "empty", _nothing(draw, 3, 5), 2


@samples("copy_ (sparse_coo)")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw.sparse(3, 5), draw.sparse(3, 5)
    yield draw(3, 5), draw.sparse(3, 5)
    yield "empty", draw.sparse(3, 5), _nothing(draw, 3, 5)


@samples("fill_ (sparse_coo)")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw.sparse(3, 5), draw.of(0)
    yield "empty", _nothing(draw, 0, 3), draw.of(0)


@samples("cast (sparse_coo)")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    whole = draw.of(np.abs(draw.sparse(3, 5).values))._replace(sparse=True)
    for target in (complex64, complex128) if draw.dtype.is_complex else (int64, float32, float64):
        if target is not draw.dtype:
            yield "coalesced", whole, target


@samples("sparse_indices (sparse_coo)", "sparse_values (sparse_coo)", "is_coalesced (sparse_coo)")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield "coalesced", draw.sparse(3, 5)
    yield "coalesced", _nothing(draw, 3, 5)


@samples("sparse_lookup (sparse_coo)")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw.sparse(3, 5), draw.places([[0, 2, 1, 0], [3, 0, 4, 3]])
    yield draw.sparse(9), draw.places([[8, 0, 3]])
    yield "empty", draw.sparse(3, 5), draw.places(np.zeros((2, 0)))
    yield "empty", _nothing(draw, 3, 5), draw.places([[0, 2], [3, 0]])


@samples("sparse_product (sparse_coo)")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    for n, m, p in ((3, 4, 5), (7, 3, 1), (9, 9, 9)):
        yield draw.sparse(n, m), draw(m, p)
    yield "empty", _nothing(draw, 3, 4), draw(4, 5)
    yield "empty", _nothing(draw, 0, 4), draw(4, 5)


@samples("sampled_product (sparse_coo)")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield "coalesced", draw.sparse(3, 5), draw(3, 4), draw(4, 5)
    yield "coalesced", _nothing(draw, 3, 5), draw(3, 4), draw(4, 5)


@samples("sspaddmm (sparse_coo)")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw.sparse(3, 5), draw.sparse(3, 4), draw(4, 5), 1, 1
    yield draw.sparse(3, 5), draw.sparse(3, 4), draw(4, 5), 2, 3
    yield "empty", _nothing(draw, 3, 5), _nothing(draw, 3, 4), draw(4, 5), 1, 1


# ---------------------------------------------------------------- definitions


@definition("sparse_tensor")
def _made(values: Any, indices: Any, size: Any, coalesced: bool) -> Any:
    result = np.zeros(size, values.dtype)
    np.add.at(result, tuple(indices), values)
    return result


@definition("coalesce", "to_dense")
def _same(a: Any) -> Any:
    return a


@definition("sparse_indices")
def _indices(a: Any) -> Any:
    return np.argwhere(a).T


@definition("sparse_values")
def _values(a: Any) -> Any:
    return a[a != 0]


@definition("is_coalesced")
def _is_coalesced(a: Any) -> bool:
    return True  # as all operands of these samples are


@definition("sparse_lookup")
def _lookup(a: Any, indices: Any) -> Any:
    return a[tuple(indices)]


@definition("sparse_product")
def _product(sparse: Any, dense: Any) -> Any:
    return np.matmul(sparse, dense)


@definition("sampled_product")
def _sampled(mask: Any, a: Any, b: Any) -> Any:
    return np.where(mask != 0, np.matmul(a, b), 0)


@definition("sspaddmm")
def _sspaddmm(a: Any, sparse: Any, dense: Any, beta: Any, alpha: Any) -> Any:
    return beta * a + alpha * np.matmul(sparse, dense)


# ---------------------------------------------------------------- composites


@samples("to_sparse")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield (draw(3, 5),)
    yield draw(3, 5), 1


@samples("permute_copy")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw.sparse(2, 3, 4), (2, 0, 1)
    yield draw(2, 3, 4), (2, 0, 1)


@samples("sparse.sum")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw.sparse(3, 5), None
    yield draw.sparse(3, 5), 1


@samples("sparse.norm", "sparse.norm (sparse_coo)")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw.sparse(2, 3, 4), 3, (0, 2), True
    yield "empty", _nothing(draw, 3, 5), 2, 0, False
    yield draw.sparse(3, 5), 2, 1, False
    yield draw.sparse(3, 5), 1, (0, 1), False


@samples("spmm")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw.sparse(3, 4), draw(4, 5)
    yield draw.sparse(3, 4), draw(4)


@samples("smm", "hspmm")
def _(draw: Draw) -> Iterator[tuple[Any, ...]]:
    yield draw.sparse(3, 4), draw(4, 5)


@definition("to_sparse")
def _to_sparse(a: Any, sparse_dim: Any = None) -> Any:
    return a


@definition("permute_copy")
def _permuted(a: Any, dims: Any) -> Any:
    return np.transpose(a, dims)


@definition("sparse.sum")
def _sum(a: Any, dim: Any = None, dtype: Any = None, keepdim: bool = False) -> Any:
    return np.sum(a, axis=dim, keepdims=keepdim)


@definition("sparse.norm")
def _norm(a: Any, p: float, dim: Any, keepdim: bool) -> Any:
    return np.sum(np.abs(a) ** p, axis=dim, keepdims=keepdim) ** (1 / p)


@definition("spmm", "smm", "hspmm")
def _spmm(sparse: Any, dense: Any) -> Any:
    return np.matmul(sparse, dense)
