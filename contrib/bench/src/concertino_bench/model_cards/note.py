"""A note: what a writer says about a model, as remarks, each with the kinds of task that it rests on.

It is read tolerantly: lists under the headings *Strengths* and *Weaknesses*, or the same as JSON. A note is unfiltered;
the guard decides which of it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from concertino.text.json import ReadingError, read_json


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence of the writer, and the kinds of task that it rests on; none stands for all."""

    text: str
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """What a writer said about a model, unfiltered."""

    strengths: tuple[Remark, ...]
    weaknesses: tuple[Remark, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, as the cache keeps it."""
        return {
            name: [{"text": remark.text, "kinds": list(remark.kinds)} for remark in remarks]
            for name, remarks in (("strengths", self.strengths), ("weaknesses", self.weaknesses))
        }

    @classmethod
    def from_json(cls, data: object) -> Note:
        """The inverse of `to_json`, for data that somebody else may have written."""
        data = data if isinstance(data, Mapping) else {}
        return cls(tuple(_remarks(data.get("strengths"))), tuple(_remarks(data.get("weaknesses"))))

    def __bool__(self) -> bool:
        return bool(self.strengths or self.weaknesses)


def read_note(text: str) -> Note | None:
    """What a writer said: lists under headings, or JSON as `Note.to_json` writes it; None if it is neither."""
    # Thoughts often hold a draft of the lists.
    text = text.rpartition("</think>")[2]
    try:
        found = Note.from_json(read_json(text).value)
    except ReadingError:
        found = Note((), ())
    # JSON first: its texts may hold lines that look like headings.
    return found or _read_lists(text) or None


_HEADING = re.compile(
    r"^\W*(strengths?|strong points|weakness(?:es)?|weak points)[\s*_]*(?::[\s*_]*(?P<rest>.*)|)$", re.IGNORECASE
)
_BULLET = re.compile(r"^\s*(?:[-*•–]|\d+[.)])\s+")
_KINDS = re.compile(r"\s*\[([^\[\]]*)\]\s*\.?\s*$")


def _read_lists(text: str) -> Note:
    strengths: list[Remark] = []
    weaknesses: list[Remark] = []
    current: list[Remark] | None = None
    for line in text.splitlines():
        # "- Weak points are rare" is a remark, not a heading.
        heading = None if _BULLET.match(line) else _HEADING.match(line)
        if heading:
            current = weaknesses if heading.group(1).lower().startswith("w") else strengths
        rest = heading["rest"] or "" if heading else line
        if current is not None and rest.strip():
            current.append(_remark(_BULLET.sub("", rest)))
    return Note(tuple(strengths), tuple(weaknesses))


def _remark(line: str) -> Remark:
    found = _KINDS.search(line)
    if not found:
        return Remark(line.strip())
    kinds = (kind.strip() for kind in found.group(1).split(","))
    return Remark(line[: found.start()].strip(), tuple(kind for kind in kinds if kind))


def _remarks(value: object) -> Iterator[Remark]:
    """The remarks of a list, however loosely it was written."""
    for item in value if isinstance(value, list) else []:
        if isinstance(item, str):
            yield _remark(item)
        elif isinstance(item, dict) and isinstance(item.get("text"), str):
            kinds: Iterable[object] = item["kinds"] if isinstance(item.get("kinds"), list) else ()
            yield Remark(item["text"], tuple(kind for kind in kinds if isinstance(kind, str)))
