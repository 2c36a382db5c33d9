"""AgentGraph: the paradigm of MAS-Orchestra. The model writes a whole group of agents once, as a graph; it runs as one.

The degree of MAS says how much may be written: `low`, an answer or one agent; `high`, a graph of agents. Agents start
as soon as what they wait for is there. What the one agent without an outgoing edge returns is the answer; the model
sees no result.

Invariant: nothing of a text with a fault is run. With `max_unreadable_replies` above 1 the model is told its faults, or
what failed, and writes again; with 1 there is the paper's single decision.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from concertino.core.errors import UsageError
from concertino.core.function_objects import made_once
from concertino.core.model import Message, Reply
from concertino.core.observation import Observation
from concertino.core.plan import Call, Plan
from concertino.strategies.base.brief_prompt import PromptForm, check_prompt
from concertino.strategies.base.conversation import Conversation
from concertino.strategies.base.format_issues import report
from concertino.strategies.base.machine import Done, RunLimits, Strategy, TaskContext
from concertino.text.foreign_text import Quoting

from . import prompts
from .format import GraphReading, read_graph, write_answer, write_graph

if TYPE_CHECKING:
    from concertino.strategies.base.answer_reader import AnswerReader

# The paper's debate agent takes `debate_roles`; those of this project's pool take `roles`.
_RENAMED = {"debate_roles": "roles"}


@dataclass(frozen=True)
class AgentGraph(Strategy):
    """A graph of agents, written at once (MAS-Orchestra).

    Args:
        dom: degree of MAS: `low` (an answer, or at most one agent) or `high` (a graph).
        max_unreadable_replies: texts that could not be run, or whose answer failed, in a row, after which the
            run ends; 1 is the paper's single decision.
        prepend_task: put the original question in front of every sub-task, as the paper does.
        strict: refuse what a lenient reader repairs (every repair is named in `CODES` of the format).
        max_agents: of one graph.
        renamed: argument names that a model writes, by those that this pool's schemas have instead.
        prompt: `full`, or `brief` for a model that was trained on this format: the agents, and what failed in its
            short form.
    """

    dom: Literal["low", "high"] = "high"
    max_unreadable_replies: int = 3
    prepend_task: bool = True
    strict: bool = False
    max_agents: int = 64
    renamed: Mapping[str, str] = field(default_factory=lambda: dict(_RENAMED))
    prompt: PromptForm = "full"

    name = "agent-graph"
    reads_tools = True
    searches = False

    def __post_init__(self) -> None:
        if self.dom not in ("low", "high"):
            raise UsageError(f"AgentGraph(dom={self.dom!r}): expected 'low' or 'high'")
        check_prompt("AgentGraph", self.prompt)
        if not isinstance(self.renamed, Mapping) or not all(isinstance(name, str) for name in self.renamed.values()):
            raise UsageError(
                f"AgentGraph(renamed={self.renamed!r}): expected names by name: {{'debate_roles': 'roles'}}"
            )
        self._require_at_least(max_unreadable_replies=1, max_agents=1)

    @property
    def max_rounds(self) -> int:
        """Graphs that may run."""
        return self.max_unreadable_replies

    def quoting(self, tools: Sequence[Mapping[str, Any]] = ()) -> Quoting:
        return prompts.QUOTING

    @property
    def limits(self) -> RunLimits:
        """Graphs that may run, and agents in one of them."""
        return RunLimits(self.max_rounds, 1 if self.dom == "low" else self.max_agents)

    def write_turn(self, calls: Sequence[Call], thought: str = "", **_: Any) -> str:
        plan = Plan(replace(call, id=call.id or f"a{number}") for number, call in enumerate(calls, 1))
        if self.dom == "low" and len(plan) > 1:
            raise UsageError(f"AgentGraph(dom='low') hands the question to one agent; got {len(plan)} calls")
        followed = plan.followers()
        sinks = [call.id for call in plan.calls if call.id not in followed]
        if len(sinks) > 1:
            raise UsageError(
                f"AgentGraph: {len(sinks)} calls that nobody waits for ({', '.join(sinks[:8])}), and only the one that "
                "gives the answer may be; add a call that refers to the others"
            )
        return write_graph(plan, thinking=thought, dom=self.dom)

    def write_answer(self, answer: str, thought: str = "", *, part: str = "") -> tuple[str, ...]:
        if self.dom == "high":
            raise UsageError("AgentGraph(dom='high') gives no answer in words: the last agent's output is the answer")
        return (write_answer(answer, thought),)

    def begin(self, context: TaskContext) -> AgentGraphMachine:
        return AgentGraphMachine(self, context)

    def restore(self, dumped: Mapping[str, Any]) -> AgentGraphMachine:
        return AgentGraphMachine.restored(AgentGraph.from_json(dumped["settings"]), dumped)


class AgentGraphMachine(Conversation):
    """One run of a graph."""

    settings: AgentGraph

    def __init__(self, settings: AgentGraph, context: TaskContext) -> None:
        super().__init__(settings, context)
        self.parallel = context.parallel
        self.rounds = min(settings.max_rounds, context.rounds or settings.max_rounds)
        self.sink = ""
        form = (settings.dom, settings.prepend_task, settings.max_agents, settings.prompt)
        system = made_once(self.tools, prompts.system_prompt, *form)
        self.messages = [Message("system", system), Message("user", settings.quoting().text(context.question))]

    # -- replies and observations ----------------------------------------------------------------------------------

    def answer_reader(self) -> AnswerReader | None:
        """A direct `<answer>`; None where a graph is wanted, whose last agent gives the answer."""
        from concertino.strategies.base.answer_reader import TagAnswer

        return TagAnswer("agent", quotes=True) if self.settings.dom == "low" else None

    def on_reply(self, reply: Reply) -> None:
        self._heard(reply)
        read = self._read(reply.text, reply.finish_reason == "length")
        calls = () if read.plan is None else read.plan.calls
        understood = read.answer is not None or read.plan is not None
        self._read_as(calls, read.issues, understood=understood, thought=read.thinking)
        if read.answer is not None:
            self._end(Done(read.answer, "answered"))
        elif read.plan is not None:
            self.plan, self.sink, self.phase = read.plan, read.sink, "act"
        else:
            detail = report(reply.text, read.faults[:3]).replace("\n", " ")
            self._again(prompts.render_faults(reply.text, read.faults), "format", f"no graph could be run: {detail}")

    def _read(self, text: str, cut_off: bool) -> GraphReading:
        own = self.settings
        return read_graph(
            text,
            self.tools,
            dom=own.dom,
            strict=own.strict,
            question=self.question,
            prepend_task=own.prepend_task,
            renamed=own.renamed,
            max_agents=own.max_agents,
            max_parallel=self.parallel,
            cut_off=cut_off,
        )

    def observe(self, observations: Sequence[Observation], remaining: Mapping[str, float] | None = None) -> None:
        """Take the sink's output as the answer."""
        assert self.plan is not None
        ids = [call.id for call in self.plan.calls]
        result = observations[ids.index(self.sink)]
        self.plan = None
        self.round += 1
        if result.ok:
            content = result.content
            text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
            cut = f"{result.truncated} characters of it were cut: raise max_chars of {result.name!r}"
            self._end(Done(text, "answered", cut if result.truncated else ""))
            return
        cause = result.error.message if result.error is not None else ""
        detail = f"agent {self.sink!r}, which gives the answer, ended {result.status.value}: {cause}"
        shown = prompts.render_failure(self.sink, observations, ids, remaining, self.settings.prompt)
        self._again(shown, "rounds", detail)

    def _again(self, text: str, stop: str, detail: str) -> None:
        """Let the model write again, a few times."""
        self.fruitless += 1
        if self.fruitless >= self.settings.max_unreadable_replies or self.round >= self.rounds:
            self._end(Done(None, stop, detail))
            return
        self.messages.append(Message("user", text))
        self.phase = "ask"

    # -- copies ----------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """Plain JSON data; the plan is read again from the last message."""
        return {**super().dump(), "parallel": self.parallel, "rounds": self.rounds}

    def _load(self, dumped: Mapping[str, Any]) -> None:
        super()._load(dumped)
        self.parallel, self.rounds = dumped["parallel"], dumped["rounds"]
        # Never cut off: a text that the limit ended inside a graph does not lead to the phase `act`.
        read = self._read(self.messages[-1].text, False) if self.phase == "act" else None
        self.plan, self.sink = (read.plan, read.sink) if read is not None else (None, "")
        if self.plan is not None:
            self._restore_calls(self.plan.calls)
