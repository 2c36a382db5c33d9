"""`concertino bench rescore`: old results with other graders, from their traces, without asking anybody."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from concertino import Trace, TraceError, UsageError
from concertino_bench.cli import bench
from concertino_bench.reports import read_results
from concertino_bench.rescoring import rewarding
from concertino_bench.rescoring.recorded_run import run_of
from concertino_bench.rescoring.rescore import Rescoring
from concertino_bench.rescoring.rewarding import GradedRun
from concertino_bench.tasks.item import Item

SYSTEMS = ("--system", "rounds=parallel-rounds,model=toy/leader", "--system", "graph=agent-graph,model=toy/leader")
ROWS = '{"question": "How many legs has a cat?", "answer": "4"}\n{"question": "And a bird?", "answer": "two legs"}\n'


def run(*arguments: object) -> Result:
    return CliRunner().invoke(bench, [str(each) for each in arguments])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with results of two systems over generated questions, and of one over a file."""
    home = tmp_path_factory.mktemp("made")
    done = run("run", "--tasks", "masbench/depth,level=3,limit=2", *SYSTEMS, "--samples", 2, "--out", home / "r.jsonl")
    assert done.exit_code == 0, done.output
    (home / "mine.jsonl").write_text(ROWS)
    own = f"jsonl,path={home / 'mine.jsonl'},question=question,answer=answer"
    done = run("run", "--tasks", own, *SYSTEMS[:2], "--out", home / "own.jsonl")
    assert done.exit_code == 0, done.output
    return home


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    home = Path(shutil.copytree(made, tmp_path / "copy"))
    (home / "own.jsonl").write_text((home / "own.jsonl").read_text().replace(str(made), str(home)))
    return home


def told(*arguments: object) -> dict[str, Any]:
    done = run("rescore", *arguments, "--json")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    return dict(json.loads(done.stdout))


def reasons(summary: Mapping[str, Any]) -> list[str]:
    return sorted({each["reason"] for each in summary["left_out"]})


# -- graders -----------------------------------------------------------------------------------------------------------


def test_the_own_grader_gives_the_verdicts_that_the_run_gave(folder: Path) -> None:
    found = told(folder / "r.jsonl", "--grader", "own")
    assert (found["items"], found["total"], found["left_out"]) == (8, 8, [])
    assert {name: of["changed"] for name, of in found["systems"].items()} == {"rounds": 0, "graph": 0}
    old, new = read_results(folder / "r.jsonl").items, read_results(folder / "r.rescored.jsonl").items
    assert sorted(map(graded, old)) == sorted(map(graded, new))


def graded(item: Item) -> tuple[Any, ...]:
    return item.key, item.verdict, item.reason, item.found, item.share


def test_another_grader_changes_verdicts_and_a_report_reads_them(folder: Path) -> None:
    found = told(folder / "r.jsonl", "--grader", "numeric", "-o", folder / "n.jsonl")
    assert found["left_out"] == []
    assert all(of["right"] == 4 for of in found["systems"].values())
    done = run("rescore", folder / "own.jsonl", "--grader", "verbatim", "-o", folder / "v.jsonl", "--json")
    summary = json.loads(done.stdout)
    assert summary["items"] == 2
    shown = run("report", folder / "n.jsonl", "--json")
    assert shown.exit_code == 0
    assert json.loads(shown.stdout)["systems"]["rounds"]["accuracy"]["value"] == 1.0


def test_the_same_command_continues_and_does_nothing_twice(folder: Path) -> None:
    first = told(folder / "r.jsonl", "--grader", "own")
    out = folder / "r.rescored.jsonl"
    whole = out.read_bytes()
    lines = whole.splitlines(keepends=True)
    assert first["fresh"] == 8
    assert told(folder / "r.jsonl", "--grader", "own")["fresh"] == 0
    out.write_bytes(b"".join(lines[:4]) + lines[4][:30])
    assert told(folder / "r.jsonl", "--grader", "own")["fresh"] == 5
    assert sorted(out.read_bytes().splitlines()) == sorted(whole.splitlines())
    done = run("rescore", folder / "r.jsonl", "--grader", "numeric")
    assert "what differs: grader, what it is rescored with" in done.stderr


def test_the_traces_are_found_from_the_new_file_too(folder: Path) -> None:
    out = folder / "deeper" / "new.jsonl"
    assert told(folder / "r.jsonl", "--grader", "own", "-o", out)["left_out"] == []
    items = read_results(out).items
    assert all(Trace.load(out.parent / item.trace).finished for item in items)
    assert told(out, "--grader", "own", "-o", folder / "again.jsonl")["left_out"] == []


def test_an_item_that_the_task_file_lacks_is_named(folder: Path) -> None:
    (folder / "mine.jsonl").write_text(ROWS.splitlines(keepends=True)[0])
    tasks = f"jsonl,path={folder / 'mine.jsonl'},question=question,answer=answer"
    found = told(folder / "own.jsonl", "--grader", "own", "--tasks", tasks)
    assert (found["items"], reasons(found)) == (1, ["no task"])
    assert "the tasks have no" in found["left_out"][0]["detail"]


def test_tasks_that_cannot_be_read_again_end_it_before_anything_is_written(folder: Path) -> None:
    (folder / "own.jsonl").write_text((folder / "own.jsonl").read_text().replace("mine.jsonl", "gone.jsonl"))
    done = run("rescore", folder / "own.jsonl", "--grader", "own")
    assert done.exit_code == 2
    assert "gone.jsonl" in done.stderr
    assert "name them with --tasks SET,path=FILE" in done.stderr
    assert not (folder / "own.rescored.jsonl").exists()


def test_a_file_outside_that_the_results_name_is_not_opened(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "mine.jsonl"
    outside.write_text(ROWS)
    text = (folder / "own.jsonl").read_text()
    (folder / "own.jsonl").write_text(text.replace(str(folder / "mine.jsonl"), str(outside)))
    done = run("rescore", folder / "own.jsonl", "--grader", "own")
    assert done.exit_code == 2
    assert "names what lies outside of this folder and of its own: opens the path" in done.stderr
    tasks = f"jsonl,path={outside},question=question,answer=answer"
    assert told(folder / "own.jsonl", "--grader", "own", "--tasks", tasks)["items"] == 2


@pytest.mark.parametrize(
    ("grader", "reason", "said"),
    [("llm-judge", "asks", "needs model:judge"), ("environment", "state", "reads the final state")],
)
def test_what_would_have_to_ask_or_needs_a_world_is_left_out(folder: Path, grader: str, reason: str, said: str) -> None:
    found = told(folder / "r.jsonl", "--grader", grader)
    assert (found["items"], reasons(found)) == (0, [reason])
    assert said in found["left_out"][0]["detail"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name what to grade with"),
        (("--grader", "masbnch"), "did you mean 'masbench'?"),
        (("--grader", "own", "-o", "r.jsonl"), "choose another file with --out"),
        (("--grader", "own", "--tasks", "masbench/dept"), "did you mean 'masbench/depth'?"),
    ],
)
def test_a_wrong_command_is_refused(folder: Path, arguments: Sequence[str], said: str) -> None:
    given = [folder / each if each == "r.jsonl" else each for each in arguments]
    done = run("rescore", folder / "r.jsonl", *given)
    assert done.exit_code != 0
    assert said in done.stderr
    assert not (folder / "r.rescored.jsonl").exists()


# -- damage ------------------------------------------------------------------------------------------------------------


def damages(trace: bytes) -> dict[str, bytes]:
    """Ways in which a trace may have come to harm."""
    lines = trace.splitlines(keepends=True)
    return {
        "torn in its last line": trace[:-20],
        "without its end": b"".join(lines[:-1]),
        "half of it": trace[: len(trace) // 2],
        "empty": b"",
        "no trace": b"hello\n" * 5,
        "zeros inside": trace[:900] + b"\0" * 50 + trace[950:],
        "a line twice": b"".join([*lines[:5], lines[4], *lines[5:]]),
        "not UTF-8": trace[:700] + b"\xff\xfe\xfd" + trace[703:],
    }


@pytest.mark.parametrize("which", list(damages(b"x\n" * 2000)))
def test_a_damaged_trace_costs_its_own_item_alone(folder: Path, which: str) -> None:
    item = read_results(folder / "r.jsonl").items[0]
    file = folder / item.trace
    file.write_bytes(damages(file.read_bytes())[which])
    found = told(folder / "r.jsonl", "--grader", "own")
    assert found["items"] == 7
    assert [each["reason"] for each in found["left_out"]] == ["unreadable trace"]
    assert [found["left_out"][0][name] for name in ("system", "task", "sample")] == list(item.key)


def test_a_run_that_has_no_end_is_told_so(folder: Path) -> None:
    item = read_results(folder / "r.jsonl").items[0]
    file = folder / item.trace
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))
    assert "the run has no end yet" in told(folder / "r.jsonl", "--grader", "own")["left_out"][0]["detail"]


def test_a_trace_of_another_run_or_none_is_told(folder: Path) -> None:
    first, second, *_ = read_results(folder / "own.jsonl").items
    (folder / second.trace).unlink()
    other = next(item for item in read_results(folder / "r.jsonl").items)
    shutil.copy(folder / other.trace, folder / first.trace)
    found = told(folder / "own.jsonl", "--grader", "own")
    assert reasons(found) == ["no trace", "unreadable trace"]
    assert any("is of another run" in each["detail"] for each in found["left_out"])


def test_a_record_of_a_wrong_type_is_nothing_but_an_error_of_the_trace(folder: Path) -> None:
    trace = Trace.load(folder / read_results(folder / "r.jsonl").items[0].trace)
    for number, record in enumerate(trace.records):
        for key in record.keys() - {"t", "n"}:
            wrong: list[dict[str, Any]] = [dict(each) for each in trace.records]
            wrong[number][key] = ["wrong", 7]
            # Any other error would end the whole command.
            with contextlib.suppress(TraceError):
                run_of(Trace(wrong, trace.path))


def test_without_traces_a_text_is_graded_from_the_results_alone(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    run("run", "--tasks", "masbench/depth,level=3,limit=2", *SYSTEMS[:2], "--no-traces", "--out", out)
    assert told(out, "--grader", "own")["items"] == 2
    found = told(out, "--grader", "final-state", "-o", tmp_path / "c.jsonl")
    assert (found["items"], reasons(found)) == (0, ["grader"])


def test_a_line_of_the_results_that_is_damaged_is_told(folder: Path) -> None:
    file = folder / "r.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines[:3], "{broken\n", *lines[4:]]))
    found = told(file, "--grader", "own")
    assert found["items"] == found["total"] == 7
    assert "line 4 was left out" in found["notes"][0]


# -- rewards -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Given:
    total: float
    components: Mapping[str, float]


@dataclass(frozen=True)
class Counts:
    """A reward: how many calls, and how many runs it was given at once."""

    name: str = "counts"
    broken: str = ""

    def score_runs(self, runs: Sequence[GradedRun]) -> list[Given]:
        if self.broken and self.broken in runs[0].group:
            raise ValueError("it broke")
        return [Given(len(each.run.observations) + len(runs), {"calls": 1.0, "runs": 2.0}) for each in runs]

    @classmethod
    def load(cls, path: str | Path) -> Counts:
        return cls()

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name}


def with_reward(monkeypatch: pytest.MonkeyPatch, reward: Counts) -> None:
    monkeypatch.setattr(rewarding, "installed_run_rewards", lambda: {reward.name: reward})


def test_a_reward_sees_all_samples_of_a_task_and_its_parts_are_values(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_reward(monkeypatch, Counts())
    found = told(folder / "r.jsonl", "--reward", "counts")
    assert found["systems"]["graph"]["rewards"] == {"counts": 5.0}
    item = read_results(folder / "r.rescored.jsonl").items[0]
    assert (item.values["reward counts: calls"], item.values["reward counts: runs"]) == (1.0, 2.0)
    shown = json.loads(run("report", folder / "r.rescored.jsonl", "--json").stdout)
    assert shown["systems"]["graph"]["reward counts"]["value"] == 5.0
    assert "| reward counts (reward) | " in run("report", folder / "r.rescored.jsonl").stdout


def test_a_reward_that_breaks_costs_its_own_column_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_reward(monkeypatch, Counts(broken="graph"))
    done = run("rescore", folder / "r.jsonl", "--reward", "counts", "--json")
    found = json.loads(done.stdout)
    assert done.exit_code == 1
    assert found["lacking"] == {"counts": {"items": 4, "why": "it broke"}}
    assert (found["items"], found["systems"]["graph"]["rewards"]) == (8, {})
    shown = json.loads(run("report", folder / "r.rescored.jsonl", "--json").stdout)
    assert shown["systems"]["graph"]["reward counts"]["value"] is None


def test_no_grader_and_no_reward_are_nothing_to_grade_with() -> None:
    with pytest.raises(UsageError, match="name what to grade with"):
        Rescoring()
    with pytest.raises(UsageError, match="pip install concertino-train"):
        rewarding.choose_rewards(["gap"], {})
