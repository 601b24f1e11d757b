"""Hangs the declared operators on Tensor and lays out the public namespaces.

Nothing is written here by hand for a single operator: names come from the
declarations.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from . import exchange, legacy, pickling, printing
from .dispatch.operator import Operator, offers, operators
from .errors import ArgumentTypeError
from .ops import conversion, creation, indexing, properties, results, splitting
from .tensor import Tensor

__all__ = ["bind", "namespace"]


_BINARY: Final = frozenset(
    f"__{name}__"
    for name in [
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "matmul",
        "and",
        "or",
        "xor",
        "lshift",
        "rshift",
    ]
)


def bind() -> None:
    """Hang methods, special methods and in-place forms on Tensor."""
    for members in (
        properties.METHODS, properties.PROPERTIES, conversion.SHORTHANDS, printing.METHODS, pickling.METHODS,
        exchange.METHODS, exchange.PROPERTIES, legacy.METHODS,
    ):  # fmt: skip
        for name, value in members.items():
            setattr(Tensor, name, value)
    for each in (
        conversion.to, conversion.numpy, conversion.item, conversion.tolist, conversion.type_as, conversion.view_dtype,
        conversion.__array__, conversion.__bool__, conversion.__index__, conversion.__len__, conversion.__contains__,
        splitting.__iter__, indexing.__getitem__, indexing.__setitem__,
        creation.new_empty, creation.new_full, creation.new_zeros, creation.new_ones, creation.new_tensor,
    ):  # fmt: skip
        setattr(Tensor, each.__name__, each)
    for kind in (int, float, complex):
        setattr(Tensor, f"__{kind.__name__}__", conversion._scalar(kind))
    results.declare()
    for op in operators.values():
        _bind_operator(op)
    for offer in offers:
        if offer.method:
            setattr(Tensor, offer.name, offer.function)


def _bind_operator(op: Operator) -> None:
    if op.method:
        setattr(Tensor, op.name, op.function)
    inplace = op.body_of_inplace
    if inplace is None and op.inplace is not None:
        inplace = _inplace_by_out(op)
    if inplace is not None and op.inplace is not None:
        setattr(Tensor, op.inplace, inplace)
    for name in op.dunders:
        setattr(Tensor, name, op.function)
        if inplace is not None and name in _BINARY:
            setattr(Tensor, f"__i{name[2:]}", inplace)


def _inplace_by_out(op: Operator) -> Callable[..., Any]:
    """The in-place form of a function without a kernel of its own for it: compute, then copy."""
    function = op.function

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        result = function(self, *args, **kwargs)
        if not isinstance(result, Tensor):
            raise ArgumentTypeError(f"{op.name}_() has no single result.")
        return self.copy_(result)  # type: ignore[no-any-return]

    method.__name__ = op.inplace or ""
    method.__doc__ = f"In-place form of :func:`{op.name}`."
    return method


def namespace(module: ModuleType | dict[str, Any], name: str) -> list[str]:
    """Put the operators that belong to a public namespace into a module; returns their names."""
    target = module if isinstance(module, dict) else vars(module)
    found = []
    for op in operators.values():
        if name in op.namespaces:
            short = op.name.rpartition(".")[2]  # two namespaces may use one name for different operators
            target[short] = op.function
            found.append(short)
    for offer in offers:
        if name in offer.namespaces:
            target[offer.name] = offer.function
            found.append(offer.name)
    return found
