"""What a jail reports to its supervisor, line by line, through a pipe that the script's process does not hold.

{"go": true}            set up; the script begins
{"fault": "..."}        it could not be set up; the script has not run
{"done": {...}}         the script's process has ended, with its exit status and CPU seconds
{"file": "...", ...}    an artefact, in base64
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import stat
from typing import Any

from . import syscalls as sc


def say(handle: int, message: dict[str, Any]) -> None:
    """Write one line, however long."""
    data = memoryview(json.dumps(message).encode("ascii") + b"\n")
    while data:
        # A pipe takes only as much as it has room for.
        data = data[os.write(handle, data) :]


def say_fault(handle: int, error: BaseException) -> None:
    """Report that the script could not be started."""
    say(handle, {"fault": f"{type(error).__name__}: {error}"[:400]})


class Reader:
    """Collects the lines."""

    def __init__(self) -> None:
        self.go = False
        self.fault = ""
        self.done: dict[str, Any] | None = None
        self.files: dict[str, dict[str, Any]] = {}
        self.data: dict[str, bytes] = {}
        self._buffer = bytearray()

    def drain(self, handle: int) -> bool:
        """Read what has arrived; returns whether more can arrive."""
        try:
            data = os.read(handle, 1 << 18)
        except BlockingIOError:
            return True
        self._buffer += data
        while (end := self._buffer.find(b"\n")) >= 0:
            self._take(json.loads(self._buffer[:end]))
            del self._buffer[: end + 1]
        return bool(data)

    def _take(self, message: dict[str, Any]) -> None:
        if "go" in message:
            self.go = True
        elif "fault" in message:
            self.fault = message["fault"]
        elif "done" in message:
            self.done = message["done"]
        elif "file" in message:
            name = message.pop("file")
            try:
                self.data[name] = base64.b64decode(message.pop("data", ""))
            except binascii.Error:
                message["error"] = "damaged in transfer"
            self.files[name] = message


def collect(handle: int, box: int, names: list[str], most_bytes: int) -> None:
    """Report the artefacts: regular files below `box`, reached through no link, `most_bytes` altogether."""
    left = most_bytes
    for name in names:
        try:
            source = sc.open_beneath(box, name)
        except OSError as error:
            say(handle, {"file": name, "error": os.strerror(error.errno or 0)})
            continue
        try:
            kind = os.fstat(source)
            if not stat.S_ISREG(kind.st_mode):
                say(handle, {"file": name, "error": "not a regular file"})
            elif kind.st_size > left:
                error_text = f"{kind.st_size} bytes, and {left} of the {most_bytes} for artefacts are left"
                say(handle, {"file": name, "error": error_text})
            else:
                data = _read(source, left)
                left -= len(data)
                say(handle, {"file": name, "data": base64.b64encode(data).decode("ascii")})
        finally:
            os.close(source)


def _read(source: int, most: int) -> bytes:
    """At most so many bytes, whatever size was reported."""
    data = bytearray()
    while len(data) < most and (more := os.read(source, min(1 << 20, most - len(data)))):
        data += more
    return bytes(data)
