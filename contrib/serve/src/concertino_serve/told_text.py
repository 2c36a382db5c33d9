"""The pieces of an answer that were told while it was written, in a file beside the trace.

    {"n": 12, "text": "Sunny"}          a piece, told after record 12 of the trace

A trace holds whole replies only. With these lines the stream that a client has seen can be made again, byte by byte,
also after the server was killed.

Invariant: a piece is in the file before anybody is told it. A torn last line was told to nobody.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from concertino.core.private_files import open_private
from concertino.traces.store import TOLD


class ToldText:
    """The file of one run, open for more. It is made with the first piece.

    Args:
        trace: of the run.
    """

    def __init__(self, trace: Path) -> None:
        self.path = told_beside(trace)
        self._fd: int | None = None

    def add(self, after: int, text: str) -> None:
        """Keep a piece.

        Raises:
            OSError: the disk is full or failing.
        """
        if self._fd is None:
            cut_torn_line(self.path)
            self._fd = open_private(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(self._fd, f'{{"n":{after},"text":{json.dumps(text)}}}\n'.encode())

    def close(self) -> None:
        """Release the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def told_beside(trace: Path) -> Path:
    """The file of a trace."""
    return trace.with_name(trace.name + TOLD)


def pieces_told(trace: Path) -> Iterator[tuple[int, str]]:
    """The pieces, each with the number of the record after which it was told."""
    try:
        data = told_beside(trace).read_bytes()
    except FileNotFoundError:
        return
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        piece = json.loads(line)
        yield piece["n"], piece["text"]


def cut_torn_line(path: Path) -> None:
    """Take away what a kill left of a line."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    whole = data.rfind(b"\n") + 1
    if whole != len(data):
        os.truncate(path, whole)
