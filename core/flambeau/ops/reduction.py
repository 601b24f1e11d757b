"""Operators that fold dimensions: sums, products, truth, moments and norms."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import numpy as np

from ..dispatch.operator import composite, primitive
from ..dispatch.pointwise import finish_out
from ..dtype import bool_, default, dtype as Dtype, int64
from ..errors import ArgumentTypeError, BoundsError, DtypeError, MissingKernelError, ShapeError, shown
from ..geometry import Size, axis
from ..layout import strided
from ..tensor import Tensor
from .conversion import cast_to
from .views import declared as operator_named, spread

__all__ = [
    "all_", "any_", "count_nonzero", "dist", "logsumexp", "mean", "norm", "prod", "std", "std_mean", "sum_", "var",
    "var_mean",
]  # fmt: skip

Dims = int | Sequence[int] | None

#: All dimensions of a tensor, by their number.
ALL_DIMS: Final = tuple(tuple(range(ndim)) for ndim in range(65))


def reduced_dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    """The dimensions to fold, sorted; None and an empty sequence name all.

    Raises:
        IndexError: there is no such dimension.
        RuntimeError: one is named twice.
        TypeError: it is no int.
    """
    if dim is None:
        return ALL_DIMS[ndim]
    if isinstance(dim, int) and not isinstance(dim, bool):
        return (axis(dim, ndim),) if ndim else (axis(dim, 1),)[:0]
    if isinstance(dim, (str, float, bool)) or not hasattr(dim, "__iter__"):
        raise ArgumentTypeError(f"dim: expected an int or a sequence of ints, got {type(dim).__name__} {shown(dim)}.")
    named = sorted(axis(each, ndim) for each in dim)
    for left, right in zip(named, named[1:], strict=False):
        if left == right:
            raise ShapeError(f"dim {left} appears multiple times in the list of dims {list(dim)}.")
    return tuple(named) if named and ndim else ALL_DIMS[ndim]


def expand_back(grad: Any, shape: Size, dims: tuple[int, ...], keepdim: bool) -> Any:
    """A reduction's gradient with the folded dimensions back, ready to broadcast."""
    return spread(with_dims(grad, dims, keepdim) if grad.geometry.ndim else grad, shape)


def with_dims(reduced: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    """A reduction's result with the folded dimensions back, of size 1."""
    if not keepdim:
        for each in dims:
            reduced = reduced.unsqueeze(each)
    return reduced


def require_elements(name: str, tensor: Tensor, dims: tuple[int, ...], named: bool = True) -> None:
    """Refuse to fold nothing, for operators that have no identity.

    Raises:
        RuntimeError: the tensor is empty and no dimension was named.
        IndexError: a dimension of size 0.
    """
    if tensor.geometry.numel:
        return
    shape = tensor.geometry.shape
    if not named:
        raise ShapeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0, got shape {list(shape)}.\n"
            "Specify the reduction dim with the 'dim' argument."
        )
    for each in dims:
        if not shape[each]:
            raise BoundsError(
                f"{name}(): Expected reduction dim {each} to have non-zero size, got shape {list(shape)}."
            )


def _summed(self: Tensor, dtype: Dtype | None) -> tuple[Tensor, Dtype, Dtype | None]:
    """What to add up, the dtype of the result, and what to convert that to in the end."""
    own = self.key.dtype
    if dtype is None:
        return self, own if own.category >= 2 else int64, None
    if dtype.category >= 2:
        return (self if dtype is own else cast_to(self, dtype)), dtype, None
    if own.category >= 2:
        self = cast_to(self, dtype)
    return self, int64, None if dtype is int64 else dtype


# ---------------------------------------------------------------- sums and products


@primitive("self | dims keepdim dtype", name="sum")
def sum_(
    self: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The sum over all or some dimensions.

    Args:
        dim: one or several dimensions; all if not given.
        keepdim: keep them with size 1.
        dtype: of the result and of the accumulation; integers and bool give int64.
        out: receives the result.
    """
    if out is not None:
        return finish_out("sum", out, (self,), lambda: cast(Tensor, sum_(self, dim, keepdim, dtype=dtype)))
    own = self.key.dtype
    dims = ALL_DIMS[self.geometry.ndim] if dim is None else reduced_dims(dim, self.geometry.ndim)
    if self.key.layout is not strided:
        return cast(Tensor, operator_named("sparse.sum")(self, dims, dtype, keepdim))
    if dtype is None:
        return cast(Tensor, sum_.run(self, dims, keepdim, own if own.category >= 2 else int64))
    self, dtype, finally_ = _summed(self, dtype)
    result = sum_.run(self, dims, keepdim, dtype)
    return cast(Tensor, result if finally_ is None else cast_to.run(result, finally_))


sum_.gradient(self=lambda grad, self_shape, dims, keepdim: expand_back(grad, self_shape, dims, keepdim))
sum_.reference(lambda a, dims, keepdim, dtype: np.sum(a, axis=dims, keepdims=keepdim, dtype=dtype.numpy))


@primitive("self | dims keepdim dtype")
def prod(
    self: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The product over all dimensions, or over one.

    Args:
        dim: a dimension; all if not given.
        keepdim: keep it with size 1.
        dtype: of the result; integers and bool give int64.
        out: receives the result.

    Raises:
        TypeError: ``dim`` is no int.
    """
    if out is not None:
        return finish_out("prod", out, (self,), lambda: cast(Tensor, prod(self, dim, keepdim, dtype=dtype)))
    if dim is not None and (isinstance(dim, bool) or not isinstance(dim, int)):
        raise ArgumentTypeError(f"prod(): dim must be an int or None, got {type(dim).__name__} {shown(dim)}.")
    dims = reduced_dims(dim, self.geometry.ndim)
    self, dtype, finally_ = _summed(self, dtype)
    result = prod.run(self, dims, keepdim, dtype)
    return cast(Tensor, result if finally_ is None else cast_to.run(result, finally_))


def _prod_gradient(grad: Any, self: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    """Each element's gradient is the product of the others: of those before it and those after it."""
    if not dims:
        return grad
    flat = self if len(dims) == 1 else self.reshape(-1)
    dim = dims[0] if len(dims) == 1 else 0
    size = flat.shape[dim]
    if size == 0:
        return grad.new_zeros(self.shape)
    first, last = flat.new_zeros(flat.shape), flat.new_zeros(flat.shape)
    first.narrow(dim, 0, 1).fill_(1)
    last.narrow(dim, size - 1, 1).fill_(1)
    others = flat.recurrence(first, dim, False, False) * flat.recurrence(last, dim, True, False)
    return expand_back(grad, self.shape, dims, keepdim) * others.reshape(self.shape)


prod.gradient(self=_prod_gradient)
prod.reference(lambda a, dims, keepdim, dtype: np.prod(a, axis=dims, keepdims=keepdim, dtype=dtype.numpy))


@primitive("self | dims keepdim")
def mean(
    self: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Dtype | None = None, out: Tensor | None = None
) -> Tensor:
    """The mean over all or some dimensions; NaN of nothing.

    Args:
        dim: one or several dimensions; all if not given.
        keepdim: keep them with size 1.
        dtype: converted to first; floating point.
        out: receives the result.

    Raises:
        RuntimeError: the dtype is not floating point or complex.
    """
    if out is not None:
        return finish_out("mean", out, (self,), lambda: cast(Tensor, mean(self, dim, keepdim, dtype=dtype)))
    if (dtype or self.key.dtype).category < 2:
        raise DtypeError(
            f"mean(): could not infer output dtype. {'Input' if dtype is None else 'Optional'} dtype must be either a "
            f"floating point or complex dtype. Got: {(dtype or self.key.dtype).name}.\nUse x.float().mean()."
        )
    if dtype is not None and dtype is not self.key.dtype:
        self = cast_to(self, dtype)
    return cast(Tensor, mean.run(self, reduced_dims(dim, self.geometry.ndim), keepdim))


mean.gradient(
    self=lambda grad, self_shape, dims, keepdim: (
        expand_back(grad, self_shape, dims, keepdim) / math.prod(self_shape[each] for each in dims)
    )
)
mean.reference(lambda a, dims, keepdim: np.mean(a, axis=dims, keepdims=keepdim))


# ---------------------------------------------------------------- truth


def _truth(name: str, meaning: str, oracle: Callable[..., Any]) -> Any:
    def test(self: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
        if out is not None:
            return finish_out(name, out, (self,), lambda: cast(Tensor, declared(self, dim, keepdim)))
        nothing = dim is not None and not isinstance(dim, int) and len(dim) == 0
        return cast(Tensor, declared.run(self, () if nothing else reduced_dims(dim, self.geometry.ndim), keepdim))

    test.__name__ = test.__qualname__ = name
    test.__doc__ = f"""Whether {meaning} is not zero; bool, or uint8 for a uint8 tensor.

    Args:
        dim: one or several dimensions; all if not given, none if empty.
        keepdim: keep them with size 1.
        out: receives the result.
    """
    declared = primitive("self | dims keepdim", name=name)(test)
    declared.nondifferentiable()
    declared.reference(
        lambda a, dims, keepdim: oracle(a, axis=dims, keepdims=keepdim).astype(a.dtype if a.dtype == "uint8" else bool)
    )
    return declared


any_ = _truth("any", "some element", np.any)
all_ = _truth("all", "every element", np.all)


@composite
def count_nonzero(self: Tensor, dim: Dims = None) -> Tensor:
    """How many elements are not zero, over all or some dimensions, as int64."""
    return cast(Tensor, sum_(self if self.key.dtype is bool_ else cast(Any, self) != 0, dim))


# ---------------------------------------------------------------- moments


def _moment(name: str, meaning: str, oracle: Callable[..., Any]) -> Any:
    def moment(
        self: Tensor,
        dim: Dims | bool = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        if out is not None:
            return finish_out(
                name, out, (self,), lambda: cast(Tensor, declared(self, dim, unbiased, keepdim, correction=correction))
            )
        dims, freedom = _moment_arguments(self, dim, unbiased, correction)
        return cast(Tensor, declared.run(self, dims, keepdim, freedom))

    moment.__name__ = moment.__qualname__ = name
    moment.__doc__ = f"""The {meaning} over all or some dimensions; NaN without degrees of freedom.

    Args:
        dim: one or several dimensions; all if not given.  A bool stands for ``unbiased``.
        unbiased: divide by the number of elements less one (Bessel's correction); True if not given.
        keepdim: keep the dimensions with size 1.
        correction: what to subtract from the number of elements; instead of ``unbiased``.
        out: receives the result.

    Raises:
        RuntimeError: the dtype is not floating point.
    """
    declared = primitive("self | dims keepdim correction", name=name)(moment)
    declared.reference(lambda a, dims, keepdim, correction: oracle(a, axis=dims, ddof=correction, keepdims=keepdim))
    return declared


def _moment_arguments(
    self: Tensor, dim: Dims | bool, unbiased: bool | None, correction: float | None
) -> tuple[tuple[int, ...], float]:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if self.key.dtype.category != 2:
        raise DtypeError(
            f"std and var only support floating point dtypes, got {self.key.dtype.name}.\nConvert with x.float()."
        )
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    if not isinstance(correction, (int, float)):
        raise ArgumentTypeError(f"correction is a number, got {type(correction).__name__} {shown(correction)}.")
    return reduced_dims(dim, self.geometry.ndim), float(correction)


var = _moment("var", "variance", np.var)
std = _moment("std", "standard deviation", np.std)


def _var_gradient(grad: Any, self: Any, dims: tuple[int, ...], keepdim: bool, correction: float) -> Any:
    freedom = max(math.prod(self.shape[each] for each in dims) - correction, 0)
    factor = 2 / freedom if freedom else math.inf
    return with_dims(grad, dims, keepdim) * factor * (self - self.mean(dims, True))


def _std_gradient(grad: Any, self: Any, dims: tuple[int, ...], keepdim: bool, correction: float, result: Any) -> Any:
    return _var_gradient((grad / (result * 2)).masked_fill(result == 0, 0), self, dims, keepdim, correction)


var.gradient(self=_var_gradient)
std.gradient(self=_std_gradient)


def _moment_with_mean(name: str, moment: Any, meaning: str) -> Any:
    pair: Any = namedtuple(name, f"{name.removesuffix('_mean')} mean")  # type: ignore[misc]

    def both(
        self: Tensor,
        dim: Dims | bool = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> Any:
        dims, freedom = _moment_arguments(self, dim, unbiased, correction)
        return pair(  # type: ignore[call-arg]
            moment.run(self, dims, keepdim, freedom), mean.run(self, dims, keepdim)
        )

    both.__name__ = both.__qualname__ = name
    both.__doc__ = f"The {meaning} and the mean over all or some dimensions; arguments as of :func:`{moment.op.name}`."
    return composite(method=False)(both)


var_mean = _moment_with_mean("var_mean", var, "variance")
std_mean = _moment_with_mean("std_mean", std, "standard deviation")


# ---------------------------------------------------------------- norms


@primitive("self | dims keepdim p", name="lp_norm", method=False, namespaces=())
def lp_norm(
    self: Tensor, p: float = 2, dim: Dims = None, keepdim: bool = False, *, name: str = "linalg.vector_norm"
) -> Tensor:
    """The p-norm of the elements over all or some dimensions, taken as one vector.

    Raises:
        RuntimeError: the dtype is not floating point, or there is nothing and the norm has no identity.
    """
    if self.key.dtype.category < 2:
        raise DtypeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {self.key.dtype.name}.\nConvert with x.float()."
        )
    dims = reduced_dims(dim, self.geometry.ndim)
    if self.key.layout is not strided:
        return cast(Tensor, operator_named("sparse.norm")(self, float(p), dims, keepdim))
    if (p == math.inf or p < 0) and not self.geometry.numel:
        if dim is None or any(self.geometry.shape[each] == 0 for each in dims):
            raise ShapeError(
                f"{name} cannot compute the {p} norm on an empty tensor because the operation does not have an identity, "
                f"got shape {list(self.shape)}."
            )
    return cast(Tensor, lp_norm.run(self, dims, keepdim, float(p)))


def _norm_gradient(grad: Any, self: Any, dims: tuple[int, ...], keepdim: bool, p: float, result: Any) -> Any:
    grad, result = with_dims(grad, dims, keepdim), with_dims(result, dims, keepdim)
    if p == 0:
        return grad.new_zeros(self.shape)
    if p == 1:
        return grad * self.sign()
    if p == 2:
        return self * (grad / result).masked_fill(result == 0, 0)
    size = self.abs()
    if math.isinf(p):
        extreme = size == result
        return self.sign() * extreme * (grad / extreme.sum(dims, True))
    # |x|^(p-1) and not x |x|^(p-2): finite at 0 for p > 1, and there the sign is 0.
    power = self.sign() * size.pow(p - 1) if p > 1 else (self.sign() * size.pow(p - 1)).masked_fill(self == 0, 0)
    return power * (grad * result.pow(1 - p)).masked_fill(result == 0, 0)


lp_norm.gradient(self=_norm_gradient)


def _numpy_norm(a: Any, dims: tuple[int, ...], keepdim: bool, p: float) -> Any:
    size = np.abs(a)
    if p == 0:
        return np.sum(a != 0, axis=dims, keepdims=keepdim).astype(a.dtype)
    if math.isinf(p):
        return (np.max if p > 0 else np.min)(size, axis=dims, keepdims=keepdim)
    return np.sum(size**p, axis=dims, keepdims=keepdim) ** (1 / p)


lp_norm.reference(_numpy_norm)


@composite
def norm(
    self: Tensor,
    p: float | str | None = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The norm of a tensor taken as a vector, over all or some dimensions.

    Args:
        p: the exponent: a number (0 counts what is not zero; ``inf`` and ``-inf`` give the largest and the
            least size), ``"fro"`` for 2.
        dim: one or several dimensions; all if not given.
        keepdim: keep them with size 1.
        dtype: converted to first.
        out: receives the result.

    Raises:
        RuntimeError: the dtype is not floating point, or the norm is unknown.
    """
    if out is not None:
        return finish_out("norm", out, (self,), lambda: cast(Tensor, norm(self, p, dim, keepdim, dtype=dtype)))
    if dtype is not None and dtype is not self.key.dtype:
        self = cast_to(self, dtype)
    if p is None or p == "fro":
        p = 2.0
    elif p == "nuc":
        raise MissingKernelError(
            "norm: p='nuc' needs singular values, which flambeau does not compute.\nUse p='fro', or numpy.linalg.norm(x, 'nuc')."
        )
    elif isinstance(p, str):
        raise ShapeError(f"linalg.matrix_norm: Order {p} not supported.\nExpected a number, 'fro' or 'nuc'.")
    return cast(Tensor, lp_norm(self, p, dim, keepdim))


@composite
def dist(self: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of ``self - other``, broadcast together."""
    return cast(Tensor, lp_norm(cast(Any, self) - other, p))


@composite
def logsumexp(self: Tensor, dim: Dims, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the sum of exponentials over some dimensions, without overflow.

    Args:
        dim: one or several dimensions.
        keepdim: keep them with size 1.
        out: receives the result.
    """
    if out is not None:
        return finish_out("logsumexp", out, (self,), lambda: cast(Tensor, logsumexp(self, dim, keepdim)))
    x = cast(Any, self if self.key.dtype.category >= 2 else cast_to.run(self, default.dtype))
    dims = reduced_dims(dim, x.ndim)
    if not x.numel():
        return cast(Tensor, x.exp().sum(dims, keepdim).log())
    high = x.detach().amax(dims, True) if dims else x.detach()
    high = high.masked_fill(high.abs() == math.inf, 0)
    total = (x - high).exp().sum(dims, True) if dims else (x - high).exp()
    result = total.log() + high
    if not keepdim:
        for each in reversed(dims):
            result = result.squeeze(each)
    return cast(Tensor, result)
