"""Anomaly detection: where in the forward pass a bad gradient comes from."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from ..errors import AutogradError
from ..tensor import Tensor
from .node import Node, watcher

__all__ = ["detect_anomaly", "set_detect_anomaly"]

#: Whether nodes are traced, and what looks at their gradients.
_State = tuple[bool, Callable[[Node, Sequence[Any]], None] | None]

_PACKAGE: Final = __name__.split(".", maxsplit=1)[0]


def _watch(node: Node) -> None:
    """Keep the user's part of the call stack that made a node."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".", maxsplit=1)[0] == _PACKAGE:
        frame = frame.f_back
    node.trace = traceback.format_stack(frame) if frame is not None else None


def _check(node: Node, results: Sequence[Any]) -> None:
    """Raise if a gradient has a NaN."""
    for number, each in enumerate(results):
        if isinstance(each, Tensor) and each.dtype.category >= 2 and bool(cast(Any, each != each).any()):
            raise AutogradError(
                f"Function {node.name()!r} returned nan values in its {number}th output (shape {list(each.shape)})."
            )


class _Setting:
    """Whether anomalies are looked for; restored at the end of a ``with`` block."""

    def __init__(self, enabled: bool, check_nan: bool) -> None:
        self.before = _current()
        self.wanted = (enabled, _check if enabled and check_nan else None)

    def __enter__(self) -> None:
        self.before = _current()
        _set(self.wanted)

    def __exit__(self, *_: object) -> None:
        _set(self.before)


def _current() -> _State:
    return _watch in watcher.watching, watcher.check


def _set(state: _State) -> None:
    watcher.watch(_watch, lambda: state[0])
    watcher.check = state[1]


class detect_anomaly(_Setting):
    """In a ``with`` block, errors in backward show the forward call that made their node; so do NaNs.

    The forward pass must run inside the block too.  It costs time: use it for debugging only.

    Args:
        check_nan: raise when a gradient has a NaN.
    """

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(True, check_nan)


class set_detect_anomaly(_Setting):
    """Like :class:`detect_anomaly`, switched on or off by ``mode``; takes effect at once."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(mode, check_nan)
        _set(self.wanted)

    def __enter__(self) -> None:
        _set(self.wanted)
