"""What a boolean mask chooses, and where a tensor is not zero."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ..dispatch.operator import composite, primitive
from ..dispatch.pointwise import finish_out
from ..dtype import bool_, uint8
from ..errors import ArgumentTypeError, DtypeError, ShapeError
from ..geometry import broadcast_shapes
from ..tensor import Tensor
from .gather import exact_out, scalar

__all__ = ["masked_fill", "masked_fill_", "masked_scatter", "masked_scatter_", "masked_select", "nonzero"]


def _mask(mask: Any, name: str, expected: str) -> Tensor:
    """A mask as bool; uint8, which masks once were, is accepted."""
    if not isinstance(mask, Tensor):
        raise ArgumentTypeError(f"{name}(): argument 'mask' must be Tensor, not {type(mask).__name__}.")
    if mask.key.dtype is bool_:
        return mask
    if mask.key.dtype is uint8:
        return cast(Tensor, cast(Any, mask).bool())
    raise DtypeError(f"{name}{expected} {mask.dtype.name}.\nWrite mask.bool().")


def _bool(mask: Any) -> Tensor:
    if isinstance(mask, Tensor) and mask.key.dtype is bool_:
        return mask
    found = mask.dtype.name if isinstance(mask, Tensor) else type(mask).__name__
    raise DtypeError(
        f"masked_scatter_ only supports boolean masks, but got mask with dtype {found}.\nWrite mask.bool()."
    )


def _covering(self: Tensor, mask: Tensor, name: str) -> Tensor:
    """The mask in the shape of a tensor that is written."""
    if mask.geometry.shape == self.geometry.shape:
        return mask
    if broadcast_shapes(self.shape, mask.shape) != self.shape:
        raise ShapeError(
            f"output with shape {list(self.shape)} doesn't match the broadcast shape "
            f"{list(broadcast_shapes(self.shape, mask.shape))} in {name}()."
        )
    return cast(Tensor, cast(Any, mask).expand(self.shape))


@primitive("self mask value |", mutates=True, namespaces=())
def masked_fill_(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Set the elements where the mask (which broadcasts) is true to a number, or to the value of a 0-dim tensor.

    Raises:
        RuntimeError: the mask is not boolean or does not broadcast to this shape.
    """
    mask = _mask(mask, "masked_fill_", " only supports boolean masks, but got mask with dtype")
    if isinstance(value, Tensor) and value.geometry.ndim:
        raise ShapeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.geometry.ndim} dimension(s)."
        )
    if isinstance(value, Tensor) and value.key.dtype.category > self.key.dtype.category:
        raise DtypeError(
            f"value cannot be converted to type {self.dtype.name} without overflow: it is a {value.dtype.name} tensor."
        )
    return cast(
        Tensor, masked_fill_.run(self, _covering(self, mask, "masked_fill_"), scalar(self, value, "masked_fill_"))
    )


masked_fill_.gradient(
    self=lambda grad, mask: grad.masked_fill(mask, 0), value=lambda grad, mask: grad.masked_select(mask).sum()
)


@composite
def masked_fill(self: Tensor, mask: Tensor, value: Any, *, out: Tensor | None = None) -> Tensor:
    """A copy, broadcast with the mask, in which elements where the mask is true are one number."""
    if out is not None:
        return finish_out("masked_fill", out, (self,), lambda: cast(Tensor, masked_fill(self, mask, value)))
    mask = _mask(mask, "masked_fill", " only supports boolean masks, but got mask with dtype")
    shape = broadcast_shapes(self.shape, mask.shape)
    return cast(Tensor, masked_fill_(cast(Any, self).expand(shape).clone(), mask, value))


@primitive("self mask |")
def masked_select(self: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements where the mask is true, as a vector; the two broadcast together.

    Raises:
        RuntimeError: the mask is not boolean, or the shapes do not broadcast.
    """
    if out is not None:
        return exact_out("masked_select", out, (self, mask), lambda: cast(Tensor, masked_select(self, mask)))
    mask = _mask(mask, "masked_select", ": expected BoolTensor for mask, got")
    if mask.geometry.shape != self.geometry.shape:
        shape = broadcast_shapes(self.shape, mask.shape)
        self, mask = cast(Any, self).expand(shape), cast(Any, mask).expand(shape)
    return cast(Tensor, masked_select.run(self, mask))


masked_select.gradient(self=lambda grad, mask: grad.new_zeros(mask.shape).masked_scatter_(mask, grad))
masked_select.reference(lambda a, mask: a[mask])


@primitive("self mask source |", mutates=True, namespaces=())
def masked_scatter_(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Write the elements of ``source``, in order, where the mask is true.

    Raises:
        RuntimeError: there are not enough of them, dtypes differ, or the mask is not boolean; nothing is written then.
    """
    mask = _bool(mask)
    if source.key.dtype is not self.key.dtype:
        raise DtypeError(
            f"masked_scatter_: expected self and source to have same dtypes but got {self.dtype.name} and {source.dtype.name}"
        )
    return cast(Tensor, masked_scatter_.run(self, _covering(self, mask, "masked_scatter_"), source))


def _source_gradient(grad: Any, mask: Any, source_shape: Any) -> Any:
    taken = grad.masked_select(mask)
    whole = grad.new_zeros(source_shape.numel())
    whole.narrow(0, 0, taken.shape[0]).copy_(taken)
    return whole.reshape(source_shape)


masked_scatter_.gradient(self=lambda grad, mask: grad.masked_fill(mask, 0), source=_source_gradient)


@composite
def masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy, broadcast with the mask, with elements of ``source`` where the mask is true."""
    mask = _bool(mask)
    shape = broadcast_shapes(self.shape, mask.shape)
    return cast(Tensor, masked_scatter_(cast(Any, self).expand(shape).clone(), mask, source))


@primitive("self |")
def nonzero(self: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
    """Where elements are not zero: an int64 tensor with one row of coordinates for each.

    Args:
        as_tuple: return one vector for each dimension instead, ready to index with.
    """
    if out is not None:
        return finish_out("nonzero", out, (self,), lambda: cast(Tensor, nonzero(self)))
    if not as_tuple:
        return nonzero.run(self)
    places = nonzero.run(cast(Any, self).reshape(1) if not self.geometry.ndim else self)
    return tuple(places.unbind(1))


nonzero.nondifferentiable()
nonzero.reference(lambda a: np.argwhere(a))
