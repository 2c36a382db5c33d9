"""DirectAnswer: a model alone. It is asked once, and its text is the answer.

What an orchestrator does that was given no strategy, where the pool has nothing to call.

Invariant: the answer is what the answer's reader gives of the text, so what was streamed of it adds up to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from concertino.core.errors import UsageError
from concertino.core.model import Message, Reply
from concertino.core.observation import Observation

from .base.answer_reader import AfterThought, AnswerReader, after_thought
from .base.conversation import Conversation
from .base.machine import Ask, Done, Strategy, TaskContext

_EMPTY = "Your text holds no answer. Write the answer."
_ATTEMPTS = 2


@dataclass(frozen=True)
class DirectAnswer(Strategy):
    """One request; the text of its reply, without a `<think>` at its beginning, is the answer."""

    name = "direct-answer"
    needs_members = False

    def begin(self, context: TaskContext) -> DirectAnswerMachine:
        return DirectAnswerMachine(self, context)

    def restore(self, dumped: Mapping[str, Any]) -> DirectAnswerMachine:
        return DirectAnswerMachine.restored(DirectAnswer.from_json(dumped["settings"]), dumped)

    def write_answer(self, answer: str, thought: str = "", *, part: str = "") -> tuple[str, ...]:
        return (f"<think>{thought}</think>{answer}" if thought else answer,)


class DirectAnswerMachine(Conversation):
    """One run of a model alone."""

    def __init__(self, settings: DirectAnswer, context: TaskContext) -> None:
        super().__init__(settings, context)
        self.messages = [Message("user", settings.quoting().text(context.question))]

    def _question(self) -> Ask:
        return Ask("orchestrator", self.messages, len(self.messages) - self.asked, whole=True)

    def answer_reader(self) -> AnswerReader:
        """The text as it comes."""
        return AfterThought()

    def on_reply(self, reply: Reply) -> None:
        answer = after_thought(reply.text)
        self._heard(reply)
        self._read_as(understood=bool(answer))
        if answer:
            self._end(Done(answer, "answered"))
        else:
            self._hand_back(_EMPTY, "held no answer", _ATTEMPTS)

    def observe(self, observations: Sequence[Observation], remaining: Mapping[str, float] | None = None) -> None:
        raise UsageError("direct-answer calls nothing, so it observes nothing")
