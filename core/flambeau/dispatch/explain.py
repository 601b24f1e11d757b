"""Who would serve a call, and why: without running a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..errors import ArgumentError
from ..key import Key
from .missing import judgement
from .operator import Operator, offers, operators, similar
from .providers import registry
from .scope import Choice, here

__all__ = ["Explanation", "explain"]


class Verdict:
    """One provider's part in a call."""

    def __init__(self, provider: Any, serves: bool, reason: str, source: str) -> None:
        self.provider, self.serves, self.reason, self.source = provider, serves, reason, source

    def __str__(self) -> str:
        mark = "->" if self.serves else "  "
        where = f"  [{self.source}]" if self.source else ""
        return f"{mark} {self.provider.name} {self.provider.version} (priority {self.provider.priority}): {self.reason}{where}"


class Explanation:
    """What :func:`explain` found: for each operator that the call would run first, who serves it."""

    def __init__(self, operator: str, key: Key, verdicts: list[Verdict], body: str = "") -> None:
        self.operator, self.key, self.verdicts, self.body = operator, key, verdicts, body

    @property
    def provider(self) -> str | None:
        """The name of the provider that would serve; None if nobody does."""
        return next((each.provider.name for each in self.verdicts if each.serves), None)

    def __str__(self) -> str:
        lines = [f"{self.operator} for {self.key.dtype.name} on {self.key.device} ({self.key.layout.name})"]
        lines += [str(each) for each in self.verdicts]
        if self.provider is None:
            lines.append(self.body or "   no provider serves it")
        return "\n".join(lines)

    __repr__ = __str__


class _Stop(Exception):
    def __init__(self, op: Operator, key: Key, args: tuple[Any, ...]) -> None:
        super().__init__(op.name)
        self.op, self.key, self.call = op, key, args


_SILENT: Final = frozenset({"cast", "clone", "copy_", "fill_", "move"})


class _Stopper:
    """Every kernel but those that only move values raises instead of running."""

    def see(self, op: Operator, key: Key, choice: Choice, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if op.name in _SILENT:
            return choice.kernel(op, key)(*args, **kwargs)
        raise _Stop(op, key, args)


def explain(op: str | Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """Who would serve this call, in which order the providers are asked, and why the others lose.

    A composite is explained by the first of the operators that it is made of.  Nothing is computed.

    Args:
        op: an operator's name, or its public function.
        args: of the call.
        kwargs: of the call.

    Raises:
        ValueError: there is no such operator, or the call runs no kernel.
    """
    name = op if isinstance(op, str) else getattr(op, "__name__", str(op))
    function = op if callable(op) else None
    if function is None:
        offered = {each.name: each.function for each in reversed(offers) if each.namespaces}
        function = offered.get(name) or (operators[name].function if name in operators else None)
    if function is None:
        raise ArgumentError(f"There is no operator {name!r}. Similar names: {similar(name)}.")
    before = here.scope.observers
    here.scope.observe((*before, _Stopper()))
    try:
        function(*args, **kwargs)
    except _Stop as stop:
        return _judge(stop.op, stop.key, stop.call)
    finally:
        here.scope.observe(before)
    raise ArgumentError(f"{name} runs no kernel for these arguments: its result is a view or an argument itself.")


def _judge(op: Operator, key: Key, args: tuple[Any, ...]) -> Explanation:
    verdicts: list[Verdict] = []
    served = False
    wishes = here.scope.choice.wishes if here.scope.choice is not None else ()
    candidates = registry.candidates(op.name, key, wishes)
    for candidate in candidates:
        family, source = candidate.family, candidate.family.source()
        if served:
            verdicts.append(Verdict(candidate.provider, False, "comes later in the order", source))
        elif family.predicate is not None and not family.predicate(*args):
            verdicts.append(Verdict(candidate.provider, False, "declines these arguments", source))
        else:
            served = True
            verdicts.append(Verdict(candidate.provider, True, "serves the call", source))
    listed = {each.provider.name for each in candidates}
    for provider in registry.providers:
        if provider.name not in listed and provider.device == key.device.type:
            verdicts.append(Verdict(provider, False, judgement(op, key, provider, args), ""))
    body = "-> composite of other operators" if op.body is not None else ""
    return Explanation(op.name, key, verdicts, body)
