"""Choosing among the providers that serve a device.

>>> import flambeau
>>> with flambeau.backends.prefer("cpu"):
...     flambeau.ones(2) + 1
tensor([2., 2.])
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Final

from .autograd.node import Node, watcher
from .backend import Backend
from .capabilities import capabilities
from .dispatch.explain import Explanation, explain
from .dispatch.providers import Provider, registry
from .errors import ArgumentError
from .plugins import Plugin, load_all, plugins

__all__ = [
    "Explanation", "available", "capabilities", "disable", "enable", "explain", "prefer", "register", "report",
]  # fmt: skip


class _Choice:
    """What one thread wants beside the global wishes: preferred and disabled providers, newest last."""

    def __init__(
        self, preferred: tuple[tuple[str, str | None], ...] = (), disabled: frozenset[str] = frozenset()
    ) -> None:
        self.preferred, self.disabled = preferred, disabled

    def __enter__(self) -> None:
        """Backward runs inside the choice that was in force when its node was made."""
        _scope.stack.append(self)
        _update(+1)

    def __exit__(self, *_: object) -> None:
        _scope.stack.pop()
        _update(-1)


class _Scope(threading.local):
    def __init__(self) -> None:
        self.stack: list[_Choice] = []


_scope: Final = _Scope()
_global: Final = _Choice()
_active = 0
_lock: Final = threading.Lock()


def _current() -> _Choice:
    return _scope.stack[-1] if _scope.stack else _global


def _rank(operator: str, provider: Provider) -> tuple[int, int]:
    preferred = _global.preferred + (_scope.stack[-1].preferred if _scope.stack else ())
    wish = 0
    for number, (name, op) in enumerate(preferred, 1):
        if name == provider.name and op in (None, operator):
            wish = number
    return wish, provider.priority


def _allowed(provider: Provider) -> bool:
    return provider.enabled and not (_scope.stack and provider.name in _scope.stack[-1].disabled)


def _watch(node: Node) -> None:
    if _scope.stack:
        node.preference = _scope.stack[-1]


def _update(change: int) -> None:
    """Count the scopes in force: while there is one, tables ask at each call."""
    global _active
    with _lock:
        before, _active = _active, _active + change
        if bool(before) != bool(_active):
            registry.scoped = bool(_active)
            registry.refresh()
            watcher.watch(_watch, bool(_active))


registry.rank = _rank
registry.allowed = _allowed


def _known(name: str) -> None:
    load_all()
    names = sorted({each.name for each in registry.providers})
    if name not in names:
        raise ArgumentError(f"There is no provider {name!r}; loaded are: {', '.join(names) or 'none'}.")


class _Scoped:
    """A wish that took effect globally; entered as a context manager it becomes the block's alone."""

    def __init__(self, undo: Any, choice: _Choice) -> None:
        self._undo, self._choice = undo, choice

    def __enter__(self) -> None:
        self._undo()
        self._choice.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._choice.__exit__()


def prefer(name: str, op: str | None = None) -> _Scoped:
    """Let a provider serve what it can, before those of higher priority.

    As a plain call it holds for all threads from now on; in a ``with`` statement, for the block in
    this thread and for the backward pass of what is computed in it.

    Args:
        name: of the provider.
        op: one operator's name; all if not given.

    Raises:
        ValueError: there is no such provider.
    """
    _known(name)
    before = _global.preferred
    _global.preferred = (*before, (name, op))
    registry.refresh()

    def undo() -> None:
        _global.preferred = before
        registry.refresh()

    current = _current() if _scope.stack else _Choice()
    return _Scoped(undo, _Choice((*current.preferred, (name, op)), current.disabled))


def disable(name: str) -> _Scoped:
    """Take a provider out of service, globally or for a ``with`` block.

    Raises:
        ValueError: there is no such provider.
    """
    _known(name)
    changed = [each for each in registry.providers if each.name == name and each.enabled]
    for each in changed:
        each.enabled = False
    registry.refresh()

    def undo() -> None:
        for each in changed:
            each.enabled = True
        registry.refresh()

    current = _current() if _scope.stack else _Choice()
    return _Scoped(undo, _Choice(current.preferred, current.disabled | {name}))


def enable(name: str) -> None:
    """Put a disabled provider back into service.

    Raises:
        ValueError: there is no such provider.
    """
    _known(name)
    for each in registry.providers:
        if each.name == name:
            each.enabled = True
    registry.refresh()


class _Registered:
    """A backend that was taken in without being installed; as a context manager, for the block only."""

    def __init__(self, plugin: Plugin) -> None:
        self.plugin = plugin

    def __enter__(self) -> Plugin:
        return self.plugin

    def __exit__(self, *_: object) -> None:
        plugins.remove(self.plugin)


def register(*described: Backend, plugin: str | None = None) -> _Registered:
    """Take in backends that no installed plug-in describes: those of a test or a notebook.

    As a plain call it holds from now on; in a ``with`` statement, for the block.

    Args:
        described: for one device.
        plugin: the name under which messages speak of them.

    Raises:
        RuntimeError: a description is wrong, or contradicts what is loaded.
    """
    return _Registered(plugins.add(list(described), plugin or described[0].name))


def available() -> list[str]:
    """The names of the providers that can serve now."""
    load_all()
    return [each.name for each in registry.providers if each.enabled]


def report() -> list[Plugin]:
    """Every installed plug-in with its state; loading those that were not yet."""
    load_all()
    return list(plugins)
