"""What roles said in the turns of a workflow, and how it is told to them again.

A record holds what was read from each text, its result, and where the roles disagreed. A role that tries again reads
the history made from it. Everything in a record is a value, so copies of a run share it safely.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from concertino.core.observation import Observation, Status
from concertino.strategies.base.machine import Utterance
from concertino.text.foreign_text import QUESTION_LINES, Quoting, quoting

# Characters; a history holds several of these for each turn.
_SHOWN = 3_000
_MARKS = (*(r"(?:turn|test) \d", r"(?:outcome|expected output|the program gave)\s*[:：]", r"attempt\s?\d* answer\b"),)
_ERROR_SHOWN = 1_500

_IN_RESULTS = quoting((), (*QUESTION_LINES, r"answer\s*[:：]"))


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One turn: what each role said in it, in order, and its outcome."""

    turn: int
    said: tuple[tuple[str, Utterance], ...]
    outcome: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        said = [[role, saying.to_json()] for role, saying in self.said]
        return {"turn": self.turn, "said": said, "outcome": self.outcome}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TurnRecord:
        """The inverse of `to_json`."""
        said = tuple((role, Utterance.from_json(saying)) for role, saying in data["said"])
        return cls(data["turn"], said, data["outcome"])


def shown_value(value: Any) -> str:
    """A value as text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def printed(observation: Observation) -> str:
    """What a call gave, as a role reads it: the output alone where it succeeded, the cause where it did not."""
    content = observation.content
    stdout = content.get("stdout") if isinstance(content, Mapping) else None
    if observation.ok:
        return stdout if isinstance(stdout, str) else shown_value(content)
    error = observation.error
    cause = f"{observation.status.value} {error.code}: {error.message}" if error else observation.status.value
    told = content.get("stderr") or stdout if isinstance(content, Mapping) else content
    return f"{cause}\n{_end(shown_value(told))}" if told else cause


def shown_result(saying: Utterance) -> str:
    """What the calls of a role gave, as a prompt shows it."""
    return with_own_status(saying.result, bool(saying.ok))


def with_own_status(given: str, ok: bool) -> str:
    """What calls gave, without statuses of its own; a failed call begins with the one that `printed` wrote."""
    own = "" if ok else next((status for status in Status if given.startswith(status)), "")
    return own + _IN_RESULTS.text(given[len(own) :])


def _end(text: str) -> str:
    # The end: a Python traceback names its cause in the last lines.
    return text if len(text) <= _ERROR_SHOWN else f"[...]{text[-_ERROR_SHOWN:]}"


def clipped(text: str, limit: int = _SHOWN) -> str:
    """Both ends of a long text."""
    if len(text) <= limit:
        return text
    half = limit // 2
    # On the line of the note: the cut must not make a line begin where none did, with a mark of the record.
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...] {text[-half:]}"


def quoting_for(roles: Iterable[str], *, questions: bool = False) -> Quoting:
    """How what others wrote is quoted for these roles: no line of it begins like one of a record, or of its tests.

    Args:
        questions: no line begins with a status either; a result may, for a failed one has its own.
    """
    names = "|".join(map(re.escape, roles))
    lines = (*_MARKS, rf"(?:{names}) (?:wrote|got back|could not be read)")
    return quoting(("test",), (*QUESTION_LINES, *lines) if questions else lines)


def tell_history(records: Sequence[TurnRecord], last: int, quoted: Quoting) -> str:
    """The last turns, for a role that is asked again."""
    shown = records[max(0, len(records) - last) :] if last else ()
    return "\n\n".join(_tell_turn(record, quoted) for record in shown) or "(nothing yet)"


def _tell_turn(record: TurnRecord, quoted: Quoting) -> str:
    lines = [f"Turn {record.turn}"]
    for role, saying in record.said:
        wrong = [issue.message for issue in saying.issues if not issue.repaired]
        if saying.value is None:
            lines.append(f"{role} could not be read: {quoted.text('; '.join(wrong)) or 'nothing was said'}")
            continue
        lines.append(f"{role} wrote:\n{quoted.text(clipped(shown_value(saying.value).strip()))}")
        if saying.ok is not None:
            lines.append(f"{role} got back:\n{quoted.text(clipped(shown_result(saying).strip())) or '(no output)'}")
    lines.append(f"Outcome: {record.outcome}")
    return "\n".join(lines)
