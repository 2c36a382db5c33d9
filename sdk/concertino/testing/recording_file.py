"""The file of a recording: a header, then one line of JSON per request, in the order in which they were answered.

    {"concertino": "recording", "version": 1}
    {"key": "5f1c…", "request": {"kind": "tool", "name": "weather", "arguments": {…}}, "answer": {"status": "OK", …}}

The key is a hash of the request in canonical JSON (keys sorted, no spaces, Unicode as it is), so that a line may be
edited by hand: an answer at will, a request together with its key. `number` is there from the second equal request on.
A last line without an end is what a crash left behind; it is dropped.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from concertino.core.documents import why_unusable
from concertino.core.errors import UsageError
from concertino.core.known_secrets import hidden
from concertino.core.private_files import make_private_folder, open_private
from concertino.core.regular_file import read_regular
from concertino.traces.record_shape import fault_of_answer

_MOST = 1 << 30
"""Bytes of a recording, at most."""
_HEADER = {"concertino": "recording", "version": 1}


class Record(NamedTuple):
    """One request and its answer. `number` counts equal requests from 0."""

    key: str
    number: int
    request: dict[str, Any]
    answer: dict[str, Any]


def key_of(request: Mapping[str, Any]) -> str:
    """16 hex digits of the SHA-256 of the request in canonical JSON."""
    text = json.dumps(request, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    # 16 digits keep lines readable; `surrogatepass`, because messages may hold half a character.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class RecordingFile:
    """Records by key and number, and the file that they are in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._records: dict[tuple[str, int], Record] = {}
        self._begun = False
        """Whether the file holds what is in memory, so that a record can be appended."""

    @property
    def records(self) -> list[Record]:
        """All records, in the order of the file."""
        return list(self._records.values())

    def find(self, key: str, number: int) -> Record | None:
        """The answer to the request of that key that came `number` equal ones later."""
        return self._records.get((key, number))

    def read(self) -> None:
        """Read the file, if there is one.

        Raises:
            UsageError: names the line that cannot be read.
        """
        if not self.path.exists():
            return
        try:
            text = read_regular(self.path, _MOST).decode("utf-8", "surrogatepass")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"{self.path}: the recording cannot be read: {why_unusable(error)}; give a file that was recorded"
            ) from error
        # Not `splitlines`: the JSON holds U+2028 and its like as they are, and they end no line here.
        lines = text.split("\n")
        torn = lines.pop()
        for number, line in enumerate(lines, 1):
            self._read_line(number, line)
        # After a torn line nothing may be appended: the next record writes the whole file again.
        self._begun = bool(lines) and not torn

    def _read_line(self, place: int, line: str) -> None:
        try:
            data = json.loads(line)
            if place == 1:
                if data != _HEADER:
                    raise ValueError(f"expected the header {json.dumps(_HEADER)}")
                return
            record = Record(data["key"], data.get("number", 0), data["request"], data["answer"])
            _check(record)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(
                f"{self.path}:{place}: this line of the recording cannot be read ({type(error).__name__}: {error}); "
                "correct or delete it, or record again with mode='record' (on the command line --record)"
            ) from error
        self._records[record.key, record.number] = record

    def add(self, record: Record) -> None:
        """Keep a record, and write it at the end of the file.

        Raises:
            UsageError: the file cannot be written.
        """
        self._records[record.key, record.number] = record
        try:
            self._write(record)
        except OSError as error:
            why = why_unusable(error)
            raise UsageError(f"{self.path}: the recording cannot be written: {why}; record to another file") from error

    def _write(self, record: Record) -> None:
        if self._begun:
            lines = [_line(record)]
        else:
            make_private_folder(self.path.parent)
            lines = [json.dumps(_HEADER), *map(_line, self.records)]
        begin = os.O_APPEND if self._begun else os.O_TRUNC
        # As bytes: the same line ends on Windows, so that a committed file is the same everywhere.
        with os.fdopen(open_private(self.path, os.O_WRONLY | os.O_CREAT | begin), "wb") as file:
            file.write("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass"))
        self._begun = True


def _check(record: Record) -> None:
    """ValueError for a record of other types than a recording has: an answer is an observation's JSON, or a reply's."""
    if type(record.key) is not str or type(record.number) is not int or type(record.request) is not dict:
        raise ValueError("expected a text `key`, a whole `number` and a table `request`")
    if type(record.answer) is not dict:
        raise ValueError("expected a table `answer`")
    found = fault_of_answer(record.answer)
    if found:
        raise ValueError(f"answer: {found}")


def _line(record: Record) -> str:
    number = {"number": record.number} if record.number else {}
    data = {"key": record.key, **number, "request": record.request, "answer": record.answer}
    return hidden(json.dumps(data, ensure_ascii=False))  # a server may have sent a key back
