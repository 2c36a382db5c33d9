"""What is seen of the nodes and worker processes of a place, for people and as JSON.

Invariant: who is there stands before who is gone, and a long list is cut at its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from concertino.cli.output import one_line
from concertino.rollouts import NodeHealth

_TITLES = ("NODE", "HOST", "STATE", "WORKERS", "RUNNING", "DONE", "LOST", "SILENT")
_MOST = 12
"""Nodes that a table shows."""
_NAME = 12
"""Characters of a node's name; those of Ray have 56."""


def node_table(nodes: Sequence[NodeHealth]) -> list[str]:
    """The lines of a table; none without nodes."""
    if not nodes:
        return []
    there = sorted(nodes, key=lambda each: each.state == "gone")
    rows = [_TITLES, *map(_row, there[:_MOST])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [*lines, f"and {len(there) - _MOST} more: {node_summary(there[_MOST:])}"] if len(there) > _MOST else lines


def node_summary(nodes: Sequence[NodeHealth]) -> str:
    """`3 ready, 1 gone`."""
    return ", ".join(f"{count} {state}" for state, count in Counter(each.state for each in nodes).items())


def node_json(nodes: Sequence[NodeHealth]) -> list[dict[str, Any]]:
    """The same as plain data, seconds to the millisecond."""
    return [{**each._asdict(), "silent": round(each.silent, 3)} for each in nodes]


def _row(node: NodeHealth) -> tuple[str, ...]:
    counts = map(str, (node.workers, node.running, node.done, node.lost))
    return (one_line(node.node)[:_NAME], one_line(node.host), node.state, *counts, f"{node.silent:.0f} s")
