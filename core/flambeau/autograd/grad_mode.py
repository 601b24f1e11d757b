"""Whether operators record history: a per-thread switch."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, TypeVar, cast

__all__ = ["enable_grad", "is_grad_enabled", "mode", "no_grad", "set_grad_enabled"]

F = TypeVar("F", bound=Callable[..., Any])


class _Mode(threading.local):
    enabled = True


mode: Final = _Mode()


def is_grad_enabled() -> bool:
    """Whether operators record history in this thread."""
    return mode.enabled


class _Switch:
    """A context manager and decorator that sets the mode and restores it."""

    __slots__ = ("before", "wanted")

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted

    def __enter__(self) -> None:
        self.before = mode.enabled
        mode.enabled = self.wanted

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        mode.enabled = self.before

    def __call__(self, function: F) -> F:
        wanted = self.wanted

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with _Switch(wanted):
                return function(*args, **kwargs)

        return cast(F, wrapped)


class no_grad(_Switch):
    """Record no history inside a ``with`` block or a decorated function.

    >>> import flambeau
    >>> with flambeau.no_grad():
    ...     flambeau.is_grad_enabled()
    False
    """

    __slots__ = ()

    def __init__(self) -> None:
        self.wanted = False


class enable_grad(_Switch):
    """Record history inside a ``with`` block or a decorated function."""

    __slots__ = ()

    def __init__(self) -> None:
        self.wanted = True


class set_grad_enabled(_Switch):
    """Switch recording on or off: at once as a plain call, until the block's end in a ``with``."""

    __slots__ = ()

    def __init__(self, mode_: bool) -> None:
        self.wanted = bool(mode_)
        self.before = mode.enabled
        mode.enabled = self.wanted

    def __enter__(self) -> None:
        mode.enabled = self.wanted

    def __call__(self, function: F) -> F:
        mode.enabled = self.before
        return super().__call__(function)
