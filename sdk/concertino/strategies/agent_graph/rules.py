"""The rules of a valid agent graph: edges between declared agents, no cycle, one sink, and data along every edge.

Rules are checked on ids and places alone. Invariant: `edges_of` notes a fault whenever the edges it returns would not
make a plan with exactly one sink that every agent leads to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from concertino.strategies.base.format_issues import FormatIssues, suggestion
from concertino.strategies.base.tags import Leaf

from .arguments import Reference

Edges = dict[str, dict[str, tuple[int, int]]]
"""For each agent: the agents that it waits for, and where the text says so."""


class Node(NamedTuple):
    """An agent, to the rules.

    Attributes:
        id: its id.
        start, end: where its id stands.
        references: to other agents.
        mentions: the texts of its arguments, in which an edge's source may be named in another way.
    """

    id: str
    start: int
    end: int
    references: Sequence[Reference]
    mentions: Sequence[str]


def edges_of(nodes: Mapping[str, Node], pairs: Sequence[tuple[Leaf, Leaf]], issues: FormatIssues) -> Edges:
    """The edges of a graph: those written down, and those that references imply."""
    edges: Edges = {name: {} for name in nodes}
    for source, target in pairs:
        _written(nodes, source, target, edges, issues)
    _agree_with_references(nodes, edges, issues)
    # A refused edge is missing here; its absence must not be told as an isolated agent or a second sink.
    if not issues.faults:
        _check_shape(nodes, edges, issues)
    return edges


def sinks_of(nodes: Mapping[str, Node], edges: Edges) -> list[str]:
    """Ids of the agents that nobody waits for."""
    used = {source for before in edges.values() for source in before}
    return [name for name in nodes if name not in used]


def _written(nodes: Mapping[str, Node], source: Leaf, target: Leaf, edges: Edges, issues: FormatIssues) -> None:
    """One edge of the edge block."""
    unknown = [leaf for leaf in (source, target) if leaf.text not in nodes]
    for leaf in unknown:
        if not issues.full:
            text = f"the edge names {leaf.text[:64]!r}, not an agent_id; {suggestion(leaf.text[:64], nodes.keys())}"
            issues.refuse("unknown_node", text, leaf.start, leaf.end)
    if unknown:
        return
    start, end = source.start, target.end
    if source.text == target.text:
        issues.refuse("self_edge", f"agent {source.text!r} has an edge to itself; remove it", start, end)
    elif source.text in edges[target.text]:
        text = f"the edge {source.text} -> {target.text} is there twice; write it once"
        issues.mend("duplicate_edge", text, start, end)
    else:
        edges[target.text][source.text] = (start, end)


def _agree_with_references(nodes: Mapping[str, Node], edges: Edges, issues: FormatIssues) -> None:
    """An edge stands for data, so it needs a reference, and a reference needs an edge."""
    for node in nodes.values():
        referred = {reference.id for reference in node.references}
        for source, (start, end) in edges[node.id].items():
            if source not in referred:
                _order_only(node, source, start, end, issues)
        for reference in node.references:
            if reference.id not in edges[node.id]:
                text = (
                    f"${{{reference.id}}} in agent {node.id!r} has no edge; "
                    f"write <from>{reference.id}</from><to>{node.id}</to>"
                )
                issues.mend("reference_without_edge", text, reference.start, reference.end)
                edges[node.id][reference.id] = (reference.start, reference.end)


def _order_only(node: Node, source: str, start: int, end: int, issues: FormatIssues) -> None:
    text = f"the edge {source} -> {node.id} carries no data: write ${{{source}}} in the input of {node.id!r}"
    # `{A1}` without its `$` was meant as a reference: as a mere order, the agent would get the words `{A1}`.
    if any(f"{{{source}}}" in mention for mention in node.mentions):
        text += f"; its input names {{{source}}}, which is not a reference"
        issues.refuse("edge_without_reference", text, start, end)
    else:
        issues.mend("edge_without_reference", f"{text}, or remove the edge; it orders them only", start, end)


def _check_shape(nodes: Mapping[str, Node], edges: Edges, issues: FormatIssues) -> None:
    """No cycle, nobody alone, one sink."""
    cycle = _cycle(edges)
    if cycle:
        start, end = edges[cycle[1]][cycle[0]]
        text = f"the edges go round: {' -> '.join(cycle[:12])}; remove one of them"
        issues.refuse("cycle", text, start, end)
        return
    sinks = sinks_of(nodes, edges)
    alone = [name for name in sinks if not edges[name]] if len(nodes) > 1 else []
    for name in alone:
        text = f"agent {name!r} has no edge; connect it, or remove it"
        issues.refuse("isolated_agent", text, nodes[name].start, nodes[name].end)
    # An isolated agent has its own fault; as a further sink it would be told twice.
    ends = [name for name in sinks if name not in alone]
    if len(ends) > 1:
        text = (
            f"{len(ends)} agents have no outgoing edge ({', '.join(ends[:8])}), and only the one that gives the answer "
            "may; add an agent that collects them"
        )
        issues.refuse("several_sinks", text, nodes[ends[1]].start, nodes[ends[1]].end)


def _cycle(edges: Edges) -> list[str]:
    """Ids along a cycle, in the direction of the edges, the first one again at the end; empty if there is none."""
    left = {name: len(before) for name, before in edges.items()}
    followers: dict[str, list[str]] = {}
    for name, before in edges.items():
        for other in before:
            followers.setdefault(other, []).append(name)
    ready = [name for name, count in left.items() if count == 0]
    while ready:
        name = ready.pop()
        del left[name]
        for follower in followers.get(name, ()):
            left[follower] -= 1
            if left[follower] == 0:
                ready.append(follower)
    if not left:
        return []
    # Every agent left waits for another one left, so walking backwards must come round.
    path = [next(iter(left))]
    places: dict[str, int] = {}
    while path[-1] not in places:
        places[path[-1]] = len(places)
        path.append(next(other for other in edges[path[-1]] if other in left))
    # The walk went against the edges.
    return path[places[path[-1]] :][::-1]
