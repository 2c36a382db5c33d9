"""Questions with short answers: published columns, seeded options, and what cannot be shown is left out."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from concertino_bench import DataError, Submission, Task, Verdict
from concertino_bench.graders import all_graders
from concertino_bench.loaders import DataWarning
from concertino_bench.loaders.competitions import aime, amc, math
from concertino_bench.loaders.multihop import fanoutqa
from concertino_bench.loaders.open_questions import frames, gpqa, hle, llmcompiler, olympiadbench, simpleqa

GRADERS = {kind: grader for grader in all_graders() for kind in grader.kinds}


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def written(*rows: dict[str, Any], name: str = "rows.jsonl") -> Path:
        file = tmp_path / name
        file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        return file

    return written


async def verdict(task: Task, text: str) -> Verdict:
    bench: Any = None  # these graders ask nothing of the pool
    return (await GRADERS[task.kind].grade(task, Submission(text), bench)).verdict


# -- GPQA --------------------------------------------------------------------------------------------------------------


def table(path: Path, rows: list[list[str]], delimiter: str = ",") -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    return path


def expert(tmp_path: Path, count: int, *, last: int = 0) -> Path:
    header = ["Record ID", "Question", "Correct Answer", *(f"Incorrect Answer {n}" for n in (1, 2, 3)), "Subdomain"]
    rows = [[f"rec{n}", f"Which, {n}?", "right", "wrong", "worse", "worst", "Optics"] for n in range(count)]
    return table(tmp_path / "gpqa.csv", [header, *(rows[::-1] if last else rows)])


def test_gpqa_draws_the_order_of_options_from_the_seed_and_the_row_alone(tmp_path: Path) -> None:
    tasks = {task.id: task for task in gpqa(path=expert(tmp_path, 200), seed=3)}
    again = {task.id: task for task in gpqa(path=expert(tmp_path, 200, last=1), seed=3)}
    assert tasks == again
    assert tasks != {task.id: task for task in gpqa(path=expert(tmp_path, 200), seed=4)}
    for task in tasks.values():
        place = "ABCD".index(task.answer)
        assert task.metadata["choices"][place] == "right"
        assert f"{task.answer}. right" in task.question
    counts = [sum(task.answer == letter for task in tasks.values()) for letter in "ABCD"]
    assert min(counts) > 25, counts  # 50 each, if no place is preferred


async def test_gpqa_is_graded_by_letter_and_needs_four_different_options(tmp_path: Path) -> None:
    (task,) = gpqa(path=expert(tmp_path, 1))
    others = [letter for letter in "ABCD" if letter != task.answer]
    assert await verdict(task, f"The answer is ({task.answer}).") is Verdict.RIGHT
    assert [await verdict(task, f"The answer is ({other}).") for other in others] == [Verdict.WRONG] * 3
    header = ["Question", "Correct Answer", *(f"Incorrect Answer {n}" for n in (1, 2, 3))]
    twice = table(tmp_path / "twice.csv", [header, ["Which?", "5", " 5 ", "6", "7"]])
    with pytest.raises(DataError, match=r"twice.csv:2: two options are the same text"):
        list(gpqa(path=twice))


# -- short answers -----------------------------------------------------------------------------------------------------


async def test_frames_is_read_from_a_table_with_a_column_that_has_no_name(tmp_path: Path) -> None:
    header = ["", "Prompt", "Answer", "wikipedia_link_1", "wikipedia_link_2", "wikipedia_link_11+", "reasoning_types"]
    rows = [["0", "Who, of the two?", "Jane Ballou", "a/b", "", "c/d", "Numerical"], ["1", "When?", "1954"] + [""] * 4]
    first, second = frames(path=table(tmp_path / "test.tsv", [header, *rows], "\t"))
    assert first.metadata == {"aliases": [], "links": ["a/b", "c/d"], "reasoning_types": "Numerical"}
    assert (first.id, second.answer) == ("frames/row-1", "1954")
    assert await verdict(first, "<answer>jane ballou</answer>") is Verdict.RIGHT


def test_simpleqa_keeps_its_metadata(tmp_path: Path) -> None:
    rows = [["metadata", "problem", "answer"], ["{'topic': 'Art'}", "Who?", "Ann"]]
    (task,) = simpleqa(path=table(tmp_path / "simple.csv", rows))
    assert (task.id, task.question, task.answers) == ("simpleqa/row-1", "Who?", ("Ann",))
    assert task.metadata["metadata"] == "{'topic': 'Art'}"


async def test_hle_has_letters_and_texts_and_leaves_out_images(write: Callable[..., Path]) -> None:
    row = {"question": "Which? A. x B. y", "answer": "B", "answer_type": "multipleChoice", "image": ""}
    text = {"question": "Who?", "answer": "Ann", "answer_type": "exactMatch"}
    rows = [{"id": "a", **row}, {"id": "b", **text, "image": "data:image/png;base64,AA"}, {"id": "c", **text}]
    with pytest.warns(DataWarning, match=r"rows.jsonl:2: a question with an image; it and further ones are left out"):
        first, second = hle(path=write(*rows))
    assert (first.kind, second.kind, second.id) == ("choice", "text", "c")
    assert await verdict(first, "The answer is (B).") is Verdict.RIGHT
    for wrong in ({**row, "answer": "B and C"}, {**row, "answer_type": "essay"}):
        with pytest.raises(DataError, match=r":1: column '(answer|answer_type)' is a text"):
            list(hle(path=write(wrong)))


# -- problems ----------------------------------------------------------------------------------------------------------


async def test_olympiadbench_asks_for_the_unit_and_for_all_answers_and_leaves_out_proofs(
    write: Callable[..., Path],
) -> None:
    rows = [
        {
            "id": 1,
            "question": "How far?",
            "final_answer": ["$12$"],
            "unit": "m",
            "context": "A train.",
            "image_1": None,
        },
        {"id": 2, "question": "Which?", "final_answer": ["$3$, $5$"], "is_multiple_answer": True},
        {"id": 3, "question": "Prove it.", "final_answer": None},
        {"id": 4, "question": "See.", "final_answer": ["1"], "image_1": "AAAA"},
    ]
    with pytest.warns(DataWarning) as seen:
        first, second = olympiadbench(path=write(*rows))
    assert [str(each.message).partition(": ")[2][:10] for each in seen] == ["a problem ", "a problem "]
    assert first.question == "A train.\n\nHow far?\n\nGive the answer in the unit m."
    assert second.question.endswith("There are several answers: give all of them, separated by commas.")
    assert (first.id, second.answer) == ("olympiadbench/1", "3, 5")


async def test_llmcompiler_has_numbers_and_texts_and_branches_as_levels(write: Callable[..., Path]) -> None:
    first, second = llmcompiler(
        path=write(
            {"id": "1", "question": "Area?", "answer": "9,609.20", "branch": 5}, {"question": "?", "answer": "Up"}
        )
    )
    assert (first.kind, first.answer, first.axis, first.level) == ("number", "9609.20", "branches", 5)
    assert (second.kind, second.axis) == ("text", "")
    assert await verdict(first, "<answer>9609.2</answer>") is Verdict.RIGHT


async def test_a_list_of_answers_of_a_problem_is_an_answer_and_aliases(write: Callable[..., Path]) -> None:
    row = {"problem": "Write one half.", "answer": [r"\frac12", "x + 1"]}
    (task,) = math(path=write(row))
    assert (task.answer, task.metadata) == (r"\frac12", {"aliases": ["x + 1"]})
    (task,) = amc(path=write({"problem": "How many?", "answer": ["33", 4.0]}))
    assert (task.kind, task.answer, task.metadata) == ("math", "33", {"aliases": ["4"]})
    with pytest.raises(DataError, match=r"column 'answer' is a list .*; expected a whole number from 0 to 999"):
        list(aime(path=write({"problem": "How many?", "answer": [1, 2]})))
    with pytest.raises(DataError, match=r"column 'answer' is a list \(\[\]\); expected a text, a number, or a list"):
        list(math(path=write({"problem": "?", "answer": []})))


async def test_true_and_false_are_answers_of_fanoutqa(write: Callable[..., Path]) -> None:
    rows = [{"question": "Is it?", "answer": True}, {"question": "Which?", "answer": {"Rome": True, "Oslo": False}}]
    one, several = fanoutqa(path=write(*rows))
    assert (one.kind, one.answer, one.metadata["gold"]) == ("text", "yes", True)
    assert [await verdict(one, text) for text in ("Yes.", "true", "No")] == [
        Verdict.RIGHT,
        Verdict.RIGHT,
        Verdict.WRONG,
    ]
    assert several.answers == ("yes", "no")
    for given, expected in (("Rome: yes\nOslo: false", Verdict.RIGHT), ("Rome: yes\nOslo: yes", Verdict.WRONG)):
        assert await verdict(several, given) is expected


# -- the published data ------------------------------------------------------------------------------------------------

LLMCOMPILER = {"parallelqa": 56, "movie_recommendations_100": 100, "hotpotqa_comparison_100": 100}


@pytest.mark.parametrize("name", LLMCOMPILER)
async def test_published_answers_of_llmcompiler_are_right_and_silence_is_not(name: str, shared_data: Path) -> None:
    tasks = list(llmcompiler(path=shared_data / "llmcompiler" / f"{name}.jsonl"))
    assert len(tasks) == LLMCOMPILER[name]
    wrong = [t.id for t in tasks if await verdict(t, f"<answer>{t.answer}</answer>") is not Verdict.RIGHT]
    assert wrong == []
    assert all([await verdict(task, "I do not know.") is not Verdict.RIGHT for task in tasks])


@pytest.mark.slow
async def test_each_of_several_answers_of_a_problem_is_right(write: Callable[..., Path]) -> None:
    (task,) = math(path=write({"problem": "Solve.", "answer": [r"\frac12", "x + 1"]}))
    for text, expected in ((r"\boxed{0.5}", Verdict.RIGHT), (r"\boxed{1 + x}", Verdict.RIGHT)):
        assert await verdict(task, text) is expected
    assert await verdict(task, r"\boxed{x + 2}") is Verdict.WRONG
