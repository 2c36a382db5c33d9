"""Rows of papers on orchestration become tasks: MASBench, ToolOrchestra, GAP, in every shape that was published."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from concertino_bench import DataError, Task
from concertino_bench.loaders.orchestration import gap, masbench_rows, toolorchestra
from concertino_bench.masbench import generate
from concertino_bench.masbench.rows import write_jsonl


def load(loader: Callable[..., Any], tmp_path: Path, *rows: dict[str, Any], **options: Any) -> list[Task]:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return list(loader(path=file, **options))


# -- MASBench ----------------------------------------------------------------------------------------------------------


def test_generated_rows_come_back_as_they_were(tmp_path: Path) -> None:
    tasks = list(generate("parallel", 3, 20, seed=5))
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(write_jsonl(tasks)), encoding="utf-8")
    assert list(masbench_rows(path=file)) == tasks


def test_published_rows_are_numbered_by_line_and_take_the_split(tmp_path: Path) -> None:
    row = {
        "axis": "parallel",
        "value": "2",
        "prompt_json": json.dumps([{"role": "user", "content": "Why?"}]),
        "reward_model_json": json.dumps({"ground_truth": "7<<horizon>>12"}),
        "extra_info_json": "{}",
        "data": "{}",
    }
    first, second = load(masbench_rows, tmp_path, row, row, split="test")
    assert (first.id, second.id) == ("masbench/published-parallel-2-test-1", "masbench/published-parallel-2-test-2")
    assert first.answers == ("7", "12")
    with pytest.raises(DataError, match=r"rows\.jsonl:1: reward_model_json: expected .*; correct the row"):
        load(masbench_rows, tmp_path, {**row, "reward_model_json": "{}"})


# -- ToolOrchestra -----------------------------------------------------------------------------------------------------

TOOL = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
QA = {
    "index": "qa____7",
    "category": "qa",
    "problem": "2+2?",
    "answer": 4,
    "tools": [TOOL],
    "model_mapping": {"expert-1": "big"},
    "tool_pricing": {"big": {"input_tokens_per_million": 1.25e-6, "output_tokens_per_million": 1e-5}},
    "pref_vec": {"search": 0, "accuracy": 1, "cost": 0.5, "latency": 0},
}
INSTRUCTIONS = {"reason_for_call": "A refund.", "known_info": "You are Ann.", "task_instructions": ""}
CALL = {
    "index": "bank____12",
    "category": "func_call",
    "problem": "",
    "answer": "",
    "example": {"id": "12", "user_scenario": {"instructions": INSTRUCTIONS}},
}


def test_a_question_keeps_its_tools_prices_and_preference(tmp_path: Path) -> None:
    (task,) = load(toolorchestra, tmp_path, QA, split="train")
    assert (task.id, task.question, task.answer, task.kind, task.split) == ("qa____7", "2+2?", "4", "text", "train")
    assert task.metadata["prices"] == {"big": {"input": 1.25, "output": 10.0}}
    assert task.metadata["models"] == {"expert-1": "big"}
    assert task.metadata["preference"] == QA["pref_vec"]
    assert task.metadata["tools"] == [TOOL]


def test_a_customer_s_task_asks_with_what_the_customer_knows_and_keeps_the_example(tmp_path: Path) -> None:
    tasks = load(toolorchestra, tmp_path, QA, CALL)
    assert [task.kind for task in tasks] == ["text", "func_call"]
    assert tasks[1].question == "A refund.\n\nYou are Ann."
    assert (tasks[1].metadata["domain"], tasks[1].metadata["example"]) == ("bank", CALL["example"])
    assert [task.id for task in load(toolorchestra, tmp_path, QA, CALL, category="func_call")] == ["bank____12"]
    with pytest.raises(DataError, match="category='chat'; expected 'qa', 'func_call', or nothing"):
        load(toolorchestra, tmp_path, QA, category="chat")


def test_no_grader_takes_a_customer_s_task_for_one_that_it_can_grade(tmp_path: Path) -> None:
    from concertino_bench.graders import all_graders

    (task,) = load(toolorchestra, tmp_path, CALL)
    assert [grader.name for grader in all_graders() if task.kind in grader.kinds] == []


def test_rows_of_frames_are_questions(tmp_path: Path) -> None:
    (task,) = load(toolorchestra, tmp_path, {"id": 3, "question": "Who?", "answer": "Ann"})
    assert (task.id, task.question, task.answer) == ("toolorchestra/3", "Who?", "Ann")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"category": "chat"}, r':1: /category: expected one of "qa", "func_call"'),
        ({"pref_vec": {"cost": 2}}, "/pref_vec: expected"),
        ({"tools": "search"}, "/tools: expected array"),
    ],
)
def test_a_wrong_row_says_what_is_wrong(columns: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        load(toolorchestra, tmp_path, {**QA, **columns})
    with pytest.raises(DataError, match="column 'example' tells no instructions"):
        load(toolorchestra, tmp_path, {**CALL, "example": {"id": "1"}})


# -- GAP ---------------------------------------------------------------------------------------------------------------

TRACE = "<plan>\nT1: A\n</plan><search>a|b</search><observation>o</observation><answer> Ann | Anna </answer>"


def test_a_trace_is_answered_by_its_last_answer_and_kept(tmp_path: Path) -> None:
    (task,) = load(gap, tmp_path, {"id": 4, "instruction": "Plan.", "input": "Who?", "output": TRACE})
    assert (task.id, task.question, task.answer) == ("gap/4", "Who?", "Ann")
    assert task.metadata == {"aliases": ["Anna"], "trace": TRACE, "instruction": "Plan."}
    assert load(gap, tmp_path, {"instruction": "Who?", "input": "", "output": TRACE})[0].question == "Who?"


@pytest.mark.parametrize("truth", [{"target": ["Ann", "Anna"]}, '{"target": ["Ann", "Anna"]}'])
@pytest.mark.parametrize("extra", [{"question": "Who?", "split": "test"}, {"split": "test"}])
def test_a_training_row_has_its_truth_as_an_object_or_as_text(truth: Any, extra: Any, tmp_path: Path) -> None:
    prompt = [{"role": "system", "content": "Plan."}, {"role": "user", "content": "Who?"}]
    row = {"data_source": "nq", "prompt": prompt, "reward_model": {"ground_truth": truth}, "extra_info": extra}
    (task,) = load(gap, tmp_path, row)
    assert (task.question, task.answer, task.split) == ("Who?", "Ann", "test")
    assert task.metadata == {"data_source": "nq", "aliases": ["Anna"]}


def test_a_question_with_a_list_of_answers_is_a_row_too(tmp_path: Path) -> None:
    (task,) = load(gap, tmp_path, {"question": "Who?", "answer": ["Ann", "Anna"], "data_source": "nq"})
    assert (task.answer, task.metadata["aliases"]) == ("Ann", ["Anna"])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"instruction": "Who?", "output": "Ann"}, r"expected a trace that ends in <answer>…</answer>"),
        ({"reward_model": {"ground_truth": "{"}, "prompt": []}, "ground_truth is not JSON"),
        ({"reward_model": {"ground_truth": {"target": []}}, "extra_info": {"question": "Q"}}, r"'target' is \[\]"),
        ({"reward_model": {}, "prompt": [{"role": "user"}]}, "chat messages, one of them the user's"),
        ({"text": "Who?"}, "no column 'question' or 'output' or 'reward_model'"),
    ],
)
def test_rows_of_no_shape_are_refused(row: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        load(gap, tmp_path, row)


def test_no_published_rows_lie_here_but_the_released_tools_are_taken_as_tools(
    shared_data: Path, tmp_path: Path
) -> None:
    tools = json.loads((shared_data / "toolorchestra" / "tools.json").read_text(encoding="utf-8"))
    (task,) = load(toolorchestra, tmp_path, {**QA, "tools": tools})
    assert [tool["function"]["name"] for tool in task.metadata["tools"]] == ["enhance_reasoning", "answer", "search"]
