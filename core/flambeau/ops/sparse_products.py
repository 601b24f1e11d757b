"""Products of sparse matrices and dense ones, with gradients that keep to the places held."""

from __future__ import annotations

from typing import Any, cast

from ..dispatch.operator import composite, primitive
from ..dispatch.pointwise import finish_out
from ..errors import DtypeError, ShapeError
from ..geometry import Size
from ..layout import sparse_coo, strided
from ..tensor import Tensor
from .linalg import old_order, scaled
from .sparse import (
    coalesce,
    dense_dim,
    require_sparse,
    sparse_coo_tensor,
    sparse_indices,
    sparse_tensor,
    to_dense,
    values_at,
)


@primitive("sparse dense |", method=False, namespaces=())
def sparse_product(sparse: Tensor, dense: Tensor) -> Tensor:
    """The product of a sparse matrix and a dense one; dense."""
    return cast(Tensor, sparse_product.run(sparse, dense))


@primitive("mask a b |", method=False, namespaces=())
def sampled_product(mask: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The elements of the product of two dense matrices that a coalesced sparse one has places for."""
    return cast(Tensor, sampled_product.run(mask, a, b))


sparse_product.gradient(
    sparse=lambda grad, sparse, dense: sampled_product(coalesce(sparse.detach()), grad, dense.t()),
    dense=lambda grad, sparse: sparse_product(sparse.t(), grad),
)
sampled_product.gradient(
    mask=lambda grad: None,
    a=lambda grad, b: sparse_product(grad, b.t()),
    b=lambda grad, a: sparse_product(grad.t(), a).t(),
)


@composite(method=False)
def spmm(sparse: Any, dense: Any) -> Tensor:
    """The product of a sparse matrix and a dense matrix or vector, or of a dense and a sparse one; dense.

    Raises:
        RuntimeError: the sizes do not fit, the dtypes differ, or neither or both are sparse.
    """
    if dense.layout is sparse_coo and sparse.layout is strided:
        if sparse.ndim == 1:
            return cast(Tensor, spmm(dense.t(), sparse))
        return cast(Tensor, cast(Any, spmm(dense.t(), sparse.t())).t())
    _check_product("mm", sparse, dense)
    if dense.ndim == 1:
        return cast(Tensor, sparse_product(sparse, dense.unsqueeze(1)).squeeze(1))
    return cast(Tensor, sparse_product(sparse, dense))


def _check_product(name: str, sparse: Any, dense: Any) -> None:
    require_sparse(name, sparse)
    if dense.layout is not strided:
        raise DtypeError(f"{name}: expected a sparse and a dense operand, got two sparse ones.\nUse y.to_dense().")
    if sparse.dtype is not dense.dtype:
        raise DtypeError(
            f"{name}: expected tensors to have the same dtype, but got {sparse.dtype.name} and {dense.dtype.name}.\n"
            "Convert them with .to(dtype)."
        )
    if sparse.ndim != 2 or dense.ndim not in (1, 2) or sparse.shape[1] != dense.shape[0]:
        raise ShapeError(
            f"{name}: a sparse matrix (n, m) is multiplied with a dense (m, p) or (m), got {list(sparse.shape)} and "
            f"{list(dense.shape)}."
        )
    if dense_dim(sparse):
        raise ShapeError(f"{name}: both dimensions of a matrix must be sparse, got dense_dim {dense_dim(sparse)}.")


@primitive("self sparse dense | beta alpha", namespaces=("",))
def sspaddmm(
    self: Tensor, mat1: Any, mat2: Any, *old: Any, beta: float = 1, alpha: float = 1, out: Tensor | None = None
) -> Tensor:
    """Return ``beta * self + alpha * (mat1 @ mat2)``, sparse: rows that ``mat1`` lacks are not computed.

    Args:
        self: sparse, (n, p).
        mat1: sparse, (n, m).
        mat2: dense, (m, p).

    Raises:
        RuntimeError: the sizes do not fit, or the layouts or dtypes are others.
    """
    if old or not (isinstance(self, Tensor) and isinstance(mat1, Tensor)):
        return old_order(sspaddmm, (self, mat1, mat2, *old), out)
    if out is not None:
        found = (self, mat1, mat2)
        return finish_out("sspaddmm", out, found, lambda: cast(Tensor, sspaddmm(*found, beta=beta, alpha=alpha)))
    require_sparse("sspaddmm", self)
    _check_product("sspaddmm", mat1, mat2)
    wanted = (mat1.shape[0], mat2.shape[1] if mat2.ndim == 2 else 0)
    if mat2.ndim != 2 or tuple(self.shape) != wanted or dense_dim(self) or self.key is not mat1.key:
        raise ShapeError(
            f"sspaddmm: expected self to be sparse, of shape {list(wanted)} and {mat1.dtype.name}, "
            f"got {list(self.shape)} of {self.dtype.name}."
        )
    return cast(Tensor, sspaddmm.run(self, mat1, mat2, beta, alpha))


sspaddmm.gradient(
    self=lambda grad, beta: scaled(grad, beta),
    sparse=lambda grad, sparse, dense, alpha: scaled(
        sampled_product(coalesce(sparse.detach()), to_dense(grad), dense.t()), alpha
    ),
    dense=lambda grad, sparse, alpha: scaled(sparse_product(sparse.t(), to_dense(grad)), alpha),
)


@composite(namespaces=("",))
def smm(self: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix and a dense one; sparse."""
    require_sparse("smm", self)
    nothing = sparse_coo_tensor(Size((self.shape[0], mat2.shape[1])), dtype=self.dtype, device=self.device)
    return cast(Tensor, sspaddmm(nothing, self, mat2))


@composite(namespaces=("",))
def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix (n, m) and a dense one (m, p); hybrid: it holds the rows that ``mat1`` has.

    Raises:
        RuntimeError: the sizes do not fit, or the layouts or dtypes are others.
    """
    _check_product("hspmm", mat1, mat2)
    if mat2.geometry.ndim != 2:
        raise ShapeError(f"hspmm: expected a dense matrix, got shape {list(mat2.shape)}.")
    rows: Any = sparse_indices(coalesce(cast(Any, mat1).detach()))[0]
    held = rows.unique().unsqueeze(0)
    return cast(Tensor, sparse_tensor(values_at(spmm(mat1, mat2), held), held, (mat1.shape[0], mat2.shape[1]), True))
