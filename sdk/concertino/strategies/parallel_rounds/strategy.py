"""ParallelRounds: the paradigm of ParaManager. In every round the model reasons, then makes one or more calls at once.

A round's calls form a plan without edges. Their observations, with the remaining budget, are the next thing the model
reads. It ends with `<answer>`; or, as in the paper, with a call of `final_answer`, after which a summariser writes the
answer. At most H = 12 rounds of at most n_max = 4 calls (the paper's values).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from concertino.core.errors import UsageError
from concertino.core.format_issue import FormatIssue
from concertino.core.function_objects import made_once, names_of
from concertino.core.model import Message, Reply
from concertino.core.observation import Observation
from concertino.core.plan import Call, Plan
from concertino.strategies.base.brief_prompt import PromptForm, check_prompt
from concertino.strategies.base.conversation import Conversation
from concertino.strategies.base.history import compacted, size_of
from concertino.strategies.base.machine import Ask, Done, RunLimits, Strategy, TaskContext
from concertino.strategies.base.observations import render_each, render_remaining, round_message
from concertino.strategies.base.references import Sources, fill_call, fill_text, place_of

from . import prompts
from .format import RoundText, check_round, read_ahead, read_round, write_ending, write_round

if TYPE_CHECKING:
    from concertino.strategies.base.answer_reader import AnswerReader

Phase = Literal["ask", "act", "answer", "done"]
_SHOWN_BEYOND = 20
"""Calls beyond the limit of a round that the model is told of one by one."""


@dataclass(frozen=True)
class ParallelRounds(Strategy):
    """Rounds of parallel calls (ParaManager).

    Args:
        max_rounds: rounds of calls, H in the paper.
        max_parallel: calls in one round, n_max in the paper; the rest is observed as `too_many_calls`.
        summariser: who writes the answer: the `orchestrator` itself, or a `summariser`, a model of that role that reads
            the record of the whole run (the paper's termination model).
        native: use the server's native tool calling instead of `<tool_call>` text. A reply without a call is then the
            answer.
        show_budget: show what is left of the budget with the observations (b_t of the paper's state).
        observation_tokens: tokens of one observation that are shown; the middle of a longer one is left out.
        history_tokens: tokens of the whole conversation, from which on observations of old rounds are shortened, and
            where that is not enough, the oldest rounds left out.
        max_unreadable_replies: texts without a readable call, in a row, after which the run ends.
        prompt: `full`, or `brief` for a model that was trained on this format: the members and the numbers, and
            observations in their short form.
        references: `${question}`, `${question.2}` and `${1.2}`, in an argument or in the answer, stand for the
            question, its second paragraph and the result in place 2 of round 1.
        boxed_answers: ask for each value of the answer in a LaTeX box, as graders look for it; a brief prompt always
            does.
    """

    max_rounds: int = 12
    max_parallel: int = 4
    summariser: Literal["orchestrator", "summariser"] = "orchestrator"
    native: bool = False
    show_budget: bool = True
    observation_tokens: int | None = None
    history_tokens: int | None = None
    max_unreadable_replies: int = 3
    prompt: PromptForm = "full"
    references: bool = False
    boxed_answers: bool = False

    name = "parallel-rounds"

    def __post_init__(self) -> None:
        self._require_at_least(max_rounds=1, max_parallel=1, max_unreadable_replies=1)
        self._require_at_least(observation_tokens=40, history_tokens=400)
        if self.summariser not in ("orchestrator", "summariser"):
            raise UsageError(f"ParallelRounds(summariser={self.summariser!r}): expected 'orchestrator' or 'summariser'")
        check_prompt("ParallelRounds", self.prompt)

    def begin(self, context: TaskContext) -> ParallelRoundsMachine:
        """A machine at the start of a run.

        Raises:
            UsageError: a member of the pool is visible under the name of the call that ends the run.
        """
        if prompts.FINAL in names_of(context.tools):
            raise UsageError(f"a member is visible as {prompts.FINAL!r}, which ends a run; give it an alias")
        return ParallelRoundsMachine(self.within(context), context)

    @property
    def limits(self) -> RunLimits:
        """Rounds, and calls in one of them."""
        return RunLimits(self.max_rounds, self.max_parallel)

    @property
    def direct(self) -> bool:
        """The work ends with the answer itself. A brief prompt keeps the form on which models were trained."""
        return self.prompt == "full" and self.summariser == "orchestrator"

    def write_turn(self, calls: Sequence[Call], thought: str = "", **_: Any) -> str:
        if len(calls) > self.max_parallel:
            raise UsageError(f"ParallelRounds makes at most {self.max_parallel} calls in a round; got {len(calls)}")
        return write_round(thought, [(call.name, call.arguments) for call in calls])

    def write_answer(self, answer: str, thought: str = "", *, part: str = "") -> tuple[str, ...]:
        if self.direct:
            return (write_ending(thought, answer),)
        # The call that ends the rounds; the model is then asked for the answer itself.
        return write_round(thought, [(prompts.FINAL, {})]), f"<answer>{answer}</answer>"

    def restore(self, dumped: Mapping[str, Any]) -> ParallelRoundsMachine:
        return ParallelRoundsMachine.restored(ParallelRounds.from_json(dumped["settings"]), dumped)


class ParallelRoundsMachine(Conversation):
    """One run in rounds.

    Attributes:
        counted: messages at the beginning of the conversation whose tokens are known, where its length is limited.
        size: tokens of these.
    """

    settings: ParallelRounds

    def __init__(self, settings: ParallelRounds, context: TaskContext) -> None:
        super().__init__(settings, context)
        self.names: list[str] = []
        self.native_ids: list[str] = []
        self.counted = self.size = 0
        self.sources = Sources(context.question)
        system = made_once(
            self.tools,
            prompts.system_prompt,
            settings.max_rounds,
            settings.max_parallel,
            settings.native,
            settings.prompt,
            settings.references,
            settings.direct,
            settings.boxed_answers,
        )
        question = settings.quoting().text(context.question)
        if settings.show_budget:
            question += render_remaining(context.remaining)
        self.messages = [Message("system", system), Message("user", question)]

    # -- what is wanted --------------------------------------------------------------------------------------------

    def _question(self) -> Ask:
        if self.phase == "answer" and self.settings.summariser == "summariser":
            # Made at each `step`: a summariser has no conversation of its own, so all of it is fresh.
            record = self._record()
            return Ask("summariser", record, len(record))
        # No tools in the phase `answer`: with them on offer, models call once more instead of answering.
        native: Sequence[Mapping[str, Any]] = ()
        if self.settings.native and self.phase == "ask":
            native = self.tools if self.settings.direct else (*self.tools, prompts.FINAL_TOOL)
        return Ask("orchestrator", self.messages, len(self.messages) - self.asked, native)

    def _record(self) -> list[Message]:
        """The run as the summariser reads it."""
        history = "\n\n".join(prompts.RECORD.text(message.text) for message in self.messages[2:] if message.text)
        question = self.settings.quoting().text(self.question)
        text = f"<conversation_history>\n{history}\n</conversation_history>\n<user_query>\n{question}\n</user_query>"
        system = prompts.summariser_prompt(self.settings.boxed_answers)
        return [Message("system", system), Message("user", text)]

    def answer_reader(self) -> AnswerReader:
        """An `<answer>`; when it is asked for the answer, a text without the tag too."""
        from concertino.strategies.base.answer_reader import TagAnswer

        return TagAnswer("tool_call", whole=self.phase == "answer")

    def complete_calls(self, text: str) -> list[Call]:
        """The calls of closed blocks, as far as the round has room for them; native calls are not written as text."""
        if self.phase != "ask" or self.settings.native:
            return []
        # `final_answer` and calls beyond the limit will not run, so they must not be started early.
        ready = [call for call in read_ahead(text, self.settings.max_parallel) if call.name != prompts.FINAL]
        return [self._filled(call) for call in ready]

    # -- replies and observations ----------------------------------------------------------------------------------

    def on_reply(self, reply: Reply) -> None:
        if self.phase == "answer":
            self._take_answer(reply)
            return
        read = read_round(reply)
        self._heard(reply, with_calls=True)
        answer = self._answer_of(read)
        ends = self.settings.direct and answer and not read.calls
        issues = () if ends else self._verdict(reply, read.calls, read.exact)
        # A reasoning model's hidden channel is not part of the text; only what was written counts as its thought.
        thought = read.reasoning.removeprefix(reply.reasoning).strip()
        self._read_as(read.calls, issues, understood=bool(read.calls or answer), thought=thought)
        if not read.calls:
            self._no_call(read, answer)
            return
        self.fruitless = 0
        # Alone only: an end beside other calls was written before their results were seen.
        if [call.name for call in read.calls] == [prompts.FINAL]:
            self._ask_for_answer("answered")
            return
        self.plan = Plan.parallel([self._checked(index, call) for index, call in enumerate(read.calls)])
        self.names = [call.name for call in read.calls]
        self.native_ids = [call.id for call in reply.tool_calls]
        self.phase = "act"

    def _verdict(self, reply: Reply, calls: Sequence[Call], exact: bool) -> tuple[FormatIssue, ...]:
        """What the round lacks of the exact form; native calls have only their number to get wrong."""
        issues = () if exact or reply.tool_calls else check_round(reply.text)
        if len(calls) > self.settings.max_parallel:
            text = f"{len(calls)} calls; at most {self.settings.max_parallel} in one round"
            return (*issues, FormatIssue("too_many_calls", text, 0, len(reply.text)))
        return issues

    def _checked(self, index: int, call: Call) -> Call:
        """A call beyond the limit, or an end among other calls, is not run and says so."""
        limit = self.settings.max_parallel
        # Kept with an error, so that every call of the text has an observation in its place.
        if index >= limit:
            return replace(call, error=("too_many_calls", f"at most {limit} calls in one round; repeat it in the next"))
        if call.name == prompts.FINAL and call.error is None:
            return replace(call, error=("bad_format", f"{prompts.FINAL} must be the only call of its round"))
        return self._filled(call)

    def _filled(self, call: Call) -> Call:
        """A call with its references filled in, where the setting allows them."""
        return fill_call(call, self.sources) if self.settings.references else call

    def _answer_of(self, read: RoundText) -> str:
        """The answer that a text without calls gives; empty for none."""
        # A server that reads the calls itself leaves no doubt that there are none: what remains is for the user.
        return read.answer or (read.plain if self.settings.native and not read.unclosed else "")

    def _no_call(self, read: RoundText, answer: str) -> None:
        """No call: an answer given directly is taken, anything else is handed back, a few times."""
        if answer and not read.answer and self.settings.summariser == "summariser":
            self._ask_for_answer("answered")
            return
        if answer:
            self._end(Done(answer, "answered"))
            return
        text = prompts.UNCLOSED if read.unclosed else prompts.no_call(self.settings.direct)
        self._hand_back(text, "held no readable call", self.settings.max_unreadable_replies)

    def observe(self, observations: Sequence[Observation], remaining: Mapping[str, float] | None = None) -> None:
        assert self.plan is not None
        calls = self.plan.calls
        self._take_found(observations)
        if self.settings.references:
            self.sources = self.sources.with_round(self.round + 1, calls, observations)
        self._show(calls, observations, remaining if self.settings.show_budget else None)
        self.plan = None
        self.round += 1
        self.phase = "ask"
        self._compact()
        if self.round >= self.settings.max_rounds:
            self._ask_for_answer("rounds")

    def _show(
        self, calls: Sequence[Call], observations: Sequence[Observation], remaining: Mapping[str, float] | None
    ) -> None:
        own = self.settings
        names: Sequence[str] = [self._label(call) for call in calls] if own.prompt == "brief" else self.names
        if not self.native_ids:
            observations, names = self._told(observations, names)
            shown = round_message(observations, names, remaining, own.observation_tokens, own.prompt)
            self.messages.append(shown)
            return
        texts = render_each(observations, names, own.observation_tokens, own.prompt)
        for native_id, text in zip(self.native_ids, texts, strict=True):
            self.messages.append(Message("tool", text, call_id=native_id))
        if remaining:
            self.messages.append(Message("user", render_remaining(remaining).strip()))

    def _told(
        self, observations: Sequence[Observation], names: Sequence[str]
    ) -> tuple[Sequence[Observation], Sequence[str]]:
        """What the model is told of: of thousands of calls beyond the limit, all but a few in one line."""
        each = self.settings.max_parallel + _SHOWN_BEYOND
        if len(observations) <= each + 1:
            return observations, names
        first, last = observations[each], observations[-1]
        # Beyond the limit, all have one and the same error.
        rest = replace(first, call_id=f"{first.call_id}-{last.call_id}")
        label = f"{names[each]}-{names[-1]}" if self.settings.prompt == "brief" else "further calls"
        return [*observations[:each], rest], [*names[:each], label]

    def _label(self, call: Call) -> str:
        """What a brief prompt calls the result of a call: its place, and where it can be referred to, its round."""
        return place_of(self.round + 1, call) if self.settings.references else call.id

    def _compact(self) -> None:
        """Shorten old rounds of a long conversation; the model is then asked with all of it again."""
        limit = self.settings.history_tokens
        if limit is None:
            return
        # Only what is new is counted. Counting all of it in every round would take quadratic time.
        self.size += size_of(self.messages[self.counted :])
        if self.size > limit:
            messages = compacted(self.messages, limit)
            if messages != self.messages:
                # Earlier messages have changed, so a driver that keeps a prefix of tokens must start again.
                self.messages, self.asked = messages, 0
            self.size = size_of(messages)
        self.counted = len(self.messages)

    def _ask_for_answer(self, stop: str) -> None:
        self.final = Done(None, stop)
        self.phase = "answer"
        if self.settings.summariser == "orchestrator":
            self._close_native_calls()
            request = prompts.answer_request(self.settings.prompt, self.settings.boxed_answers)
            self.messages.append(Message("user", request))

    def _close_native_calls(self) -> None:
        """A server refuses a conversation whose last native calls have no answer."""
        last = self.messages[-1]
        for call in last.tool_calls:
            text = "OK" if self.settings.prompt == "brief" else '{"status": "OK"}'
            self.messages.append(Message("tool", text, call_id=call.id))

    def _take_answer(self, reply: Reply) -> None:
        read = read_round(reply)
        self._heard(reply)
        answer = read.answer
        if answer is None and not read.calls:  # a text that still calls somebody is no answer
            answer = read.plain
        self._read_as(read.calls, understood=bool(answer))
        if answer and self.settings.references:
            answer = fill_text(answer, self.sources)
        self._end(Done(answer or None, self.final.stop))

    # -- copies ----------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        return {
            **super().dump(),
            "plan": None if self.plan is None else self.plan.to_json(),
            "names": self.names,
            "native_ids": self.native_ids,
            "results": dict(self.sources.results),
        }

    def _load(self, dumped: Mapping[str, Any]) -> None:
        super()._load(dumped)
        self.names = list(dumped["names"])
        self.native_ids = list(dumped["native_ids"])
        self.counted = self.size = 0
        self.sources = Sources(self.question, dict(dumped["results"]))
        self.plan = None if dumped["plan"] is None else Plan(Call.from_json(call) for call in dumped["plan"])
