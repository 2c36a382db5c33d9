"""Plans drawn as Mermaid, DOT and JSON: exact texts, and that no text of a model becomes syntax of a drawing."""

from __future__ import annotations

import json
import re

import concertino as ct
from concertino import plan_to_dot, plan_to_json, plan_to_mermaid
from concertino.core.plan import Call, Plan, Ref, Template
from hypothesis import given
from hypothesis import strategies as st

PLAN = Plan(
    [
        Call("cot", {"subtask": "x"}, "A"),
        Call("cot", {"subtask": Template(("on ", Ref("A")))}, "B"),
        Call("debate", {"subtask": "end"}, "C", after=("B",)),
    ]
)


def test_a_plan_as_mermaid() -> None:
    assert plan_to_mermaid(PLAN) == (
        'flowchart LR\n  n0["A: cot"]\n  n1["B: cot"]\n  n2(["C: debate"])\n  n0 --> n1\n  n1 -.-> n2\n'
    )


def test_a_plan_as_dot() -> None:
    assert plan_to_dot(PLAN, "two looks") == (
        'digraph "two looks" {\n'
        "  rankdir=LR;\n"
        "  node [shape=box];\n"
        '  n0 [label="A: cot"];\n'
        '  n1 [label="B: cot"];\n'
        '  n2 [label="C: debate", peripheries=2];\n'
        "  n0 -> n1;\n"
        "  n1 -> n2 [style=dashed];\n"
        "}\n"
    )


def test_a_plan_as_json_is_plain_data() -> None:
    data = plan_to_json(PLAN)
    assert json.loads(json.dumps(data)) == data
    assert data == {
        "nodes": [
            {"id": "A", "name": "cot", "arguments": {"subtask": "x"}},
            {"id": "B", "name": "cot", "arguments": {"subtask": "on ${A}"}},
            {"id": "C", "name": "debate", "arguments": {"subtask": "end"}},
        ],
        "edges": [{"from": "A", "to": "B", "data": True}, {"from": "B", "to": "C", "data": False}],
        "sinks": ["C"],
        "levels": [["A"], ["B"], ["C"]],
    }


@given(st.text(min_size=1, max_size=80))
def test_a_name_never_becomes_syntax(name: str) -> None:
    plan = Plan([ct.Call(name, {}, "A")])
    mermaid = plan_to_mermaid(plan)
    assert re.fullmatch(r'flowchart LR\n  n0\(\["[^"`<>\[\]{}()|\n\r]*"\]\)\n', mermaid)
    assert re.fullmatch(
        r'  n0 \[label="(?:[^"\\\n\r]|\\.)*", peripheries=2\];', plan_to_dot(plan).split("\n", 3)[3][:-3]
    )


def test_a_plan_without_calls_is_drawn_empty() -> None:
    assert plan_to_mermaid(Plan([])) == "flowchart LR\n"
    assert plan_to_json(Plan([])) == {"nodes": [], "edges": [], "sinks": [], "levels": []}
