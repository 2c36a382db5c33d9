"""What the leader knows about each part of a question: who answered what, and what the checks said.

A *part* is one problem of the question; an *attempt* is one solver call for it. Two attempts by
different models that agree settle a part. Two that differ have a *dispute*: the first step that both
wrote down differently. A calculator decides a dispute about arithmetic, a reader one about what the text
states; who was wrong is *discredited*.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from concertino_toy.problems.grammar import MODULUS
from concertino_toy.simulated.tools import answers_in

from .conversation import CallResponse, WrittenCall


class StepSeen(NamedTuple):
    """A step as a reply shows it."""

    formula: str
    numbers: str
    value: str


@dataclass
class SolverReply:
    """One solver call for a part, with its outcome."""

    model: str
    call: WrittenCall
    response: CallResponse
    discredited: bool = False

    @property
    def answer(self) -> tuple[str, ...]:
        """The boxed answers of a reply; empty if there is none."""
        return answers_in(self._text()) if self.response.status == "OK" else ()

    @property
    def final(self) -> bool:
        """Whether the same model would do the same again: it replied, or cannot take the request at all."""
        return self.response.status == "OK" or self.response.error.get("code") == "rejected"

    @property
    def steps(self) -> dict[str, StepSeen]:
        """The steps of a reply by quantity."""
        lines = [line[2:].split(" = ") for line in self._text().splitlines() if line.startswith("- ")]
        return {cells[0]: StepSeen(*cells[1:]) for cells in lines if len(cells) == 4}

    def _text(self) -> str:
        content = self.response.content
        return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


class Dispute(NamedTuple):
    """Two attempts, and the first step in which they differ."""

    kind: Literal["arithmetic", "reading"]
    quantity: str
    first: SolverReply
    second: SolverReply


@dataclass
class ProblemState:
    """One problem: its number, its text, the results it needs, the attempts so far, and models in order of trust."""

    number: int
    text: str
    needs: tuple[int, ...] = ()
    attempts: list[SolverReply] = field(default_factory=list)
    last_failure: SolverReply | None = None
    trust: tuple[str, ...] = ()

    @property
    def credible(self) -> list[SolverReply]:
        """The latest answer of each model that was not discredited."""
        latest = {attempt.model: attempt for attempt in self.attempts if attempt.answer}
        return [attempt for attempt in latest.values() if not attempt.discredited]

    @property
    def answered(self) -> bool:
        """Whether any reply held an answer."""
        return any(attempt.answer for attempt in self.attempts)

    @property
    def settled(self) -> bool:
        """Whether two models agree, or one survived a check that discredited another."""
        votes = Counter(attempt.answer for attempt in self.credible)
        checked = any(attempt.discredited for attempt in self.attempts) and len(votes) == 1
        return checked or any(count > 1 for count in votes.values())

    @property
    def answer(self) -> tuple[str, ...]:
        """The best answer so far: most votes, then the most trusted model, then the latest; empty without any."""
        candidates = self.credible or [attempt for attempt in self.attempts if attempt.answer]
        votes = Counter(attempt.answer for attempt in candidates)
        # Reversed, since max keeps the first of equals and the latest is meant.
        best = max(reversed(candidates), key=lambda a: (votes[a.answer], self._trusted(a.model)), default=None)
        return best.answer if best else ()

    def _trusted(self, model: str) -> int:
        return self.trust.index(model) if model in self.trust else -1

    def dispute(self) -> Dispute | None:
        """The first step in which the two latest credible answers differ, if their steps can be compared."""
        if self.settled or len(self.credible) < 2:
            return None
        first, second = self.credible[-2:]
        theirs = second.steps
        for quantity, mine in first.steps.items():
            other = theirs.get(quantity)
            if other is None or other == mine:
                continue
            if other.formula != mine.formula:
                return Dispute("reading", quantity, first, second)
            if other.numbers == mine.numbers:
                # With other numbers the two differ because of an earlier step, which decides.
                return Dispute("arithmetic", quantity, first, second)
        return None


def judge_arithmetic(dispute: Dispute, result: object) -> None:
    """Discredit each reply whose value is not the calculator's."""
    for attempt in (dispute.first, dispute.second):
        attempt.discredited |= attempt.steps[dispute.quantity].value != str(result)


def judge_reading(dispute: Dispute, stated: str) -> None:
    """Discredit each reply whose formula is not what the text states; a stated number may be named or copied."""
    for attempt in (dispute.first, dispute.second):
        step = attempt.steps[dispute.quantity]
        same = stated.isdecimal() and step.numbers in (stated, str(int(stated) % MODULUS))
        # Someone who copied the number and someone who named its source mean the same.
        copied = same and "note" not in step.formula
        attempt.discredited |= not (step.formula == stated or copied)


def judge_notes(dispute: Dispute) -> None:
    """Discredit each reply that took a value from a note, where the text says that notes are to be ignored."""
    for attempt in (dispute.first, dispute.second):
        attempt.discredited |= "note" in attempt.steps[dispute.quantity].formula
