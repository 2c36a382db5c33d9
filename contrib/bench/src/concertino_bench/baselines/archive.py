"""Archives of agent groups, as searches over designs (ADAS, AFlow) keep them, read where they are plain data.

    [{"name": "two looks", "agents": [{"id": "A", "name": "cot", "arguments": {"subtask": "…"}}, …],
      "edges": [["A", "B"]]}, …]

Such archives often hold a design as program text instead. concertino never runs, compiles or guesses the meaning of
such text: an entry with code is refused, and the message says where it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from concertino import Call, Plan, PlanError, UsageError
from concertino.schema import near_names
from concertino.text import ReadingError, read_json

_CODE = frozenset(("code", "workflow", "forward", "source", "program", "function", "operators_code", "graph_code"))
_AGENT = frozenset(("id", "name", "description", "arguments"))
_LISTS = ("entries", "archive", "graphs")


class ArchivedGraph(NamedTuple):
    """One design.

    Attributes:
        name: what the archive calls it.
        plan: its agents as calls.
        descriptions: what its agents are for, by id.
        notes: everything else of the entry (fitness, say).
    """

    name: str
    plan: Plan
    descriptions: dict[str, str]
    notes: dict[str, Any]


def read_archive(text: str) -> list[ArchivedGraph]:
    """The designs of an archive.

    Args:
        text: JSON: a list of entries, or one entry. Arguments may hold `${id}`.

    Raises:
        UsageError: the text is no JSON, an entry holds code, or its graph is not valid; says which entry and what.
    """
    try:
        data = read_json(text, expect="any", strict=True).value
    except ReadingError as error:
        what = "a Python file" if "def " in text[:20000] else "no JSON"
        raise UsageError(
            f"the archive is {what}: {error}; only data is read: a JSON list of agents and edges"
        ) from None
    if isinstance(data, dict) and "agents" not in data:
        data = next((data[key] for key in _LISTS if isinstance(data.get(key), list)), data)
    entries = data if isinstance(data, list) else [data]
    return [_entry(entry, number) for number, entry in enumerate(entries, 1)]


def _entry(entry: Any, number: int) -> ArchivedGraph:
    where = f"entry {number}"
    if not isinstance(entry, dict):
        raise UsageError(f"{where} must be an object with 'agents' and 'edges'; got {type(entry).__name__}")
    name = str(entry.get("name", number))
    where += f" ({name!r})" if "name" in entry else ""
    _refuse_code(entry, where)
    agents = entry.get("agents", entry.get("nodes"))
    if not isinstance(agents, list) or not agents:
        raise UsageError(f"{where} has no list of 'agents'; its keys are {', '.join(map(str, entry)) or 'none'}")
    calls = [_call(agent, f"{where}, agent {place}") for place, agent in enumerate(agents, 1)]
    ids = {call.id for call in calls}
    after: dict[str, list[str]] = {}
    for place, edge in enumerate(entry.get("edges", []), 1):
        source, target = _edge(edge, ids, f"{where}, edge {place}")
        after.setdefault(target, []).append(source)
    wanted = [Call(call.name, call.arguments, call.id, tuple(after.get(call.id, ()))) for call in calls]
    try:
        plan = Plan.parse(wanted)
    except PlanError as error:
        raise UsageError(f"{where}: {error}") from None
    about = {call.id: str(agent.get("description", "")) for call, agent in zip(calls, agents, strict=True)}
    notes = {key: value for key, value in entry.items() if key not in ("name", "agents", "nodes", "edges")}
    return ArchivedGraph(name, plan, {key: text for key, text in about.items() if text}, notes)


def _refuse_code(entry: Mapping[str, Any], where: str) -> None:
    """Program text is never data."""
    for key, value in entry.items():
        looks = isinstance(value, str) and ("def " in value or "import " in value or "lambda" in value)
        if key in _CODE or (looks and key not in ("name", "description", "thought")):
            raise UsageError(
                f"{where} holds code under {key!r}, which is never run; write the design as data: "
                '{"agents": [{"id", "name", "arguments"}], "edges": [[from, to]]}'
            )


def _call(agent: Any, where: str) -> Call:
    if not isinstance(agent, dict):
        raise UsageError(f"{where} must be an object with 'id', 'name', 'arguments'; got {type(agent).__name__}")
    _refuse_code(agent, where)
    for key in agent:
        if key not in _AGENT:
            near = near_names(str(key), _AGENT, limit=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(_AGENT))}"
            raise UsageError(f"{where} has an unknown key {key!r}; {hint}")
    for key in ("id", "name"):
        if not isinstance(agent.get(key), str) or not agent[key]:
            raise UsageError(f"{where}: {key!r} must be a text; got {agent.get(key)!r}")
    arguments = agent.get("arguments", {})
    if not isinstance(arguments, dict):
        raise UsageError(f"{where}: 'arguments' must be an object; got {type(arguments).__name__}")
    return Call(agent["name"], arguments, agent["id"])


def _edge(edge: Any, ids: set[str], where: str) -> tuple[str, str]:
    ends = [edge.get("from"), edge.get("to")] if isinstance(edge, dict) else edge
    if not isinstance(ends, list) or len(ends) != 2 or not all(isinstance(end, str) for end in ends):
        raise UsageError(f'{where} must be ["A", "B"] or {{"from": "A", "to": "B"}}; got {edge!r:.80}')
    for end in ends:
        if end not in ids:
            raise UsageError(
                f"{where} names {end!r}, which is no agent of the entry; there are {', '.join(sorted(ids))}"
            )
    return ends[0], ends[1]
