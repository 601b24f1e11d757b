"""Which provider served each call: noted while the calls of a thread run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from ..key import Key
from .providers import first, registry
from .scope import Choice, here

if TYPE_CHECKING:
    from .operator import Operator

__all__ = ["Call", "Trace"]


class Call(NamedTuple):
    """One call of an operator that has kernels.

    Attributes:
        operator: its name.
        provider: who served it; None if no provider did.
        how: ``kernel``, ``composite`` (a body of other operators ran, which follow) or ``fallback`` (another
            device served it, in the call that follows).
        device, layout, dtype: what it was served for, as text.
        depth: how many of the calls before were still running.
    """

    operator: str
    provider: str | None
    how: str
    device: str
    layout: str
    dtype: str
    depth: int

    def __str__(self) -> str:
        who = self.provider or self.how
        layout = "" if self.layout == "strided" else f" ({self.layout})"
        return f"{'  ' * self.depth}{self.operator} {self.dtype} on {self.device}{layout}: {who}"


class Trace:
    """The calls that ran in a block, in the order in which they began.

    Attributes:
        calls: each :class:`Call`; those of the backward pass too, if it runs in the block and its thread.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._depth = 0

    def __enter__(self) -> Trace:
        here.scope.observe((*here.scope.observers, self))
        return self

    def __exit__(self, *_: object) -> None:
        here.scope.observe(tuple(each for each in here.scope.observers if each is not self))

    def __str__(self) -> str:
        return "\n".join(map(str, self.calls)) or "no calls"

    def __repr__(self) -> str:
        return f"<Trace of {len(self.calls)} calls>"

    def direct(self) -> list[Call]:
        """The calls without those that kernels made themselves."""
        found: list[Call] = []
        for each in self.calls:
            if not found or found[-1].how != "kernel" or each.depth <= found[-1].depth:
                found.append(each)
        return found

    def providers(self) -> dict[str, Counter[str]]:
        """For each operator: how often each provider served it; ``composite`` and ``fallback`` count as such."""
        table: dict[str, Counter[str]] = {}
        for each in self.calls:
            table.setdefault(each.operator, Counter())[each.provider or each.how] += 1
        return table

    def see(self, op: Operator, key: Key, choice: Choice, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Note a call, and run it."""
        chosen = first(registry.candidates(op.name, key, choice.wishes), args)
        if chosen is not None:
            kernel, who, how = chosen.kernel, chosen.provider.name, "kernel"
        else:
            kernel, who = op.otherwise(key, choice.substitute), None
            how = "composite" if op.composes(key) else "fallback" if choice.substitute is not None else "missing"
        watching = [each for each in here.scope.observers if isinstance(each, Trace)]
        for each in watching:
            each.calls.append(Call(op.name, who, how, str(key.device), key.layout.name, key.dtype.name, each._depth))
            each._depth += 1
        try:
            return kernel(*args, **kwargs)
        finally:
            for each in watching:
                each._depth -= 1
