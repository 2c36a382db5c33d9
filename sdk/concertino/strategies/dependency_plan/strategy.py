"""DependencyPlan: the paradigm of GAP. The model plans which sub-task needs which, and calls what is ready together.

A turn is a text with calls, a plan, or an answer. Calls come as queries in tags (`<search>`), all independent, or as a
`<graph>` whose nodes use each other's results. A graph runs level by level, as in the paper, or each call as soon as
its inputs are ready. Results come back as `<observation>`; a `<reflection>` may change the plan.

A text that the length limit ended (`finish_reason` `length`) is read up to there: calls that are whole are run, one
that is not is observed as its own PARSE_ERR, an answer that is not whole is none. If nothing was whole, the model is
told.

Invariant: nothing is run of a turn whose plan or graph has a fault; a single call that cannot be read is observed as
its own PARSE_ERR while its siblings run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from concertino.core.errors import UsageError
from concertino.core.function_objects import made_once
from concertino.core.model import Message, Reply
from concertino.core.observation import Observation
from concertino.core.plan import Call, Plan
from concertino.schema import near_names
from concertino.strategies.base.brief_prompt import PromptForm, check_prompt
from concertino.strategies.base.conversation import Conversation
from concertino.strategies.base.format_issues import report
from concertino.strategies.base.machine import Done, OutlineStep, RunLimits, Strategy, TaskContext
from concertino.strategies.base.members import Offers
from concertino.strategies.base.observations import render_remaining
from concertino.text.foreign_text import Quoting

from . import prompts
from .format import TurnText, read_turn, write_turn
from .graph import by_levels
from .queries import join_parts
from .tasks import PlanTask

if TYPE_CHECKING:
    from concertino.strategies.base.answer_reader import AnswerReader

_SEARCH_TAGS = ("search", "wiki_search")
_CALL_TAG = re.compile(r"[a-z][a-z0-9_]{0,63}")
_TAKEN = frozenset(("think", "plan", "reflection", "observation", "answer", "graph", "node"))


@dataclass(frozen=True)
class DependencyPlan(Strategy):
    """A plan with dependencies, executed in parallel (GAP).

    Args:
        tools: which member of the pool answers which tag: `{"search": "search/search"}`. Without any, `<search>` and
            `<wiki_search>` are answered by the member that is visible as `search` or `wiki_search`; where there is
            none, every member that takes a text has a tag of its own name.
        schedule: how a `<graph>` runs: `levels` waits for a whole level before the next begins (the paper's way),
            `ready` starts each call as soon as its inputs are there.
        graph: read `<graph>`; else only single calls.
        max_rounds: turns with calls.
        max_parallel: calls in one turn, or nodes in one level; the rest is observed as `too_many_calls`.
        max_unreadable_replies: texts without a readable call, in a row, after which the run ends.
        strict: refuse what a lenient reader repairs (every repair is named in `CODES` of the format).
        show_budget: show what is left of the budget with the observations.
        prompt: `full`, or `brief` for a model that was trained on this format: the members and the numbers, and
            observations in their short form.
    """

    tools: Mapping[str, str] = field(default_factory=dict)
    schedule: Literal["levels", "ready"] = "levels"
    graph: bool = True
    max_rounds: int = 8
    max_parallel: int = 8
    max_unreadable_replies: int = 3
    strict: bool = False
    show_budget: bool = True
    prompt: PromptForm = "full"

    name = "dependency-plan"
    reads_tools = True

    def __post_init__(self) -> None:
        self._require_at_least(max_rounds=1, max_parallel=1, max_unreadable_replies=1)
        if self.schedule not in ("levels", "ready"):
            raise UsageError(f"DependencyPlan(schedule={self.schedule!r}): expected 'levels' or 'ready'")
        check_prompt("DependencyPlan", self.prompt)
        if not isinstance(self.tools, Mapping) or not all(isinstance(name, str) for name in self.tools.values()):
            raise UsageError(
                f"DependencyPlan(tools={self.tools!r}): expected names by tag: {{'search': 'search/search'}}"
            )
        for tag in self.tools:
            if not _CALL_TAG.fullmatch(tag) or tag in _TAKEN:
                raise UsageError(
                    f"DependencyPlan(tools={{{tag!r}: ...}}): a tag has small letters, digits and _, and is none of "
                    f"{', '.join(sorted(_TAKEN))}"
                )

    @property
    def named_members(self) -> Sequence[str]:
        return tuple(self.tools.values())

    def quoting(self, tools: Sequence[Mapping[str, Any]] = ()) -> Quoting:
        return prompts.quoting_for(
            made_once(tools, resolve_call_tags, tuple(self.tools.items())) if tools else self.tools
        )

    @property
    def limits(self) -> RunLimits:
        """Turns with calls, and calls in one of them."""
        return RunLimits(self.max_rounds, self.max_parallel)

    def write_turn(
        self,
        calls: Sequence[Call],
        thought: str = "",
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        outline: Sequence[OutlineStep] = (),
        **_: Any,
    ) -> str:
        call_tags = resolve_call_tags(tools, tuple(self.tools.items())) if tools else {}
        tasks = [
            PlanTask(f"T{number}", step.text, tuple(f"T{need + 1}" for need in step.needs))
            for number, step in enumerate(outline, 1)
        ]
        # Queries where one tag takes every call, else the nodes of a graph.
        queries = _as_queries(calls, call_tags)
        if queries is not None:
            return write_turn(thought, tasks=tasks, queries=queries)
        # A node's id must begin with a letter, and ids that were counted do not.
        named = [replace(call, id=call.id if call.id[:1].isalpha() else f"s{n}") for n, call in enumerate(calls, 1)]
        return write_turn(thought, tasks=tasks, graph=Plan(named), call_tags=call_tags)

    def write_answer(self, answer: str, thought: str = "", *, part: str = "") -> tuple[str, ...]:
        return (write_turn(thought, answers=[answer]),)

    def begin(self, context: TaskContext) -> DependencyPlanMachine:
        """A machine at the start of a run.

        Raises:
            UsageError: a tag has no member to answer it, or one that takes no text; names near ones.
        """
        call_tags = made_once(context.tools, resolve_call_tags, tuple(self.tools.items()))
        return DependencyPlanMachine(self.within(context), context, call_tags)

    def restore(self, dumped: Mapping[str, Any]) -> DependencyPlanMachine:
        return DependencyPlanMachine.restored(DependencyPlan.from_json(dumped["settings"]), dumped)


def _as_queries(calls: Sequence[Call], call_tags: Mapping[str, str]) -> dict[str, list[str]] | None:
    """Calls of one member by the tag that calls it, where each takes a text alone and none waits for another."""
    # Reversed, so that the first tag of a member wins.
    tags = {name: tag for tag, name in reversed(list(call_tags.items()))}
    texts = []
    for call in calls:
        values = list(call.arguments.values()) if isinstance(call.arguments, Mapping) else []
        if call.after or len(values) != 1 or not isinstance(values[0], str):
            return None
        texts.append(values[0])
    names = {call.name for call in calls}
    return {tags[calls[0].name]: texts} if len(names) == 1 and names <= tags.keys() else None


def resolve_call_tags(tools: Sequence[Mapping[str, Any]], named: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Visible names of the members by the tags that call them.

    Args:
        tools: all members on offer.
        named: tags with the names of their members; without any, the search tags or the members' own names.

    Raises:
        UsageError: a tag has no member to answer it, or one that takes no text.
    """
    offers = Offers(tools)
    if not named:
        found = next((name for name in _SEARCH_TAGS if name in offers), "")
        if found:
            return _taking_text(dict.fromkeys(_SEARCH_TAGS, found), offers)
        own_names = {
            name: name for name in offers if offers[name].input and _CALL_TAG.fullmatch(name) and name not in _TAKEN
        }
        if not own_names:
            raise UsageError(
                f"no member of the pool takes a text, so nothing can answer <search>; name one: "
                f"DependencyPlan(tools={{'search': ...}}); the pool has {', '.join(list(offers)[:12]) or 'none'}"
            )
        return own_names
    return _taking_text({call_tag: _visible(call_tag, name, offers) for call_tag, name in named}, offers)


def _visible(call_tag: str, name: str, offers: Offers) -> str:
    """The visible name of a member that is given by its visible, full or short name."""
    for candidate in (name, name.replace("/", "__"), name.rpartition("/")[2]):
        if candidate in offers:
            return candidate
    near = near_names(name, offers, limit=1)
    hint = f"did you mean {near[0]!r}?" if near else f"the pool has {', '.join(list(offers)[:12]) or 'none'}"
    raise UsageError(f"DependencyPlan(tools={{{call_tag!r}: {name!r}}}): no such member is on offer; {hint}")


def _taking_text(call_tags: dict[str, str], offers: Offers) -> dict[str, str]:
    for call_tag, name in call_tags.items():
        if not offers[name].input:
            raise UsageError(
                f"DependencyPlan(tools={{{call_tag!r}: {name!r}}}): {name!r} has no argument that takes a text; its "
                f"arguments are {', '.join(offers[name].properties) or 'none'}"
            )
    return call_tags


class DependencyPlanMachine(Conversation):
    """One run by a plan."""

    settings: DependencyPlan

    def __init__(self, settings: DependencyPlan, context: TaskContext, call_tags: Mapping[str, str]) -> None:
        super().__init__(settings, context)
        self.call_tags = dict(call_tags)
        self.tasks: tuple[PlanTask, ...] = ()
        self.read_as = (False, False)
        self.answers: tuple[str, ...] = ()
        tags = tuple(self.call_tags.items())
        form = (settings.max_rounds, settings.max_parallel, settings.graph, settings.prompt)
        system = made_once(self.tools, prompts.system_prompt, tags, *form)
        question = prompts.quoting_for(self.call_tags).text(context.question)
        if settings.show_budget:
            question += render_remaining(context.remaining)
        self.messages = [Message("system", system), Message("user", question)]

    # -- replies and observations ----------------------------------------------------------------------------------

    def answer_reader(self) -> AnswerReader:
        """An `<answer>` in a turn without calls."""
        from .answer_reader import PartsAnswer

        return PartsAnswer("graph", *self.call_tags)

    def on_reply(self, reply: Reply) -> None:
        self._heard(reply)
        cut_off = reply.finish_reason == "length"
        if self.phase == "answer":
            self._last_answer(reply.text, cut_off)
            return
        # Kept, because a restored machine reads this text again and must read it in the same way.
        self.read_as = (bool(self.tasks), cut_off)
        read = self._read(reply.text)
        fruitless = self.fruitless
        self._follow(reply, read, cut_off)
        self._read_as(read.calls, read.issues, understood=self.fruitless <= fruitless, thought=read.thinking)

    def _follow(self, reply: Reply, read: TurnText, cut_off: bool) -> None:
        """Do what the text says."""
        new_plan = read.tasks is not None and read.tasks != self.tasks
        if read.faults:
            self._again(prompts.render_faults(reply.text, read.faults), report(reply.text, read.faults[:3]))
            return
        self.tasks = read.tasks if read.tasks is not None else self.tasks
        if read.answers is not None:
            self._answered(read.answers, "answered")
        elif read.calls:
            self.fruitless = 0
            self.plan, self.phase = self._planned(read.calls), "act"
        elif cut_off:
            self._again(prompts.CUT_OFF, "the text ended (length limit) before a call or an answer was complete")
        # One turn that only plans is welcome; a second in a row counts as fruitless, else planning might never end.
        elif new_plan and not self._only_planned_before():
            self.messages.append(Message("user", prompts.GO_ON))
        else:
            self._again(prompts.render_no_call(self.call_tags), "the text held no call and no answer")

    def _only_planned_before(self) -> bool:
        """Whether the last turn, too, was a plan and nothing else."""
        return len(self.messages) > 2 and self.messages[-2].text == prompts.GO_ON

    def _read(self, text: str) -> TurnText:
        planned, cut_off = self.read_as
        own = self.settings
        return read_turn(
            text, self.call_tags, self.tools, strict=own.strict, graph=own.graph, planned=planned, cut_off=cut_off
        )

    def _planned(self, calls: Sequence[Call]) -> Plan:
        """The plan of a turn's calls; those beyond the limit say so."""
        plan = Plan(calls)
        limit = self.settings.max_parallel
        # The limit holds for each level: a graph may have more calls, as long as they do not run at the same time.
        beyond = {name for level in plan.levels() for name in level[limit:]}
        if beyond:
            error = ("too_many_calls", f"at most {limit} calls at the same time; repeat it in the next turn")
            plan = Plan(call if call.id not in beyond else replace(call, error=error) for call in calls)
        return by_levels(plan) if self.settings.schedule == "levels" else plan

    def observe(self, observations: Sequence[Observation], remaining: Mapping[str, float] | None = None) -> None:
        assert self.plan is not None
        brief = self.settings.prompt == "brief"
        names = [call.id if brief else call.name for call in self.plan.calls]
        shown = remaining if self.settings.show_budget else None
        quoted = prompts.quoting_for(self.call_tags)
        text = prompts.render_observations(observations, names, shown, self.settings.prompt, quoted)
        self.plan = None
        self._take_found(observations)
        self.round += 1
        self.phase = "ask"
        if self.round >= self.settings.max_rounds:
            self.phase = "answer"
            text += f"\n{prompts.BRIEF_LAST if brief else prompts.LAST}"
        self.messages.append(Message("user", text))

    def _last_answer(self, text: str, cut_off: bool) -> None:
        """The answer after the last turn with calls; a call there is no call."""
        # Without call_tags and without graphs: `<search>` is plain text now.
        read = read_turn(text, {}, self.tools, strict=self.settings.strict, graph=False, cut_off=cut_off)
        self._read_as(read.calls, read.issues, understood=read.answers is not None, thought=read.thinking)
        if read.answers is not None:
            self._answered(read.answers, "rounds")
        else:
            self._end(Done(None, "rounds", "the text after the last turn held no <answer>"))

    def _answered(self, answers: tuple[str, ...], stop: str) -> None:
        self.answers = answers
        self._end(Done(join_parts(answers), stop))

    def _again(self, text: str, detail: str) -> None:
        why = f"could not be run; the last: {' '.join(detail.splitlines())}"
        self._hand_back(text, why, self.settings.max_unreadable_replies)

    # -- copies ----------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """Plain JSON data; the plan is read again from the last message."""
        return {
            **super().dump(),
            "call_tags": self.call_tags,
            "tasks": [[task.id, task.text, list(task.depends)] for task in self.tasks],
            "read_as": list(self.read_as),
            "answers": list(self.answers),
        }

    def _load(self, dumped: Mapping[str, Any]) -> None:
        super()._load(dumped)
        self.call_tags = dict(dumped["call_tags"])
        self.tasks = tuple(PlanTask(own_id, text, tuple(depends)) for own_id, text, depends in dumped["tasks"])
        planned, cut_off = dumped["read_as"]
        self.read_as = (planned, cut_off)
        self.answers = tuple(dumped["answers"])
        self.plan = None
        if self.phase == "act":
            calls = self._read(self.messages[-1].text).calls
            self.plan = self._planned(calls)
            self._restore_calls(calls)
