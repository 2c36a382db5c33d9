"""Corpora: passages from JSON Lines files, and from folders of text, Markdown and HTML.

A JSON Lines file gives one passage per line, as it stands. Documents are cut into passages at headings and blank
lines, so that a passage is a run of whole paragraphs wherever a paragraph fits.

Invariant: reading is deterministic (files in the order of their paths), every id occurs once, and nothing is left out
in silence: a line or file that cannot be read is an error that names it, and empty passages are counted in a warning.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from concertino.core.logs import logger_of

from concertino_search.errors import CorpusError
from concertino_search.options import PASSAGE_CHARS

from .passages import Passage

logger = logger_of("search")

SUFFIXES = (".jsonl", ".ndjson", ".txt", ".text", ".md", ".markdown", ".html", ".htm")
_LINE_FILES = (".jsonl", ".ndjson")
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")
_TEXT_KEYS, _ID_KEYS = ("text", "contents"), ("id", "_id")


def corpus_files(path: Path) -> list[Path]:
    """The files of a corpus, in order.

    Raises:
        CorpusError: the file or folder does not exist, or nothing in it can be read.
    """
    if path.is_file():
        if path.suffix.lower() not in SUFFIXES:
            raise CorpusError(f"{path}: expected a file that ends in {', '.join(SUFFIXES)}")
        return [path]
    if not path.is_dir():
        raise CorpusError(f"corpus {path}: file or folder not found; correct the path")
    found = sorted(
        file
        for file in path.rglob("*")
        if file.suffix.lower() in SUFFIXES
        and file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
    if not found:
        raise CorpusError(f"corpus {path}: no file in it ends in {', '.join(SUFFIXES)}; name another folder")
    return found


def corpus_hash(path: Path) -> str:
    """A hash of the names and the content of all files of a corpus."""
    digest = hashlib.sha256()
    for file in corpus_files(path):
        name = file.relative_to(path).as_posix() if path.is_dir() else file.suffix.lower()
        with file.open("rb") as opened:
            content = hashlib.file_digest(opened, "sha256").hexdigest()
        digest.update(f"{name}\0{content}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def read_corpus(path: Path, *, passage_chars: int = PASSAGE_CHARS) -> Iterator[Passage]:
    """The passages of a corpus, in order.

    Args:
        path: a file or a folder.
        passage_chars: the longest passage that is cut from a document, in characters.

    Raises:
        CorpusError: names the file and the line that cannot be used, or an id that occurs twice.
    """
    seen: dict[bytes, str] = {}
    empty: list[str] = []
    files = corpus_files(path)
    for file in files:
        name = file.relative_to(path).as_posix() if path.is_dir() else file.name
        prefix = name if len(files) > 1 else ""
        found = _lines(file, prefix) if file.suffix.lower() in _LINE_FILES else _document(file, name, passage_chars)
        for passage, where in found:
            if not passage.indexed.strip():
                # Published corpora have some, which no search could find.
                empty.append(where)
                continue
            # Hashes, so that the memory for ids does not grow with their length.
            key = hashlib.blake2b(passage.id.encode("utf-8", "surrogatepass"), digest_size=16).digest()
            if key in seen:
                raise CorpusError(f"{where}: id {passage.id!r} was given before, at {seen[key]}; make ids unique")
            seen[key] = where
            yield passage
    if not seen:
        raise CorpusError(f"corpus {path}: it holds no passage")
    if empty:
        count = f"{len(empty)} passages" if len(empty) > 1 else "1 passage"
        logger.warning("corpus %s: %s without text left out, the first at %s", path, count, empty[0])


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise CorpusError(f"{file}: byte {error.start} is not UTF-8; convert the file") from None


# -- JSON Lines --------------------------------------------------------------------------------------------------------


def _lines(file: Path, prefix: str) -> Iterator[tuple[Passage, str]]:
    with file.open("rb") as opened:
        for number, raw in enumerate(opened, start=1):
            if raw.strip():
                where = f"{file}:{number}"
                yield _line(raw, where, f"{prefix}:{number}" if prefix else str(number)), where


def _line(raw: bytes, where: str, default_id: str) -> Passage:
    try:
        data = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise CorpusError(f"{where}: byte {error.start} of the line is not UTF-8") from None
    except (json.JSONDecodeError, RecursionError) as error:
        said = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else "nested too deep"
        raise CorpusError(f"{where}: invalid JSON: {said}; expected one object per line") from None
    if not isinstance(data, dict):
        raise CorpusError(f'{where}: {type(data).__name__}; expected an object such as {{"id": …, "text": …}}')
    text = _field(data, _TEXT_KEYS, where)
    if text is None:
        raise CorpusError(f"{where}: 'text' is missing; the line has {', '.join(map(repr, data)) or 'no keys'}")
    title = _field(data, ("title",), where) or ""
    given = next((data[key] for key in _ID_KEYS if data.get(key) is not None), default_id)
    if isinstance(given, bool) or not isinstance(given, str | int) or not str(given).strip():
        raise CorpusError(f"{where}: id {given!r}; expected a text or a whole number")
    passage_id = str(given).encode("utf-8", "replace").decode()
    return Passage(passage_id, title, text)


def _field(data: dict[str, Any], keys: tuple[str, ...], where: str) -> str | None:
    for key in keys:
        if key in data and data[key] is not None:
            if not isinstance(data[key], str):
                raise CorpusError(f"{where}: {key!r} is {type(data[key]).__name__}; expected a text")
            # JSON can spell halves of characters, which no file can hold.
            return str(data[key]).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return None


# -- documents ---------------------------------------------------------------------------------------------------------


def _document(file: Path, name: str, passage_chars: int) -> Iterator[tuple[Passage, str]]:
    text, title = _text_of(file), ""
    if file.suffix.lower() in (".html", ".htm"):
        from concertino_search.web.html import read_html

        page = read_html(text)
        text, title = page.text, page.title
    marked = file.suffix.lower() not in (".txt", ".text")
    for number, (heading, part) in enumerate(_parts(text, passage_chars, marked), start=1):
        names = dict.fromkeys(filter(None, (title, heading)))
        yield Passage(f"{name}#{number}", " – ".join(names) or Path(name).stem, part), str(file)


def _parts(text: str, limit: int, marked: bool) -> Iterator[tuple[str, str]]:
    """Heading and text of each passage: whole paragraphs, as many as fit."""
    heading, held = "", ""
    for block in re.split(r"\n\s*\n", text.replace("\r\n", "\n")):
        paragraph = block.strip()
        found = _HEADING.match(paragraph.partition("\n")[0]) if marked else None
        if found:
            if held:
                yield heading, held
            heading, held = found[1], ""
            paragraph = paragraph.partition("\n")[2].strip()
        for piece in _pieces(paragraph, limit):
            if held and len(held) + len(piece) + 2 > limit:
                yield heading, held
                held = ""
            held = f"{held}\n\n{piece}" if held else piece
    if held:
        yield heading, held


def _pieces(paragraph: str, limit: int) -> Iterator[str]:
    """A paragraph, or where it is too long, runs of its sentences; a sentence that is too long is cut."""
    held = ""
    for sentence in _SENTENCE_END.split(paragraph) if len(paragraph) > limit else [paragraph]:
        for start in range(0, len(sentence), limit):
            piece = sentence[start : start + limit]
            if held and len(held) + len(piece) + 1 > limit:
                yield held
                held = ""
            held = f"{held} {piece}" if held else piece
    if held:
        yield held
