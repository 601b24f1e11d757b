"""Choosing among the providers that serve a device.

>>> import flambeau
>>> with flambeau.backends.prefer("cpu"):
...     flambeau.ones(2) + 1
tensor([2., 2.])
"""

from __future__ import annotations

from typing import Any

from .backend import Backend
from .capabilities import capabilities
from .device import device as Device
from .dispatch.explain import Explanation, explain
from .dispatch.fallback import Count, Fallback
from .dispatch.operator import operators, similar
from .dispatch.providers import Wish, registry
from .dispatch.scope import here
from .dispatch.trace import Call, Trace
from .errors import ArgumentError
from .plugins import Plugin, load_all, plugins

__all__ = [
    "Call", "Count", "Explanation", "Fallback", "Trace", "available", "capabilities", "disable", "enable", "explain",
    "fallback", "prefer", "register", "report", "reset",
    "trace",
]  # fmt: skip


class _Wished:
    """A wish that was spoken: as a plain statement it becomes everyone's, in a ``with`` statement the block's.

    Which of the two it is shows when Python either enters this object or lets it go; until then the wish
    is the thread's alone, so that a block never disturbs other threads.
    """

    def __init__(self, wish: Wish) -> None:
        self._wish, self._scope, self._open = wish, here.scope, True
        self._scope.rebase((*self._scope.base, wish))

    def _close(self) -> None:
        if self._open:
            self._open = False
            self._scope.rebase(tuple(each for each in self._scope.base if each is not self._wish))

    def __enter__(self) -> None:
        self._close()
        here.scope.push(here.scope.inner(self._wish))

    def __exit__(self, *_: object) -> None:
        here.scope.pop()

    def __del__(self) -> None:
        if self._open:
            registry.wish(lambda wishes: (*wishes, self._wish))
            self._close()


def _known(name: str, op: str | None) -> None:
    load_all()
    names = sorted({each.name for each in registry.providers})
    if name not in names:
        raise ArgumentError(f"There is no provider {name!r}; loaded are: {', '.join(names) or 'none'}.")
    if op is not None and op not in operators:
        raise ArgumentError(f"There is no operator {op!r}. Similar names: {similar(op)}.")


def prefer(name: str, op: str | None = None) -> _Wished:
    """Let a provider serve what it can, before those of higher priority.

    As a plain statement it holds for all threads from now on; in a ``with`` statement, for the block in
    this thread and for the backward pass of what is computed in it.

    Args:
        name: of the provider.
        op: one operator's name; all if not given.

    Raises:
        ValueError: there is no such provider or operator.
    """
    _known(name, op)
    return _Wished(Wish(name, op, True))


def disable(name: str, op: str | None = None) -> _Wished:
    """Take a provider out of service, for all threads or for a ``with`` block.

    Args:
        name: of the provider.
        op: one operator's name; all if not given.

    Raises:
        ValueError: there is no such provider or operator.
    """
    _known(name, op)
    return _Wished(Wish(name, op, False))


def enable(name: str, op: str | None = None) -> None:
    """Put a disabled provider back into service, for all threads.

    Raises:
        ValueError: there is no such provider or operator.
    """
    _known(name, op)
    registry.wish(
        lambda wishes: tuple(
            each for each in wishes if each.wanted or each.provider != name or op not in (None, each.operator)
        )
    )


def reset() -> None:
    """Forget all that was preferred or disabled by plain statements."""
    registry.wish(lambda _: ())


def fallback(device: Any) -> Fallback:
    """In a ``with`` block, let another device serve what a tensor's own device has no kernel for.

    It holds for this thread, and for the backward pass of what is computed in the block.  The device's own
    composites come first.  What was moved is counted in the :class:`Fallback` that the statement gives.
    Operators that have no sparse form are served too, by dense kernels; so are their results.

    Args:
        device: that serves; for sparse tensors it may be their own.

    Raises:
        RuntimeError: no plug-in provides the device.

    >>> import flambeau
    >>> with flambeau.backends.fallback("cpu") as moved:
    ...     flambeau.ones(2) + 1
    tensor([2., 2.])
    >>> moved.counts
    {}
    """
    return Fallback(Device(device))


def trace() -> Trace:
    """In a ``with`` block, note which provider serves each call of this thread.

    >>> import flambeau
    >>> x = flambeau.ones(3)
    >>> with flambeau.backends.trace() as calls:
    ...     y = (x * 2).sum()
    >>> print(calls)
    mul float32 on cpu: cpu
    sum float32 on cpu: cpu
    >>> calls.providers()["mul"]
    Counter({'cpu': 1})
    """
    return Trace()


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
    unwanted = {each.provider for each in registry.wishes if not each.wanted and each.operator is None}
    return [each.name for each in registry.providers if each.name not in unwanted]


def report() -> list[Plugin]:
    """Every installed plug-in with its state; loading those that were not yet."""
    load_all()
    return list(plugins)
