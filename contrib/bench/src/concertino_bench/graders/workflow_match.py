"""A workflow as text against the gold one: sub-tasks, and which of them wait for which.

    Node:
    1: find the bread
    2: cool it
    Edge: (START,1) (1,2) (2,END)

Sub-tasks are matched one to one by their words (token F1), the most alike first. Edges are compared between matched
sub-tasks. The values are `nodes` and `edges`, each the F1 of what was named against the gold. The published evaluation
matches by embeddings and scores sub-graphs, so its figures are higher and not these.

The invariant: the gold text against itself is right, also where two sub-tasks have one text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from concertino_bench.tasks.grade import Grade, TextGrader, Verdict
from concertino_bench.tasks.task import Task

from .answers import spoken
from .base import shown
from .exact_match import likeness

# Characters of a reply and sub-tasks of it; each is compared with each.
_LONGEST = 50_000
_MOST = 100
_NODE = re.compile(r"^[ \t*]{0,8}(?:Node[ \t]?)?(\d{1,3})[ \t]?[.:)][ \t]*(\S.*)$", re.MULTILINE)
_EDGES = re.compile(r"^[ \t*#]{0,8}Edges?\b", re.MULTILINE | re.IGNORECASE)
_EDGE = re.compile(r"\(\s{0,4}(START|\d{1,3})\s{0,4},\s{0,4}(END|\d{1,3})\s{0,4}\)", re.IGNORECASE)


class Workflow(NamedTuple):
    """Sub-tasks by number, and the edges between them, START and END."""

    nodes: Mapping[str, str]
    edges: Sequence[tuple[str, str]]


def read_workflow(text: str) -> Workflow:
    """The workflow that a text writes down; empty where there is none."""
    text = text[-_LONGEST:]
    marks = [*_EDGES.finditer(text)]
    cut = marks[-1].start() if marks else len(text)
    nodes: dict[str, str] = {}
    for match in _NODE.finditer(text, 0, cut):
        nodes[match[1]] = match[2].strip()
    edges = dict.fromkeys((match[1].upper(), match[2].upper()) for match in _EDGE.finditer(text, cut))
    return Workflow(dict([*nodes.items()][:_MOST]), [*edges])


class WorkflowMatch(TextGrader):
    """Right if the sub-tasks are the gold ones, and the edges too.

    Args:
        threshold: the least F1 of the words of two sub-tasks that are the same, above 0 and up to 1.
    """

    name = "workflow-match"
    kinds = ("workflow",)

    def __init__(self, threshold: float = 0.6) -> None:
        if not 0 < threshold <= 1:
            raise ValueError(f"WorkflowMatch(threshold={threshold}); expected a number above 0 and up to 1")
        self.threshold = threshold

    def judge(self, task: Task, text: str) -> Grade:
        """Grade a text; the values are `nodes` and `edges`."""
        gold = _gold(task)
        found = read_workflow(spoken(text))
        expected = tuple(gold.nodes.values())
        if not found.nodes:
            return Grade(Verdict.UNPARSABLE, "there are no numbered sub-tasks in the text", expected)
        partner = self._partners(gold.nodes, found.nodes)
        # A number without a partner must not pass for the gold's number.
        named = {(partner.get(left, f"?{left}"), partner.get(right, f"?{right}")) for left, right in found.edges}
        wanted = {*gold.edges}
        nodes = _f1(len(partner) - 2, len(found.nodes), len(gold.nodes))
        edges = _f1(len(named & wanted), len(named), len(wanted))
        verdict = Verdict.RIGHT if nodes == edges == 1.0 else Verdict.WRONG
        reason = f"sub-tasks {nodes:.2f}, edges {edges:.2f}"
        if verdict is Verdict.WRONG:
            lost = next((text for key, text in gold.nodes.items() if key not in partner.values()), "")
            reason += f"; not named: {shown(lost)!r}" if lost else ""
        told = tuple(found.nodes.values())
        return Grade(verdict, reason, expected, told, values={"nodes": nodes, "edges": edges})

    def _partners(self, gold: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
        """The gold number of each number that was found; START and END are their own."""
        scored = []
        for at, (left, text) in enumerate(found.items()):
            for place, (right, other) in enumerate(gold.items()):
                alike = likeness(text, other).f1
                if alike >= self.threshold:
                    # Two sub-tasks may have one text: then the place decides.
                    scored.append((-alike, abs(at - place), left, right))
        partner: dict[str, str] = {"START": "START", "END": "END"}
        for _, _, left, right in sorted(scored):
            if left not in partner and right not in partner.values():
                partner[left] = right
        return partner


def _gold(task: Task) -> Workflow:
    nodes, edges = task.metadata.get("nodes"), task.metadata.get("edges")
    if not isinstance(nodes, Mapping) or not nodes or not isinstance(edges, Sequence) or isinstance(edges, str):
        raise ValueError(f"{task.id}: expected metadata['nodes'] by number, and metadata['edges'] as pairs")
    return Workflow({str(key): str(text) for key, text in nodes.items()}, [(str(a), str(b)) for a, b in edges])


def _f1(same: int, found: int, wanted: int) -> float:
    return 2 * same / (found + wanted) if found + wanted else 1.0
