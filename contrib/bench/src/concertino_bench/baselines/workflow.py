"""A fixed workflow: one graph of calls, the same for every question, run as one plan.

The graph is data, in the form in which the SDK exports plans (there `nodes` stands for `agents`):

    answer = "join"                                     # whose result is the answer; by default the only sink

    [[agents]]
    id = "a"
    name = "ask_small"
    arguments = { task = "{question}" }

    [[agents]]
    id = "join"
    name = "combine"
    arguments = { opinions = [["${a}"]] }

`${id}` stands for the result of another agent, `{question}` for the question; `edges = [["a", "join"]]` orders agents
that pass no data. A question is put in last, so nothing in it is ever read as a reference.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from concertino import Call, Plan, PlanError, Ref, UsageError
from concertino.schema import compile_schema, explain, suggestion
from concertino.strategies import Act, Done, Step, TaskContext

from .procedure import Log, Procedure, failures

QUESTION = "{question}"
"""What stands for the question in the arguments."""

_ID = {"type": "string", "minLength": 1}
_AGENT = {
    "type": "object",
    "properties": {
        "id": _ID,
        "name": _ID,
        "description": {"type": "string"},
        "arguments": {"type": "object"},
    },
    "required": ["id", "name"],
    "additionalProperties": False,
}
_PAIR = {"type": "array", "items": _ID, "minItems": 2, "maxItems": 2}
_EDGE = {"type": "object", "properties": {"from": _ID, "to": _ID}, "required": ["from", "to"]}
_GRAPH = {
    "type": "object",
    "properties": {
        "agents": {"type": "array", "items": _AGENT, "minItems": 1},
        "edges": {"type": "array", "items": {"anyOf": [_PAIR, _EDGE]}},
        "answer": {"type": "string"},
    },
    "required": ["agents"],
}


@dataclass(frozen=True)
class StaticWorkflow(Procedure):
    """A fixed graph of members of the pool.

    Args:
        file: a TOML or JSON file with the graph.
        graph: the graph itself, as plain data, instead of a file.
        answer: id of the agent whose result is the answer; by default the graph's own `answer`, or its only sink.

    Raises:
        UsageError: the graph cannot be read; says where and why.
    """

    file: str = ""
    graph: Mapping[str, Any] | None = None
    answer: str = ""

    name = "static-workflow"
    reads_tools = True

    def __post_init__(self) -> None:
        if self.graph is None and self.file:
            object.__setattr__(self, "graph", read_graph(Path(self.file)))
        if self.graph is not None:
            object.__setattr__(self, "graph", dict(self.graph))
            # Read once here, so that a wrong graph is an error before the first question and not in each run.
            _answering(self._plan(), self._wanted())

    def prepare(self, brief: TaskContext) -> Log:
        """Make sure that the pool has the graph's members."""
        if self.graph is None:
            raise UsageError(f"{self.name} has no graph; give file='workflow.toml'")
        visible = [tool["function"]["name"] for tool in brief.tools]
        for call in self._plan().calls if visible else ():
            if call.name not in visible and call.name.rpartition("/")[2] not in visible:
                hint = suggestion(call.name, visible)
                raise UsageError(f"{self.name}: agent {call.id!r} calls {call.name!r}; {hint}")
        return super().prepare(brief)

    def decide(self, log: Log) -> Step:
        """Run the graph, then answer with its last result."""
        plan = self._plan()
        if not log.rounds:
            # After the references were read: a question that holds `${a}` stays a question.
            asked = [replace(call, arguments=_filled(call.arguments, log.question)) for call in plan.calls]
            return Act(Plan(asked), 1)
        answering = _answering(plan, self._wanted())
        place = [call.id for call in plan.calls].index(answering)
        text = log.results[place].text
        wrong = failures(log.results)
        if text is None:
            return Done(None, "model", f"{answering!r} gave no result: {wrong}")
        return Done(text.strip() or None, "answered" if text.strip() else "format", wrong)

    def _plan(self) -> Plan:
        """The graph as a plan, with references read."""
        assert self.graph is not None
        return plan_of(self.graph)

    def _wanted(self) -> str:
        """The id that the settings or the graph name as the answer; empty without one."""
        return self.answer or str((self.graph or {}).get("answer", ""))


def read_graph(path: Path) -> dict[str, Any]:
    """The data of a graph file.

    Raises:
        UsageError: the file is missing, or is neither TOML nor JSON.
    """
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except FileNotFoundError:
        raise UsageError(f"workflow {path}: file not found; expected a TOML or JSON file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"workflow {path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not isinstance(data, dict):
        raise UsageError(f"workflow {path}: it is {type(data).__name__}; expected an object with 'agents'")
    return data


def plan_of(graph: Mapping[str, Any]) -> Plan:
    """The plan of a graph.

    Raises:
        UsageError: the graph is malformed, or its plan is not valid; says where.
    """
    data = {**graph, "agents": graph.get("agents", graph.get("nodes"))}
    validator = compile_schema(_GRAPH)
    if not validator.is_valid(data):
        raise UsageError(f"the workflow is malformed: {explain(validator.check(data), validator).splitlines()[0]}")
    after: dict[str, list[str]] = {}
    for edge in data.get("edges", ()):
        source, target = (edge["from"], edge["to"]) if isinstance(edge, Mapping) else edge
        after.setdefault(target, []).append(source)
    ids = [agent["id"] for agent in data["agents"]]
    if unknown := sorted({*after, *(source for sources in after.values() for source in sources)} - {*ids}):
        raise UsageError(f"the workflow has an edge of {unknown[0]!r}, and its agents are {', '.join(ids)}")
    try:
        return Plan.parse(
            Call(agent["name"], agent.get("arguments", {}), agent["id"], tuple(after.get(agent["id"], ())))
            for agent in data["agents"]
        )
    except PlanError as error:
        raise UsageError(f"the workflow is not a valid plan: {error}") from error


def _answering(plan: Plan, wanted: str) -> str:
    """The agent whose result is the answer."""
    ids = [call.id for call in plan.calls]
    if wanted:
        if wanted not in ids:
            raise UsageError(f"the workflow's answer is {wanted!r}, and its agents are {', '.join(ids)}")
        return wanted
    followed = plan.followers()
    sinks = [name for name in ids if not followed.get(name)]
    if len(sinks) != 1:
        raise UsageError(f"the workflow ends in {', '.join(sinks)}; choose whose result counts: answer = {sinks[0]!r}")
    return sinks[0]


def _filled(value: Any, question: str) -> Any:
    """The question in the place of `{question}`, in texts at any depth; references stay what they are."""
    if isinstance(value, str):
        return value.replace(QUESTION, question)
    if isinstance(value, Ref):
        return value
    if isinstance(value, Mapping):
        return {key: _filled(item, question) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_filled(item, question) for item in value]
    parts = getattr(value, "parts", None)
    return replace(value, parts=tuple(_filled(part, question) for part in parts)) if parts is not None else value
