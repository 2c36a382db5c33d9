"""A plan drawn: Mermaid for documents, DOT for Graphviz, JSON for programs.

Any plan can be drawn, whatever strategy made it. Nodes are numbered in the plan's order and ids are only labels, so
that no text of a model becomes syntax of the drawing. A dashed edge orders two calls without passing data. Barriers
between levels (`Call.order_after`) are a way of running a plan, no part of its shape, and are not drawn.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .plan import Plan, references

_MERMAID = {char: f"#{ord(char)};" for char in '"#&<>`\\|[]{}()\n\r'}
_LABEL = 60
"""Characters of a node's label."""


class Edge(NamedTuple):
    """One call waits for another. `data`: it also refers to its result."""

    source: str
    target: str
    data: bool


def plan_edges(plan: Plan) -> list[Edge]:
    """All edges, in the order of the calls that wait."""
    found = []
    for call in plan.calls:
        referred = set(references(call.arguments))
        found += [Edge(other, call.id, other in referred) for other in plan.edges.get(call.id, ())]
    return found


def _sinks(plan: Plan) -> set[str]:
    used = {edge.source for edge in plan_edges(plan)}
    return {call.id for call in plan.calls if call.id not in used}


def _label(call_id: str, name: str) -> str:
    text = f"{call_id}: {name}"
    return text if len(text) <= _LABEL else text[: _LABEL - 1] + "…"


def plan_to_mermaid(plan: Plan) -> str:
    """A plan as a Mermaid flowchart; the sinks are round."""
    numbers = {call.id: f"n{number}" for number, call in enumerate(plan.calls)}
    sinks = _sinks(plan)
    lines = ["flowchart LR"]
    for call in plan.calls:
        label = "".join(_MERMAID.get(char, char) for char in _label(call.id, call.name))
        opening, closing = ("([", "])") if call.id in sinks else ("[", "]")
        lines.append(f'  {numbers[call.id]}{opening}"{label}"{closing}')
    lines += [
        f"  {numbers[edge.source]} {'-->' if edge.data else '-.->'} {numbers[edge.target]}" for edge in plan_edges(plan)
    ]
    return "\n".join(lines) + "\n"


def plan_to_dot(plan: Plan, name: str = "plan") -> str:
    """A plan in Graphviz' DOT language; the sinks have double borders."""
    numbers = {call.id: f"n{number}" for number, call in enumerate(plan.calls)}
    sinks = _sinks(plan)
    lines = [f"digraph {_quoted(name)} {{", "  rankdir=LR;", "  node [shape=box];"]
    for call in plan.calls:
        more = ", peripheries=2" if call.id in sinks else ""
        lines.append(f"  {numbers[call.id]} [label={_quoted(_label(call.id, call.name))}{more}];")
    lines += [
        f"  {numbers[edge.source]} -> {numbers[edge.target]}{'' if edge.data else ' [style=dashed]'};"
        for edge in plan_edges(plan)
    ]
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", " ")
    return f'"{escaped}"'


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """A plan as plain JSON data: `nodes`, `edges` (with `data`: whether a result flows along it), `sinks`, `levels`."""
    sinks = _sinks(plan)
    nodes = []
    for call in plan.calls:
        written = call.to_json()
        nodes.append({key: written[key] for key in ("id", "name", "arguments")})
    return {
        "nodes": nodes,
        "edges": [{"from": edge.source, "to": edge.target, "data": edge.data} for edge in plan_edges(plan)],
        "sinks": [call.id for call in plan.calls if call.id in sinks],
        "levels": plan.levels(),
    }
