"""Rows of text files: JSON Lines, a JSON list or object, CSV and TSV, in UTF-8.

The invariant: what is wrong with one row is given as its error, in its place, and the rows behind it are read. What is
wrong with the whole file is raised.
"""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, NoReturn

from concertino_bench.tasks.task import DataError

from .row_values import brief

CHUNK = 1 << 16
"""Bytes of one read."""


def text_rows(path: str | Path, extension: str, raw: BufferedReader) -> Iterator[tuple[int, Any]]:
    """The rows of an opened file: for each the line on which it begins, and its value or a `DataError`.

    Args:
        extension: of the file, without `.gz`.

    Raises:
        DataError: the file as a whole cannot be read.
    """
    if extension in (".csv", ".tsv"):
        return _csv_rows(path, raw, "\t" if extension == ".tsv" else ",")
    # Files called .json hold a list, one object, or JSON Lines; only the first sign tells the list.
    if extension == ".json" and raw.peek(CHUNK).lstrip()[:1] == b"[":
        return _elements(path, raw)
    return _json_lines(path, raw, whole=extension == ".json")


# -- JSON Lines --------------------------------------------------------------------------------------------------------


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


# Python's decoder takes NaN and Infinity, which are no JSON and which other readers of the file refuse.
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _json_lines(path: str | Path, raw: BufferedReader, *, whole: bool) -> Iterator[tuple[int, Any]]:
    """Lines of JSON; with `whole`, the file may also be one object over several lines."""
    for number, line in enumerate(raw, 1):
        if line.isspace():
            continue
        ended, text = line.endswith(b"\n"), ""
        try:
            text = line.decode()
            yield number, _DECODER.decode(text)
        except UnicodeDecodeError as error:
            yield number, DataError(_no_utf8(path, number, error.object[error.start]))
        except (ValueError, RecursionError) as error:
            # A first line that only ends too early begins an object over several lines.
            if whole and number == 1 and ended and _ran_out(error, text, slack=8):
                yield number, _document(path, text, raw)
                return
            yield number, DataError(f"{path}:{number}: {_json_fault(error, text, cut=not ended)}")


def _no_utf8(path: str | Path, line: int, byte: int) -> str:
    return f"{path}:{line}: byte 0x{byte:02x} is not UTF-8; expected UTF-8: convert the file (iconv -t UTF-8)"


def _document(path: str | Path, first: str, raw: BufferedReader) -> Any:
    data = raw.read()
    try:
        text = first + data.decode()
        return _DECODER.decode(text)
    except UnicodeDecodeError as error:
        line = first.count("\n") + data.count(b"\n", 0, error.start) + 1
        raise DataError(_no_utf8(path, line, data[error.start])) from None
    except json.JSONDecodeError as error:
        step = "write a list of objects, or one object per line"
        raise DataError(f"{path}:{error.lineno}: invalid JSON ({error.msg}); {step}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}:1: {_json_fault(error, text, cut=False)}") from None


def _json_fault(error: ValueError | RecursionError, text: str, *, cut: bool) -> str:
    if isinstance(error, RecursionError):
        return "the JSON is nested too deep; expected a flat row: check the file"
    if not isinstance(error, json.JSONDecodeError):
        return f"invalid JSON ({error}); expected a JSON object: correct the line"
    if cut and _ran_out(error, text, slack=8):
        return "the line ends inside a JSON value: the file is cut short; copy or download it again"
    if text.startswith("\ufeff"):
        return "a byte order mark inside the file; expected a JSON object: files were joined, remove the mark"
    where = f"column {error.colno}: {error.msg}"
    return f"invalid JSON ({where}) in {brief(text)}; expected a JSON object: correct the line"


def _ran_out(error: Exception, text: str, slack: int = 0) -> bool:
    """Whether a JSON value is right so far and only ends too early; `slack` is for a cut word, such as `tru`."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    # The decoder gives the place where a string began, which may be far from the end.
    return error.msg.startswith("Unterminated string") or error.pos >= len(text.rstrip()) - slack


# -- a JSON list -------------------------------------------------------------------------------------------------------


def _elements(path: str | Path, raw: BufferedReader) -> Iterator[tuple[int, Any]]:
    """The elements of a list, each read as soon as it is complete."""
    window = _Window(path, raw)
    window.next_sign()
    window.at += 1
    first = True
    while (sign := window.next_sign()) != "]":
        if not first:
            if sign != ",":
                window.fail(f"{sign!r} behind an element, expected ',' or ']'" if sign else "the list is not closed")
            window.at += 1
            window.next_sign()
        first = False
        line = window.line
        yield line, window.value()
    window.at += 1
    if window.next_sign():
        window.fail("text behind the list, expected one list")


class _Window:
    """What of a JSON text has been read and not yet used."""

    def __init__(self, path: str | Path, raw: BufferedReader) -> None:
        self.path, self.raw = path, raw
        self.text, self.at, self.line, self.ended = "", 0, 1, False
        self.decode = codecs.getincrementaldecoder("utf-8")().decode

    def fail(self, message: str) -> NoReturn:
        step = "the file is cut short: copy or download it again" if self.spent else "correct the file"
        raise DataError(f"{self.path}:{self.line}: {message}; {step}")

    @property
    def spent(self) -> bool:
        """Whether the file has ended and nothing is left, or only the beginning of a value."""
        return self.ended and not self.text[self.at :].rstrip().endswith(("]", "}"))

    def grow(self) -> bool:
        """Read on; False at the end of the file."""
        # At least as much again as is unread: a value of n bytes is tried log n times, not n / 64 KiB times.
        chunk = self.raw.read(max(CHUNK, len(self.text) - self.at))
        self.text, self.at = self.text[self.at :], 0
        try:
            # Incremental: a chunk may end inside a character.
            self.text += self.decode(chunk, not chunk)
        except UnicodeDecodeError as error:
            # The line of the bad byte, and not that of the value in which it stands.
            lines = self.text.count("\n") + error.object[: error.start].count(b"\n")
            raise DataError(_no_utf8(self.path, self.line + lines, error.object[error.start])) from None
        self.ended = not chunk
        return bool(chunk)

    def pass_to(self, end: int) -> None:
        self.line += self.text.count("\n", self.at, end)
        self.at = end

    def next_sign(self) -> str:
        """The next sign that is not a blank, "" at the end of the file; it stays unread."""
        while True:
            rest = len(self.text)
            while self.at < rest and self.text[self.at] in " \t\r\n":
                self.pass_to(self.at + 1)
            if self.at < rest:
                return self.text[self.at]
            if not self.grow():
                return ""

    def value(self) -> Any:
        """The next value, for which as much is read as it needs."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                # A fault near the end of what was read may only be a value that is not complete yet.
                if not self.ended and _ran_out(error, self.text, slack=16):
                    self.grow()
                    continue
                if _ran_out(error, self.text):
                    self.fail("the list ends inside a value")
                self.pass_to(error.pos)
                self.fail(f"invalid JSON ({error.msg}) at {brief(self.text[self.at : self.at + 40])}")
            except (ValueError, RecursionError) as error:
                self.fail(_json_fault(error, "", cut=False))
            # A number at the end of what was read may have further digits.
            if end == len(self.text) and not self.ended:
                self.grow()
                continue
            self.pass_to(end)
            return value


# -- CSV ---------------------------------------------------------------------------------------------------------------


def _csv_rows(path: str | Path, raw: BufferedReader, delimiter: str) -> Iterator[tuple[int, Any]]:
    # Strict: otherwise an unclosed quote swallows the rest of the file as one cell. A byte that is not UTF-8 becomes
    # half a surrogate pair, so that the error is that of its row.
    lines = (line.decode(errors="surrogateescape") for line in raw)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    header: list[str] = []
    while True:
        # A quoted cell may hold line breaks, so rows are not lines.
        begun = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield begun, _csv_fault(path, begun, error, whole=not header)
            continue
        if not cells:
            continue
        fault = _cells_fault(path, begun, cells, header)
        if header:
            # An empty cell is a missing value: CSV has no other way to say so.
            yield begun, fault or {name: cell for name, cell in zip(header, cells, strict=False) if cell}
        elif fault:
            raise fault
        else:
            header = _header(path, begun, cells)


def _csv_fault(path: str | Path, line: int, error: csv.Error, *, whole: bool) -> DataError:
    cut = "unexpected end" in str(error)
    step = "the file is cut short, or a quote is not closed" if cut else "write the file as JSON Lines instead"
    fault = DataError(f"{path}:{line}: invalid CSV ({error}); {step}")
    # An unclosed quote takes all rows behind it, which are more than one row to leave out.
    if cut or whole:
        raise fault from None
    return fault


def _cells_fault(path: str | Path, line: int, cells: list[str], header: list[str]) -> DataError | None:
    try:
        "\n".join(cells).encode()
    except UnicodeEncodeError as error:
        return DataError(_no_utf8(path, line, ord(error.object[error.start]) - 0xDC00))
    if header and len(cells) != len(header):
        step = "quote cells that hold a separator or a line break"
        return DataError(f"{path}:{line}: {len(cells)} cells; expected {len(header)}, as in the header: {step}")
    return None


def _header(path: str | Path, line: int, cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    # A file with another separator is read as one column, and would fail far from its cause.
    if len(names) == 1 and any(sign in names[0] for sign in ";\t|"):
        raise DataError(f"{path}:{line}: one column, {brief(names[0])}; expected columns separated by ',': convert it")
    if names[0] == "":
        names[0] = "row"  # pandas writes the number of a row without a name for it
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None or "" in names:
        what = f"two columns {twice!r}" if twice else "a column without a name"
        raise DataError(f"{path}:{line}: {what} in the header; expected names that differ: rename one")
    return names
