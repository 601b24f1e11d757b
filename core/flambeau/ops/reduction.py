"""Operators that fold dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ..dispatch.operator import primitive
from ..dispatch.pointwise import finish_out
from ..dtype import dtype as Dtype
from ..dtype import int64
from ..geometry import axis
from ..tensor import Tensor

__all__ = ["sum_"]


def reduced_dims(dim: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """The dimensions to fold, sorted; None and an empty sequence name all.

    Raises:
        IndexError: there is no such dimension.
        RuntimeError: one is named twice.
    """
    if dim is None:
        return tuple(range(ndim))
    if isinstance(dim, int):
        return (axis(dim, ndim),) if ndim else ()
    named = sorted(axis(each, ndim) for each in dim)
    if len(set(named)) != len(named):
        from ..errors import ShapeError

        raise ShapeError(f"dim {list(dim)} appears multiple times in the list of dims")
    return tuple(named) if named and ndim else tuple(range(ndim))


def expand_back(grad: Any, shape: Sequence[int], dims: tuple[int, ...], keepdim: bool) -> Any:
    """A reduction's gradient with the folded dimensions back, ready to broadcast."""
    if not keepdim:
        for each in dims:
            grad = grad.unsqueeze(each)
    return grad.expand(shape)


@primitive("self | dims keepdim dtype", name="sum")
def sum_(
    self: Tensor,
    dim: int | Sequence[int] | None = None,
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
    if dtype is None:
        dtype = own if own.category >= 2 else int64
    return cast(Tensor, sum_.run(self, reduced_dims(dim, self.geometry.ndim), keepdim, dtype))


sum_.gradient(self=lambda grad, self_shape, dims, keepdim: expand_back(grad, self_shape, dims, keepdim))
sum_.reference(lambda a, dims, keepdim, dtype: np.sum(a, axis=dims, keepdims=keepdim, dtype=dtype.numpy))
