"""A fixed workflow: one graph of calls, the same for every question, run as one plan.

The graph is written down as data, in the form in which the SDK exports plans and reads archives of agent groups:

    answer = "join"                                     # whose result is the answer; by default the only sink

    [[agents]]
    id = "a"
    name = "ask_small"
    arguments = { task = "{question}" }

    [[agents]]
    id = "join"
    name = "combine"
    arguments = { opinions = [["${a}"]] }

`${id}` stands for the result of another agent, `{question}` for the question. A question is put in last, so nothing in
it is ever read as a reference.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from concertino import Call, Plan, Ref, UsageError
from concertino.schema import near_names
from concertino.strategies import Act, Done, Step, TaskContext

from .archive import read_archive
from .procedure import Log, Procedure, failures

QUESTION = "{question}"
"""What stands for the question in the arguments."""


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
            _answering(self._plan(), self.answer or str(self.graph.get("answer", "")))

    def prepare(self, brief: TaskContext) -> Log:
        """Make sure that the pool has the graph's members."""
        if self.graph is None:
            raise UsageError(f"{self.name} has no graph; give file='workflow.toml'")
        visible = [tool["function"]["name"] for tool in brief.tools]
        for call in self._plan().calls if visible else ():
            if call.name not in visible and call.name.rpartition("/")[2] not in visible:
                near = near_names(call.name, visible, limit=1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(visible[:8])}"
                raise UsageError(f"{self.name}: agent {call.id!r} calls {call.name!r}; {hint}")
        return super().prepare(brief)

    def decide(self, log: Log) -> Step:
        """Run the graph, then answer with its last result."""
        plan = self._plan()
        if not log.rounds:
            return Act(Plan(_asking(call, log.question) for call in plan.calls), 1)
        answering = _answering(plan, self.answer or str((self.graph or {}).get("answer", "")))
        place = [call.id for call in plan.calls].index(answering)
        text = log.results[place].text
        wrong = failures(log.results)
        if text is None:
            return Done(None, "model", f"{answering!r} gave no result: {wrong}")
        return Done(text.strip() or None, "answered" if text.strip() else "format", wrong)

    def _plan(self) -> Plan:
        """The graph as a plan, with references read."""
        assert self.graph is not None
        known = {key: value for key, value in self.graph.items() if key != "answer"}
        (read,) = read_archive(json.dumps(known, ensure_ascii=False))
        return read.plan


def read_graph(path: Path) -> dict[str, Any]:
    """The data of a graph file.

    Raises:
        UsageError: the file is missing, or is neither TOML nor JSON.
    """
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except FileNotFoundError:
        raise UsageError(f"workflow {path}: there is no such file; expected a TOML or JSON file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"workflow {path}: cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise UsageError(f"workflow {path}: it is {type(data).__name__}; expected an object with 'agents'")
    return data


def _answering(plan: Plan, wanted: str) -> str:
    """The agent whose result is the answer."""
    ids = [call.id for call in plan.calls]
    if wanted:
        if wanted not in ids:
            raise UsageError(f"the workflow's answer is {wanted!r}, no agent of it; there are {', '.join(ids)}")
        return wanted
    followed = plan.followers()
    sinks = [name for name in ids if not followed.get(name)]
    if len(sinks) != 1:
        raise UsageError(f"the workflow ends in {', '.join(sinks)}; choose whose result counts: answer = {sinks[0]!r}")
    return sinks[0]


def _asking(call: Call, question: str) -> Call:
    """A call with the question put in."""
    return replace(call, arguments=_filled(call.arguments, question))


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
