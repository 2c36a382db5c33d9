"""What a simulated model can do, how it errs, how long it takes, and how its server fails.

A `Skill` is a stated profile, not a statistic of any real model. Errors are errors of work: beyond
`steps` sound steps each further step may come out wrong, and whatever rests on it is then wrong too; a
believed lure replaces a fact.

The invariant: the same skill, seed and request always give the same answer, in any process and any
order. Only faults count: how often a request was made decides, as at a real server, so a repeat can
succeed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from concertino_toy.problems.grammar import MODULUS, Lure, Question
from concertino_toy.problems.solver import SolutionStep, SolvedQuestion, solve

OPERATIONS = frozenset({"copy", "more", "times", "sum", "difference", "total", "recall"})
"""All that the grammar needs; `more` adds or takes away, `total` sums a category, `recall` finds a needle."""

Fault = Literal["throttled", "reset", "hang", "crash", "garbage"]
"""Instead of answering: 429, a broken connection, silence for ever, a client that raises, or nonsense."""


class CannotDo(Exception):
    """A step needs an operation that the skill lacks."""


@dataclass(frozen=True)
class Pace:
    """How long an answer takes: `seconds` until it begins, then `per_token` seconds for each token."""

    seconds: float = 0.0
    per_token: float = 0.0


INSTANT = Pace()


@dataclass(frozen=True)
class Skill:
    """A profile.

    Attributes:
        operations: what it can do, a subset of `OPERATIONS`; at anything else it gives up and says so.
        steps: sound steps per request.
        error_rate: probability that a step beyond these comes out wrong, 0 to 1.
        lure_rate: probability of believing a lure, 0 to 1.
        context: tokens of a request; a longer one is refused.
        faults: probability of each fault per request; together at most 1.
        first_faults: the faults of the first requests to an instance, in order of arrival, whatever the rates.
        pace: latency.
        seed: changes which steps err, never how often.
    """

    operations: frozenset[str] = OPERATIONS
    steps: int = 1000
    error_rate: float = 0.0
    lure_rate: float = 0.0
    context: int = 8192
    faults: Mapping[Fault, float] = field(default_factory=dict)
    first_faults: tuple[Fault, ...] = ()
    pace: Pace = INSTANT
    seed: int = 0

    def __post_init__(self) -> None:
        rates = {
            "error_rate": self.error_rate,
            "lure_rate": self.lure_rate,
            "faults": sum(self.faults.values()),
        }
        for name, rate in rates.items():
            if not 0 <= rate <= 1:
                raise ValueError(f"Skill({name}={rate}): expected a probability, 0 to 1")
        if unknown := self.operations - OPERATIONS:
            raise ValueError(f"Skill(operations): unknown {sorted(unknown)}; known: {sorted(OPERATIONS)}")

    def attempt(self, question: Question, key: str) -> SolvedQuestion:
        """Work on a question as well as it can. `key` identifies the request.

        Raises:
            CannotDo: it met an operation that it lacks.
            GrammarError: the question has no answer.
        """
        chance = self.chance(key)
        done = 0

        def waver(step: SolutionStep) -> int:
            nonlocal done
            done += 1
            if missing := step.operations - self.operations:
                raise CannotDo(f"{step.about}: {' and '.join(sorted(missing))} is beyond me")
            if done > self.steps and chance.random() < self.error_rate:
                return (step.value + chance.randrange(1, MODULUS)) % MODULUS
            return step.value

        def believe(lure: Lure) -> bool:
            return chance.random() < self.lure_rate

        return solve(question, believe=believe, waver=waver)

    def fault(self, key: str, arrival: int, repeat: int) -> Fault | None:
        """The fault of a request: the `arrival`-th of an instance, the `repeat`-th of this key (from 0)."""
        if arrival < len(self.first_faults):
            return self.first_faults[arrival]
        drawn = self.chance(f"fault {repeat} {key}").random()
        for fault, rate in self.faults.items():
            drawn -= rate
            if drawn < 0:
                return fault
        return None

    def chance(self, key: str) -> Random:
        """A random generator that depends on the seed and the key only."""
        # A text as the seed, as the hash of one differs between processes.
        return Random(f"{self.seed} {key}")
