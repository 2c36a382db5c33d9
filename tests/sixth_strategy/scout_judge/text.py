"""The text format: one word in capitals at the head of each line says what the line is.

NOTE what I think               both roles, any number
LOOK member {"key": "value"}    the scout: a call, any number; they run side by side
ENOUGH                          the scout: nothing is left to look for
VERDICT the answer              the judge: the run ends
MORE what is missing            the judge: the scout looks again
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from concertino.core.plan import Call
from concertino.strategies import FormatIssue

WORDS: Mapping[str, tuple[str, ...]] = {
    "scout": ("NOTE", "LOOK", "ENOUGH"),
    "judge": ("NOTE", "VERDICT", "MORE"),
}
_LINE = re.compile(r"[^\n]+")
_LOOK = re.compile(r"(\S+)\s*(.*)")


class Text(NamedTuple):
    """What a role's text says."""

    word: str = ""
    """The word that decides: LOOK, ENOUGH, VERDICT or MORE; empty where there is none."""
    rest: str = ""
    note: str = ""
    calls: tuple[Call, ...] = ()
    issues: tuple[FormatIssue, ...] = ()


def read(text: str, role: str) -> Text:
    """Read a text. Words in small letters are repaired; any other line is an issue and is left out."""
    word, rest = "", ""
    notes: list[str] = []
    calls: list[Call] = []
    issues: list[FormatIssue] = []
    for found in _LINE.finditer(text):
        line = found.group().strip()
        head, _, tail = line.partition(" ")
        if not line:
            continue
        if head.upper() not in WORDS[role]:
            expected = ", ".join(WORDS[role])
            issues.append(
                FormatIssue("stray_line", f"begin the line with one of {expected}", found.start(), found.end())
            )
            continue
        if head != head.upper():
            issues.append(
                FormatIssue("small_letters", f"write {head.upper()}", found.start(), found.end(), repaired=True)
            )
        head = head.upper()
        if head == "NOTE":
            notes.append(tail)
        if head == "LOOK":
            calls.append(_call(tail, str(len(calls) + 1)))
        if head != "NOTE" and not (word == "LOOK" and head == "ENOUGH"):
            word, rest = head, tail.strip()
    if not word:
        expected = " or ".join(each for each in WORDS[role] if each != "NOTE")
        issues.append(FormatIssue("no_decision", f"end with a line {expected}", 0, len(text)))
    return Text(word, rest, "\n".join(notes), tuple(calls), tuple(issues))


def _call(text: str, id: str) -> Call:
    found = _LOOK.fullmatch(text.strip())
    if found is None:
        return Call("?", id=id, error=("bad_format", 'expected LOOK member {"key": "value"}'))
    name, arguments = found.groups()
    try:
        data: Any = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        return Call(name, id=id, error=("bad_json", f"expected a JSON object behind LOOK {name}"))
    return Call(name, data, id)


def write(word: str, rest: str = "", note: str = "", calls: Sequence[Call] = ()) -> str:
    """A text that `read` reads back."""
    notes = [f"NOTE {line}" for line in note.splitlines() if line.strip()]
    looks = [f"LOOK {call.name} {json.dumps(call.data, ensure_ascii=False)}" for call in calls]
    return "\n".join([*notes, *looks, *([f"{word} {' '.join(rest.split())}".strip()] if word != "LOOK" else [])])
