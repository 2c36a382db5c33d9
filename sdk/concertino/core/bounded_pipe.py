"""Pipes of children, read within bounds: a child may write what it likes, and costs this process what was agreed.

`BoundedLines` reads answers, one a line. `run_bounded` runs a program to its end. Invariants: never more is held than
the limit and one piece; a child that writes more is not read any further.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Protocol

_PIECE = 1 << 16  # what a pipe of Linux holds
_WAIT = 1.0
"""Seconds to wait for the end of a pipe after its program's: another process may hold it open."""
TAIL_BYTES = 8192
"""Bytes of standard error that are kept."""


class TooMuchOutput(ValueError):
    """A child wrote more than was agreed; says how much that was."""

    def __init__(self, most: int) -> None:
        super().__init__(f"more than {most:,} bytes")


class _Readable(Protocol):
    def fileno(self) -> int: ...


class BoundedLines:
    """The lines of a pipe, read by one thread at a time.

    Args:
        pipe: unbuffered; nobody else may read it.
    """

    def __init__(self, pipe: _Readable) -> None:
        self._pipe = pipe
        self._held = bytearray()

    def line(self, most: int) -> bytes:
        """The next line with its end (blocking); without one where the pipe ends in it, `b""` where it has ended.

        Args:
            most: bytes that it may have.

        Raises:
            TooMuchOutput: it has more. The rest is not read, so the pipe is of no use any more.
            OSError: the pipe cannot be read.
        """
        searched = 0
        while (end := self._held.find(b"\n", searched)) < 0 and len(self._held) <= most:
            searched = len(self._held)
            data = os.read(self._pipe.fileno(), _PIECE)
            if not data:
                rest = bytes(self._held)
                self._held.clear()
                return rest
            self._held += data
        if end < 0 or end > most:
            self._held = bytearray()  # so that its memory is given back
            raise TooMuchOutput(most)
        line = bytes(memoryview(self._held)[: end + 1])
        del self._held[: end + 1]
        return line


@dataclass(frozen=True)
class Finished:
    """A program that has ended.

    Attributes:
        code: its exit code, negative for a signal.
        output: what it wrote to standard output.
        errors: the end of what it wrote to standard error, as text.
    """

    code: int
    output: bytes
    errors: str


def run_bounded(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    most: int,
    timeout: float | None = None,
    new_session: bool = False,
    on_start: Callable[[subprocess.Popen[bytes]], object] = lambda process: None,
) -> Finished:
    """Run a program to its end (blocking), without input.

    Args:
        command: the program and its arguments.
        env: its whole environment, see `child_environment`.
        most: bytes of standard output that are taken.
        timeout: seconds after which it is killed; None: as long as it takes.
        new_session: keep Ctrl-C of the terminal from it.
        on_start: is given the process, so that another thread can stop it.

    Raises:
        TooMuchOutput: it wrote more, and was killed.
        TimeoutError: it took longer, and was killed.
        OSError: it cannot be started.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(env),
        start_new_session=new_session,
        bufsize=0,
    )
    on_start(process)
    assert process.stdout is not None
    assert process.stderr is not None
    output, errors = _Drain(process.stdout, most, process), _Drain(process.stderr, TAIL_BYTES, None)
    try:
        code = process.wait(timeout)
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"it took more than {timeout:g} s") from None
    finally:
        process.kill()
        process.wait()
        output.finish()
        errors.finish()
    if output.too_much:
        raise TooMuchOutput(most)
    return Finished(code, bytes(output.kept), errors.kept.decode(errors="replace").strip())


class _Drain:
    """One pipe, read in a thread of its own.

    Args:
        pipe: to be read to its end.
        most: bytes that are kept.
        process: killed where there are more; without one, the last bytes are kept.
    """

    def __init__(self, pipe: IO[bytes], most: int, process: subprocess.Popen[bytes] | None) -> None:
        self.kept = bytearray()
        self.too_much = False
        self._pipe, self._most, self._process = pipe, most, process
        self._thread = threading.Thread(target=self._read, name="concertino-drain", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        # Closed here, since the thread may outlast `finish`.
        with self._pipe, contextlib.suppress(OSError, ValueError):
            while data := os.read(self._pipe.fileno(), _PIECE):
                self.kept += data
                if len(self.kept) <= self._most:
                    continue
                if self._process is not None:
                    self.too_much = True
                    self._process.kill()
                    return
                del self.kept[: -self._most]

    def finish(self) -> None:
        self._thread.join(_WAIT)
