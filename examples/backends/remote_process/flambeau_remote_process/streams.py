"""Streams and events: numbers of what the worker has.  These are the hooks of the capabilities."""

from __future__ import annotations

import threading
from typing import Any

from .link import LINK, Owned

__all__ = [
    "current", "current_stream", "elapsed_time", "new_event", "new_stream", "query_event", "query_stream", "record_event",
    "set_stream", "start_profiling", "stop_profiling", "synchronize", "synchronize_event", "synchronize_stream", "wait_event",
]  # fmt: skip


class _Thread(threading.local):
    stream = Owned(0)


_thread = _Thread()


def current() -> Owned:
    """The stream of this thread."""
    return _thread.stream


class Event:
    """What happens in a stream; each time it is recorded, at another moment."""

    moment: Owned | None = None


# ---------------------------------------------------------------- streams


def new_stream(device: Any, priority: int) -> Owned:
    stream = Owned()
    LINK.send("open", stream.number)
    return stream


def current_stream(device: Any) -> Owned:
    return _thread.stream


def set_stream(device: Any, stream: Owned) -> None:
    _thread.stream = stream


def query_stream(device: Any, stream: Owned) -> bool:
    return bool(LINK.ask("idle", stream.number))


def synchronize_stream(device: Any, stream: Owned) -> None:
    LINK.ask("finish", stream.number)


def synchronize(device: Any) -> None:
    LINK.ask("finish", None)


# ---------------------------------------------------------------- events


def new_event(device: Any, timing: bool) -> Event:
    return Event()


def record_event(device: Any, event: Event, stream: Owned) -> None:
    event.moment = Owned()
    LINK.send("record", stream.number, event.moment.number)


def wait_event(device: Any, event: Event, stream: Owned) -> None:
    LINK.send("wait", stream.number, _moment(event))


def query_event(device: Any, event: Event) -> bool:
    return bool(LINK.ask("happened", _moment(event)))


def synchronize_event(device: Any, event: Event) -> None:
    LINK.ask("when", _moment(event))


def elapsed_time(device: Any, start: Event, end: Event) -> float:
    first, last = (LINK.ask("when", _moment(each)) for each in (start, end))
    return float(last - first) / 1e6


def _moment(event: Event) -> int:
    assert event.moment is not None, "the core asks for events that were recorded"
    return event.moment.number


# ---------------------------------------------------------------- profiling


def start_profiling(device: Any) -> None:
    synchronize(device)
    LINK.ask("profiling", True)


def stop_profiling(device: Any) -> list[tuple[str, float, float]]:
    synchronize(device)
    return list(LINK.ask("profiling", False))
