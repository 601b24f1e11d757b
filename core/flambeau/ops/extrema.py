"""Extremes over dimensions: their values and where they are."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ..dispatch.operator import composite, primitive
from ..dispatch.pointwise import finish_out, finish_outs
from ..dtype import bool_
from ..errors import ArgumentTypeError, DtypeError, shown
from ..geometry import axis
from ..tensor import Tensor
from .reduction import ALL_DIMS, Dims, reduced_dims, require_elements, with_dims

__all__ = ["amax", "amin", "aminmax", "argmax", "argmin", "max_", "min_"]


def place_back(grad: Any, shape: Any, dim: int, keepdim: bool, indices: Any) -> Any:
    """The gradient of elements taken from ``dim`` at ``indices``: zero elsewhere."""
    if not shape:
        return grad
    if not keepdim:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return grad.new_zeros(shape).scatter_add(dim, indices, grad)


def shared_gradient(grad: Any, self: Any, dims: tuple[int, ...], keepdim: bool, result: Any) -> Any:
    """Elements that equal the result share its gradient evenly."""
    equal = self == with_dims(result, dims, keepdim)
    return with_dims(grad, dims, keepdim) / equal.sum(dims, True) * equal


def _extreme(name: str, meaning: str, oracle: Callable[..., Any]) -> Any:
    def extreme(self: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
        if out is not None:
            return finish_out(name, out, (self,), lambda: cast(Tensor, declared(self, dim, keepdim)))
        dims = reduced_dims(dim, self.geometry.ndim)
        require_elements(name, self, dims, dim is not None and dim != ())
        return cast(Tensor, declared.run(self, dims, keepdim))

    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = f"""The {meaning} over all or some dimensions; NaN if there is one.

    Gradients are shared evenly by the elements that equal the result.

    Args:
        dim: one or several dimensions; all if not given.
        keepdim: keep them with size 1.
        out: receives the result.

    Raises:
        IndexError: a dimension has size 0.
        RuntimeError: the tensor is empty and no dimension is given.
    """
    declared = primitive("self | dims keepdim", name=name)(extreme)
    declared.gradient(self=shared_gradient)
    declared.reference(lambda a, dims, keepdim: oracle(a, axis=dims, keepdims=keepdim))
    return declared


amax = _extreme("amax", "largest element", np.max)
amin = _extreme("amin", "least element", np.min)


def _extreme_at(name: str, meaning: str, extreme: Any, pointwise: str, value: Any, place: Any) -> Any:
    """``max`` or ``min`` with its three meanings, and its kernel over one dimension."""
    pair: Any = namedtuple(name, "values indices")  # type: ignore[misc]

    def over(self: Tensor, dim: int, keepdim: bool = False) -> Any:
        """Values and indices over one dimension."""
        dim = axis(dim, self.geometry.ndim)
        if self.geometry.ndim:
            require_elements(name, self, (dim,))
        return pair(*declared.run(self, dim, keepdim))

    declared = primitive("self | dim keepdim", name=f"{name}_over", method=False, namespaces=())(over)
    declared.gradient(
        self=lambda grad, self_shape, dim, keepdim, others: place_back(grad, self_shape, dim, keepdim, others[0])
    )
    declared.reference(
        lambda a, dim, keepdim: (
            (value(a, axis=dim, keepdims=keepdim), place(a, axis=dim, keepdims=keepdim)) if a.ndim else (a, np.int64(0))
        )
    )

    def public(self: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None, out: Any = None) -> Any:
        if dim is None and other is None:
            if out is not None:
                return finish_out(name, out, (self,), lambda: public(self))
            geometry = self.geometry
            if not geometry.numel:
                require_elements(name, self, (), named=False)
            return extreme.run(self, ALL_DIMS[geometry.ndim], False)
        if isinstance(dim, Tensor) or other is not None:
            other = dim if other is None else other
            return (
                getattr(self, pointwise)(other)
                if out is None
                else finish_out(name, out, (self, other), lambda: getattr(self, pointwise)(other))
            )
        if isinstance(dim, bool) or not isinstance(dim, int):
            raise ArgumentTypeError(
                f"{name}() expects nothing, a dimension or another tensor, got {type(dim).__name__} {shown(dim)}."
            )
        if out is not None:
            return finish_outs(name, out, (self,), lambda: over(self, dim, keepdim))
        return over(self, dim, keepdim)

    public.__name__ = public.__qualname__ = name
    public.__doc__ = f"""The {meaning}: of all elements, over one dimension, or of two tensors element by element.

    Args:
        dim: a dimension: the result is a pair (values, indices), where of equal extremes the first counts;
            or another tensor: as :func:`{pointwise}`.
        keepdim: keep the dimension with size 1.
        out: receives the result, or a pair for both.

    NaN is the extreme wherever there is one.

    Raises:
        IndexError: the dimension has size 0 or does not exist.
        RuntimeError: the tensor is empty and no dimension is given.
    """
    return composite(public), declared


max_, max_over = _extreme_at("max", "largest element", amax, "maximum", np.max, np.argmax)
min_, min_over = _extreme_at("min", "least element", amin, "minimum", np.min, np.argmin)


def _place(name: str, meaning: str, oracle: Callable[..., Any]) -> Any:
    def place(self: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
        if out is not None:
            return finish_out(name, out, (self,), lambda: cast(Tensor, declared(self, dim, keepdim)))
        if self.key.dtype is bool_:
            raise DtypeError(f"{name}(): does not support bool input.\nConvert with x.byte().")
        if dim is None:
            if not self.geometry.numel:
                require_elements(name, self, (0,) if self.geometry.ndim == 1 else (), named=self.geometry.ndim == 1)
        else:
            dim = axis(dim, self.geometry.ndim)
            if self.geometry.ndim:
                require_elements(name, self, (dim,))
        return cast(Tensor, declared.run(self, dim, keepdim))

    place.__name__ = place.__qualname__ = name
    place.__doc__ = f"""Where the {meaning} is: an index into one dimension, or into the flattened tensor.

    Of equal extremes the first counts; NaN is the extreme wherever there is one.

    Args:
        dim: a dimension; the flattened tensor if not given.
        keepdim: keep the dimension with size 1.
        out: receives the result.

    Raises:
        IndexError: there is nothing to choose from.
        RuntimeError: the tensor is bool.
    """
    declared = primitive("self | dim keepdim", name=name)(place)
    declared.nondifferentiable()
    declared.reference(lambda a, dim, keepdim: np.asarray(oracle(a, axis=dim, keepdims=keepdim)))
    return declared


argmax = _place("argmax", "largest element", np.argmax)
argmin = _place("argmin", "least element", np.argmin)

_Aminmax: Any = namedtuple("aminmax", "min max")  # type: ignore[name-match]


@composite
def aminmax(self: Tensor, *, dim: int | None = None, keepdim: bool = False, out: Any = None) -> Any:
    """The least and the largest element, of all or over one dimension, as a pair (min, max)."""
    if out is not None:
        return finish_outs("aminmax", out, (self,), lambda: aminmax(self, dim=dim, keepdim=keepdim))
    return _Aminmax(amin(self, dim, keepdim), amax(self, dim, keepdim))
