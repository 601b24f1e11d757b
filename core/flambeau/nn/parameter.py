"""The tensors that a module learns."""

from __future__ import annotations

from typing import Any, cast

from ..ops.creation import empty
from ..tensor import Tensor, shared_storage

__all__ = ["Parameter"]


class Parameter(Tensor):
    """A tensor that becomes one of a module's parameters when it is assigned to an attribute.

    Args:
        data: the values; their memory is shared.  An empty tensor if not given.
        requires_grad: whether operators on it record history.

    Raises:
        RuntimeError: ``requires_grad`` is wanted and the dtype has no gradients.

    >>> import flambeau
    >>> weight = flambeau.nn.Parameter(flambeau.zeros(2))
    >>> weight.requires_grad, weight.is_leaf
    (True, True)
    """

    __slots__ = ()

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = empty(0)
        new = object.__new__(cls)
        new.key, new.geometry, new.memory, new.node = data.key, data.geometry, data.memory, None
        new.shared = shared_storage(data)
        if data.offset:
            new.offset = data.offset
        if requires_grad:
            cast(Any, new).requires_grad_()
        return new

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        pass

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        known = memo.get(id(self))
        if known is None:
            own = cast(Any, self)
            known = memo[id(self)] = type(self)(own.detach().clone(), own.requires_grad)
        return cast(Parameter, known)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild, (type(self), cast(Any, self).detach(), cast(Any, self).requires_grad)


def _rebuild(kind: type[Parameter], data: Tensor, requires_grad: bool) -> Parameter:
    return kind(data, requires_grad)
