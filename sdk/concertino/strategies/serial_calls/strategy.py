"""SerialCalls: the paradigm of ToolOrchestra. One call per turn; its result decides about the next one.

Tools, agents and models stand in one list. Where a tool works with one of several models, the orchestrator names it by
an alias, of which the tool's description tells strengths, prices and latency (`choices`); the pool binds aliases to
models as roles, and the strategy knows nothing of who serves them. The run ends with the `answer` tool: it is the
strategy's own and takes the answer as its argument, or a member of the pool whose result is the answer.

Two forms:

- `chat`, a conversation, with native tool calls or Hermes text;
- `qa`, the released stateless form: each turn is a fresh prompt made of the question and a `Notebook` of documents,
  code and attempts, with the bytes of the released Orchestrator-8B (`released_prompts`). A result finds its way into
  the notebook by the name of its tool. There is no place in that prompt for a call that failed, so a failed call leaves
  it as it was; turns and `max_unreadable_replies` bound the repetition.

A second call of a turn is observed as `too_many_calls`; in the `qa` form the first call that is offered runs, as there.
Nothing that decides about the course of a run depends on the list of tools, so a trace replays without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from concertino.core.errors import UsageError
from concertino.core.function_objects import FunctionObjects, made_once, names_of
from concertino.core.model import Message, Reply
from concertino.core.observation import Observation, Status
from concertino.core.plan import Call, Plan
from concertino.strategies.base.brief_prompt import PromptForm, check_prompt
from concertino.strategies.base.conversation import Conversation
from concertino.strategies.base.machine import Ask, Done, RunLimits, Strategy, TaskContext
from concertino.strategies.base.observations import render_each, render_remaining, round_message
from concertino.strategies.base.references import Sources, fill_call, place_of
from concertino.text.foreign_text import Quoting

from . import prompts
from .choices import choices_by_tool
from .format import SerialTurn, arguments_of, read_turn, write_turn
from .notebook import Kind, Notebook, answer_of, code_of
from .released_prompts import IN_NOTEBOOK, Cutter, Variant, estimating_cutter, offered_tools, released_prompt

if TYPE_CHECKING:
    from concertino.strategies.base.answer_reader import AnswerReader

Phase = Literal["ask", "act", "answer", "done"]
_ALLOWED: dict[str, tuple[str, ...]] = {
    "form": ("chat", "qa"),
    "variant": ("train", "hle", "frames"),
    "answering": ("argument", "member"),
}


@dataclass(frozen=True)
class SerialCalls(Strategy):
    """One call per turn (ToolOrchestra).

    Args:
        form: `chat`, a conversation, or `qa`, the released stateless prompt.
        variant: which released bytes the `qa` form has: of the training, or of one of the two evaluations.
        max_rounds: turns (the paper's 50).
        native: in a chat, use the server's native tool calling in place of `<tool_call>` text; a reply without a call
            is then the answer. The `qa` form hands the tools to the server in any case, and reads calls that it parsed
            as well as text.
        answering: in a chat, who gives the answer: the `argument` of the strategy's own answer tool, or a `member` of
            the pool of that name. In the `qa` form it is always a member.
        answer_tool: name of the tool that ends the run.
        search_tools: names of tools whose results are documents (`qa`).
        code_tools: names of tools whose results are code with its output (`qa`).
        preference: what the user prefers, in words; follows the question.
        show_budget: show what is left of the budget with the observations (`chat`).
        strict: refuse texts that lenient reading repairs.
        max_unreadable_replies: texts without a readable call, in a row, after which the run ends.
        prompt: in a chat, `full`, or `brief` for a model that was trained on this format: the members and the number of
            turns, and observations in their short form.
        references: in a chat, `${question}`, `${question.2}` and `${1.1}` in an argument stand for the question, its
            second paragraph and the result of turn 1.
        boxed_answers: ask for each value of the answer in a LaTeX box, as graders look for it; a brief prompt always
            does.
        cutter: how the `qa` form cuts texts to tokens; no part of the settings that are written down.
    """

    form: Literal["chat", "qa"] = "chat"
    variant: Variant = "frames"
    max_rounds: int = 50
    native: bool = False
    answering: Literal["argument", "member"] = "argument"
    answer_tool: str = "answer"
    search_tools: tuple[str, ...] = ("search",)
    code_tools: tuple[str, ...] = ("enhance_reasoning",)
    preference: str = ""
    show_budget: bool = True
    strict: bool = False
    max_unreadable_replies: int = 3
    prompt: PromptForm = "full"
    references: bool = False
    boxed_answers: bool = False
    cutter: Cutter = field(default=estimating_cutter, compare=False, repr=False)

    name = "serial-calls"

    def __post_init__(self) -> None:
        self._require_at_least(max_rounds=1, max_unreadable_replies=1)
        for name, allowed in _ALLOWED.items():
            if getattr(self, name) not in allowed:
                raise UsageError(f"SerialCalls({name}={getattr(self, name)!r}): expected {' or '.join(allowed)}")
        check_prompt("SerialCalls", self.prompt)
        if self.form == "qa" and (self.references or self.prompt == "brief"):
            given = "references=True" if self.references else "prompt='brief'"
            raise UsageError(
                f"SerialCalls(form='qa', {given}): the released prompt has a fixed form; expected form='chat', or "
                "prompt='full' and references=False"
            )
        for name in ("search_tools", "code_tools"):
            given = getattr(self, name)
            # `("search")` is a text, and its letters would become the names.
            if isinstance(given, str):
                raise UsageError(f"SerialCalls({name}={given!r}): expected several names; write ({given!r},)")
            object.__setattr__(self, name, tuple(given))

    @property
    def named_members(self) -> Sequence[str]:
        return (self.answer_tool,) if self.by_member else ()

    @property
    def by_member(self) -> bool:
        """A member of the pool gives the answer."""
        return self.form == "qa" or self.answering == "member"

    def kind_of(self, tool: str) -> Kind:
        """What the results of a tool are to the notebook; those of an unknown one are documents."""
        if tool == self.answer_tool:
            return "answer"
        return "code" if tool in self.code_tools else "documents"

    def begin(self, context: TaskContext) -> SerialCallsMachine:
        """A machine at the start of a run.

        Raises:
            UsageError: the pool has no member that gives the answer, or has one where the strategy's own tool does.
        """
        names = names_of(context.tools)
        own = self.answer_tool
        if not self.by_member and own in names:
            raise UsageError(
                f"a member is visible as {own!r}, which ends a run; write SerialCalls(answering='member') if its "
                "result is the answer, or give it an alias"
            )
        if self.by_member and names and own not in names:
            raise UsageError(
                f"no member is visible as {own!r}, whose result would be the answer; there are "
                f"{', '.join(sorted(names)[:8])}; alias one, or write SerialCalls(answering='argument') in a chat"
            )
        return SerialCallsMachine(self.within(context), context)

    def quoting(self, tools: Sequence[Mapping[str, Any]] = ()) -> Quoting:
        return IN_NOTEBOOK if self.form == "qa" else prompts.QUOTING

    @property
    def limits(self) -> RunLimits:
        """Turns, with one call each."""
        return RunLimits(self.max_rounds, 1)

    def write_turn(self, calls: Sequence[Call], thought: str = "", **_: Any) -> str:
        if len(calls) != 1:
            raise UsageError(f"SerialCalls makes one call in each turn; got {len(calls)}")
        return write_turn(thought, calls[0].name, calls[0].data)

    def write_answer(self, answer: str, thought: str = "", *, part: str = "") -> tuple[str, ...]:
        if self.by_member:
            raise UsageError(f"the member {self.answer_tool!r} gives the answer; write a turn that calls it")
        return (write_turn(thought, self.answer_tool, {"text": answer}),)

    def restore(self, dumped: Mapping[str, Any]) -> SerialCallsMachine:
        """A machine from `dump`, with this strategy's cutter."""
        return SerialCallsMachine.restored(
            replace(SerialCalls.from_json(dumped["settings"]), cutter=self.cutter), dumped
        )

    def to_json(self) -> dict[str, Any]:
        """Name and settings, as a trace keeps them."""
        # JSON cannot hold a cutter, and `asdict` would copy one that is an object, tokenizer and all.
        settings = asdict(replace(self, cutter=estimating_cutter))
        del settings["cutter"]
        lists = {name: list(getattr(self, name)) for name in ("search_tools", "code_tools")}
        return {"name": self.name, **settings, **lists}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SerialCalls:
        """The inverse of `to_json`; unknown settings are ignored."""
        known = {each.name for each in fields(cls)} - {"cutter"}
        return cls(**{key: value for key, value in data.items() if key in known})


class SerialCallsMachine(Conversation):
    """One run, one call at a time."""

    settings: SerialCalls

    def __init__(self, settings: SerialCalls, context: TaskContext) -> None:
        super().__init__(settings, context)
        self.native_ids: list[str] = []
        self.notebook = Notebook()
        self.sources = Sources(context.question)
        self.messages = []
        if not settings.by_member:
            boxed = settings.boxed_answers or settings.prompt == "brief"
            self.tools = made_once(self.tools, _with_answer, settings.answer_tool, boxed)
        if settings.form == "chat":
            system = made_once(
                self.tools,
                prompts.system_prompt,
                settings.max_rounds,
                settings.answer_tool,
                settings.by_member,
                settings.native,
                settings.prompt,
                settings.references,
            )
            question = prompts.user_prompt(context.question, settings.preference)
            question += render_remaining(context.remaining) if settings.show_budget else ""
            self.messages = [Message("system", system), Message("user", question)]

    # -- what is wanted --------------------------------------------------------------------------------------------

    def _question(self) -> Ask:
        settings = self.settings
        if settings.form == "qa":
            messages = released_prompt(settings.variant, self.problem, self.notebook, settings.cutter)
            tools = offered_tools(settings.variant, self.tools, self.notebook, settings.search_tools)
            return Ask("orchestrator", messages, len(messages), tools)
        native = self.tools if settings.native and self.phase == "ask" else ()
        return Ask("orchestrator", self.messages, len(self.messages) - self.asked, native)

    @property
    def problem(self) -> str:
        """The question as the `qa` form shows it; how a preference is joined to it was not published."""
        return "\n".join(filter(None, [self.question, self.settings.preference]))

    # -- replies and observations ----------------------------------------------------------------------------------

    def answer_reader(self) -> AnswerReader | None:
        """The argument of the answer tool, or an `<answer>`; None where a member gives the answer."""
        if self.settings.by_member:
            return None
        from concertino.strategies.base.answer_reader import ArgumentAnswer, FirstOf, TagAnswer

        return FirstOf(ArgumentAnswer(self.settings.answer_tool), TagAnswer("tool_call", whole=self.phase == "answer"))

    def on_reply(self, reply: Reply) -> None:
        if self.phase == "answer":
            self._take_answer(reply)
            return
        qa = self.settings.form == "qa"
        turn = read_turn(
            reply,
            # The executor tells a chat that a tool is unknown; the `qa` prompt has no place for that.
            tools=names_of(self.tools) if qa and self.tools else (),
            choices=made_once(self.tools, choices_by_tool),
            strict=self.settings.strict,
        )
        if self.settings.native and not qa and not (turn.calls or turn.answer or turn.message):
            from concertino.strategies.base.answer_reader import after_thought

            # A server that reads the calls itself leaves no doubt that there are none.
            turn = replace(turn, message=after_thought(reply.text), issues=())
        direct = (turn.answer or turn.message) and not qa and not (self.settings.strict and not turn.ok)
        self._read_as(turn.calls, turn.issues, understood=bool(turn.calls or direct), thought=turn.thought)
        if not qa:
            self._heard(reply, with_calls=True)
        if not turn.calls:
            self._no_call(turn)
            return
        if not qa:
            self.fruitless = 0
        calls = [fill_call(call, self.sources) for call in turn.calls] if self.settings.references else turn.calls
        chosen = self._chosen(calls)
        if answer := self._own_answer(calls[chosen]):
            self._end(Done(answer, "answered"))
            return
        self.plan = Plan.parallel([self._only(index == chosen, call) for index, call in enumerate(calls)])
        self.native_ids = [call.id for call in reply.tool_calls]
        self.phase = "act"

    def _chosen(self, calls: Sequence[Call]) -> int:
        """The call that runs: the first one that was read; in the `qa` form, that is offered as well."""
        # A chat shows the error of a wrong choice; in `qa` it would be lost, so the next call that can run does.
        refusals = (None,) if self.settings.form == "qa" else (None, "invalid_arguments")
        return next((i for i, call in enumerate(calls) if (call.error and call.error[0]) in refusals), 0)

    def _only(self, chosen: bool, call: Call) -> Call:
        if chosen:
            if not self.settings.by_member and call.name == self.settings.answer_tool and call.error is None:
                text = 'the answer is missing: give it as {"text": "..."}'
                return replace(call, error=("invalid_arguments", text))
            return call
        if call.error is not None:
            return call
        return replace(call, error=("too_many_calls", "one call in each turn; repeat this one in the next turn"))

    def _own_answer(self, call: Call) -> str:
        """The argument of a call of the strategy's own answer tool, `""` for any other call."""
        if self.settings.by_member or call.name != self.settings.answer_tool or call.error is not None:
            return ""
        arguments = arguments_of(call)
        # The schema says `text`; models that know other answer tools write `answer`.
        text = next((v for key in ("text", "answer") if (v := arguments.get(key)) is not None), "")
        return answer_of(text)

    def _no_call(self, turn: SerialTurn) -> None:
        """No call: an answer or a message given directly is taken, anything else is handed back, a few times."""
        answer = turn.answer or turn.message
        if answer and self.settings.form == "chat" and not (self.settings.strict and not turn.ok):
            self._end(Done(answer, "answered"))
            return
        wrong = [issue.message for issue in turn.issues if not issue.repaired] or [i.message for i in turn.issues]
        why = "held no readable call" + (f"; the last: {wrong[0]}" if wrong else "")
        # The released prompt has no place for an error, so the next turn asks the same.
        text = prompts.hand_back(wrong) if self.settings.form == "chat" else ""
        self._hand_back(text, why, self.settings.max_unreadable_replies)

    def observe(self, observations: Sequence[Observation], remaining: Mapping[str, float] | None = None) -> None:
        assert self.plan is not None
        calls = self.plan.calls
        self.plan = None
        self._take_found(observations)
        if self.settings.references:
            self.sources = self.sources.with_round(self.round + 1, calls, observations)
        if self.settings.form == "chat":
            self._show(calls, observations, remaining if self.settings.show_budget else None)
        self.round += 1
        self.phase = "ask"
        for call, observation in zip(calls, observations, strict=True):
            if observation.ok:
                self._note(call, observation.content)
        if self.settings.form == "qa" and self.phase == "ask":
            self._count_refusals(observations)
        if self.phase == "ask" and self.round >= self.settings.max_rounds:
            self._out_of_turns()

    def _count_refusals(self, observations: Sequence[Observation]) -> None:
        """The next prompt is the same after a refused call, so a few in a row end the run."""
        refused = [seen.error.message for seen in observations if seen.status is Status.PARSE_ERR and seen.error]
        if len(refused) < len(observations):
            self.fruitless = 0
            return
        why = f"held no call that could run; the last: {refused[0]}"
        self._hand_back("", why, self.settings.max_unreadable_replies)

    def _note(self, call: Call, content: Any) -> None:
        """A result into the notebook; the result of the answer tool ends the run, unless it is empty."""
        kind = self.settings.kind_of(call.name)
        if kind == "answer":
            if answer := answer_of(content):
                self._end(Done(answer, "answered"))
            else:
                self.notebook = self.notebook.with_attempt(_alias(call), "")
        elif self.settings.form == "chat":
            return
        elif kind == "code" and (run := code_of(content)) is not None:
            self.notebook = self.notebook.with_code(run.code, run.output)
        elif kind == "documents":
            woven = self.settings.variant == "train"
            self.notebook = self.notebook.with_documents(content, woven=woven)

    def _show(
        self, calls: Sequence[Call], observations: Sequence[Observation], remaining: Mapping[str, float] | None
    ) -> None:
        form = self.settings.prompt
        names = [self._label(call) if form == "brief" else call.name for call in calls]
        if not self.native_ids:
            self.messages.append(round_message(observations, names, remaining, prompt=form, quoting=prompts.QUOTING))
            return
        for native_id, text in zip(
            self.native_ids, render_each(observations, names, prompt=form, quoting=prompts.QUOTING), strict=False
        ):
            self.messages.append(Message("tool", text, call_id=native_id))
        unread = prompts.BRIEF_UNREAD_CALL if form == "brief" else prompts.UNREAD_CALL
        for native_id in self.native_ids[len(names) :]:  # a server refuses a conversation with an unanswered call
            self.messages.append(Message("tool", unread, call_id=native_id))
        if remaining:
            self.messages.append(Message("user", render_remaining(remaining).strip()))

    def _label(self, call: Call) -> str:
        """What a brief prompt calls the result of a call: its place, and where it can be referred to, its turn."""
        return place_of(self.round + 1, call) if self.settings.references else call.id

    def _out_of_turns(self) -> None:
        limit = self.settings.max_rounds
        if self.settings.form == "qa":
            self._end(Done(None, "rounds", f"{limit} turns are over and {self.settings.answer_tool} gave no answer"))
            return
        self.final = Done(None, "rounds", f"{limit} turns are over")
        self.phase = "answer"
        request = prompts.last_answer(self.settings.prompt, self.settings.boxed_answers)
        self.messages.append(Message("user", request))

    def _take_answer(self, reply: Reply) -> None:
        turn = read_turn(reply)
        self._heard(reply)
        answer = turn.answer or turn.message
        if answer is None:
            answer = "" if turn.calls else reply.text.strip()
        self._read_as(turn.calls, turn.issues, understood=bool(answer), thought=turn.thought)
        self._end(Done(answer or None, self.final.stop, self.final.detail))

    # -- copies ----------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        return {
            **super().dump(),
            "plan": None if self.plan is None else self.plan.to_json(),
            "native_ids": self.native_ids,
            "notebook": self.notebook.to_json(),
            "results": dict(self.sources.results),
        }

    def _load(self, dumped: Mapping[str, Any]) -> None:
        super()._load(dumped)
        self.native_ids = list(dumped["native_ids"])
        self.notebook = Notebook.from_json(dumped["notebook"])
        self.sources = Sources(self.question, dict(dumped["results"]))
        calls = dumped["plan"]
        self.plan = None if calls is None else Plan.parallel([Call.from_json(call) for call in calls])


def _alias(call: Call) -> str:
    """Who was asked for the answer."""
    alias = arguments_of(call).get("model", "")
    return alias if isinstance(alias, str) else ""


def _with_answer(tools: Sequence[Mapping[str, Any]], name: str, boxed: bool) -> FunctionObjects:
    """The members, and the tool that ends the run."""
    return FunctionObjects((*tools, prompts.answer_tool(name, boxed)))
