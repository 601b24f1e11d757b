"""What a backend gives for one operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .dispatch.providers import source_of
from .dtype import DTYPES, dtype
from .key import Key

__all__ = ["Kernel"]


class Kernel:
    """One operator's kernel over some dtypes: the simplest :class:`KernelFamily`.

    Args:
        function: takes the operator's canonical arguments (``python -m flambeau primitives`` lists them)
            and returns new tensors; a pointwise kernel also takes ``out=``.
        dtypes: those it serves.
        predicate: accepts or declines a call, given the same arguments.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        dtypes: Sequence[dtype] = DTYPES,
        predicate: Callable[..., bool] | None = None,
    ) -> None:
        self.function, self.dtypes, self.predicate = function, frozenset(dtypes), predicate
        self.gradient: tuple[tuple[str, ...], Callable[..., Any]] | None = None

    def gradients(self, *names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Give the gradients of a kernel that overrides a composite operator, so that it serves recorded calls too.

        ``@kernel.gradients("input", "weight")`` stands over a function ``(needs, grad, ...)``: whether each of the
        named arguments needs a gradient, and the gradient of the (first) output, or ``grads``, those of all
        outputs.  Its other parameters name what it reads: arguments of the operator, or ``result``.  It returns
        one gradient, or None, for each name.  Calls that need gradients of other arguments, and higher
        derivatives, are left to the operator's body.
        """

        def give(formula: Callable[..., Any]) -> Callable[..., Any]:
            self.gradient = names, formula
            return formula

        return give

    def build(self, key: Key) -> Callable[..., Any] | None:
        return self.function if key.dtype in self.dtypes else None

    def source(self) -> str:
        return source_of(self.function)
