"""Mathematics: GSM8K, MATH, AIME, AMC. Gold answers are plain numbers, or the LaTeX that was written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from concertino_bench import DataError, Task
from concertino_bench.loaders import overlap
from concertino_bench.loaders.competitions import aime, amc, boxed, math
from concertino_bench.loaders.grade_school import gsm8k

Loader = Callable[..., Any]


def one(loader: Loader, tmp_path: Path, row: dict[str, Any], **options: Any) -> Task:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    (task,) = loader(path=file, **options)
    assert isinstance(task, Task)
    return task


def refused(loader: Loader, tmp_path: Path, row: dict[str, Any]) -> str:
    with pytest.raises(DataError) as caught:
        one(loader, tmp_path, row)
    return str(caught.value)


# -- GSM8K -------------------------------------------------------------------------------------------------------------

SOLUTION = "16-3=<<16-3=13>>13.\n#### 12 is half of the way.\n13*5=<<13*5=65>>65\n####  1,065 "


def test_gold_is_what_follows_the_last_marker_and_the_text_is_kept(tmp_path: Path) -> None:
    task = one(gsm8k, tmp_path, {"question": "Q?", "answer": SOLUTION}, split="train")
    assert task == Task(
        "gsm8k/row-1", "Q?", ("1065",), "number", split="train", metadata={"gold": "1,065", "solution": SOLUTION}
    )


@pytest.mark.parametrize(
    ("text", "gold"),
    [("x\n#### 70,000", "70000"), ("x\n#### -10", "-10"), ("Options A: 3.\nA: 18", "18"), ("x\nA: 2,125", "2125")],
)
def test_commas_negatives_and_both_markers_are_read(text: str, gold: str, tmp_path: Path) -> None:
    assert one(gsm8k, tmp_path, {"question": "Q?", "answer": text}).answer == gold


def test_the_published_solutions_can_be_asked_as_tasks_too(tmp_path: Path) -> None:
    row = {"question": "Q?", "ground_truth": "So 9.\nA: 18", "6b": {"solution": "A: 3", "is_correct": False}}
    assert one(gsm8k, tmp_path, row).answer == "18"


def test_a_gold_text_without_a_number_behind_the_marker_is_refused(tmp_path: Path) -> None:
    message = refused(gsm8k, tmp_path, {"question": "Q?", "answer": "72"})
    assert "column 'answer' is a text ('72'); expected a solution that ends in '#### 42'" in message
    assert "take the loader 'jsonl'" in message
    assert "'many' behind '####'; expected a whole number" in refused(
        gsm8k, tmp_path, {"question": "Q?", "answer": "x #### many"}
    )
    assert "'3.5' behind" in refused(gsm8k, tmp_path, {"question": "Q?", "answer": "#### 3.5"})


def test_a_question_is_found_again_whatever_its_apostrophes_and_blanks() -> None:
    straight = Task("a", "Janet's ducks lay 16 eggs.  How many does she sell?", ("9",), "number")
    curly = Task("b", "Janet\u2019s ducks lay 16 eggs. How many does she sell?", ("9",), "number")
    (pair,) = overlap([straight], [curly]).exact
    assert (pair.left, pair.right, pair.same_answers) == ("a", "b", True)


# -- MATH --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [r"\frac13", r"\left(2,\infty\right)", "14{,}916", r"11,\! 111", "x = 5", r"10\%"])
def test_latex_stays_as_it_is_written(answer: str, tmp_path: Path) -> None:
    assert one(math, tmp_path, {"problem": "P", "answer": answer}).answer == answer


def test_a_level_is_an_axis_and_an_unknown_one_is_none(tmp_path: Path) -> None:
    row = {"problem": "P", "answer": "7", "unique_id": "test/a/1.json", "subject": "Algebra", "level": 5}
    task = one(math, tmp_path, row)
    assert (task.id, task.axis, task.level, task.metadata) == ("test/a/1.json", "difficulty", 5, {"subject": "Algebra"})
    assert one(math, tmp_path, {**row, "level": "Level 3"}).level == 3
    unknown = one(math, tmp_path, {**row, "level": "Level ?"})
    assert (unknown.axis, unknown.level) == ("", None)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"so $\boxed{\frac{1}{2}}$", r"\frac{1}{2}"),
        (r"\boxed{1}, then \boxed{2}", "2"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{1} and \boxed{2", "1"),
        (r"\boxed{\text{a \} b}}", r"\text{a \} b}"),
        (r"\boxed 7$", "7"),
        (r"\fbox{8}", "8"),
        ("no box", None),
    ],
)
def test_the_last_box_with_balanced_braces_counts(text: str, found: str | None) -> None:
    assert boxed(text) == found


def test_a_row_with_only_a_solution_is_answered_by_its_box(tmp_path: Path) -> None:
    row = {"problem": "P", "solution": r"Thus $\boxed{(3, \tfrac12)}$.", "level": "Level 2", "type": "Algebra"}
    task = one(math, tmp_path, row)
    assert task.answer == r"(3, \tfrac12)"
    assert task.metadata == {"type": "Algebra", "solution": row["solution"]}
    assert r"expected a solution with its answer in \boxed{…}" in refused(
        math, tmp_path, {"problem": "P", "solution": "It is 3."}
    )
    assert "no column 'answer' or 'Answer'" in refused(math, tmp_path, {"problem": "P"})


# -- AIME and AMC ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "answer"), [("033", "33"), ("204.0", "204"), (33, "33"), (25.0, "25"), ("0", "0"), ("$70$", "70")]
)
def test_an_aime_answer_is_a_plain_whole_number(given: Any, answer: str, tmp_path: Path) -> None:
    task = one(aime, tmp_path, {"ID": "2024-I-4", "Problem": "P", "Answer": given})
    assert (task.id, task.answer, task.kind) == ("2024-I-4", answer, "number")
    assert task.metadata.get("gold", answer) == (given if str(given) != answer else answer)


@pytest.mark.parametrize("given", ["1000", "-3", "2.5", r"\frac12"])
def test_an_aime_answer_out_of_range_is_refused(given: str, tmp_path: Path) -> None:
    message = refused(aime, tmp_path, {"problem": "P", "answer": given})
    assert "expected a whole number from 0 to 999, as in AIME; else load it as 'math'" in message


@pytest.mark.parametrize(
    ("given", "answer", "kind"),
    [
        (27.0, "27", "number"),
        ("1.50", "1.5", "number"),
        ("-0.5", "-0.5", "number"),
        (r"\frac{1}{2}", r"\frac{1}{2}", "math"),
    ],
)
def test_an_amc_answer_is_a_number_or_latex(given: Any, answer: str, kind: str, tmp_path: Path) -> None:
    task = one(amc, tmp_path, {"id": 4, "problem": "P", "answer": given})
    assert (task.id, task.answer, task.kind) == ("amc/4", answer, kind)


# -- real files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "count"), [("test_400", 400), ("train_600", 600)])
def test_gsm8k_loads_completely_and_agrees_with_the_recorded_final_answers(
    name: str, count: int, shared_data: Path
) -> None:
    path = shared_data / "gsm8k" / f"{name}.jsonl"
    tasks = list(gsm8k(path=path))
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(tasks) == count
    assert [task.answer for task in tasks] == [row["final"].replace(",", "") for row in rows]
    assert [task.metadata["gold"] for task in tasks] == [row["final"] for row in rows]
    assert [task.id for task in tasks] == [row["id"] for row in rows]


def test_math_500_loads_completely_with_its_latex(shared_data: Path) -> None:
    path = shared_data / "math500" / "math_250.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    tasks = list(math(path=path))
    assert [(task.id, task.answer) for task in tasks] == [(row["unique_id"], row["answer"]) for row in rows]
    assert len(tasks) == 250


def test_of_a_list_of_answers_the_first_is_the_answer_and_the_others_are_as_right(tmp_path: Path) -> None:
    file = tmp_path / "listed.jsonl"
    file.write_text(
        '{"problem": "?", "answer": ["$\\\\frac12$", 0.5, "50\\\\%"]}\n{"problem": "!", "answer": []}\n', "utf-8"
    )
    tasks = math(path=file)
    first = next(tasks)
    assert first.answer == "$\\frac12$"
    assert first.metadata["aliases"] == ["0.5", "50\\%"]
    with pytest.raises(DataError, match=r"listed.jsonl:2.*a list of them that is not empty"):
        next(tasks)
