"""Operators that compiled extensions declare: what ``FLAMBEAU_OPERATOR`` of ``flambeau/declare.h`` calls."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from ..autograd.function import without_derivative
from ..autograd.grad_mode import mode
from ..autograd.node import tracked
from ..device import device
from ..dtype import dtype
from ..errors import ArgumentTypeError, AutogradError
from ..tensor import Tensor, tensors_in
from .custom import CustomOp, custom_op
from .schema import VALUE

__all__ = ["compiled_op"]

#: What the types in the signatures of bound functions are called.
_TYPES: Final = {
    "Tensor": Tensor, "Number": complex, "dtype": dtype, "device": device, "typing": typing,
    "collections": __import__("collections.abc"),
}  # fmt: skip


def compiled_op(name: str, forward: Callable[..., Any], backward: Callable[..., Any] | None) -> CustomOp:
    """Declare an operator of compiled functions, whose documentation begins with their signatures.

    Args:
        name: ``namespace::name``.
        forward: computes the result, or writes into its first tensor and returns nothing.
        backward: takes the gradient of each result, the arguments of ``forward``, and its results if it has
            parameters for them; returns the gradient of each tensor argument.

    Raises:
        TypeError: ``backward`` has another number of parameters.
    """
    declared = _declaration(forward)
    first = next((each for each, hint in declared.__annotations__.items() if hint is Tensor), "")
    writes = declared.__annotations__["return"] is None
    op: CustomOp = custom_op(name, declared, mutates_args=(first,) if writes and first else ())
    if backward is not None:
        _differentiate(op, backward)
    return op


def _declaration(bound: Callable[..., Any]) -> Callable[..., Any]:
    """A Python function with the signature of a bound one, which it calls."""
    told = bound.__doc__ or ""
    found = re.match(r"(\w+)(\(.*\) -> .*)", told)
    scope = dict(_TYPES)
    try:
        text = f"def {found[1]}{found[2]}: pass" if found else ""
        exec(compile(text, "<signature>", "exec", dont_inherit=True), scope)
        pattern = scope[found[1] if found else ""]
    except (SyntaxError, NameError, KeyError) as error:
        raise ArgumentTypeError(
            f"The signature of {bound.__name__} cannot be read: {error}.\nIt is {told.splitlines()[:1]}; use tensors, "
            "numbers, text and lists of them, with defaults that have a short form."
        ) from None

    def call(*args: Any) -> Any:
        return bound(*args)

    call.__name__ = call.__qualname__ = bound.__name__
    call.__doc__, call.__annotations__ = told, pattern.__annotations__
    call.__signature__ = inspect.signature(cast(Callable[..., Any], pattern))  # type: ignore[attr-defined]
    return call


def _differentiate(op: CustomOp, backward: Callable[..., Any]) -> None:
    """Give an operator its compiled backward."""
    arguments = op.schema.arguments
    results = _results_of(op)
    given = len(inspect.signature(_declaration(backward)).parameters)
    plain = results + len(arguments)
    if given not in (plain, plain + results):
        raise ArgumentTypeError(
            f"{op.name}: its backward has {given} parameters, expected {plain}: the gradient of each result ({results}) and "
            f"the arguments of {op.schema}.\nIt may also take the results, after these."
        )

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        kept = [*inputs, *(output if op.schema.several else (output,))][: given - results]
        ctx.save_for_backward(*tensors_in(kept))
        ctx.kept = [_Place if isinstance(each, Tensor) else each for each in kept]
        ctx.lists = [len(each) if tensors_in(each) and not isinstance(each, Tensor) else None for each in kept]

    def run(ctx: Any, *grads: Any) -> Any:
        saved = iter(ctx.saved_tensors)
        kept = [
            next(saved) if each is _Place else each if count is None else [next(saved) for _ in range(count)]
            for each, count in zip(ctx.kept, ctx.lists, strict=True)
        ]
        found = backward(*grads, *kept)
        listed = list(found) if isinstance(found, (tuple, list)) else [found]
        return _placed(op, _marked(op, listed, [*grads, *kept]))

    op.register_autograd(run, setup_context=setup)


class _Place:
    """Stands where a tensor was that autograd keeps."""


def _results_of(op: CustomOp) -> int:
    """How many tensors an operator returns."""
    returned = op.schema.signature.return_annotation
    return len(typing.get_args(returned)) if op.schema.several else 1


def _marked(op: CustomOp, found: Sequence[Any], inputs: Sequence[Any]) -> Sequence[Any]:
    """Gradients as they are, but those that were computed through pointers cannot be differentiated again."""
    given = [each for each in tensors_in(list(inputs)) if tracked(each)]
    if not mode.enabled or not given:
        return found
    message = (
        f"{op.name}: its backward was not composed of operators, so it has no derivative of its own.\n"
        "Compose it of at:: operators where it shall be differentiated again."
    )
    return [
        without_derivative([each], given, message)[0] if isinstance(each, Tensor) and not tracked(each) else each
        for each in found
    ]


def _placed(op: CustomOp, found: Sequence[Any]) -> tuple[Any, ...]:
    """A gradient, or None, for each argument, from those of the tensors alone."""
    tensors = [each.name for each in op.schema.arguments if each.kind != VALUE]
    if len(found) != len(tensors):
        raise AutogradError(
            f"{op.name}: its backward returned {len(found)} gradients, expected {len(tensors)}, of {', '.join(tensors)}.\n"
            "An at::Tensor() stands for one that there is not."
        )
    rest = iter(found)
    return tuple(None if each.kind == VALUE else next(rest) for each in op.schema.arguments)
