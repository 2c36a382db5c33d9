"""Archives of agent groups: read where they are plain data, refused with a reason where they hold code."""

from __future__ import annotations

import json
from typing import Any

import concertino as ct
import pytest
from concertino.strategies.agent_graph.format import read_graph, write_graph
from concertino_bench.baselines.archive import read_archive

_TEXT = {"type": "string"}
_COT = {"properties": {"subtask": _TEXT, "model": _TEXT}, "required": [], "additionalProperties": False}
_DEBATE = {
    "properties": {"roles": {"type": "array", "items": _TEXT, "minItems": 2}, "subtask": _TEXT},
    "required": ["roles"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": name, "description": name, "parameters": {"type": "object", **schema}}}
    for name, schema in (("cot", _COT), ("debate", _DEBATE))
]

A = {"id": "A", "name": "cot", "description": "first", "arguments": {"subtask": "Compute 3*4."}}
B = {"id": "B", "name": "cot", "arguments": {"subtask": "Given ${A}, answer."}}
ENTRY: dict[str, Any] = {"name": "two looks", "agents": [A, B], "edges": [["A", "B"]], "fitness": 0.7}


@pytest.mark.parametrize(
    "data",
    [
        ENTRY,
        [ENTRY],
        {"archive": [ENTRY]},
        {"entries": [ENTRY | {"edges": [{"from": "A", "to": "B"}]}]},
        [{**{key: value for key, value in ENTRY.items() if key != "agents"}, "nodes": [A, B]}],
    ],
)
def test_a_design_kept_as_data_becomes_a_plan(data: Any) -> None:
    [found] = read_archive(json.dumps(data))
    assert (found.name, found.descriptions, found.notes) == ("two looks", {"A": "first"}, {"fitness": 0.7})
    assert found.plan.edges == {"B": ("A",)}


def test_a_design_can_be_written_as_text_and_read_again() -> None:
    [found] = read_archive(json.dumps(ENTRY))
    text = write_graph(found.plan, descriptions=found.descriptions)
    read = read_graph(text, TOOLS, strict=True, prepend_task=False)
    assert read.plan is not None
    assert read.plan.edges == found.plan.edges


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            [
                {
                    "name": "Debate",
                    "thought": "t",
                    "code": "def forward(self, taskInfo):\n    return 1",
                    "fitness": "90%",
                }
            ],
            "entry 1 ('Debate') holds code under 'code', which is never run",
        ),
        (
            [ENTRY, {"round": 3, "score": 0.8, "graph": "class Workflow:\n    def __init__(self): ..."}],
            "entry 2 holds code under 'graph'",
        ),
        ([ENTRY | {"agents": [A | {"code": "x"}]}], "entry 1 ('two looks'), agent 1 holds code under 'code'"),
        ([3], "entry 1 must be an object with 'agents' and 'edges'; got int"),
        ([{"name": "x"}], "entry 1 ('x') has no list of 'agents'; its keys are name"),
        ([ENTRY | {"agents": [A, {"id": "B"}]}], "agent 2: 'name' must be a text; got None"),
        ([ENTRY | {"agents": [A, B | {"argument": {}}]}], "agent 2 has an unknown key 'argument'; did you mean"),
        ([ENTRY | {"agents": [A, B | {"arguments": []}]}], "agent 2: 'arguments' must be an object; got list"),
        ([ENTRY | {"edges": [["A", "Z"]]}], "edge 1 names 'Z', which is no agent of the entry; there are A, B"),
        ([ENTRY | {"edges": [["A"]]}], 'edge 1 must be ["A", "B"]'),
        ([ENTRY | {"edges": [["A", "B"], ["B", "A"]]}], "entry 1 ('two looks'): the plan has a cycle"),
        ([ENTRY | {"agents": [A, A], "edges": []}], "two calls have the id 'A'"),
    ],
)
def test_what_cannot_be_read_says_which_entry_and_why(data: Any, said: str) -> None:
    with pytest.raises(ct.UsageError) as raised:
        read_archive(json.dumps(data))
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("class Workflow:\n    def __init__(self):\n        pass", "the archive is a Python file"),
        ('[{"name": "x"', "the archive is no JSON"),
    ],
)
def test_a_file_that_is_no_data_is_refused_and_never_run(text: str, said: str) -> None:
    with pytest.raises(ct.UsageError, match=said):
        read_archive(text)
