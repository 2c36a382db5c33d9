"""Answers compared as they are written: the same text, or a text in which the known answer occurs.

The answer is what the solver marks (`graders.answers`), else its last line or, where the grader says so, the whole
text. The invariant: every sign counts but case, blanks, quotes, emphasis, a leading article and a full stop at the
end; and an object or array is compared as the JSON value that it is.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any, NamedTuple

from concertino_bench.tasks.grade import Grade, TextGrader, Verdict
from concertino_bench.tasks.task import Task

from .answers import marked, sentences, spoken
from .base import golds, json_of, shown


class Verbatim(TextGrader):
    """Right if the answer is the same text, or the same JSON value where the known answer is an object or array."""

    name = "verbatim"

    def judge(self, task: Task, text: str) -> Grade:
        """Grade a text."""
        accepted, ending = golds(task), _ending(text)
        return _grade(accepted, ending, any(_same(answer, ending) for answer in accepted))


class Contains(TextGrader):
    """Right if the known answer occurs in what is given as the answer, as whole words."""

    name = "contains"
    kinds = ("mention",)

    def judge(self, task: Task, text: str) -> Grade:
        """Grade a text."""
        accepted, ending = golds(task), _ending(text)
        return _grade(accepted, ending, any(holds(plain(ending.text), plain(answer)) for answer in accepted))


def plain(text: str) -> str:
    """A text without case, emphasis, quotes, a leading article, a full stop at its end, or more than single blanks."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = " ".join(re.sub(r"[*_`\"“”„«»]", "", text).split())
    return text.strip(" .!'’‘").removeprefix("the ").removeprefix("an ").removeprefix("a ")


def holds(text: str, phrase: str) -> bool:
    """Whether a phrase occurs in a text as whole words."""
    return bool(phrase) and re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text) is not None


class _Ending(NamedTuple):
    """From where the answer stands to the end of its mark, or of the reply; and the line that it would be alone."""

    text: str
    line: str


def _ending(text: str) -> _Ending:
    said = spoken(text)
    if places := marked(said):
        return _Ending(places[-1].text, _line(places[-1].text, 0))
    if found := sentences(said):
        last = found[-1]
        # An answer such as a JSON object may extend over lines, and `sentences` ends with the line.
        rest = said[said.index(last.text, last.start) :] if last.text else ""
        return _Ending(rest, _line(rest, 0))
    return _Ending(said, _line(said, -1))


def _line(text: str, place: int) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[place] if lines else ""


def _same(expected: str, ending: _Ending) -> bool:
    try:
        value = json.loads(expected)
    except ValueError:
        value = None
    if isinstance(value, (dict, list)):
        return _canonical(_read(ending.text)) == _canonical(value)
    return plain(expected) in (plain(ending.line), plain(ending.text))


def _read(text: str) -> Any:
    """The JSON value that a text is, or that stands in it; None without one."""
    spans = [(text.find(opened), text.rfind(closed)) for opened, closed in ("{}", "[]")]
    start, end = min((span for span in spans if 0 <= span[0] < span[1]), default=(0, -1))
    whole = json_of(text.strip(), "any")
    # A whole text that is JSON wins, so a list that holds objects is not cut to its inside.
    return json_of(text[start : end + 1], "any") if whole is None else whole


def _canonical(value: Any) -> str:
    """One text for equal JSON values; `1` and `1.0` are equal, `1` and `true` are not."""

    def whole(item: Any) -> Any:
        # `json.dumps` writes 1.0 and 1 differently, though JSON has one kind of number.
        if isinstance(item, float) and item.is_integer():
            return int(item)
        if isinstance(item, dict):
            return {key: whole(part) for key, part in item.items()}
        return [whole(part) for part in item] if isinstance(item, list) else item

    return json.dumps(whole(value), sort_keys=True)


def _grade(accepted: tuple[str, ...], ending: _Ending, right: bool) -> Grade:
    if not ending.text.strip():
        return Grade(Verdict.UNPARSABLE, "the answer is empty", accepted)
    verdict = Verdict.RIGHT if right else Verdict.WRONG
    reason = "the answer is right" if right else f"{shown(ending.line)!r}, expected {shown(accepted[0])!r}"
    return Grade(verdict, reason, accepted, (ending.line.strip(),))
