"""What a scripted expert knows of its question: whom it asked about each part, with what result, and whom it asks next.

The invariant: everything follows from the question, the pool and what was observed; an expert keeps no state, and can
be asked about any prefix of a run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from concertino import Pool, UsageError

from concertino_toy.practice.members import MANNERS
from concertino_toy.practice.questions import QuestionPart, read_question
from concertino_toy.practice.words import TOPICS, TWIN, WISHES, draw

MOST_ATTEMPTS = 4
"""Of one part; after them it is given up."""
UNKNOWN = "00"
"""What is answered for a part that was given up; never a fact."""


@dataclass(frozen=True)
class Habits:
    """How an expert works.

    Attributes:
        serial: share of questions that are worked on one call at a time, 0 to 1.
        slips: share of turns that are malformed first, 0 to 1; the next turn corrects it.
        careless: share of parts that are asked of the member that knows all poorly, or given up at the first failure.
        repeat: share of failures after which the same member is asked again; else another one.
        ignores: share of questions whose wish ("Keep it cheap.") is passed over.
        seed: another seed, other choices.
    """

    serial: float = 0.0
    slips: float = 0.0
    careless: float = 0.0
    repeat: float = 0.5
    ignores: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("serial", "slips", "careless", "repeat", "ignores"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"Habits({name}={getattr(self, name)!r}): expected a share from 0 to 1")

    def draws(self, name: str, *key: object) -> bool:
        """Whether a habit shows, by its share."""
        share: float = getattr(self, name)
        return share > 0 and draw("habit", self.seed, name, *key) < share


class KnownMember(NamedTuple):
    """A member as an expert knows it, from its description."""

    name: str
    topic: str
    manner: str
    argument: str


class PartAttempt(NamedTuple):
    """One call for a part.

    Attributes:
        member: visible name.
        ok: it succeeded.
        value: what it said.
        place: how a later call can refer to it.
    """

    member: str
    ok: bool
    value: str = ""
    place: str = ""


class PlannedCall(NamedTuple):
    """A call to make: which part, by which member, and what it is asked with."""

    part: int
    member: KnownMember


def members_of(pool: Pool) -> tuple[KnownMember, ...]:
    """The members of a pool that answer about topics, by their descriptions."""
    found: list[KnownMember] = []
    for tool in pool.to_openai():
        function = tool["function"]
        text = str(function["description"]).lower()
        manner = next((each.name for each in MANNERS.values() if any(sign in text for sign in each.signs)), "")
        topic = next((each for each in (*TOPICS, TWIN) if re.search(rf"\b{each}\b", text)), "")
        argument = next(iter(function["parameters"]["properties"]), "")
        if manner and (topic or manner == "any"):
            found.append(KnownMember(function["name"], topic, manner, argument))
    if not found:
        raise UsageError(
            "the practice teacher knows none of this pool's members; name a teacher of your own (data.collect.teacher: "
            "a model of the pool, or {name: module:function}), or use a practice pool"
        )
    return tuple(found)


@dataclass
class QuestionProgress:
    """A question and what was done for it.

    Attributes:
        question: the user's, with what he prefers.
        members: of the pool.
        habits: of the expert.
        attempts: by part, in order.
    """

    question: str
    members: tuple[KnownMember, ...]
    habits: Habits
    attempts: list[list[PartAttempt]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parts: list[QuestionPart] = read_question(self.question)
        self.attempts = [[] for _ in self.parts]
        ignored = self.habits.draws("ignores", self.question)
        wishes = (name for name, text in WISHES.items() if text and text in self.question)
        self.wish = "none" if ignored else next(wishes, "none")

    def value(self, part: int) -> str:
        """What is known of a part; empty if nothing is."""
        return next((attempt.value for attempt in self.attempts[part] if attempt.ok), "")

    def place(self, part: int) -> str:
        """How the result of a part is quoted."""
        return next((attempt.place for attempt in self.attempts[part] if attempt.ok), "")

    def answers(self, quoted: bool = False) -> list[str]:
        """The answer, part by part.

        Args:
            quoted: results are quoted by their places, not copied.
        """
        needed = {part.after for part in self.parts}
        asked = [index for index in range(len(self.parts)) if index not in needed]
        if quoted:
            return [f"${{{self.place(index)}}}" if self.value(index) else UNKNOWN for index in asked]
        return [self.value(index) or UNKNOWN for index in asked]

    def given_up(self, part: int) -> bool:
        """Whether no further member is asked."""
        # A shortlist may have left out the member that knows it.
        if not any(member.topic in ("", self.parts[part].topic) for member in self.members):
            return True
        failed = sum(not attempt.ok for attempt in self.attempts[part])
        first = self.parts[part].after
        # What it needs was given up, so nobody can be asked about it.
        if first is not None and self.given_up(first):
            return True
        return failed >= MOST_ATTEMPTS or (failed > 0 and self._careless(part) and self._hasty(part))

    def open_parts(self) -> list[int]:
        """The parts that can be asked now."""
        return [
            index
            for index, part in enumerate(self.parts)
            if not self.value(index) and not self.given_up(index) and (part.after is None or self.value(part.after))
        ]

    def moves(self) -> list[PlannedCall]:
        """The calls to make now; none if the work is done."""
        wanted = self.open_parts()
        if self.habits.draws("serial", self.question):
            wanted = wanted[:1]
        return [PlannedCall(index, self.choose(index)) for index in wanted]

    def choose(self, part: int) -> KnownMember:
        """Who is asked about a part now."""
        topic, tried = self.parts[part].topic, self.attempts[part]
        experts = [member for member in self.members if member.topic == topic]
        poor = [member for member in self.members if not member.topic]
        if not experts or (poor and self._careless(part) and not self._hasty(part)):
            return poor[0]
        if not tried:
            return self._first(experts, part)
        last = next((member for member in experts if member.name == tried[-1].member), experts[0])
        failed = sum(attempt.member == last.name for attempt in tried)
        others = [member for member in experts if all(attempt.member != member.name for attempt in tried)]
        # Once again, as faults may pass; twice would only repeat a stubborn one.
        if failed == 1 and (not others or self.habits.draws("repeat", self.question, part)):
            return last
        return self._first(others, part) if others else (poor or experts)[0]

    def _first(self, experts: Sequence[KnownMember], part: int) -> KnownMember:
        """The member that fits the user's wish; without one, any."""
        wished = {"cheap": "cheap", "fast": "quick", "sure": "sure"}.get(self.wish)
        fitting = [member for member in experts if member.manner == wished] or list(experts)
        return fitting[int(draw("first", self.habits.seed, self.question, part) * len(fitting))]

    def _careless(self, part: int) -> bool:
        return self.habits.draws("careless", self.question, part)

    def _hasty(self, part: int) -> bool:
        """Of careless parts, half are given up early, and half are asked of the wrong member."""
        return draw("hasty", self.habits.seed, self.question, part) < 0.5
