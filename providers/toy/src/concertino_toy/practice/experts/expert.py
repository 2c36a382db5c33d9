"""A scripted expert as a model: it reads a conversation and writes the next turn of it in a strategy's format.

Experts know the practice domain, not its facts: whom to ask, with what, and what to do after a failure. They are run
over the executor like any model, so a policy learns from real runs. Invariant: a turn that is not a slip has the exact
form of its strategy.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from concertino import ChatRequest, Message, Model, Pool, Reply, Shortlist, Usage

from concertino_toy.practice.words import draw
from concertino_toy.reading import ObservedLine, observed_lines

from .progress import Habits, KnownMember, QuestionProgress, members_of


class Expert(Model):
    """A scripted expert over one pool.

    Args:
        pool: whose members it knows.
        habits: how it works.
        shortlist: what it sees of the pool for a question; all of it by default.
    """

    def __init__(self, pool: Pool, habits: Habits | None = None, shortlist: Shortlist | None = None) -> None:
        self.pool = pool
        self.habits = habits or Habits()
        self.shortlist = shortlist
        self._members = members_of(pool)
        self._listed: dict[str, tuple[KnownMember, ...]] = {}

    async def chat(self, request: ChatRequest) -> Reply:
        """Write the next turn."""
        text = self.write(list(request.messages))
        return Reply(text, usage=Usage(output_tokens=self.count_tokens(text)))

    def write(self, messages: Sequence[Message]) -> str:
        """The next turn of a conversation, a slip included."""
        question = question_of(messages)
        progress = QuestionProgress(question, self._known(question), self.habits)
        turns = self.read(progress, messages)
        text = self.turn(progress, messages)
        key = (progress.question, turns)
        # The turn after a malformed one corrects it, so it must not be malformed itself.
        mending = messages[-1].role == "user" and "PARSE_ERR" in messages[-1].text
        if not mending and self.habits.draws("slips", *key):
            return self.slip(text, draw("slip", self.habits.seed, *key))
        return text

    def _known(self, question: str) -> tuple[KnownMember, ...]:
        """The members that it can call for a question."""
        if self.shortlist is None:
            return self._members
        if question not in self._listed:
            self._listed[question] = members_of(self.shortlist(question, self.pool))
        return self._listed[question]

    @abstractmethod
    def read(self, progress: QuestionProgress, messages: Sequence[Message]) -> int:
        """Take what was observed into the progress; returns how many turns there were."""

    @abstractmethod
    def turn(self, progress: QuestionProgress, messages: Sequence[Message]) -> str:
        """The next turn as it ought to be."""

    @abstractmethod
    def slip(self, text: str, share: float) -> str:
        """The same turn, malformed; `share`, from 0 to 1, says how."""


def question_of(messages: Sequence[Message]) -> str:
    """The user's question; his preference and the budget stand behind it."""
    return next(message.text for message in messages if message.role == "user")


def turns_of(messages: Sequence[Message]) -> list[tuple[str, list[ObservedLine]]]:
    """What the expert wrote, turn by turn, each with what was observed of it."""
    found: list[tuple[str, list[ObservedLine]]] = []
    for message in messages:
        if message.role == "assistant":
            found.append((message.text, []))
        elif found:
            found[-1][1].extend(observed_lines(message.text))
    return found
