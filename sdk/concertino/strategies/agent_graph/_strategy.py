"""AgentGraph: the paradigm of MAS-Orchestra. The model writes a whole group of agents once, as a graph; it runs as one.

The degree of MAS says how much may be written: `low`, an answer or one agent; `high`, a graph of agents. Agents start
as soon as what they wait for is there. What the one agent without an outgoing edge returns is the answer; the model
sees no result.

Invariant: nothing is run of a text with a fault. With `patience` above 1 the model is told its faults, or what failed,
and writes again; with 1 there is the paper's single decision.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from concertino._errors import UsageError
from concertino._models import Message, Reply
from concertino._observation import Observation
from concertino._plan import Plan
from concertino.strategies._flaw import Flaw
from concertino.strategies._flaws import report
from concertino.strategies._machine import Act, Ask, Brief, Done, Machine, Step, Strategy

from . import _prompts as prompts
from ._format import GraphReading, read_graph

_RENAMED = {"debate_roles": "roles"}


@dataclass(frozen=True)
class AgentGraph(Strategy):
    """A graph of agents, written at once (MAS-Orchestra).

    Args:
        dom: degree of MAS: `low` (an answer, or at most one agent) or `high` (a graph).
        patience: texts that could not be run, or whose answer failed, in a row, after which the run ends; 1 is the
            paper's single decision.
        prepend_task: put the original question in front of every sub-task, as the paper does.
        strict: refuse what a lenient reader repairs (every repair is named in `CODES` of the format).
        max_agents: of one graph.
        renamed: argument names that a model writes, by those that this pool's schemas have instead.
    """

    dom: Literal["low", "high"] = "high"
    patience: int = 3
    prepend_task: bool = True
    strict: bool = False
    max_agents: int = 64
    renamed: Mapping[str, str] = field(default_factory=lambda: dict(_RENAMED))

    name = "agent-graph"
    reads_tools = True

    def __post_init__(self) -> None:
        if self.dom not in ("low", "high"):
            raise UsageError(f"AgentGraph(dom={self.dom!r}): expected 'low' or 'high'")
        if not isinstance(self.renamed, Mapping) or not all(isinstance(name, str) for name in self.renamed.values()):
            raise UsageError(
                f"AgentGraph(renamed={self.renamed!r}): expected names by name: {{'debate_roles': 'roles'}}"
            )
        for name in ("patience", "max_agents"):
            if getattr(self, name) < 1:
                raise UsageError(f"AgentGraph({name}={getattr(self, name)!r}): expected at least 1")

    @property
    def max_rounds(self) -> int:
        """Graphs that may run."""
        return self.patience

    def begin(self, brief: Brief) -> AgentGraphMachine:
        """A machine at the start of a run."""
        return AgentGraphMachine(self, brief)

    def restore(self, dumped: Mapping[str, Any]) -> AgentGraphMachine:
        """A machine from `dump`."""
        machine = AgentGraphMachine.__new__(AgentGraphMachine)
        machine._load(dumped)
        return machine


class AgentGraphMachine(Machine):
    """One run of a graph."""

    def __init__(self, settings: AgentGraph, brief: Brief) -> None:
        self.settings = settings
        self.question = brief.question
        self.tools = list(brief.tools)
        self.parallel = brief.parallel
        self.rounds = min(settings.max_rounds, brief.rounds or settings.max_rounds)
        self.phase: Literal["ask", "act", "done"] = "ask"
        self.round = 0
        self.asked = 0
        self.fruitless = 0
        self.plan: Plan | None = None
        self.flaws: tuple[Flaw, ...] = ()
        self.sink = ""
        self.final = Done(None, "answered")
        system = prompts.system_prompt(self.tools, settings.dom, settings.prepend_task, settings.max_agents)
        self.messages: list[Message] = [Message("system", system), Message("user", brief.question)]

    def step(self) -> Step:
        """The next step."""
        if self.phase == "act":
            assert self.plan is not None
            return Act(self.plan, self.round + 1, self.flaws)
        if self.phase == "done":
            return self.final
        return Ask("orchestrator", self.messages, len(self.messages) - self.asked)

    # -- what came back --------------------------------------------------------------------------------------------

    def tell(self, reply: Reply) -> None:
        """Read the model's text."""
        self.messages.append(replace(Message.of(reply), tool_calls=()))
        self.asked = len(self.messages)
        read = self._read(reply.text, reply.finish_reason == "length")
        self.flaws = read.flaws
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
            text, self.tools, dom=own.dom, strict=own.strict, question=self.question, prepend_task=own.prepend_task,
            renamed=own.renamed, max_agents=own.max_agents, max_parallel=self.parallel, cut_off=cut_off,
        )  # fmt: skip

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
        self._again(prompts.render_failure(self.sink, observations, ids, remaining), "rounds", detail)

    def _again(self, text: str, stop: str, detail: str) -> None:
        """Let the model write again, a few times."""
        self.fruitless += 1
        if self.fruitless >= self.settings.patience or self.round >= self.rounds:
            self._end(Done(None, stop, detail))
            return
        self.messages.append(Message("user", text))
        self.phase = "ask"

    def finish(self, stop: str, detail: str = "") -> None:
        """End from outside."""
        if self.phase != "done":
            self._end(Done(None, stop, detail))

    def _end(self, final: Done) -> None:
        self.final, self.phase, self.plan = final, "done", None

    # -- copies ----------------------------------------------------------------------------------------------------

    def fork(self) -> Self:
        """An independent copy; messages and the plan are immutable and shared."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.messages = list(self.messages)
        return twin

    def dump(self) -> dict[str, Any]:
        """Plain JSON data; the plan is read again from the last message."""
        return {
            "settings": self.settings.to_json(),
            "question": self.question,
            "tools": self.tools,
            "parallel": self.parallel,
            "rounds": self.rounds,
            "phase": self.phase,
            "round": self.round,
            "asked": self.asked,
            "fruitless": self.fruitless,
            "flaws": [flaw.to_json() for flaw in self.flaws],
            "final": [self.final.answer, self.final.stop, self.final.detail],
            "messages": [message.to_json() for message in self.messages],
        }

    def _load(self, dumped: Mapping[str, Any]) -> None:
        settings = AgentGraph.from_json(dumped["settings"])
        assert isinstance(settings, AgentGraph)
        self.settings = settings
        for name in ("question", "parallel", "rounds", "phase", "round", "asked", "fruitless"):
            setattr(self, name, dumped[name])
        self.tools = list(dumped["tools"])
        self.flaws = tuple(Flaw.from_json(flaw) for flaw in dumped["flaws"])
        self.final = Done(*dumped["final"])
        self.messages = [Message.from_json(message) for message in dumped["messages"]]
        read = self._read(self.messages[-1].text, False) if self.phase == "act" else None
        self.plan, self.sink = (read.plan, read.sink) if read is not None else (None, "")
