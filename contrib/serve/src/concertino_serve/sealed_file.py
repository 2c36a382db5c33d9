"""Files beside a trace: sealed like the trace while CONCERTINO_TRACE_KEY holds a key, else plain.

    write_document(path, data); data = read_document(path)        # whole
    lines = SealedLines(path); lines.add(data)                    # line by line, for one writer
    for data in read_lines(path): ...

A sealed file begins with a header that can be read, as a sealed trace does. Each line behind it is sealed, and bound to
its number and to the name of the file.

Invariant: what a file holds is believed only where its seal fits. A file that was begun without a key stays plain.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from concertino.core.errors import TraceError
from concertino.core.private_files import open_private, write_private
from concertino.traces.journal_line import encode_json, frame, parse_line
from concertino.traces.sealing import Seal, new_seal, seal_of

_CHECKSUM = 9
"""Bytes of a line before its text."""
_EMPTY = b"0" * (_CHECKSUM - 1) + b" "


def write_document(path: Path, data: bytes, *, new: bool = False) -> None:
    """Write a file in one step.

    Args:
        new: half a file is as good as none: it is written in place, which is quicker.

    Raises:
        OSError: the disk is full or failing.
    """
    seal = _new_seal(path)
    data = data if seal is None else _header(seal) + _closed(seal, data, 1)
    if not new:
        write_private(path, data)
        return
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        file.write(data)


def read_document(path: Path) -> bytes:
    """What a file holds.

    Raises:
        FileNotFoundError: it is not there.
        TraceError: its key is missing, or it was changed.
    """
    data = path.read_bytes()
    seal = _seal(path, data)
    if seal is None:
        return data
    return _opened(path, seal, data[data.index(b"\n") + 1 :], 1)


class SealedLines:
    """A file that lines are added to. What a kill left of a line is taken away.

    Raises:
        TraceError: its key is missing.
        OSError: the disk is full or failing.
    """

    def __init__(self, path: Path) -> None:
        cut_torn_line(path)
        data = path.read_bytes() if path.exists() else b""
        self._seal = _seal(path, data) if data else _new_seal(path)
        self._count = data.count(b"\n")
        self._fd = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        if self._seal is not None and not data:
            os.write(self._fd, _header(self._seal))
            self._count = 1

    def add(self, data: bytes) -> None:
        """Add a line, which holds no line end.

        Raises:
            OSError: the disk is full or failing.
        """
        os.write(self._fd, data + b"\n" if self._seal is None else _closed(self._seal, data, self._count))
        self._count += 1

    def close(self) -> None:
        """Release the file."""
        os.close(self._fd)


class LineTail:
    """The whole lines of a file as it grows; none where there is no file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seal: Seal | None = None
        self._offset = 0
        self._number = 0

    def news(self) -> Iterator[bytes]:
        """The lines since the last look.

        Raises:
            TraceError: its key is missing, or a line was changed.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        lines = data[: data.rfind(b"\n") + 1].splitlines(keepends=True)
        if lines and self._offset == 0:
            self._seal = _seal(self._path, data)
        for line in lines:
            if self._seal is None:
                yield line
            elif self._number:
                yield _opened(self._path, self._seal, line, self._number)
            self._offset += len(line)
            self._number += 1


def read_lines(path: Path) -> Iterator[bytes]:
    """The whole lines of a file, none where there is no file.

    Raises:
        TraceError: its key is missing, or a line was changed.
    """
    return LineTail(path).news()


def cut_torn_line(path: Path) -> None:
    """Take away what a kill left of a line."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    whole = data.rfind(b"\n") + 1
    if whole != len(data):
        os.truncate(path, whole)


def _new_seal(path: Path) -> Seal | None:
    return new_seal({"t": "header", "file": path.name})


def _header(seal: Seal) -> bytes:
    return frame(encode_json(seal.header), 0)


def _seal(path: Path, data: bytes) -> Seal | None:
    """The seal of a file that begins with some data; None if it is plain."""
    if data.startswith((b"{", b"[")):
        return None
    try:
        header = parse_line(data[: data.index(b"\n") + 1], 0)
    except ValueError as error:
        raise TraceError(f"{path}: damaged: {error}") from None
    if header.get("file") != path.name:
        raise TraceError(f"{path}: its seal is of another file, {header.get('file')!r}")
    return seal_of(path, header)


def _closed(seal: Seal, data: bytes, number: int) -> bytes:
    return seal.closed(_EMPTY + data + b"\n", number)


def _opened(path: Path, seal: Seal, line: bytes, number: int) -> bytes:
    try:
        return seal.opened(line, number)[_CHECKSUM:-1]
    except ValueError as error:
        raise TraceError(f"{path}: damaged: {error}") from None
