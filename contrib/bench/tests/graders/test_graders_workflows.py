"""Workflows: gold is right however it is written, each change of it is not, and other numbers do not matter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from concertino_bench import DataError, Task, Verdict
from concertino_bench.graders import WorkflowMatch
from concertino_bench.graders.workflow_match import read_workflow
from concertino_bench.loaders.plans import worfbench

NODES = {"1": "find the loaf of bread", "2": "cool the bread", "3": "set the table"}
EDGES = [["START", "1"], ["1", "2"], ["START", "3"], ["2", "END"], ["3", "END"]]
TASK = Task("t", "Plan.", (), "workflow", metadata={"nodes": NODES, "edges": EDGES})
JUDGE = WorkflowMatch().judge


def written(nodes: list[str], edges: str) -> str:
    return "Node:\n" + "\n".join(f"{number}: {text}" for number, text in enumerate(nodes, 1)) + f"\nEdge: {edges}"


GOLD = written([*NODES.values()], "(START,1) (1,2) (START,3) (2,END) (3,END)")


@pytest.mark.parametrize(
    "text",
    [
        GOLD,
        "Here it is.\n" + GOLD.replace("1: ", "1. ").replace("Edge:", "Edges:\n"),
        GOLD.replace("Node:", "**Nodes:**").replace("Edge:", "**Edge:**"),
        GOLD.replace("the loaf of bread", "a loaf of the bread."),
        written(["set the table", "find the loaf of bread", "cool the bread"], "(START,2)(2,3)(START,1)(3,END)(1,END)"),
    ],
)
def test_the_gold_is_right_in_other_numbers_words_and_signs(text: str) -> None:
    grade = JUDGE(TASK, text)
    assert grade.verdict is Verdict.RIGHT, grade.reason
    assert grade.values == {"nodes": 1.0, "edges": 1.0}


@pytest.mark.parametrize(
    ("text", "nodes", "edges"),
    [
        (GOLD.replace("(1,2) ", ""), 1.0, 8 / 9),
        (GOLD.replace("(1,2)", "(2,1)"), 1.0, 0.8),
        (GOLD.replace("3: set the table\n", ""), 0.8, 0.6),
        (GOLD.replace("set the table", "call a friend"), 2 / 3, 0.6),
        (GOLD.replace("Edge:", "4: sleep\nEdge:"), 6 / 7, 1.0),
        (GOLD.partition("Edge")[0], 1.0, 0.0),
    ],
)
def test_each_change_of_the_gold_is_wrong_and_costs_its_share(text: str, nodes: float, edges: float) -> None:
    grade = JUDGE(TASK, text)
    assert grade.verdict is Verdict.WRONG
    assert grade.values == {"nodes": pytest.approx(nodes), "edges": pytest.approx(edges)}


def test_text_without_sub_tasks_is_unparsable_and_a_task_without_gold_is_an_error() -> None:
    assert JUDGE(TASK, "I would cool the bread. (START,1)").verdict is Verdict.UNPARSABLE
    with pytest.raises(ValueError, match="expected metadata"):
        JUDGE(Task("t", "Plan.", (), "workflow"), GOLD)
    with pytest.raises(ValueError, match="expected a number above 0"):
        WorkflowMatch(0)


def test_two_sub_tasks_of_one_text_are_told_apart_by_their_place() -> None:
    text = written(["wait", "eat", "wait"], "(START,1) (1,2) (2,3) (3,END)")
    nodes, edges = read_workflow(text)
    task = Task("t", "Plan.", (), "workflow", metadata={"nodes": nodes, "edges": [[*pair] for pair in edges]})
    assert JUDGE(task, text).verdict is Verdict.RIGHT


def test_a_huge_reply_is_read_in_bounded_time() -> None:
    text = (
        "Node:\n"
        + "1: " * 200_000
        + "\n"
        + "\n".join(f"{n % 1000}: word {n}" for n in range(90_000))
        + "\nEdge: "
        + "(1," * 90_000
    )
    assert JUDGE(TASK, text).verdict is not Verdict.RIGHT


def test_a_gold_without_edges_with_a_stranger_or_a_cycle_is_a_bad_row(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    for edges, says in (
        ("as above", "no sub-tasks or no edges"),
        ("(START,1) (1,4) (4,END)", "an edge with 4, which is no sub-task of 1, 2, 3"),
        ("(START,1) (1,2) (2,1) (2,END)", "the gold has a cycle"),
    ):
        row: dict[str, Any] = {"task": "Plan.", "gold_text": written([*NODES.values()], edges)}
        file.write_text(json.dumps(row))
        with pytest.raises(DataError, match=f"rows.jsonl:1: .*{says}"):
            list(worfbench(path=file))


def test_published_conversations_are_a_task_each(tmp_path: Path) -> None:
    turns = [("system", "Plan well."), ("user", "Cool the bread."), ("assistant", GOLD)]
    row = {"source": "kitchen", "conversations": [{"role": role, "content": text} for role, text in turns]}
    file = tmp_path / "graph_eval.json"
    file.write_text(json.dumps([row]))
    (task,) = worfbench(path=file)
    assert task.question.startswith("Cool the bread.\n\nDivide the task into sub-tasks")
    assert (task.axis, task.level, task.metadata["source"]) == ("nodes", 3, "kitchen")
    assert JUDGE(task, GOLD).verdict is Verdict.RIGHT


@pytest.mark.slow
def test_published_gold_of_worfbench_is_right_and_without_an_edge_is_not(shared_data: Path) -> None:
    file = shared_data / "worfbench/workflows.jsonl"
    golds = [json.loads(line)["gold_text"] for line in file.read_text("utf-8").splitlines()]
    tasks = list(worfbench(path=file))
    assert len(tasks) == 220
    for task, gold in zip(tasks, golds, strict=True):
        assert JUDGE(task, gold).verdict is Verdict.RIGHT, task.id
        assert JUDGE(task, gold[: gold.rindex("(")]).verdict is Verdict.WRONG, task.id
