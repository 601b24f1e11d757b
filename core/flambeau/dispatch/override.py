"""A backend's kernel in the place of a composite operator, and its part in autograd.

The gradient of a composite is that of the operators in its body.  A kernel hides them, so it serves a call
that is recorded only if it brings gradients of its own; otherwise the body runs, as ``explain`` says.  For
higher derivatives the body takes the place of the kernel's gradients again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from ..autograd.engine import grad as gradients_of
from ..autograd.grad_mode import enable_grad, mode, no_grad
from ..autograd.node import Plan, inputs_of, record, tracked
from ..key import Key
from ..tensor import Tensor
from .plans import reads_of, wants_all
from .providers import Kernel, KernelFamily, place_of

if TYPE_CHECKING:
    from .operator import Operator

__all__ = ["Differentiated", "Override"]


class Differentiated(Protocol):
    """A family of kernels that may bring gradients."""

    #: names of the tensor arguments that the formula gives gradients for, and the formula; None if there is none
    gradient: tuple[tuple[str, ...], Callable[..., Any]] | None


class Override:
    """The kernels of one backend for one composite operator.

    Dispatch hands them the composite's arguments in the order of its signature; the kernel and its predicate
    get them as the signature says.
    """

    def __init__(self, op: Operator, family: KernelFamily) -> None:
        self.op, self.family = op, family
        self.predicate: Callable[..., bool] | None = self._accepts
        self.gradient = cast(Differentiated, family).gradient if hasattr(family, "gradient") else None
        names = self.gradient[0] if self.gradient is not None else ()
        #: what recording asks of an operator
        self.name, self.lends = op.name, False
        self.plans: dict[int, Plan] = {}
        self.tensors = tuple(op.binding.names.index(each) for each in names)

    def _accepts(self, *args: Any) -> bool:
        """Whether it serves a call: if the call is recorded, through its gradients alone."""
        if mode.enabled:
            for position, each in enumerate(args):
                if position not in self.tensors and _any_tracked(each):
                    return False
        own = self.family.predicate
        return own is None or bool(self._spread(own, args))

    def declines(self, *args: Any) -> str:
        """Why it does not serve a call."""
        if mode.enabled and any(_any_tracked(each) for i, each in enumerate(args) if i not in self.tensors):
            return "brings no gradient for this call, which is recorded"
        return "declines these arguments"

    def build(self, key: Key) -> Kernel | None:
        kernel = self.family.build(key)
        if kernel is None:
            return None

        def run(*args: Any) -> Any:
            with no_grad():
                result = self._spread(kernel, args)
            if self.gradient is not None and mode.enabled:
                record(self, args, result)
            return result

        return run

    def source(self) -> str:
        return place_of(self.family)

    def _spread(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        return self.op.binding.spread(function, *args)

    def plan(self, wanted: int, args: tuple[Any, ...]) -> Plan:
        """Everything is kept: the body may have to be run for higher derivatives."""
        assert self.gradient is not None
        needs = inputs_of(wanted)
        formula = self.gradient[1]
        reads = reads_of(functools.partial(formula, needs))
        run = functools.partial(self._run, needs, formula, reads)
        self.plans[wanted] = Plan(_everything, run, len(args) if "result" in reads else None)
        return self.plans[wanted]

    def _run(
        self,
        needs: tuple[bool, ...],
        formula: Callable[..., Any],
        reads: Sequence[str],
        grad: Any,
        saved: tuple[Any, ...],
    ) -> Sequence[Any]:
        if mode.enabled:
            return self._again(needs, grad, saved)
        named = dict(zip((*self.op.binding.names, "result"), saved))
        given = grad if wants_all(functools.partial(formula, needs)) else grad[0] if type(grad) is list else grad
        return formula(needs, given, *[named[each] for each in reads])  # type: ignore[no-any-return]

    def _again(self, needs: tuple[bool, ...], grad: Any, saved: tuple[Any, ...]) -> Sequence[Any]:
        """The gradients by the body, which can be differentiated in their turn."""
        args = saved[: len(self.op.binding.names)]
        wanted = [position for position, need in zip(self.tensors, needs) if need]
        assert self.op.body is not None
        with enable_grad():
            result = self._spread(self.op.body, args)
            outputs = list(result) if isinstance(result, (list, tuple)) else [result]
            seeds = grad if type(grad) is list else [grad]
            pairs = [(each, seed) for each, seed in zip(outputs, seeds) if tracked(each)]
            found = gradients_of(
                [each for each, _ in pairs], [args[each] for each in wanted], [seed for _, seed in pairs],
                create_graph=True, allow_unused=True,
            )  # fmt: skip
        named = dict(zip(wanted, found))
        return [named.get(position) for position in self.tensors]


def _everything(items: tuple[Any, ...]) -> tuple[Any, ...]:
    return items


def _any_tracked(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.node is not None and tracked(value)
    return isinstance(value, (list, tuple)) and any(_any_tracked(each) for each in value)
