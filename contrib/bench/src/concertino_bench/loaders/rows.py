"""Rows of local files, one by one, each with its place.

JSON Lines, a JSON list, one JSON object, CSV and TSV are read, plain or gzipped; a list of objects is read object by
object, so memory holds one row and not the file. Text is UTF-8, with or without a byte order mark.

The invariant: whatever is wrong with a file or a row is one `DataError`, that says where (`file:line`), what was given,
what was expected and what to do next. A column that is null counts as missing.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, NoReturn, cast

from concertino.schema import near_names

from concertino_bench.tasks.task import DataError

EXTENSIONS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")
"""What is read, each also with `.gz` behind it."""

_CHUNK = 1 << 16
_SHOWN = 60
_KINDS = {str: "a text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
_TO_JSONL = "write it as JSON Lines first, such as `pandas.read_parquet(…).to_json(…, orient='records', lines=True)`"
# Files that people give by mistake; each would otherwise end in a puzzling error of UTF-8.
_FOREIGN = {b"PAR1": ("a Parquet file", _TO_JSONL), b"PK\x03\x04": ("a zip archive", "unpack it first")}
_MARKS = {codecs.BOM_UTF32_LE: "UTF-32", codecs.BOM_UTF32_BE: "UTF-32"} | {
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


@dataclass(frozen=True, slots=True)
class DataRow:
    """One row of a file.

    Attributes:
        path: the file, as it was named.
        line: the line on which the row begins, from 1.
        number: of the row in its file, from 1.
        data: its columns.
    """

    path: str
    line: int
    number: int
    data: Mapping[str, Any]

    @property
    def place(self) -> str:
        """`file:line`."""
        return f"{self.path}:{self.line}"

    def error(self, message: str) -> DataError:
        """An error of this row."""
        return DataError(f"{self.place}: {message}")

    def wrong(self, column: str, expected: str) -> NoReturn:
        """Refuse what a column holds.

        Raises:
            DataError: always; says what is there, and what was expected.
        """
        value = self.data[column]
        raise self.error(f"column {column!r} is {kind_of(value)} ({brief(value)}); expected {expected}")

    def column(self, *names: str) -> str | None:
        """The first of these columns that the row has, None if it has none of them."""
        return next((name for name in names if self.data.get(name) is not None), None)

    def needed(self, *names: str) -> str:
        """The first of these columns that the row has.

        Raises:
            DataError: it has none; names the columns that are there and the nearest one.
        """
        found = self.column(*names)
        if found is None:
            raise self.error(self._missing(names))
        return found

    def _missing(self, names: tuple[str, ...]) -> str:
        null = next((name for name in names if name in self.data), None)
        if null is not None:
            return f"column {null!r} is null; expected a value: fill it in, or leave the row out"
        wanted = " or ".join(repr(name) for name in names)
        have = ", ".join(repr(name) for name in list(self.data)[:12]) or "no column"
        near = next((near[0] for name in names if (near := near_names(name, self.data, 1))), None)
        step = f"did you mean {near!r}? Rename it" if near else "rename the column, or choose the loader that fits"
        return f"no column {wanted}; the row has {have}; {step}"

    def text(self, *names: str, default: str | None = None) -> str:
        """A text that is not blank.

        Raises:
            DataError: the column is missing and there is no default, or it holds something else.
        """
        if default is not None and self.column(*names) is None:
            return default
        name = self.needed(*names)
        value = self.data[name]
        if not isinstance(value, str):
            self.wrong(name, "a text; put it in quotes")
        if not value.strip() and default is None:
            raise self.error(f"column {name!r} is blank; expected a text: fill it in, or leave the row out")
        return value

    def plain(self, *names: str) -> str:
        """A text or a number, as text: `5` and `5.0` are "5".

        Raises:
            DataError: the column is missing, blank or holds something else.
        """
        name = self.needed(*names)
        value = self.data[name]
        return number_text(value) if is_number(value) else self.text(name)

    def items(self, *names: str) -> list[Any]:
        """A list.

        Raises:
            DataError: the column is missing or holds something else.
        """
        name = self.needed(*names)
        value = self.data[name]
        if not isinstance(value, list):
            self.wrong(name, "a list")
        return value

    def texts(self, *names: str) -> list[str]:
        """A list of texts; empty where the column is missing.

        Raises:
            DataError: the column holds something else.
        """
        name = self.column(*names)
        if name is None:
            return []
        values = self.items(name)
        if not all(isinstance(value, str) for value in values):
            self.wrong(name, "a list of texts")
        return values


def brief(value: Any) -> str:
    """A value as a message shows it."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def kind_of(value: Any) -> str:
    """What JSON calls a value: "a number"."""
    return _KINDS.get(type(value), "null" if value is None else f"a {type(value).__name__}")


def is_number(value: Any) -> bool:
    """Whether a value is a number of JSON; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_text(value: float) -> str:
    """A number as text, without `.0`."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def read_rows(path: str | Path) -> Iterator[DataRow]:
    """The rows of a file.

    The file is looked for at once, and read as the rows are taken.

    Raises:
        DataError: the file does not exist, it is of another format, or, later, a row cannot be read, or there is none.
    """
    return _rows(path, checked(path, EXTENSIONS))


def checked(path: str | Path, extensions: tuple[str, ...]) -> Path:
    """The path of a file that is there and has one of these file extensions, also with `.gz`.

    Raises:
        DataError: it is an address, missing, a folder, or has another extension.
    """
    if str(path).startswith(("http://", "https://", "hf://", "s3://")):
        raise DataError(f"{path}: an address; expected a local file: download it, and give its path")
    file = Path(path)
    if file.is_dir():
        inside = [name.name for name in sorted(file.iterdir()) if _extension(name) in extensions]
        hint = f"name one of its files, such as {inside[0]!r}" if inside else "name a file"
        raise DataError(f"{path}: a folder; expected one file: {hint}")
    if not file.exists():
        beside = [name.name for name in file.parent.iterdir()] if file.parent.is_dir() else []
        near = near_names(file.name, beside, 1)
        raise DataError(f"{path}: file not found; {f'did you mean {near[0]!r}?' if near else 'check the path'}")
    if _extension(file) not in extensions:
        parquet = f": {_TO_JSONL}" if file.suffix == ".parquet" else ": convert or rename it"
        raise DataError(
            f"{path}: extension {file.suffix!r}; expected one of {', '.join(extensions)} (or with .gz){parquet}"
        )
    return file


def _extension(file: Path) -> str:
    return Path(file.name.removesuffix(".gz")).suffix.lower()


@contextmanager
def opened(path: str | Path, file: Path) -> Iterator[BufferedReader]:
    """The bytes of a file, unpacked if they are gzipped.

    Raises:
        DataError: it cannot be opened, or not be unpacked, also while it is read.
    """
    try:
        with file.open("rb") as raw:
            # By its first bytes, since a file may be packed without saying so in its name.
            if raw.peek(2)[:2] == b"\x1f\x8b":
                with (
                    gzip.GzipFile(fileobj=raw) as unpacked,
                    BufferedReader(cast("RawIOBase", unpacked), _CHUNK) as buffered,
                ):
                    yield cast("BufferedReader", buffered)
            elif file.suffix == ".gz" and raw.peek(1):
                raise DataError(f"{path}: not gzip, though it ends in '.gz'; expected gzip: rename it without '.gz'")
            else:
                yield raw
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path}: the gzip file is damaged or cut short ({error}); copy or download it again"
        ) from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}; check the file and its rights") from error


def _rows(path: str | Path, file: Path) -> Iterator[DataRow]:
    with opened(path, file) as raw:
        _refuse_foreign(path, raw)
        if raw.peek(3)[:3] == codecs.BOM_UTF8:
            # Skipped here: the JSON decoder refuses a mark, and a CSV header would begin with it.
            raw.read(3)
        number = 0
        for number, (line, data) in enumerate(_parsed(path, _extension(file), raw), 1):
            if not isinstance(data, dict):
                raise DataError(f"{path}:{line}: {kind_of(data)} ({brief(data)}); expected a JSON object in each row")
            yield DataRow(str(path), line, number, data)
        if not number:
            raise DataError(f"{path}: it holds no row; expected at least one: was it written to the end?")


def _refuse_foreign(path: str | Path, raw: BufferedReader) -> None:
    head = raw.peek(64)[:64]
    for magic, (what, step) in _FOREIGN.items():
        if head.startswith(magic):
            raise DataError(f"{path}: {what}; expected text: {step}")
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            raise DataError(f"{path}: text in {encoding}; expected UTF-8: convert it (iconv -f {encoding} -t UTF-8)")
    if head.startswith(b"version https://git-lfs"):
        raise DataError(f"{path}: a Git LFS pointer, not the data; expected the data: fetch it with `git lfs pull`")


def _parsed(path: str | Path, extension: str, raw: BufferedReader) -> Iterator[tuple[int, Any]]:
    if extension in (".csv", ".tsv"):
        return _csv_rows(path, raw, "\t" if extension == ".tsv" else ",")
    # Files called .json hold a list, one object, or JSON Lines; only the first sign tells the list.
    if extension == ".json" and raw.peek(_CHUNK).lstrip()[:1] == b"[":
        return _elements(path, raw)
    return _json_lines(path, raw, whole=extension == ".json")


# -- JSON Lines --------------------------------------------------------------------------------------------------------


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


# Python's decoder takes NaN and Infinity, which are no JSON and which other readers of the file refuse.
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _json_lines(path: str | Path, raw: BufferedReader, *, whole: bool) -> Iterator[tuple[int, Any]]:
    """Lines of JSON; with `whole`, the file may also be one object over several lines."""
    for number, (text, ended) in enumerate(_lines(path, raw), 1):
        if not text or text.isspace():
            continue
        try:
            yield number, _DECODER.decode(text)
        except (ValueError, RecursionError) as error:
            # A first line that only ends too early begins an object over several lines.
            if whole and number == 1 and ended and _ran_out(error, text, slack=8):
                yield number, _document(path, text, raw)
                return
            raise DataError(f"{path}:{number}: {_json_fault(error, text, cut=not ended)}") from None


def _lines(path: str | Path, raw: BufferedReader) -> Iterator[tuple[str, bool]]:
    """Each line as text, and whether it has its line feed."""
    for number, line in enumerate(raw, 1):
        try:
            yield line.decode(), line.endswith(b"\n")
        except UnicodeDecodeError as error:
            raise DataError(_no_utf8(path, number, error)) from None


def _no_utf8(path: str | Path, line: int, error: UnicodeDecodeError) -> str:
    byte = error.object[error.start]
    return f"{path}:{line}: byte 0x{byte:02x} is not UTF-8; expected UTF-8: convert the file (iconv -t UTF-8)"


def _document(path: str | Path, first: str, raw: BufferedReader) -> Any:
    text = first + "".join(line for line, _ in _lines(path, raw))
    try:
        return _DECODER.decode(text)
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
        chunk = self.raw.read(max(_CHUNK, len(self.text) - self.at))
        self.text, self.at = self.text[self.at :], 0
        try:
            # Incremental: a chunk may end inside a character.
            self.text += self.decode(chunk, not chunk)
        except UnicodeDecodeError as error:
            # The line of the bad byte, and not that of the value in which it stands.
            lines = self.text.count("\n") + error.object[: error.start].count(b"\n")
            raise DataError(_no_utf8(self.path, self.line + lines, error)) from None
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


def _csv_rows(path: str | Path, raw: BufferedReader, delimiter: str) -> Iterator[tuple[int, dict[str, str]]]:
    # Strict: otherwise an unclosed quote swallows the rest of the file as one cell.
    reader = csv.reader((text for text, _ in _lines(path, raw)), delimiter=delimiter, strict=True)
    header: list[str] = []
    line = 0
    try:
        for cells in reader:
            # A quoted cell may hold line breaks, so rows are not lines.
            begun, line = line + 1, reader.line_num
            if not cells:
                continue
            if not header:
                header = _header(path, begun, cells)
            elif len(cells) != len(header):
                step = "quote cells that hold a separator or a line break"
                raise DataError(f"{path}:{begun}: {len(cells)} cells; expected {len(header)}, as in the header: {step}")
            else:
                # An empty cell is a missing value: CSV has no other way to say so.
                yield begun, {name: cell for name, cell in zip(header, cells, strict=True) if cell}
    except csv.Error as error:
        cut = "unexpected end" in str(error)
        step = "the file is cut short, or a quote is not closed" if cut else "write the file as JSON Lines instead"
        raise DataError(f"{path}:{line + 1}: invalid CSV ({error}); {step}") from None


def _header(path: str | Path, line: int, cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    # A file with another separator is read as one column, and would fail far from its cause.
    if len(names) == 1 and any(sign in names[0] for sign in ";\t|"):
        raise DataError(f"{path}:{line}: one column, {brief(names[0])}; expected columns separated by ',': convert it")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None or "" in names:
        what = f"two columns {twice!r}" if twice else "a column without a name"
        raise DataError(f"{path}:{line}: {what} in the header; expected names that differ: rename one")
    return names
