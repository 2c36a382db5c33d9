"""Few-shot prompts: which examples stand before a question, that graders do not see them, and what is recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import concertino as ct
import pytest
from click.testing import CliRunner, Result
from concertino_bench import Grade, System, Task, TaskSet, Verdict
from concertino_bench.cli import bench
from concertino_bench.loaders.catalogue import task_sets
from concertino_bench.runner import Evaluation, Selection, evaluate
from concertino_bench.tasks.few_shots import with_shots
from concertino_bench.tasks.grade import text_grader

GSM8K = next(each for each in task_sets() if each.name == "gsm8k")


def tasks(*names: str, split: str = "") -> list[Task]:
    return [Task(name, f"What is {name}?", (f"It is {name}.",), "text", split=split) for name in names]


def rows(path: Path, numbers: range) -> Path:
    lines = [{"question": f"{n} plus 0?", "answer": f"It stays.\n#### {n}"} for n in numbers]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_a_task_is_never_its_own_example_nor_is_one_with_its_question() -> None:
    all_tasks = tasks(*"abcdef")
    twin = Task("other", "WHAT  is a?", ("No.",), "text")
    for seed in range(20):
        for task in with_shots(all_tasks, [*all_tasks, twin], 3, seed):
            ids = task.metadata["shots"]
            assert len(set(ids)) == 3
            assert task.id not in ids
            assert task.id != "a" or "other" not in ids
            assert task.prompt.count("Question:") == 4
            assert task.prompt.endswith(f"Question: {task.question}\n\nAnswer:")
            assert f"It is {task.id}." not in task.prompt


def test_the_same_seed_draws_the_same_whatever_the_order_and_another_seed_draws_others() -> None:
    some, pool = tasks("x", "y"), tasks(*"abcdefghij")
    first = [task.asked for task in with_shots(some, pool, 4, 1)]
    assert first == [task.asked for task in with_shots(some, pool[::-1], 4, 1)]
    assert first != [task.asked for task in with_shots(some, pool, 4, 2)]
    assert first[0].partition("What is x?")[0] != first[1].partition("What is y?")[0]


def test_every_example_is_drawn_about_as_often() -> None:
    shown = with_shots(tasks(*map(str, range(300))), tasks(*"abcd"), 2)
    seen = [name for task in shown for name in task.metadata["shots"]]
    assert all(110 < seen.count(name) < 190 for name in "abcd")


def test_a_worked_solution_is_shown_and_its_answer_if_it_does_not_hold_it() -> None:
    worked = Task("a", "?", ("7",), "number", metadata={"solution": "3 + 4 = 7"})
    silent = Task("b", "??", ("7",), "number", metadata={"solution": "By adding."})
    (task,) = with_shots(tasks("x"), [worked, silent], 2)
    assert "Answer: 3 + 4 = 7\n" in task.prompt
    assert "Answer: By adding.\nThe answer is 7.\n" in task.prompt


def test_too_few_examples_are_an_error_that_says_how_many_there_are() -> None:
    unsolved = Task("u", "Who?", (), "code")
    with pytest.raises(ValueError, match="1 solved examples for b, expected 2"):
        with_shots(tasks("a", "b"), [*tasks("b", "c"), unsolved], 2)


def test_examples_come_from_another_file_or_from_a_split(tmp_path: Path) -> None:
    test, train = rows(tmp_path / "test.jsonl", range(3)), rows(tmp_path / "train.jsonl", range(50, 60))
    chosen = Selection(GSM8K, {"path": test}, shots=2, shots_from=str(train)).tasks()
    assert [task.question for task in chosen] == ["0 plus 0?", "1 plus 0?", "2 plus 0?"]
    assert all("5" in task.prompt.partition(task.question)[0] for task in chosen)

    def load() -> Iterator[Task]:
        yield from [*tasks("a", "b", split="test"), *tasks("c", "d", split="train")]

    home = TaskSet("own", "Own.", load)
    for task in Selection(home, limit=2, shots=2, shots_from="train").tasks():
        assert set(task.metadata["shots"]) == {"c", "d"}
    with pytest.raises(ct.UsageError, match="neither a file nor a split"):
        Selection(home, shots=2, shots_from="dev").tasks()


def test_who_is_asked_sees_the_examples_and_graders_and_results_do_not(tmp_path: Path) -> None:
    graded: list[str] = []

    @text_grader("seen", "text")
    def seen(task: Task, text: str) -> Grade:
        """Right always."""
        graded.append(task.question)
        return Grade(Verdict.RIGHT, "seen")

    home = TaskSet("own", "Own.", lambda: iter(tasks("a", "b", "c")))
    evaluation = Evaluation([Selection(home, shots=1)], [System("alone", "single-model", model="toy/steady")])
    out = tmp_path / "r.jsonl"
    pool = ct.Pool.installed("toy/*")
    asyncio.run(evaluate(evaluation, pool, out, graders=[seen.grader]))
    assert sorted(set(graded) - {""}) == ["What is a?", "What is b?", "What is c?"]
    traces = [ct.Trace.load(path) for path in sorted(tmp_path.rglob("*.trace.jsonl"))]
    assert len(traces) == 3
    assert all(str(trace.question).count("Question: ") == 2 for trace in traces)
    header = json.loads(out.read_text(encoding="utf-8").splitlines()[0])
    assert '"shots": 1' in json.dumps(header)
    other = Evaluation([Selection(home)], evaluation.systems)
    with pytest.raises(ct.UsageError):
        asyncio.run(evaluate(other, pool, out, graders=[seen.grader]))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(bench, ["run", *map(str, arguments)])


@pytest.mark.slow
def test_the_command_takes_shots_as_options_in_a_selection_and_in_a_file(tmp_path: Path) -> None:
    test, train = rows(tmp_path / "test.jsonl", range(2)), rows(tmp_path / "train.jsonl", range(50, 60))
    system = ("--system", "alone=single-model,model=toy/steady")
    given = ("--tasks", f"gsm8k,path={test}", *system, "--shots", 3, "--shots-from", train)
    done = run(*given, "--out", tmp_path / "1.jsonl")
    assert done.exit_code == 0, done.output
    short = run("--tasks", f"gsm8k,path={test},shots=3,shots_from={train}", *system, "--out", tmp_path / "2.jsonl")
    assert short.exit_code == 0, short.output
    file = tmp_path / "e.toml"
    file.write_text(
        '[[tasks]]\nset = "gsm8k"\nshots = 3\nshots_from = "train.jsonl"\noptions = { path = "test.jsonl" }\n'
        '[[systems]]\nname = "alone"\nstrategy = "single-model"\nmodel = "toy/steady"\n'
    )
    written = run(file, "--out", tmp_path / "3.jsonl")
    assert written.exit_code == 0, written.output
    for name in "123":
        (one,) = json.loads((tmp_path / f"{name}.jsonl").read_text().splitlines()[0])["sets"]
        assert (one["shots"], Path(one["shots_from"]).name) == (3, "train.jsonl")
    refused = run(*given[:-4], "--shots", 5, "--out", tmp_path / "4.jsonl")
    assert refused.exit_code != 0
    assert "1 solved examples for gsm8k/row-1, expected 5" in refused.stderr
