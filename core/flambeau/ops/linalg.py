"""Products of matrices and vectors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from ..autograd.grad_mode import mode
from ..autograd.node import record
from ..dispatch.operator import composite, primitive
from ..dispatch.pointwise import finish_out
from ..dispatch.writes import device_mismatch
from ..errors import ArgumentTypeError, DtypeError, ShapeError, shown
from ..geometry import Size, axis, broadcast_shapes
from ..tensor import Tensor
from .views import declared

__all__ = [
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "cross", "dot", "ger", "matmul", "mm", "mv", "outer", "trace",
]  # fmt: skip


def same_key(name: str, *tensors: Any) -> None:
    """Refuse tensors of several dtypes, devices or layouts, and what is no tensor.

    Raises:
        TypeError: an argument is no tensor.
        RuntimeError: dtypes, devices or layouts differ.
    """
    first = tensors[0]
    for each in tensors:
        if not isinstance(each, Tensor):
            raise ArgumentTypeError(f"{name}(): expected tensors, got {type(each).__name__}: {shown(each)}.")
        if each.key.device is not first.key.device:
            raise device_mismatch(name, first, each)
        if each.key.layout is not first.key.layout:
            raise DtypeError(
                f"{name}: expected tensors of one layout, but got "
                f"{' and '.join(t.key.layout.name for t in tensors if isinstance(t, Tensor))}.\n"
                "Convert those that are sparse with .to_dense()."
            )
        if each.key is not first.key:
            raise DtypeError(
                f"{name}: expected tensors to have the same dtype, but got "
                f"{' and '.join(t.key.dtype.name for t in tensors)}.\n"
                "Convert them with .to(dtype)."
            )


def layouts_differ(self: Tensor, other: Any) -> bool:
    """Whether one operand is sparse and the other is not."""
    return isinstance(other, Tensor) and isinstance(self, Tensor) and self.key.layout is not other.key.layout


def wrong_sizes(name: str, expected: str, *tensors: Tensor) -> ShapeError:
    return ShapeError(f"{name}: expected {expected}, got {' and '.join(str(list(each.shape)) for each in tensors)}.")


# ---------------------------------------------------------------- products

#: Geometries that were found to fit together, so that the same layer does not check its shapes at each call.
fits: Final[set[tuple[Any, ...]]] = set()
_MOST_FITS: Final = 8192


def fitting(*geometries: Any) -> None:
    """Remember that these fit."""
    if len(fits) >= _MOST_FITS:
        fits.clear()
    fits.add(geometries)


@primitive("self mat2 |", namespaces=("", "sparse"))
def mm(self: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices: (n, m) and (m, p) give (n, p).

    Raises:
        RuntimeError: one is no matrix, the inner sizes differ, or the dtypes do.
    """
    if out is not None:
        return finish_out("mm", out, (self, mat2), lambda: cast(Tensor, mm(self, mat2)))
    if type(mat2) is Tensor and self.key is mat2.key:
        if (mm, self.geometry, mat2.geometry) in fits:
            return cast(Tensor, mm.run(self, mat2))
    elif layouts_differ(self, mat2):
        return cast(Tensor, declared("spmm")(self, mat2))
    else:
        same_key("mm", self, mat2)
    a, b = self.geometry.shape, mat2.geometry.shape
    if len(a) != 2 or len(b) != 2 or a[1] != b[0]:
        raise ShapeError(
            f"mm: mat1 and mat2 shapes cannot be multiplied, expected (n, m) and (m, p), got {list(a)} and {list(b)}."
        )
    fitting(mm, self.geometry, mat2.geometry)
    return cast(Tensor, mm.run(self, mat2))


mm.gradient(self=lambda grad, mat2: grad.mm(mat2.t()), mat2=lambda grad, self: self.t().mm(grad))
mm.reference(np.matmul)


@primitive("self mat2 |")
def bmm(self: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The products of two batches of matrices: (b, n, m) and (b, m, p) give (b, n, p).

    Raises:
        RuntimeError: the sizes do not fit, or the dtypes differ.
    """
    if out is not None:
        return finish_out("bmm", out, (self, mat2), lambda: cast(Tensor, bmm(self, mat2)))
    if not isinstance(mat2, Tensor) or self.key is not mat2.key:
        same_key("bmm", self, mat2)
    a, b = self.geometry.shape, mat2.geometry.shape
    if len(a) != 3 or len(b) != 3 or a[0] != b[0] or a[2] != b[1]:
        raise wrong_sizes("bmm", "batch1 (b, n, m) and batch2 (b, m, p) to be 3-D tensors of fitting sizes", self, mat2)
    return cast(Tensor, bmm.run(self, mat2))


bmm.gradient(
    self=lambda grad, mat2: grad.bmm(mat2.transpose(1, 2)),
    mat2=lambda grad, self: self.transpose(1, 2).bmm(grad),
)
bmm.reference(np.matmul)


@bmm.composite
def _bmm(self: Tensor, mat2: Tensor) -> Tensor:
    products = [mm(a, b) for a, b in zip(cast(Any, self), cast(Any, mat2), strict=True)]
    if not products:
        return cast(Tensor, cast(Any, self).new_zeros((0, self.shape[1], mat2.shape[2])))
    return cast(Tensor, declared("stack")(products))


@primitive("self vec |")
def mv(self: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of a matrix and a vector: (n, m) and (m) give (n).

    Raises:
        RuntimeError: the sizes do not fit, or the dtypes differ.
    """
    if out is not None:
        return finish_out("mv", out, (self, vec), lambda: cast(Tensor, mv(self, vec)))
    if layouts_differ(self, vec):
        return cast(Tensor, declared("spmm")(self, vec))
    if not isinstance(vec, Tensor) or self.key is not vec.key:
        same_key("mv", self, vec)
    a, b = self.geometry.shape, vec.geometry.shape
    if len(a) != 2 or len(b) != 1 or a[1] != b[0]:
        raise wrong_sizes("mv", "a matrix (n, m) and a vector (m)", self, vec)
    return cast(Tensor, mv.run(self, vec))


mv.gradient(self=lambda grad, vec: grad.outer(vec), vec=lambda grad, self: self.t().mv(grad))
mv.reference(np.matmul)
mv.composite(lambda self, vec: self.mm(vec.unsqueeze(1)).squeeze(1))


@primitive("self tensor |", namespaces="")
def dot(self: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inner product of two vectors of equal length.

    Raises:
        RuntimeError: one is no vector, the lengths or the dtypes differ.
    """
    if out is not None:
        return finish_out("dot", out, (self, tensor), lambda: cast(Tensor, dot(self, tensor)))
    if not isinstance(tensor, Tensor) or self.key is not tensor.key:
        same_key("dot", self, tensor)
    a, b = self.geometry.shape, tensor.geometry.shape
    if len(a) != 1 or len(b) != 1:
        raise wrong_sizes("dot", "1D tensors", self, tensor)
    if a != b:
        raise wrong_sizes("dot", "both vectors to have the same size: inconsistent tensor size", self, tensor)
    return cast(Tensor, dot.run(self, tensor))


dot.gradient(self=lambda grad, tensor: grad * tensor, tensor=lambda grad, self: grad * self)
dot.reference(np.dot)
dot.composite(lambda self, tensor: (self * tensor).sum(dtype=self.dtype))


@primitive("self other |", operator="__matmul__", namespaces=("", "linalg"))
def matmul(self: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of matrices, vectors, or batches of them.

    The last two dimensions of each operand are matrices, multiplied with the leading dimensions broadcast
    together.  A vector counts as a row on the left and as a column on the right; its dimension is left out of the
    result, so that two vectors give their inner product.

    Raises:
        RuntimeError: an operand has no dimensions, the sizes do not fit, or the dtypes differ.
    """
    if out is not None:
        return finish_out("matmul", out, (self, other), lambda: cast(Tensor, matmul(self, other)))
    try:
        if self.key is other.key and (self.geometry, other.geometry) in fits:
            kernel = _matmul_table.get(self.key)
            if kernel is not None:
                result: Tensor = kernel(self, other)
                if (self.node is not None or other.node is not None) and mode.enabled:
                    record(matmul.op, (self, other), result)
                return result
    except AttributeError:
        same_key("matmul", self, other)
        raise
    return _checked_matmul(self, other)


_matmul_table: Final = matmul.op.table


def _checked_matmul(self: Tensor, other: Tensor) -> Tensor:
    if layouts_differ(self, other):
        return cast(Tensor, declared("spmm")(self, other))
    same_key("matmul", self, other)
    a, b = self.geometry.shape, other.geometry.shape
    if not a or not b:
        raise ShapeError(f"matmul: both arguments need to be at least 1D, but they are {len(a)}D and {len(b)}D.")
    if a[-1] == (b[-2] if len(b) > 1 else b[0]):
        broadcast_shapes(a[:-2], b[:-2])
        fitting(self.geometry, other.geometry)
        return cast(Tensor, matmul.run(self, other))
    raise ShapeError(
        f"matmul: mat1 and mat2 shapes cannot be multiplied, got {list(a)} and {list(b)}: "
        f"size {a[-1]} of the first must match size {b[-2] if len(b) > 1 else b[0]} of the second."
    )


def _matmul_left(grad: Any, self_shape: tuple[int, ...], other: Any) -> Any:
    if other.ndim == 1:
        return grad.unsqueeze(-1) * other if len(self_shape) > 1 else grad * other
    if len(self_shape) == 1:
        return other.matmul(grad.unsqueeze(-1)).squeeze(-1)
    return grad.matmul(other.transpose(-1, -2))


def _matmul_right(grad: Any, self: Any, other_shape: tuple[int, ...]) -> Any:
    if self.ndim == 1:
        if len(other_shape) == 1:
            return grad * self
        return self.unsqueeze(-1) * grad.unsqueeze(-2)
    if len(other_shape) == 1:
        return self.transpose(-1, -2).matmul(grad.unsqueeze(-1)).squeeze(-1)
    if len(other_shape) == 2 and self.ndim > 2:  # one matrix for all batches: sum over them inside the product
        return rows_of(self).t().mm(rows_of(grad))
    return self.transpose(-1, -2).matmul(grad)


matmul.gradient(self=_matmul_left, other=_matmul_right)
matmul.reference(np.matmul)


@matmul.composite
def _matmul(self: Any, other: Any) -> Any:
    row, column = self.ndim == 1, other.ndim == 1
    a, b = self.unsqueeze(0) if row else self, other.unsqueeze(1) if column else other
    if a.ndim == 2 and b.ndim == 2:
        result = a.mm(b)
    elif b.ndim == 2:
        result = rows_of(a).mm(b).reshape((*a.shape[:-1], b.shape[-1]))
    else:
        batch = tuple(broadcast_shapes(a.shape[:-2], b.shape[:-2]))
        flat = [
            each.expand(batch + tuple(each.shape[-2:])).reshape((math.prod(batch), *each.shape[-2:])) for each in (a, b)
        ]
        result = flat[0].bmm(flat[1]).reshape((*batch, a.shape[-2], b.shape[-1]))
    if row:
        result = result.squeeze(-2)
    return result.squeeze(-1) if column else result


# ---------------------------------------------------------------- sums of products


def old_order(function: Callable[..., Tensor], args: tuple[Any, ...], out: Tensor | None) -> Tensor:
    """A call with ``beta`` and ``alpha`` among the positional arguments, as PyTorch had them before 0.4."""
    numbers = [each for each in args if not isinstance(each, Tensor)]
    tensors = [each for each in args if isinstance(each, Tensor)]
    if len(tensors) != 3 or not 1 <= len(numbers) <= 2 or not all(isinstance(each, (int, float)) for each in numbers):
        raise ArgumentTypeError(
            f"{function.__name__}(): expected three tensors (and the keywords beta and alpha), "
            f"got {', '.join(type(each).__name__ for each in args)}."
        )
    warnings.warn(
        f"{function.__name__}(beta, input, alpha, a, b) is deprecated; write {function.__name__}(input, a, b, "
        "beta=beta, alpha=alpha).",
        DeprecationWarning,
        stacklevel=3,
    )
    return function(*tensors, beta=numbers[0], alpha=numbers[1] if len(numbers) == 2 else 1, out=out)


def _factors(self: Tensor, beta: Any, alpha: Any) -> tuple[Any, Any]:
    """The factors as numbers of the tensor's kind: integer products take the integer part."""
    return (beta, alpha) if self.key.dtype.category >= 2 else (int(beta), int(alpha))


def rows_of(tensor: Any) -> Any:
    """The tensor as a matrix: the last dimension stays, all others become rows."""
    return tensor if tensor.ndim == 2 else tensor.reshape(math.prod(tensor.shape[:-1]), tensor.shape[-1])


def _check_addition(name: str, self: Tensor, shape: tuple[int, ...]) -> None:
    if broadcast_shapes(self.geometry.shape, shape) != shape:
        raise ShapeError(
            f"{name}: the expanded size of the input {list(self.shape)} must match the product's, {list(shape)}."
        )


@primitive("self mat1 mat2 | beta alpha", inplace="addmm_", namespaces=("", "sparse"))
def addmm(
    self: Tensor, mat1: Tensor, mat2: Tensor, *old: Any, beta: float = 1, alpha: float = 1, out: Tensor | None = None
) -> Tensor:
    """Return ``beta * self + alpha * (mat1 @ mat2)``; with ``beta == 0``, NaN in ``self`` does not matter.

    Args:
        self: broadcasts to (n, p).
        mat1: (n, m).
        mat2: (m, p).

    Raises:
        RuntimeError: the sizes do not fit, or the dtypes differ.
    """
    if out is None and not old and type(self) is type(mat1) is type(mat2) is Tensor:
        key = self.key
        if key is mat1.key is mat2.key and (addmm, self.geometry, mat1.geometry, mat2.geometry) in fits:
            return cast(Tensor, addmm.run(self, mat1, mat2, *_factors(self, beta, alpha)))
    if old or not (isinstance(self, Tensor) and isinstance(mat1, Tensor)):
        return old_order(addmm, (self, mat1, mat2, *old), out)
    if out is not None:
        return finish_out(
            "addmm", out, (self, mat1, mat2), lambda: cast(Tensor, addmm(self, mat1, mat2, beta=beta, alpha=alpha))
        )
    if layouts_differ(mat1, mat2):
        return cast(Tensor, scaled(self, beta) + scaled(mm(mat1, mat2), alpha))
    same_key("addmm", self, mat1, mat2)
    a, b = mat1.geometry.shape, mat2.geometry.shape
    if len(a) != 2 or len(b) != 2 or a[1] != b[0]:
        raise ShapeError(
            f"addmm: mat1 and mat2 shapes cannot be multiplied, expected (n, m) and (m, p), got {list(a)} and "
            f"{list(b)}."
        )
    _check_addition("addmm", self, (a[0], b[1]))
    fitting(addmm, self.geometry, mat1.geometry, mat2.geometry)
    return cast(Tensor, addmm.run(self, mat1, mat2, *_factors(self, beta, alpha)))


addmm.gradient(
    self=lambda grad, beta: grad * beta,
    mat1=lambda grad, mat2, alpha: scaled(grad.mm(mat2.t()), alpha),
    mat2=lambda grad, mat1, alpha: scaled(mat1.t().mm(grad), alpha),
)


def scaled(value: Any, factor: float) -> Any:
    """``value * factor``, or ``value`` itself for a factor of 1."""
    return value if factor == 1 else value * factor


def _combined(self: Any, product: Any, beta: float, alpha: float) -> Any:
    product = scaled(product, alpha)
    return product if beta == 0 else scaled(self, beta) + product


@addmm.reference
@np.errstate(all="ignore")
def _(self: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    product = alpha * np.matmul(a, b)
    return product if beta == 0 else beta * self + product


addmm.composite(lambda self, mat1, mat2, beta, alpha: _combined(self, mat1.mm(mat2), beta, alpha))


def _batches(name: str, batch1: Tensor, batch2: Tensor) -> tuple[Size, Size]:
    """The shapes of two batches of matrices that can be multiplied."""
    a, b = batch1.geometry.shape, batch2.geometry.shape
    if len(a) != 3 or len(b) != 3 or a[0] != b[0] or a[2] != b[1]:
        raise wrong_sizes(
            name, "batch1 (b, n, m) and batch2 (b, m, p) to be 3D tensors of fitting sizes", batch1, batch2
        )
    return a, b


@primitive("self batch1 batch2 | beta alpha", inplace="baddbmm_")
def baddbmm(
    self: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *old: Any,
    beta: float = 1,
    alpha: float = 1,
    out: Tensor | None = None,
) -> Tensor:
    """Return ``beta * self + alpha * bmm(batch1, batch2)``; with ``beta == 0``, NaN in ``self`` does not matter.

    Args:
        self: broadcasts to (b, n, p).
        batch1: (b, n, m).
        batch2: (b, m, p).

    Raises:
        RuntimeError: the sizes do not fit, or the dtypes differ.
    """
    if old or not (isinstance(self, Tensor) and isinstance(batch1, Tensor)):
        return old_order(baddbmm, (self, batch1, batch2, *old), out)
    if out is not None:
        return finish_out(
            "baddbmm",
            out,
            (self, batch1, batch2),
            lambda: cast(Tensor, baddbmm(self, batch1, batch2, beta=beta, alpha=alpha)),
        )
    same_key("baddbmm", self, batch1, batch2)
    a, b = _batches("baddbmm", batch1, batch2)
    _check_addition("baddbmm", self, (a[0], a[1], b[2]))
    return cast(Tensor, baddbmm.run(self, batch1, batch2, *_factors(self, beta, alpha)))


baddbmm.gradient(
    self=lambda grad, beta: grad * beta,
    batch1=lambda grad, batch2, alpha: scaled(grad.bmm(batch2.transpose(1, 2)), alpha),
    batch2=lambda grad, batch1, alpha: scaled(batch1.transpose(1, 2).bmm(grad), alpha),
)
baddbmm.reference(cast(Any, addmm).op.oracle)
baddbmm.composite(lambda self, batch1, batch2, beta, alpha: _combined(self, batch1.bmm(batch2), beta, alpha))


@composite(inplace="addmv_")
def addmv(
    self: Tensor, mat: Tensor, vec: Tensor, *old: Any, beta: float = 1, alpha: float = 1, out: Tensor | None = None
) -> Tensor:
    """Return ``beta * self + alpha * (mat @ vec)``; with ``beta == 0``, NaN in ``self`` does not matter.

    Args:
        self: broadcasts to (n).
        mat: (n, m).
        vec: (m).

    Raises:
        RuntimeError: the sizes do not fit, or the dtypes differ.
    """
    if old or not (isinstance(self, Tensor) and isinstance(mat, Tensor)):
        return old_order(addmv, (self, mat, vec, *old), out)
    if out is not None:
        return finish_out(
            "addmv", out, (self, mat, vec), lambda: cast(Tensor, addmv(self, mat, vec, beta=beta, alpha=alpha))
        )
    same_key("addmv", self, mat, vec)
    if mat.ndim != 2 or vec.ndim != 1 or mat.shape[1] != vec.shape[0]:
        raise wrong_sizes("addmv", "a matrix (n, m) and a vector (m)", mat, vec)
    _check_addition("addmv", self, (mat.shape[0],))
    column = cast(Any, self).unsqueeze(-1)
    return cast(Tensor, addmm(column, mat, cast(Any, vec).unsqueeze(1), beta=beta, alpha=alpha).squeeze(1))


@composite(inplace="addbmm_")
def addbmm(
    self: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *old: Any,
    beta: float = 1,
    alpha: float = 1,
    out: Tensor | None = None,
) -> Tensor:
    """Return ``beta * self + alpha * sum(batch1[i] @ batch2[i])``; with ``beta == 0``, NaN in ``self`` does not matter.

    Args:
        self: broadcasts to (n, p).
        batch1: (b, n, m).
        batch2: (b, m, p).

    Raises:
        RuntimeError: the sizes do not fit, or the dtypes differ.
    """
    if old or not (isinstance(self, Tensor) and isinstance(batch1, Tensor)):
        return old_order(addbmm, (self, batch1, batch2, *old), out)
    if out is not None:
        return finish_out(
            "addbmm",
            out,
            (self, batch1, batch2),
            lambda: cast(Tensor, addbmm(self, batch1, batch2, beta=beta, alpha=alpha)),
        )
    same_key("addbmm", self, batch1, batch2)
    a, b = _batches("addbmm", batch1, batch2)
    # Sum over the batch inside one product: the batch becomes part of the inner dimension.
    wide = cast(Any, batch1).permute(1, 0, 2).reshape(a[1], a[0] * a[2])
    return cast(Tensor, addmm(self, wide, cast(Any, batch2).reshape(b[0] * b[1], b[2]), beta=beta, alpha=alpha))


@composite(inplace="addr_")
def addr(
    self: Tensor, vec1: Tensor, vec2: Tensor, *old: Any, beta: float = 1, alpha: float = 1, out: Tensor | None = None
) -> Tensor:
    """Return ``beta * self + alpha * outer(vec1, vec2)``; with ``beta == 0``, NaN in ``self`` does not matter.

    Args:
        self: broadcasts to (n, m).
        vec1: (n).
        vec2: (m).

    Raises:
        RuntimeError: the sizes do not fit, or a factor is no integer for integer tensors.
    """
    if old or not (isinstance(self, Tensor) and isinstance(vec1, Tensor)):
        return old_order(addr, (self, vec1, vec2, *old), out)
    if out is not None:
        return finish_out(
            "addr", out, (self, vec1, vec2), lambda: cast(Tensor, addr(self, vec1, vec2, beta=beta, alpha=alpha))
        )
    if self.key.dtype.category < 2:
        for which, value in (("beta", beta), ("alpha", alpha)):
            if isinstance(value, float):
                raise DtypeError(
                    f"addr: for integral input tensors, argument {which} must not be a floating point number, "
                    f"got {value}."
                )
    product = outer(vec1, vec2)
    _check_addition("addr", self, tuple(product.shape))
    if self.key.dtype.category == 0 and product.key.dtype.category == 0:  # truth: sums are "or"
        product = product if alpha else cast(Any, product).logical_and(False)
        return cast(Tensor, cast(Any, self).logical_or(product) if beta else product)
    return cast(Tensor, _combined(self, product, beta, alpha))


@composite
def outer(self: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The products of every element of one vector with every element of another: (n) and (m) give (n, m).

    Raises:
        RuntimeError: one is no vector.
    """
    if out is not None:
        return finish_out("outer", out, (self, vec2), lambda: cast(Tensor, outer(self, vec2)))
    for each in (self, vec2):
        if not isinstance(each, Tensor):
            raise ArgumentTypeError(f"outer(): expected tensors, got {type(each).__name__}: {shown(each)}.")
        if each.ndim != 1:
            raise wrong_sizes("outer", "1-D tensors", self, vec2)
    return cast(Tensor, cast(Any, self).unsqueeze(1) * vec2)


@composite
def ger(self: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The older name of :func:`outer`."""
    return cast(Tensor, outer(self, vec2, out=out))


# ---------------------------------------------------------------- small matrices


@composite
def trace(self: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix.

    Raises:
        RuntimeError: the tensor is no matrix.
    """
    if self.ndim != 2:
        raise ShapeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}.")
    return cast(Tensor, cast(Any, self).diagonal().sum())


@composite
def cross(self: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The vector product along a dimension of size 3, other dimensions broadcast.

    Args:
        dim: where the vectors lie; the first dimension of size 3 if not given.

    Raises:
        RuntimeError: the dimension's size is not 3.
    """
    if out is not None:
        return finish_out("cross", out, (self, other), lambda: cast(Tensor, cross(self, other, dim)))
    if not isinstance(other, Tensor):
        raise ArgumentTypeError(f"cross(): expected tensors, got {type(other).__name__}: {shown(other)}.")
    if self.ndim != other.ndim:
        raise wrong_sizes("cross", "inputs with the same number of dimensions", self, other)
    shape = broadcast_shapes(self.shape, other.shape)
    if dim is None:
        if 3 not in self.shape:
            raise ShapeError(f"cross: no dimension of size 3 in input, got {list(self.shape)}.")
        dim = self.shape.index(3)
    at = axis(dim, self.ndim)
    if not self.ndim or not other.ndim or self.shape[at] != 3 or other.shape[at] != 3:
        raise ShapeError(
            f"cross: inputs dimension {dim} must have length 3, got {list(self.shape)} and {list(other.shape)}."
        )
    a = cast(Any, self).expand(shape).unbind(at)
    b = cast(Any, other).expand(shape).unbind(at)
    parts = [a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3] for i in range(3)]
    return cast(Tensor, declared("stack")(parts, at))
