"""A strategy given as a few pure functions of text: what to show, how to read, how to show observations.

    system_prompt(context)                        what the model is shown before the question
    read(text)                                    the calls of a reply, or its answer
    show(calls, observations, remaining)          what the model reads next; written already
    write_turn(calls), write_answer(answer)       the inverse of `read`: training and `concertino check` need it

`TextStrategy` supplies the machine: the conversation, the limits, what happens after an unreadable reply, the last
answer, copies and dumps. A format with several roles, or one whose reader must know the members, takes a `Machine` of
its own instead.

Invariant: `read` depends on its text alone. A restored machine therefore reads the last reply again instead of storing
its plan, and references between calls survive.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from concertino.core.errors import PlanError
from concertino.core.format_issue import FormatIssue
from concertino.core.model import Message, Reply
from concertino.core.observation import Observation
from concertino.core.plan import Call, Plan
from concertino.text.foreign_text import break_control_tokens

from .conversation import Conversation
from .machine import Done, RunLimits, Strategy, TaskContext
from .observations import render_round


class ParsedReply(NamedTuple):
    """What a text says.

    Attributes:
        calls: to run, in order; an unreadable one carries an `error`, and the model reads it as its observation.
        answer: the final answer, which ends the run. It counts only where there are no calls.
        issues: what the text lacks of the exact form. A text without calls and answer should have one: its message
            tells the model what to write instead.
    """

    calls: Sequence[Call] = ()
    answer: str | None = None
    issues: Sequence[FormatIssue] = ()


@dataclass(frozen=True)
class TextStrategy(Strategy):
    """A paradigm of one conversation in plain text; see the module.

    Args:
        max_rounds: replies that may call something; then the model is asked for its answer.
        max_parallel: calls in one reply; further ones are observed as `too_many_calls`.
        max_unreadable_replies: unreadable replies in a row after which the run ends.
    """

    max_rounds: int = 12
    max_parallel: int = 8
    max_unreadable_replies: int = 3

    @abstractmethod
    def system_prompt(self, context: TaskContext) -> str:
        """What the model is shown before the question: the format, and the members (`context.tools`)."""

    @abstractmethod
    def read(self, text: str) -> ParsedReply:
        """What a reply says. Pure.

        Any text may come, so it must not raise; only a `PlanError`, as of `Plan.parse(calls)`, goes back to the model.
        """

    def show(
        self, calls: Sequence[Call], observations: Sequence[Observation], remaining: Mapping[str, float] | None
    ) -> str:
        """The observations of a plan, one per call in order, as the model reads them: one line of JSON for each."""
        return render_round(observations, [call.name for call in calls], remaining)

    def ask_again(self, issues: Sequence[FormatIssue]) -> str:
        """What the model reads after a text with neither calls nor an answer."""
        return "\n".join(
            [
                "PARSE_ERR: this text holds neither a call nor an answer.",
                *(break_control_tokens(issue.message) for issue in issues),
            ]
        )

    def ask_for_answer(self) -> str:
        """What the model reads when it may call nothing more."""
        return "No further calls are allowed. Give the final answer now."

    def begin(self, context: TaskContext) -> TextMachine:
        return TextMachine(self.within(context), context)

    def restore(self, dumped: Mapping[str, Any]) -> TextMachine:
        return TextMachine.restored(type(self).from_json(dumped["settings"]), dumped)

    @property
    def limits(self) -> RunLimits:
        """Replies with calls, and calls in one of them."""
        return RunLimits(self.max_rounds, self.max_parallel)


class TextMachine(Conversation):
    """One run of a `TextStrategy`."""

    settings: TextStrategy

    def __init__(self, settings: TextStrategy, context: TaskContext) -> None:
        super().__init__(settings, context)
        question = settings.quoting().text(context.question)
        self.messages = [Message("system", settings.system_prompt(context)), Message("user", question)]

    def on_reply(self, reply: Reply) -> None:
        # Read before the reply joins the conversation: a reader that raises leaves the machine as it was.
        parsed = self._parsed(reply.text)
        self._heard(reply)
        self._read_as(parsed.calls, parsed.issues, understood=bool(parsed.calls) or parsed.answer is not None)
        if self.phase == "answer":  # a call is too late here
            self._end(Done(None if parsed.calls else parsed.answer, "rounds"))
        elif parsed.calls:
            self.plan, self.phase, self.fruitless = self._planned(parsed.calls), "act", 0
        elif parsed.answer is not None:
            self._end(Done(parsed.answer, "answered"))
        else:
            text, most = self.settings.ask_again(parsed.issues), self.settings.max_unreadable_replies
            self._hand_back(text, "could not be read", most)

    def _parsed(self, text: str) -> ParsedReply:
        """What the strategy reads, with calls numbered as in a plan; calls without a valid plan are an issue."""
        try:
            parsed = self.settings.read(text)
            # `Plan` numbers the calls and refuses circles, so what is reported is what will run.
            return parsed._replace(calls=Plan(parsed.calls).calls)
        except PlanError as error:
            return ParsedReply(issues=[FormatIssue("bad_plan", str(error), 0, len(text))])

    def _planned(self, calls: Sequence[Call]) -> Plan:
        limit = self.settings.max_parallel
        error = ("too_many_calls", f"at most {limit} calls in one reply; repeat this one in the next")
        # Kept with an error: the observations then match what the model wrote, call by call.
        return Plan([call if place < limit else replace(call, error=error) for place, call in enumerate(calls)])

    def observe(self, observations: Sequence[Observation], remaining: Mapping[str, float] | None = None) -> None:
        assert self.plan is not None
        text = self.settings.show(self.plan.calls, observations, remaining)
        self._take_found(observations)
        self.plan, self.phase, self.round = None, "ask", self.round + 1
        if self.round >= self.settings.max_rounds:
            self.phase = "answer"
            text += f"\n{self.settings.ask_for_answer()}"
        self.messages.append(Message("user", text))

    def _load(self, dumped: Mapping[str, Any]) -> None:
        super()._load(dumped)
        if self.phase == "act":
            parsed = self._parsed(self.messages[-1].text)
            self.plan = self._planned(parsed.calls)
            self._read_as(parsed.calls, parsed.issues)
