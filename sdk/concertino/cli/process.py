"""What a process needs before a command runs: streams that can be written, and arguments that are text.

Four things differ from what Python gives: a stream that was closed by the caller is opened on the null device, so that
no file of ours gets its number; a stream whose encoding lacks a character shows a substitute; a failed write of
stdout is an `OutputLost`, raised once, which no command mistakes for a fault of its own; and on a terminal every text
passes `terminal.guard`, whoever writes it: a library, a warning, a traceback.

Invariant: nothing here runs on import, and tests that give a command streams of their own never come here.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from concertino.core.errors import UsageError

from .failures import OutputLost, report


def run_process(arguments: Sequence[str]) -> int:
    """Run the command line in this process.

    Returns:
        The exit code.
    """
    try:
        _prepare_streams()
    except UsageError as error:
        return report(error, arguments)
    from .group import command_line

    try:
        command_line(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


def _prepare_streams() -> None:
    """Make the three streams usable.

    Raises:
        UsageError: stdout is closed, so nothing that a command prints could be seen. Nothing has run.
    """
    closed = [number for number in (0, 1, 2) if not _is_open(number)]
    for _ in closed:
        # The lowest free number is taken, so these are the closed ones.
        os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdin = sys.stdin or _open(0)
    sys.stdout = _guarded(sys.stdout or _open(1), "stdout")
    sys.stderr = _guarded(sys.stderr or _open(2), "")
    if 1 in closed:
        raise UsageError("stdout is closed, so no result could be shown; redirect it instead: > FILE, or > /dev/null")


def readable(arguments: Sequence[str]) -> list[str]:
    """The arguments as texts.

    Bytes that Python could not decode are read as UTF-8, whatever the locale; names of existing files stay as they are.

    Raises:
        UsageError: an argument is no text.
    """
    return [argument if argument.isascii() else _readable(place, argument) for place, argument in enumerate(arguments)]


def _readable(place: int, argument: str) -> str:
    try:
        argument.encode()
    except UnicodeEncodeError:
        if os.path.lexists(argument):
            return argument
        try:
            return os.fsencode(argument).decode()
        except (UnicodeDecodeError, UnicodeEncodeError) as error:
            shown = argument.encode("utf-8", "replace").decode()
            raise UsageError(
                f"argument {place + 1} ({shown[:60]!r}) is not UTF-8 text: {getattr(error, 'reason', error)}; give "
                "text in UTF-8"
            ) from None
    return argument


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _open(number: int) -> TextIO:
    return os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False)


class _Output(io.RawIOBase):
    """The file below a stream.

    Args:
        name: of the stream, for the error; empty where a lost write is no error, as there is nobody to tell.
    """

    def __init__(self, number: int, name: str) -> None:
        super().__init__()
        self._number = number
        self._stream = name

    def fileno(self) -> int:
        """The number of the file."""
        return self._number

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return os.isatty(self._number)

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Any, /) -> int | None:
        """Write, or say once that it cannot be done."""
        try:
            return os.write(self._number, data)
        except OSError as error:
            if error.errno == errno.EAGAIN:  # a slow reader
                return None
            if error.errno == errno.EPIPE:  # `head` has seen enough
                raise
            # What is still to come goes nowhere: Python writes what is left in a buffer when it ends.
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, self._number)
            os.close(silent)
            if self._stream:
                why = os.strerror(error.errno or 0)
                raise OutputLost(
                    f"{self._stream} cannot be written: {why}; free space, or send it elsewhere"
                ) from error
            return len(data)


def _guarded(stream: TextIO, name: str) -> TextIO:
    buffer = getattr(stream, "buffer", None)
    # With PYTHONUNBUFFERED there is no buffer between the text and the file.
    if not isinstance(getattr(buffer, "raw", buffer), io.FileIO):
        return stream  # a console of Windows, or a stream that somebody has put there
    stream.flush()
    # Python takes ASCII for the encoding of a terminal whose locale is `C`, though it shows UTF-8.
    plain = stream.encoding.lower() in ("ascii", "us-ascii", "ansi_x3.4-1968")
    encoding = "utf-8" if plain else stream.encoding
    raw = _Output(stream.fileno(), name)
    at_once = not name or raw.isatty() or isinstance(buffer, io.FileIO)
    kind = _Terminal if raw.isatty() else io.TextIOWrapper
    return kind(io.BufferedWriter(raw), encoding, "replace", line_buffering=at_once)


class _Terminal(io.TextIOWrapper):
    """A stream to a terminal."""

    def write(self, text: str, /) -> int:
        """Write a text without what only commands the terminal."""
        if text.isascii() and text.isprintable():
            return super().write(text)
        from .terminal import guard

        super().write(guard(text))
        return len(text)
