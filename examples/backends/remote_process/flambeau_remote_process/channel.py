"""This process's end of the socket to the worker: whole messages, and waiting that may be interrupted anywhere."""

from __future__ import annotations

import select
import socket

__all__ = ["HEADER", "Channel"]

#: Bytes before each message that say how long it is.
HEADER = 8
_LARGEST_PART = 1 << 20


class Channel:
    """Messages to and from a socket.

    An exception, such as that of Ctrl-C, may end the waiting, and nothing is lost.  While there is something to send,
    what comes is taken in, so that two ends that both send do not wait for each other.

    Attributes:
        torn: whether an exception came in the short time between an act and its being noted; nothing fits any more.
    """

    def __init__(self, end: socket.socket) -> None:
        self.socket, self.torn = end, False
        end.setblocking(False)
        self._outgoing, self._incoming = bytearray(), bytearray()

    def put(self, message: bytes) -> None:
        """Have a message ready to be sent."""
        self._outgoing += len(message).to_bytes(HEADER, "little") + message

    def flush(self) -> None:
        """Send what is ready; the rest of it goes with the next message if an exception ends the waiting.

        Raises:
            OSError, EOFError: the other end is closed.
        """
        while self._outgoing:
            self._proceed(select.POLLIN | select.POLLOUT)

    def receive(self) -> bytes:
        """Wait for a message.

        Raises:
            OSError, EOFError: the other end is closed.
        """
        incoming = self._incoming
        while len(incoming) < HEADER or len(incoming) < HEADER + int.from_bytes(incoming[:HEADER], "little"):
            self._proceed(select.POLLIN)
        end = HEADER + int.from_bytes(incoming[:HEADER], "little")
        message = bytes(incoming[HEADER:end])
        del incoming[:end]
        return message

    def _proceed(self, wanted: int) -> None:
        """Wait until something can be done, and do it."""
        poll = select.poll()
        poll.register(self.socket, wanted)
        ((_, ready),) = poll.poll()
        self.torn = True
        if ready & select.POLLOUT:
            with memoryview(self._outgoing) as waiting:
                sent = self.socket.send(waiting[:_LARGEST_PART])
            del self._outgoing[:sent]
        if ready & ~select.POLLOUT:
            part = self.socket.recv(_LARGEST_PART)
            if not part:
                raise EOFError
            self._incoming += part
        self.torn = False

    def close(self) -> None:
        self.socket.close()
