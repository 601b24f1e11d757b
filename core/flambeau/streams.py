"""Streams and events: the order of work on devices that work while Python goes on."""

from __future__ import annotations

from typing import Any

from .capabilities import capabilities, function, meant, require
from .device import device as Device
from .errors import ArgumentError, ArgumentTypeError, DeviceError

__all__ = ["Event", "Stream", "current_stream", "set_stream", "synchronize"]


class Stream:
    """A queue of work on a device; work in one stream runs in order.

    In a ``with`` statement, the kernels that this thread calls go to it.

    Args:
        device: that has streams; the accelerator if not given.
        priority: lower numbers go first, where the device knows priorities.

    Raises:
        RuntimeError: the device has no streams.
    """

    __slots__ = ("__weakref__", "_outer", "device", "handle")

    def __init__(self, device: Any = None, *, priority: int = 0) -> None:
        self.device = require(meant(device), "streams")
        self.handle = function(self.device, "new_stream")(self.device, priority)
        self._outer: list[Stream] = []

    @classmethod
    def of(cls, device: Device, handle: Any) -> Stream:
        """The stream that a plug-in knows by this handle."""
        stream = object.__new__(cls)
        stream.device, stream.handle, stream._outer = device, handle, []
        return stream

    def query(self) -> bool:
        """Whether all of its work is done."""
        return bool(function(self.device, "query_stream")(self.device, self.handle))

    def synchronize(self) -> None:
        """Wait until all of its work is done."""
        function(self.device, "synchronize_stream")(self.device, self.handle)

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one if none is given, behind the work so far.

        Raises:
            RuntimeError: the device has no events.
        """
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let work that is called later wait for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let work that is called later wait for the work of another stream so far."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        self._outer.append(current_stream(self.device))
        set_stream(self)
        return self

    def __exit__(self, *_: object) -> None:
        set_stream(self._outer.pop())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.device is other.device and bool(self.handle == other.handle)

    def __hash__(self) -> int:
        return hash((self.device, self.handle))

    def __repr__(self) -> str:
        return f"<Stream on {self.device}: {self.handle!r}>"


class Event:
    """A moment in the work of a stream: to wait for, or to measure times between.

    Args:
        device: that has events; the accelerator if not given.
        enable_timing: whether :meth:`elapsed_time` is wanted.
        blocking: accepted for compatibility; how a device waits is its plug-in's choice.
        interprocess: not supported.

    Raises:
        RuntimeError: the device has no events.
        ValueError: ``interprocess`` is asked for.
    """

    __slots__ = ("__weakref__", "device", "handle", "recorded", "timing")

    def __init__(
        self,
        device: Any = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        if interprocess:
            raise ArgumentError("Event(interprocess=True): events belong to one process.\nLeave interprocess out.")
        self.device = require(meant(device), "events")
        self.timing, self.recorded = enable_timing, False
        self.handle = function(self.device, "new_event")(self.device, enable_timing)

    def _queue(self, stream: Stream | None) -> Any:
        """The handle of the stream that is meant: the current one if none is given."""
        if stream is not None and not isinstance(stream, Stream):
            raise ArgumentTypeError(f"expected a flambeau.Stream, got {type(stream).__name__} {stream!r:.60}.")
        if stream is None:
            return current_stream(self.device).handle if "streams" in capabilities(self.device) else None
        return stream.handle

    def record(self, stream: Stream | None = None) -> None:
        """Let it happen when the work of a stream so far is done; the current stream's if none is given.

        Raises:
            RuntimeError: the stream is another device's.
        """
        if stream is not None and stream.device is not self.device:
            raise DeviceError(
                f"Event device {self.device} does not match recording stream's device {stream.device}.\n"
                f"Make the event with Event({str(stream.device)!r})."
            )
        function(self.device, "record_event")(self.device, self.handle, self._queue(stream))
        self.recorded = True

    def wait(self, stream: Stream | None = None) -> None:
        """Let later work of a stream wait for it; if that is another type of device's, the host waits."""
        queue = self._queue(stream)
        if not self.recorded:
            return
        if stream is not None and stream.device.type != self.device.type:
            self.synchronize()
        else:
            function(self.device, "wait_event")(self.device, self.handle, queue)

    def query(self) -> bool:
        """Whether it has happened; also if it was never recorded."""
        return not self.recorded or bool(function(self.device, "query_event")(self.device, self.handle))

    def synchronize(self) -> None:
        """Wait until it has happened."""
        if self.recorded:
            function(self.device, "synchronize_event")(self.device, self.handle)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another.

        Raises:
            RuntimeError: the events are of two devices.
            ValueError: one was made without ``enable_timing``, or was not recorded.
        """
        if end_event.device is not self.device:
            raise DeviceError(f"elapsed_time: expected events of one device, got {self.device} and {end_event.device}.")
        if not (self.timing and end_event.timing):
            raise ArgumentError("Both events must be created with argument 'enable_timing=True'.")
        if not (self.recorded and end_event.recorded):
            raise ArgumentError("Both events must be recorded before calculating elapsed time.")
        return float(function(self.device, "elapsed_time")(self.device, self.handle, end_event.handle))

    def __repr__(self) -> str:
        return f"<Event on {self.device}: {self.handle!r}>"


def current_stream(device: Any = None) -> Stream:
    """The stream that this thread's kernels on a device go to; the accelerator's if none is named.

    Raises:
        RuntimeError: the device has no streams.
    """
    place = require(meant(device), "streams")
    return Stream.of(place, function(place, "current_stream")(place))


def set_stream(stream: Stream) -> None:
    """Let this thread's kernels on the stream's device go to it from now on."""
    if not isinstance(stream, Stream):
        raise ArgumentTypeError(f"set_stream() expects a flambeau.Stream, got {type(stream).__name__}.")
    function(stream.device, "set_stream")(stream.device, stream.handle)


def synchronize(device: Any = None) -> None:
    """Wait until all work on a device is done; the accelerator if none is named.

    Raises:
        RuntimeError: the device has no streams, so that there is nothing to wait for.
    """
    place = require(meant(device), "streams")
    function(place, "synchronize")(place)
