"""Task files, the tasks that come along, samples."""

from __future__ import annotations

import datetime
from collections import Counter
from pathlib import Path

import pytest
from concertino import UsageError
from concertino_bench import Task
from concertino_bench.model_cards import make_task
from concertino_bench.model_cards.tasks import GRADERS, draw_tasks, grader_of, load_tasks

BUILT_IN = load_tasks()


def graded(task: Task, reply: str) -> bool:
    return grader_of(task, tuple(GRADERS.values())).judge(task, reply).verdict == "right"


# -- the tasks that come along -----------------------------------------------------------------------------------------


def test_forty_tasks_in_eight_kinds_come_along() -> None:
    assert set(Counter(task.kind for task in BUILT_IN).values()) == {5}
    assert len(BUILT_IN) == 40


@pytest.mark.parametrize("task", BUILT_IN, ids=lambda task: task.question[:40])
def test_each_known_answer_is_right_and_no_answer_is_wrong(task: Task) -> None:
    assert graded(task, f"Let me think.\nAnswer: {task.answer}")
    assert graded(task, f"So it is\n**Answer:** {task.answer}")
    assert not graded(task, "I do not know.\nAnswer: unknown")
    assert not graded(task, "")


WORKED_OUT = {
    "What is 17 * 24 - 93?": 17 * 24 - 93,
    "Divide 1,248 by 16": 1248 // 16 + 7**2,
    "A shop sells 3 pens": 27 // 3 * 4,
    "What is the remainder": 7**5 % 11,
    "What is 15 percent": 0.15 * 240 - 51 / 3,
    "How many metres": 2.5 * 1000 + 0.8,
    "How many seconds": (3 * 60 + 25) * 60,
    "What is 77 degrees": (77 - 32) * 5 / 9,
    "A car drives 15 metres": 15 * 3.6,
    "A tank holds": 0.36 * 1000 / 0.75,
    "Write the word 'lantern'": "lantern"[::-1],
    "How often does the letter e": "seventeen evergreen trees".count("e"),
    "Take the first letter": "".join(w[0] for w in ("every", "living", "thing", "must", "orbit")).upper(),
    "Sort the letters": "".join(sorted("garment")),
    "Replace each vowel": "".join("#" if c in "aeiou" else c for c in "picture frame"),
    "Which date is 45 days": (datetime.date(2023, 1, 20) + datetime.timedelta(45)).isoformat(),
    "1 February 2024": datetime.date(2024, 3, 1).strftime("%A"),
    "How many days": (datetime.date(2024, 3, 3) - datetime.date(2024, 2, 14)).days,
    "A meeting begins": (datetime.datetime(2024, 1, 1, 22, 50) + datetime.timedelta(hours=3, minutes=35)).strftime(
        "%H:%M"
    ),
    "Read: 'Mira planted": 12 + 24 - 24 // 3,
    "A costs 3 coins": (2 * 4 + 3) + 4,
}


@pytest.mark.parametrize(("opening", "value"), WORKED_OUT.items(), ids=WORKED_OUT)
def test_known_answers_agree_with_what_python_works_out(opening: str, value: object) -> None:
    (task,) = [task for task in BUILT_IN if task.question.startswith(opening)]
    if isinstance(value, str):
        assert task.answer == value
    else:
        assert float(task.answer) == pytest.approx(value)


# -- task files --------------------------------------------------------------------------------------------------------

GOOD = '{"question": "6 * 7?", "answer": 42, "kind": "sums"}'


def test_a_file_is_read_line_by_line_and_empty_lines_do_not_count(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    lines = [GOOD, "", '{"question": "Capital?", "answer": "Oslo", "kind": "facts", "grader": "contains"}']
    file.write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    assert load_tasks(file) == (
        make_task("6 * 7?", "42", "sums", "number"),
        make_task("Capital?", "Oslo", "facts", "contains"),
    )


def test_an_answer_written_as_a_number_is_graded_as_one_and_a_text_as_a_text(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text(f'{GOOD}\n{{"question": "7 * 6?", "answer": "42", "kind": "sums"}}', encoding="utf-8")
    assert [task.metadata["grader"] for task in load_tasks(file)] == ["numeric", "verbatim"]


WRONG_LINES = {
    "no JSON": ("{question: 1}", "line 2: not JSON"),
    "no object": ("[1, 2]", "line 2: \\[1, 2\\]; expected an object"),
    "a key too many": (GOOD[:-1] + ', "solution": 1}', "line 2: unknown key 'solution'"),
    "a misspelt key": ('{"question": "?", "answer": "a", "knd": "k"}', "did you mean 'kind'"),
    "no answer": ('{"question": "?", "kind": "k"}', "line 2: 'answer' is missing"),
    "an empty question": ('{"question": " ", "answer": "a", "kind": "k"}', "line 2: question=' ': expected a text"),
    "an answer that is a list": ('{"question": "?", "answer": [1], "kind": "k"}', "line 2: answer=\\[1\\]: expected"),
    "an unknown grader": (
        '{"question": "?", "answer": "a", "kind": "k", "grader": "judge"}',
        "line 2: grader='judge': expected one of exact, number, contains, choice",
    ),
    "no number": (
        '{"question": "?", "answer": "many", "kind": "k", "grader": "number"}',
        "line 2: answer='many': the grader 'number' needs one number",
    ),
    "two numbers": ('{"question": "?", "answer": "1 to 2", "kind": "k", "grader": "number"}', "needs one number"),
    "no letter": ('{"question": "?", "answer": "pear", "kind": "k", "grader": "choice"}', "needs the letter"),
    "a kind with markup": ('{"question": "?", "answer": "a", "kind": "<b>"}', "line 2: kind='<b>': expected a word"),
    "a question twice": (GOOD, "line 2: the question of line 1 again"),
}


@pytest.mark.parametrize(("line", "message"), WRONG_LINES.values(), ids=WRONG_LINES)
def test_a_wrong_line_is_named_with_what_was_expected(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text(f"{GOOD}\n{line}\n", encoding="utf-8")
    with pytest.raises(UsageError, match=message) as caught:
        load_tasks(file)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe\x00"], ids=["empty", "blank", "no UTF-8"])
def test_a_file_without_tasks_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_bytes(content)
    with pytest.raises(UsageError, match="expected"):
        load_tasks(file)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match=r"no/tasks.jsonl: cannot be read"):
        load_tasks("no/tasks.jsonl")


# -- samples -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 8, 11, 24, 40])
def test_a_sample_holds_the_kinds_as_evenly_as_they_come(count: int) -> None:
    kinds = Counter(task.kind for task in draw_tasks(BUILT_IN, count))
    shares = [kinds[kind] for kind in {task.kind for task in BUILT_IN}]
    assert sum(shares) == count
    assert max(shares) - min(shares) <= 1


def test_a_sample_is_drawn_by_its_seed() -> None:
    assert draw_tasks(BUILT_IN, 12, seed=3) == draw_tasks(BUILT_IN, 12, seed=3)
    eight = [{task.id: task for task in draw_tasks(BUILT_IN, 8, seed=seed)} for seed in range(5)]
    assert all(len({task.kind for task in sample.values()}) == 8 for sample in eight)
    assert len({frozenset(sample) for sample in eight}) == 5


def test_a_larger_sample_holds_the_smaller_one() -> None:
    assert draw_tasks(BUILT_IN, 30)[:9] == draw_tasks(BUILT_IN, 9)


def test_a_rare_kind_is_taken_whole_and_the_others_fill_up() -> None:
    tasks = [*BUILT_IN[:5], make_task("?", "a", "rare")]
    assert Counter(task.kind for task in draw_tasks(tasks, 5)) == {"arithmetic": 4, "rare": 1}


@pytest.mark.parametrize("count", [0, -1, 41])
def test_a_sample_that_cannot_be_drawn_says_how_many_there_are(count: int) -> None:
    with pytest.raises(UsageError, match="expected 1 to 40"):
        draw_tasks(BUILT_IN, count)
