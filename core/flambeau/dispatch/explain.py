"""Who would serve a call, and why: without running a kernel.

The call is made with stand-ins for its tensors (abstract.py).  Each operator that looks for its kernel is
judged as dispatch would; results have the shape and dtype that the operator's declaration gives them, so
the call goes on to its end unless values decide how.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, cast

from ..autograd.engine import grad as gradients
from ..autograd.grad_mode import no_grad
from ..errors import ArgumentError
from ..geometry import contiguous
from ..key import Key, devices, intern
from ..plugins import default_device
from ..tensor import Tensor, empty, tensors_in
from .abstract import Abstraction, Unknown, concrete, concrete_key, described, written
from .missing import declined, judgement, missing_kernel
from .operator import Operator, offers, operators, similar
from .providers import Candidate, first, place_of, registry, source_of
from .scope import Choice, here
from .trace import Call

__all__ = ["Explanation", "Step", "Verdict", "explain"]


class Verdict:
    """One provider's part in a call.

    Attributes:
        provider: its name.
        version, priority: of the provider.
        serves: whether it serves the call.
        reason: why, or why not.
        source: ``file:line`` of its kernel, if it has one.
    """

    def __init__(self, provider: Any, serves: bool, reason: str, source: str) -> None:
        self.provider, self.version, self.priority = provider.name, provider.version, provider.priority
        self.serves, self.reason, self.source = serves, reason, source

    def __str__(self) -> str:
        mark = "->" if self.serves else "  "
        where = f"  [{self.source}]" if self.source else ""
        return f"{mark} {self.provider} {self.version} (priority {self.priority}): {self.reason}{where}"


class Step:
    """One operator that a call would run.

    Attributes:
        call: the :class:`Call` that a trace would note.
        verdicts: each provider's part, in the order in which they would be asked.
        otherwise: what happens if no provider serves.
    """

    def __init__(self, call: Call, verdicts: list[Verdict], otherwise: str) -> None:
        self.call, self.verdicts, self.otherwise = call, verdicts, otherwise

    def __str__(self) -> str:
        call = self.call
        lines = [f"{call.operator} for {call.dtype} on {call.device} ({call.layout})"]
        lines += [str(each) for each in self.verdicts]
        if call.provider is None:
            lines.append(f"-> {self.otherwise}")
        return "\n".join("  " * call.depth + line for line in lines)


class Explanation:
    """What :func:`explain` found.

    Attributes:
        steps: each :class:`Step`, in the order of the calls.
        stopped: why the explanation ends before the call does, or None if it is complete.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.steps: list[Step] = []
        self.stopped: str | None = None
        self._depth = self._muted = 0
        self._inputs: list[Tensor] = []
        self._outputs: list[Tensor] = []

    @property
    def calls(self) -> list[Call]:
        """What :func:`flambeau.backends.trace` would note of the call, without what kernels call themselves."""
        return [each.call for each in self.steps]

    @property
    def provider(self) -> str | None:
        """The name of the provider that serves the first operator that some provider serves; None if none does."""
        return next((each.call.provider for each in self.steps if each.call.provider is not None), None)

    def __str__(self) -> str:
        lines = [str(each) for each in self.steps]
        if not lines and self.stopped is None:
            lines.append(f"{self.name} runs no kernel for these arguments.")
        if self.stopped is not None:
            lines.append(f"It is not known how it goes on: {self.stopped}.")
        return "\n".join(lines)

    __repr__ = __str__

    def backward(self) -> Explanation:
        """What the backward pass of the call would run.

        Raises:
            ValueError: no result would have a gradient.
        """
        if not self._inputs or not any(each.node is not None for each in self._outputs):
            raise ArgumentError(
                f"explain({self.name!r}, ...).backward(): no result has a gradient"
                + (f", as it is not known how the call goes on: {self.stopped}." if self.stopped else ".")
                + "\nPass a tensor that requires grad."
            )
        outputs = [each for each in self._outputs if each.node is not None]
        seeds = [empty(each.key, contiguous(each.shape)) for each in outputs]
        return _explained(
            f"backward of {self.name}",
            lambda: gradients(outputs, self._inputs, seeds, retain_graph=True, allow_unused=True),
        )


class _Thread(threading.local):
    explanation: Explanation | None = None


_thread: Final = _Thread()


class _Refusal:
    """No kernel runs while a call is explained: it must be one of a real tensor that the call got from elsewhere.

    Only moving one to the device of the arguments is no obstacle.
    """

    def see(self, op: Operator, key: Key, choice: Choice, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        explanation = _thread.explanation
        if op.opaque and args[1] in devices.stand_ins and explanation is not None:
            target = intern(args[1], key.layout, key.dtype)
            if concrete_key(target) is key:  # the device is the same
                return Abstraction(_answer)(args[0])
            _judge(explanation, op, key, args, kwargs)
            return empty(target, contiguous(args[0].shape))
        raise Unknown(f"{op.name} works on a tensor that is not an argument of the call")


def _answer(op: Operator, key: Key) -> Callable[..., Any]:
    """What an operator runs on stand-ins: it is judged, and its results are described."""
    explanation = _thread.explanation
    if explanation is None:
        raise ArgumentError(f"{op.name}: the tensors of an explanation have no elements to compute with.")

    def run(*args: Any, **kwargs: Any) -> Any:
        if explanation._muted:
            return _result(explanation, op, key, args, kwargs)
        call = _judge(explanation, op, key, args, kwargs)
        if call.how == "missing":
            raise Unknown(f"{op.name} cannot be run")
        if call.how == "kernel":
            return _result(explanation, op, key, args, kwargs)
        explanation._depth += 1
        try:
            if call.how == "composite":
                return _result(explanation, op, key, args, kwargs) if op.opaque else op.otherwise(key)(*args, **kwargs)
            substitute = here.scope.choice.substitute if here.scope.choice is not None else None
            assert substitute is not None
            elsewhere = key.at(Abstraction(_answer).device(substitute.device))
            _judge(explanation, op, elsewhere, args, kwargs)
            return _result(explanation, op, key, args, kwargs)
        finally:
            explanation._depth -= 1

    return run


def _judge(explanation: Explanation, op: Operator, key: Key, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """Add a step: who serves a call, as dispatch would decide it."""
    place, real = concrete_key(key), tuple(concrete(each) for each in args)
    choice = here.scope.choice or Choice()
    candidates = registry.candidates(op.name, place, choice.wishes)
    verdicts, chosen = _verdicts(op, place, candidates, real)
    how, otherwise = "kernel", ""
    if chosen is None and op.composes(place):
        how, otherwise = "composite", f"composite of other operators  [{source_of(cast(Callable[..., Any], op.body))}]"
    elif chosen is None:
        error: Exception | None = missing_kernel(op, place, real)
        if choice.substitute is not None:
            error = choice.substitute.refusal(op, place, real, kwargs)
        how, otherwise = "missing", str(error)
        if error is None and choice.substitute is not None:
            how, otherwise = "fallback", f"falls back to {choice.substitute.device}"
    name = None if chosen is None else chosen.provider.name
    call = Call(op.name, name, how, str(place.device), place.layout.name, place.dtype.name, explanation._depth)
    explanation.steps.append(Step(call, verdicts, otherwise))
    return call


def _verdicts(
    op: Operator, place: Key, candidates: list[Candidate], args: tuple[Any, ...]
) -> tuple[list[Verdict], Candidate | None]:
    """Each provider's part, in the order of being asked, and the one that serves."""
    chosen = first(candidates, args)
    verdicts = []
    asked = True
    for each in candidates:
        reason = (
            "serves the call"
            if each is chosen
            else declined(each.family, args)
            if asked
            else "comes later in the order"
        )
        asked = asked and each is not chosen
        verdicts.append(Verdict(each.provider, each is chosen, reason, place_of(each.family)))
    rest = [each for each in registry.providers if each.device == place.device.type]
    rest = [each for each in rest if each not in [candidate.provider for candidate in candidates]]
    for provider in rest:
        family = provider.kernels.get(op.name)
        source = "" if family is None else place_of(family)
        verdicts.append(Verdict(provider, False, judgement(op, place, provider, args), source))
    return verdicts, chosen


def _result(explanation: Explanation, op: Operator, key: Key, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the kernel would return, without elements."""
    target = args[0] if op.mutates else kwargs.get("out")
    if target is not None:
        written(target)
        return target
    if op.returned is not None:
        return described(key, op.returned(*args))
    if op.body is None:
        raise Unknown(f"the shape of the result of {op.name} depends on values")
    explanation._muted += 1
    try:
        with no_grad():
            return op.otherwise(key)(*args)
    finally:
        explanation._muted -= 1


def _explained(name: str, call: Callable[[], Any]) -> Explanation:
    explanation = Explanation(name)
    outer, _thread.explanation = _thread.explanation, explanation
    observers = here.scope.observers
    here.scope.observe((*observers, _Refusal()))
    try:
        explanation._outputs = tensors_in(call())
    except Unknown as stop:
        explanation.stopped = str(stop)
    finally:
        _thread.explanation = outer
        here.scope.observe(observers)
    return explanation


def explain(op: str | Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """Who would serve this call, in which order the providers are asked, and why the others lose.

    Each operator that the call would run is a step; those of a composite's body follow it, indented.  No kernel
    runs, no memory is written and no random number is drawn.  Where only values tell how a call goes on, the
    explanation ends and says so.

    Args:
        op: an operator's name, any function of tensors, or a module.
        args: of the call.
        kwargs: of the call.

    Raises:
        ValueError: there is no such operator.

    >>> import flambeau
    >>> x = flambeau.ones(2, 3)
    >>> flambeau.explain("matmul", x, x.t()).provider
    'cpu'
    """
    name = op if isinstance(op, str) else getattr(op, "__name__", type(op).__name__)
    abstract = Abstraction(_answer)
    function = abstract.owner(op) if callable(op) else _named(name)
    inputs, options = abstract(args), abstract(kwargs)
    if not abstract.tensors and options.get("device") is None and _makes_tensors(function):
        options["device"] = abstract.device(default_device())
    explanation = _explained(name, lambda: function(*inputs, **options))
    explanation._inputs = [each for each in abstract.tensors if each.node is not None]
    return explanation


def _named(name: str) -> Callable[..., Any]:
    offered = {each.name: each.function for each in reversed(offers) if each.namespaces}
    function = offered.get(name) or (operators[name].function if name in operators else None)
    for owner in (sys.modules[__name__.partition(".")[0]], Tensor):
        function = function or getattr(owner, name, None)
    if not callable(function):
        raise ArgumentError(f"There is no operator {name!r}. Similar names: {similar(name)}.")
    return function


def _makes_tensors(function: Callable[..., Any]) -> bool:
    """Whether a function takes the device that its result shall be on."""
    try:
        return "device" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
