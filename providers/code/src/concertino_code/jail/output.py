"""One output stream, kept at both ends: the first bytes and the last ones, and a true count of all."""

from __future__ import annotations

import os

_CHUNK = 1 << 18


class BoundedOutput:
    """The bounded memory of one stream."""

    def __init__(self, limit: int) -> None:
        self.total = 0
        self._first = limit // 2
        self._last = limit - self._first
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, data: bytes) -> None:
        """More of the stream."""
        self.total += len(data)
        room = self._first - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail += data[-self._last :]
            # Cutting at every piece would move the tail each time.
            if len(self._tail) > 4 * self._last:
                del self._tail[: -self._last]

    def drain(self, handle: int) -> bool:
        """Read what has arrived; returns whether more can arrive."""
        try:
            data = os.read(handle, _CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.feed(data)
        return bool(data)

    @property
    def head(self) -> bytes:
        """The first bytes; with the tail, everything if nothing was cut."""
        return bytes(self._head)

    @property
    def tail(self) -> bytes:
        """The last bytes."""
        return bytes(self._tail[-self._last :])
