"""What one thread wants for a block of its calls, beside the wishes of the whole process.

A :class:`Choice` is entered like a context manager; nodes remember the one they were made in, and
backward enters it again.  While any thread is in one, the tables hold functions that ask for the
thread's choice at each call; other threads are served as ever.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..autograd.node import Node, watcher
from ..device import device as Device
from ..errors import MissingKernelError
from ..key import Key
from .providers import Kernel, Wish, registry

if TYPE_CHECKING:
    from .operator import Operator

__all__ = ["Choice", "Observer", "Substitute", "asking", "here"]


class Substitute(Protocol):
    """Serves what a device has no kernel for, on another device."""

    device: Device

    def serve(self, op: Operator, key: Key, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...

    def refusal(
        self, op: Operator, key: Key, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> MissingKernelError | None: ...


class Observer(Protocol):
    """Runs a call in the place of the kernel that was chosen for it."""

    def see(self, op: Operator, key: Key, choice: Choice, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...


class Choice:
    """Wishes and a substitute for missing kernels, with the answers found under them."""

    __slots__ = ("_answers", "substitute", "wishes")

    def __init__(self, wishes: tuple[Wish, ...] = (), substitute: Substitute | None = None) -> None:
        self.wishes, self.substitute = wishes, substitute
        self._answers: tuple[int, dict[tuple[Operator, Key], Kernel]] = (-1, {})

    def kernel(self, op: Operator, key: Key) -> Kernel:
        """What serves an operator on a key under this choice."""
        version, answers = self._answers
        if version != registry.version:
            version, answers = self._answers = registry.version, {}
        found = answers.get((op, key))
        if found is None:
            otherwise = op.otherwise(key, self.substitute)
            found = answers[op, key] = registry.resolve(op.name, key, otherwise, self.wishes)
        return found

    def __enter__(self) -> Choice:
        here.scope.push(self)
        return self

    def __exit__(self, *_: object) -> None:
        here.scope.pop()


NOTHING: Final = Choice()


class Scope:
    """One thread's choices, innermost last, and the observers of its calls."""

    __slots__ = ("active", "base", "choice", "observers", "stack")

    def __init__(self) -> None:
        #: what holds for the thread outside of blocks
        self.base: tuple[Wish, ...] = ()
        self.stack: list[Choice] = []
        self.observers: tuple[Observer, ...] = ()
        #: what is in force; None if nothing is wished for
        self.choice: Choice | None = None
        #: whether anything is wished for or observed, so that tables ask
        self.active = False

    def push(self, choice: Choice) -> None:
        """Let a choice take the place of the one in force."""
        self.stack.append(choice)
        self._update()

    def pop(self) -> None:
        """End the innermost choice."""
        self.stack.pop()
        self._update()

    def rebase(self, base: tuple[Wish, ...]) -> None:
        """Change what holds outside of blocks."""
        self.base = base
        self._update()

    def observe(self, observers: tuple[Observer, ...]) -> None:
        """Change who sees the calls."""
        self.observers = observers
        self._update()

    def inner(self, *wishes: Wish, substitute: Substitute | None = None) -> Choice:
        """The innermost choice with more wishes, or another substitute."""
        top = self.stack[-1] if self.stack else NOTHING
        return Choice((*top.wishes, *wishes), substitute or top.substitute)

    def _update(self) -> None:
        with registry.lock:  # another thread may let a wish of this one go
            self._settle()

    def _settle(self) -> None:
        top = self.stack[-1] if self.stack else None
        self.choice = Choice(self.base + (top or NOTHING).wishes, (top or NOTHING).substitute) if self.base else top
        active = self.choice is not None or bool(self.observers)
        if active != self.active:
            self.active = active
            (registry.enter if active else registry.leave)()
            watcher.watch(_mark, lambda: registry.scopes > 0)


class _Here(threading.local):
    def __init__(self) -> None:
        self.scope = Scope()


here: Final = _Here()


def _mark(node: Node) -> None:
    """Backward runs inside the choice that was in force when its node was made."""
    node.preference = here.scope.choice


def asking(op: Operator, key: Key) -> Kernel:
    """A function that asks at each call what the calling thread wants."""
    direct: Kernel | None = None

    def ask(*args: Any, **kwargs: Any) -> Any:
        nonlocal direct
        scope = here.scope
        choice = scope.choice
        if scope.observers:
            return scope.observers[-1].see(op, key, choice or NOTHING, args, kwargs)
        if choice is not None:
            return choice.kernel(op, key)(*args, **kwargs)
        if not registry.scopes:  # the last block has ended: take the place of this function
            op.resolve(key)
        if direct is None:
            direct = registry.resolve(op.name, key, op.otherwise(key))
        return direct(*args, **kwargs)

    return ask
