"""Variable: the name that tensors with history had before tensors had history themselves."""

from __future__ import annotations

import warnings
from typing import Any, cast

from ..errors import ArgumentTypeError
from ..tensor import Tensor

__all__ = ["Variable"]


class _VariableType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableType):
    """``Variable(x)`` returns a tensor that shares the memory of ``x``; every tensor is a Variable.

    >>> import flambeau
    >>> x = flambeau.autograd.Variable(flambeau.ones(2), requires_grad=True)
    >>> x.requires_grad, isinstance(x, flambeau.autograd.Variable)
    (True, True)
    """

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: bool | None = None) -> Any:
        if not isinstance(data, Tensor):
            raise ArgumentTypeError(f"Variable expects a Tensor, got {type(data).__name__}.")
        if volatile:
            warnings.warn(
                "volatile was removed and has no effect; use `with flambeau.no_grad():` instead.",
                DeprecationWarning,
                stacklevel=2,
            )
        return cast(Any, data).detach().requires_grad_(requires_grad)
