"""Files of recorded answers in their three forms, and errors that say where."""

import json
from pathlib import Path
from typing import Any

import pytest
from concertino_replay import EXAMPLE, RecordingError, read

OWN = {"model": "a", "question": "How many?", "text": "Four.", "input_tokens": 3, "output_tokens": 2}


def write(folder: Path, *rows: Any, name: str = "own.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_the_own_form_gives_questions_answers_samples_and_model_facts(tmp_path: Path) -> None:
    card = {"model": "a", "prices": {"input": 1, "output": 2}, "context": 100, "description": "Counts."}
    more = {"model": "b", "id": "q7", "question": "Why?", "text": "", "seconds": 1.5, "usd": 0.01, "correct": None}
    recording = read(write(tmp_path, card, OWN, {**OWN, "question": "how  many?", "text": "Five."}, more, ""))
    assert recording.models == ("a", "b")
    first, second = recording.questions.values()
    assert (first.text, second.id) == ("How many?", "q7")
    assert [answer.text for answer in recording.answers["a"][first.id]] == ["Four.", "Five."]
    answer = recording.answers["b"]["q7"][0]
    assert (answer.text, answer.seconds, answer.usd, answer.input_tokens) == ("", 1.5, 0.01, None)
    assert recording.facts["a"].prices is not None
    assert recording.facts["a"].prices.output == 2


def test_the_form_with_one_question_in_a_line(tmp_path: Path) -> None:
    outputs = {"x/a": {"output": "4", "correct": False, "numeric_correct": True}, "b": {"output": "5", "correct": True}}
    row = {"question_id": "g-1", "question": "How many?", "gold": "4", "models": outputs}
    recording = read(write(tmp_path, row))
    assert recording.models == ("x/a", "b")
    assert recording.verdict_names() == ("numeric_correct", "correct")
    assert recording.questions["g-1"].gold == "4"
    assert [row["correct"] for row in recording.rows("correct")] == [False, True]
    assert [row["correct"] for row in recording.rows()] == [True, None]


def test_the_form_with_one_model_in_a_line_takes_prompts_from_the_file_beside_it(tmp_path: Path) -> None:
    write(tmp_path, {"task": "sums", "task_id": "0", "prompt": "How many?", "reference": "4"}, name="tasks.jsonl")
    tokens = {"prompt_tokens": 900, "completion_tokens": 80}
    result = {"task": "sums", "task_id": "0", "final": None, "tokens": tokens, "success": False}
    write(tmp_path, {"model": "a", "results": [result]}, name="pool.jsonl")
    recording = read(tmp_path)
    (answer,) = recording.answers["a"]["sums/0"]
    assert (answer.text, answer.input_tokens, answer.output_tokens, answer.several_turns) == ("", 900, 80, True)
    assert recording.questions["sums/0"].group == "sums"


def test_two_files_are_one_recording(tmp_path: Path) -> None:
    one = write(tmp_path, OWN)
    two = write(tmp_path, {**OWN, "question": "Why?"}, name="two.jsonl")
    recording = read(one, two)
    assert len(recording.answers["a"]) == 2
    assert recording.sources == ("own.jsonl", "two.jsonl")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["{"], r"own\.jsonl:1: invalid JSON: .*; expected one object in each line"),
        (["[1]"], r"own\.jsonl:1: list '\[1\]'; expected an object"),
        ([], r"own\.jsonl: it holds no row; expected"),
        ([{"prompt": "x"}], r":1: the keys are prompt; expected \{'model'"),
        ([OWN, {**OWN, "output_tokns": 3}], r":2: unknown key 'output_tokns'; did you mean 'output_tokens'"),
        ([{**OWN, "model": ""}], r":1: model = ''; expected a text"),
        ([{**OWN, "text": 4}], r":1: text = 4; expected a text"),
        ([{"model": "a", "text": "x"}], r":1: expected a 'question' as text, or an 'id'; got ''"),
        ([{**OWN, "input_tokens": -1}], r":1: input_tokens = -1; expected a whole number, 0 or more"),
        ([{**OWN, "input_tokens": 1.5}], r":1: input_tokens = 1\.5; expected a whole number"),
        ([{**OWN, "seconds": True}], r":1: seconds = True; expected a number"),
        ([{**OWN, "correct": "yes"}], r":1: correct = 'yes'; expected true, false or null"),
        ([{"model": "a", "prices": {"in": 1}}], r":1: prices = \{'in': 1\}: .*; expected \{\"input\""),
        ([{"model": "a", "prices": {"input": -1, "output": 1}}], r":1: prices = .*number >= 0"),
        (
            [{**OWN, "id": "1"}, {**OWN, "id": "1", "question": "Why?"}],
            r":2: the question '1' is 'Why\?'; before it was 'How many\?'; one id names one question",
        ),
        ([{"question": "x", "models": []}], r":1: 'models' is list; expected outputs by model"),
        ([{"question": "x", "models": {"a": "b"}}], r":1, models\['a'\] is str; expected an object with 'output'"),
        ([{"question": "x", "models": {"a": {}}}], r":1, models\['a'\]: output = None; expected a text"),
        ([{"model": "a", "results": []}], r"tasks\.jsonl: file not found"),
    ],
)
def test_a_row_that_cannot_be_read_is_an_error_with_file_and_line(
    tmp_path: Path, rows: list[Any], message: str
) -> None:
    with pytest.raises(RecordingError, match=message):
        read(write(tmp_path, *rows))


def test_a_result_of_a_task_without_prompt_names_the_near_one(tmp_path: Path) -> None:
    write(tmp_path, {"task": "sums", "task_id": "10", "prompt": "How many?"}, name="tasks.jsonl")
    write(tmp_path, {"model": "a", "results": [{"task": "sum", "task_id": "10"}]}, name="pool.jsonl")
    with pytest.raises(
        RecordingError, match=r"pool\.jsonl:1, results\[0\]: .* no task 'sum/10'; did you mean 'sums/10'"
    ):
        read(tmp_path)


def test_a_missing_file_and_no_file_are_errors(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="file not found"):
        read(tmp_path / "nothing.jsonl")
    with pytest.raises(RecordingError, match="expected at least one path"):
        read()


def test_the_built_in_recording_is_graded_as_its_gold_answers_say() -> None:
    for row in read(EXAMPLE).rows():
        said = row["text"].rpartition("The answer is ")[2].rstrip(".")
        assert row["correct"] is (said == row["gold"])
