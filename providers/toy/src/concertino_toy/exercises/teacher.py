"""The teacher of the tiny conductor: a scripted policy that reads the conversation and writes the next round.

Each problem goes to the member, or the model, that is listed last. After a failure the one before it is asked, then the
two in turn. The reasoning of each round notes what is known, `1: 14, 2: ?1` for an answer and for one failure, and the
answer is copied from these notes.

Invariant: the teacher knows no answer and keeps no state. A model that reads the last notes and what follows them can
do the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

from concertino import ChatRequest, Message, Model, Reply
from concertino.text import write_tool_call

from concertino_toy.reading import PROBLEM_HEADING, call_blocks, observed_lines

MOST_ATTEMPTS = 5
UNKNOWN = "unknown"
_AT_ONCE = re.compile(r"at most (\d+) a round")
_QUOTE = re.compile(r"\$\{question(?:\.(\d+))?\}")
_NUMBER = r"-?\d[\d,]*(?:\.\d+)?"
_VALUES = (
    re.compile(r"\\{1,2}boxed\{([^{}]*)\}"),
    re.compile(rf"answer is \$?({_NUMBER})"),
    re.compile(rf"####\s*\$?({_NUMBER})"),
    re.compile(rf"\b(?:A|Answer): \$?({_NUMBER})"),
)
_LAST = re.compile(_NUMBER)
_LEFT_OUT = re.compile(r"\[… \d+ characters left out …\]")
_REFUSED = re.compile(r"\bunknown\b|\bcannot\b|beyond me|do not know|missing")


@dataclass(frozen=True)
class Assignee:
    """Whom a problem can be given to.

    Attributes:
        name: of the member.
        text: its argument for the problem.
        more: further arguments, the model that is chosen.
    """

    name: str
    text: str
    more: dict[str, str] = field(default_factory=dict)


def value_in(text: str) -> str:
    """The answer that a reply gives, `""` if it gives none: what is marked as the answer, else the last number."""
    for pattern in _VALUES:
        if found := pattern.findall(text):
            return str(found[-1]).strip(" ,")
    # A refusal may quote numbers of the problem, none of which is the answer.
    numbers = [] if _REFUSED.search(text) else _LAST.findall(_LEFT_OUT.sub(" ", text))
    return numbers[-1].rstrip(",") if numbers else ""


class ConductorTeacher(Model):
    """The policy as a model.

    Args:
        choices: whom problems can be given to.
        slips: share of first rounds with a malformed call, 0 to 1.
        seed: of the slips.
    """

    def __init__(self, choices: Sequence[Assignee], *, slips: float = 0.0, seed: object = 0) -> None:
        self.choices = list(choices)
        self._slips, self._seed = slips, seed

    async def chat(self, request: ChatRequest) -> Reply:
        """Write the next turn."""
        return Reply(self.write(list(request.messages)))

    def write(self, messages: Sequence[Message]) -> str:
        """The next turn of a conversation."""
        notes = _Notes.read(messages)
        if messages[-1].role == "user" and messages[-1].text.startswith("Write the <answer>"):
            boxes = [f"{number}: \\boxed{{{notes.values.get(number) or UNKNOWN}}}" for number in notes.problems]
            return f"<answer>{', '.join(boxes)}</answer>"
        wanted = notes.open()[: notes.at_once]
        thought = f"ask {' '.join(map(str, wanted))}" if wanted else "done"
        head = f"<reasoning>{'; '.join(filter(None, [notes.line(), thought]))}</reasoning>"
        calls = [self._call(notes, number) for number in wanted] or [{"name": "final_answer", "arguments": {}}]
        lines = [write_tool_call(call["name"], json.dumps(call["arguments"]), gap="") for call in calls]
        rng = Random(f"slip {self._seed} {notes.question} {len(messages)}")
        if wanted and "PARSE_ERR" not in messages[-1].text and rng.random() < self._slips:
            place = rng.randrange(len(lines))
            lines[place] = _slip(lines[place], calls[place], rng)
        return "\n".join([head, *lines])

    def _call(self, notes: _Notes, number: int) -> dict[str, Any]:
        count = len(self.choices)
        # Two in turn and no more: a model of a million parameters learns this rule, and most faults pass.
        back = notes.failed.get(number, 0) % min(2, count)
        choice = self.choices[count - 1 - back]
        # Quotes count all paragraphs, and an introduction may be the first.
        quote = "${question}" if not notes.numbered else f"${{question.{number + notes.offset}}}"
        return {"name": choice.name, "arguments": {choice.text: quote, **choice.more}}


def _slip(line: str, call: dict[str, Any], rng: Random) -> str:
    """A call with a misspelt argument, model or name, or with a brace too few."""
    kind = rng.randrange(4)
    if kind == 0:
        return line.replace("}}</tool_call>", "</tool_call>")
    if kind == 1:
        return line.replace('{"name": "', '{"name": "x', 1)
    name = list(call["arguments"])[-1 if kind == 3 else 0]
    if kind == 3 and len(call["arguments"]) > 1:
        return line.replace(f'"{name}": "', f'"{name}": "x', 1)
    return line.replace(f'"{name}"', f'"{name}x"', 1)


@dataclass
class _Notes:
    """What a conversation says.

    Attributes:
        problems: their numbers.
        numbered: they have headings; else the question is one problem as a whole.
        offset: paragraphs before the first problem.
        at_once: calls in one round.
        values, failed: by problem, its answer and how often it failed.
    """

    question: str
    problems: list[int]
    numbered: bool
    offset: int
    at_once: int
    values: dict[int, str] = field(default_factory=dict)
    failed: dict[int, int] = field(default_factory=dict)

    @classmethod
    def read(cls, messages: Sequence[Message]) -> _Notes:
        question = next(message.text for message in messages if message.role == "user")
        paragraphs = [part for part in question.split("\n\n") if part.strip()]
        heads = [place for place, part in enumerate(paragraphs) if PROBLEM_HEADING.match(part)]
        limit = _AT_ONCE.search(messages[0].text)
        notes = cls(
            question,
            list(range(1, len(heads) + 1)) or [1],
            bool(heads),
            heads[0] if heads else 0,
            int(limit[1]) if limit else 4,
        )
        for said, told in pairwise(messages[2:]):
            if said.role == "assistant":
                notes._take(said.text, told.text)
        return notes

    def _take(self, said: str, told: str) -> None:
        for block, (_, status, text) in zip(call_blocks(said), observed_lines(told), strict=False):
            number = self._asked(block)
            if number is None:
                continue
            value = value_in(text) if status == "OK" else ""
            if value:
                self.values[number] = value
            else:
                self.failed[number] = self.failed.get(number, 0) + 1

    def line(self) -> str:
        """What is known of each problem that was asked, in words."""
        known = {number: f"?{times}" for number, times in self.failed.items()} | self.values
        return ", ".join(f"{number}: {known[number]}" for number in self.problems if number in known)

    def _asked(self, block: str) -> int | None:
        found = _QUOTE.search(block)
        if found is None:
            return None
        return int(found[1]) - self.offset if found[1] else 1

    def open(self) -> list[int]:
        """Problems without an answer that are not given up."""
        return [
            number
            for number in self.problems
            if number not in self.values and self.failed.get(number, 0) < MOST_ATTEMPTS
        ]
