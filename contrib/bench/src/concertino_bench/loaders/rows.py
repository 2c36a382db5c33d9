"""Rows of local files, one by one, each with its place.

JSON Lines, a JSON list, one JSON object, CSV and TSV are read, plain or gzipped, and Parquet with the extra `parquet`.
A list of objects is read object by object, so memory holds one row and not the file. Text is UTF-8, with or without a
byte order mark. A path may also be a folder or a pattern such as `data/test-*.parquet`: its files are read in the order
of their names, as one.

The invariant: whatever is wrong with a file or a row is one `DataError`, that says where (`file:line`), what was given,
what was expected and what to do next. A column that is null counts as missing.
"""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, NoReturn, cast

from concertino.schema import near_names

from concertino_bench.tasks.task import DataError

from .bad_rows import SkippedRows, allowed_now
from .row_values import brief, is_number, kind_of, number_text
from .text_rows import CHUNK, text_rows

EXTENSIONS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")
"""What is read; texts also with `.gz` behind it."""

# Files that people give by mistake; each would otherwise end in a puzzling error of UTF-8.
_FOREIGN = {
    b"PAR1": ("a Parquet file", "rename it, so that it ends in '.parquet'"),
    b"PK\x03\x04": ("a zip archive", "unpack it first"),
}
_MARKS = {codecs.BOM_UTF32_LE: "UTF-32", codecs.BOM_UTF32_BE: "UTF-32"} | {
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_SPLIT = re.compile(r"(train|test|validation|valid|val|dev)(?![a-z])", re.I)
_PATTERN = re.compile(r"[*?\[]")


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

    def plains(self, *names: str) -> list[str]:
        """A text or a number, or a list of them that is not empty, as texts.

        Raises:
            DataError: the column is missing or holds something else.
        """
        name = self.needed(*names)
        value = self.data[name]
        if not isinstance(value, list):
            return [self.plain(name)]
        texts = [number_text(item) if is_number(item) else item for item in value]
        if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
            self.wrong(name, "a text, a number, or a list of them that is not empty")
        return texts

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


def read_rows(path: str | Path, skipped: SkippedRows | None = None) -> Iterator[DataRow]:
    """The rows of a file, of the files of a folder, or of those that fit a pattern; numbers count on from file to file.

    The files are looked for at once, and read as the rows are taken.

    Args:
        path: of them.
        skipped: where rows that cannot be read are counted; by default what `skip_bad_rows` allows.

    Raises:
        DataError: a file does not exist, it is of another format, or, later, a row cannot be read, or there is none.
    """
    return _rows(_files(path), skipped or allowed_now())


def _files(path: str | Path) -> list[Path]:
    _refuse_address(path)
    folder = Path(path)
    if folder.is_dir():
        found = [file for file in sorted(folder.iterdir()) if file.is_file() and _extension(file) in EXTENSIONS]
        if not found:
            raise DataError(f"{path}: a folder without a file in {', '.join(EXTENSIONS)}; name another one, or a file")
        _refuse_mixed(path, found)
    elif _PATTERN.search(folder.name) and not folder.exists():
        found = sorted(folder.parent.glob(folder.name))
        if not found:
            raise DataError(f"{path}: no file fits this pattern; correct it, or name a file")
    else:
        found = [folder]
    return [checked(file, EXTENSIONS) for file in found]


def _refuse_mixed(path: str | Path, files: Sequence[Path]) -> None:
    """Refuse a folder with files of several splits: read as one, questions of training would be tested with."""
    splits = {match[1].lower(): file.name for file in files if (match := _SPLIT.match(file.name))}
    if len(splits) > 1:
        names = ", ".join(repr(name) for name in splits.values())
        first = next(iter(splits))
        raise DataError(f"{path}: files of several splits ({names}); expected one: give path={path}/{first}*")


def _refuse_address(path: str | Path) -> None:
    if str(path).startswith(("http:/", "https:/", "hf:/", "s3:/")):
        raise DataError(f"{path}: an address; expected a local file: download it, and give its path")


def checked(path: str | Path, extensions: tuple[str, ...]) -> Path:
    """The path of a file that is there and has one of these file extensions, also with `.gz`.

    Raises:
        DataError: it is an address, missing, a folder, or has another extension.
    """
    _refuse_address(path)
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
        known = ", ".join(extensions)
        raise DataError(
            f"{path}: extension {file.suffix!r}; expected one of {known} (or with .gz): convert or rename it"
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
                    BufferedReader(cast("RawIOBase", unpacked), CHUNK) as buffered,
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


def _rows(files: Sequence[Path], skipped: SkippedRows) -> Iterator[DataRow]:
    number = 0
    for file in files:
        before = number
        for line, data in _parsed(file):
            number += 1
            fault = data if isinstance(data, DataError) else None
            if fault is None and not isinstance(data, dict):
                fault = DataError(f"{file}:{line}: {kind_of(data)} ({brief(data)}); expected a JSON object in each row")
            if fault is None:
                yield DataRow(str(file), line, number, data)
            else:
                skipped.leave_out(fault)
        if number == before:
            raise DataError(f"{file}: it holds no row; expected at least one: was it written to the end?")


def _parsed(file: Path) -> Iterator[tuple[int, Any]]:
    """Each row's line, and its value or what is wrong with it."""
    extension = _extension(file)
    if extension == ".parquet":
        from .parquet_rows import parquet_rows

        yield from parquet_rows(file)
        return
    with opened(file, file) as raw:
        _refuse_foreign(file, raw)
        if raw.peek(3)[:3] == codecs.BOM_UTF8:
            # Skipped here: the JSON decoder refuses a mark, and a CSV header would begin with it.
            raw.read(3)
        yield from text_rows(file, extension, raw)


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
