"""The pieces of an answer that were told while it was written, in a file beside the trace.

    {"n": 12, "text": "Sunny"}          a piece, told after record 12 of the trace

A trace holds whole replies only. With these lines the stream that a client has seen can be made again, byte by byte,
also after the server was killed.

Invariant: a piece is in the file before anybody is told it. A torn last line was told to nobody.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from concertino.traces.store import TOLD

from .sealed_file import LineTail, SealedLines


class ToldText:
    """The file of one run, open for more. It is made with the first piece.

    Args:
        trace: of the run.
    """

    def __init__(self, trace: Path) -> None:
        self.path = told_beside(trace)
        self._lines: SealedLines | None = None

    def add(self, after: int, text: str) -> None:
        """Keep a piece.

        Raises:
            OSError: the disk is full or failing.
        """
        if self._lines is None:
            self._lines = SealedLines(self.path)
        self._lines.add(f'{{"n":{after},"text":{json.dumps(text)}}}'.encode())

    def close(self) -> None:
        """Release the file."""
        if self._lines is not None:
            self._lines.close()
            self._lines = None


def told_beside(trace: Path) -> Path:
    """The file of a trace."""
    return trace.with_name(trace.name + TOLD)


class ToldTail:
    """The pieces of one run as they are told, each with the number of the record after which it was told.

    Args:
        trace: of the run.
    """

    def __init__(self, trace: Path) -> None:
        self._lines = LineTail(told_beside(trace))

    def news(self) -> Iterator[tuple[int, str]]:
        """The pieces since the last look.

        Raises:
            TraceError: the file is sealed with another key, or was changed.
        """
        for line in self._lines.news():
            piece = json.loads(line)
            yield piece["n"], piece["text"]


def pieces_told(trace: Path) -> Iterator[tuple[int, str]]:
    """The pieces so far.

    Raises:
        TraceError: as `ToldTail.news`.
    """
    return ToldTail(trace).news()
