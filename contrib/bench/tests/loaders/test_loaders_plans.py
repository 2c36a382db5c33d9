"""AsyncHow: plans whose time on the executor's clock is exactly the answer; marks, cycles, ranges, guarded pickles."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import pickle
import sys
from collections.abc import Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import concertino as ct
import pytest
from concertino_bench import DataError, Task
from concertino_bench.loaders import DataWarning, skip_bad_rows
from concertino_bench.loaders.plans import asynchow, durations_of, plan_of
from tree import ROOT

T = TypeVar("T")
ROW: dict[str, Any] = {
    "id": "async/1",
    "title": "How to make tea",
    "steps": ["Boil water.", "Take cups.", "Pour.", "Sing."],
    "edges": [["START", "1"], ["2", "3"], ["1", "3"], ["3", "END"]],
    "durations_s": {"1": [60, 120], "2": [10, 10], "3": [5, 5], "4": [1, 1]},
    "durations_text": {"1": "1-2 min"},
    "makespan_s": [65, 125],
}


def load(tmp_path: Path, row: dict[str, Any], **options: Any) -> Task:
    file = tmp_path / "plans.jsonl"
    file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    (task,) = asynchow(path=file, **options)
    return task


def run_virtually(work: Coroutine[Any, Any, T]) -> T:
    """Run on the clock of the executor's own tests, on which waiting takes no time."""
    name = "loaders_virtual_clock"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / "tests" / "sdk" / "executor" / "virtual_clock.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    run: Any = sys.modules[name].run_virtually
    result: T = run(work)
    return result


@ct.tool(timeout=None)
async def step(seconds: float) -> str:
    """Take some time."""
    await asyncio.sleep(seconds)
    return "done"


def times(plans: list[ct.Plan]) -> list[float]:
    """What each plan takes on the executor, in seconds of the virtual clock."""
    pool = ct.Pool.of(step)

    async def work() -> list[float]:
        loop = asyncio.get_running_loop()
        took = []
        async with ct.Executor() as executor:
            for plan in plans:
                started = loop.time()
                seen = await executor.run(plan, pool)
                assert all(observation.ok for observation in seen)
                took.append(loop.time() - started)
        return took

    return run_virtually(work())


def level_time(plan: ct.Plan, seconds: dict[str, float]) -> float:
    """What a plan takes if each level waits for the whole level before."""
    return sum(max(seconds[call_id] for call_id in level) for level in plan.levels())


def test_a_task_asks_for_the_time_and_names_every_step_and_wait(tmp_path: Path) -> None:
    task = load(tmp_path, ROW)
    assert (task.id, task.kind, task.answer) == ("async/1", "plan", "65")
    assert "Step 1 (60 seconds): Boil water." in task.question
    assert "Step 3 can begin only when step 2 is done." in task.question
    assert "START" not in task.question
    assert task.metadata["edges"] == [["2", "3"], ["1", "3"]]
    assert "Step 1 (120 seconds)" in load(tmp_path, ROW, durations="longest").question
    assert load(tmp_path, ROW, durations="longest").answer == "125"
    with pytest.raises(DataError, match="durations='mean'; expected 'shortest' or 'longest'"):
        load(tmp_path, ROW, durations="mean")


def test_marks_are_no_calls_and_a_step_without_edges_runs(tmp_path: Path) -> None:
    task = load(tmp_path, ROW)
    plan = plan_of(task)
    assert [call.id for call in plan.calls] == ["1", "2", "3", "4"]
    assert plan.edges == {"3": ("2", "1")}
    assert durations_of(task) == {"1": 60, "2": 10, "3": 5, "4": 1}
    assert times([plan]) == [65]
    renamed = plan_of(task, tool="wait", argument="for_seconds")
    assert (renamed.calls[0].name, renamed.calls[0].arguments) == ("wait", {"for_seconds": 60})
    with pytest.raises(ValueError, match="expected a task of AsyncHow"):
        plan_of(Task("x", "?", ("1",), "number"))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"edges": [["1", "2"], ["2", "1"]]}, r":1: the steps are not a plan \(.*\); expected edges without a cycle"),
        ({"edges": [["1", "1"]]}, "the steps are not a plan"),
        ({"edges": [["1", "9"]]}, "leads to '9'; expected START, END or one of 1, 2, 3, 4"),
        ({"edges": [["1"]]}, "pairs of step ids"),
        ({"steps": ["Boil."]}, "1 steps and 4 durations"),
        ({"durations_s": {}}, r"\[shortest, longest\] seconds by step id"),
        ({"durations_s": {"1": [1, 2, 3]}}, r"expected \[shortest, longest\] in seconds"),
        ({"makespan_s": [-1, 5]}, "not below 0"),
        ({"makespan_s": "1 hour"}, "expected \\[shortest, longest\\] in seconds"),
    ],
)
def test_what_is_no_plan_is_refused_before_anything_runs(columns: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        load(tmp_path, {**ROW, **columns})


def test_an_answer_that_is_not_the_longest_chain_is_told_and_kept(tmp_path: Path) -> None:
    with pytest.warns(
        DataWarning, match=r"plans\.jsonl:1: async/1: the longest chain takes 65 s, and the answer is 70 s"
    ):
        assert load(tmp_path, {**ROW, "makespan_s": [70, 125]}).answer == "70"


# -- the published pickles ---------------------------------------------------------------------------------------------


def table(**columns: Any) -> dict[str, Any]:
    spans = {
        step: [timedelta(seconds=low), timedelta(seconds=high)] for step, (low, high) in ROW["durations_s"].items()
    }
    return {
        "titles": [ROW["title"]],
        "steps": [ROW["steps"]],
        "edge_list": [[tuple(edge) for edge in ROW["edges"]]],
        "step_deps": [{("1", "3")}],
        "time_dic": [ROW["durations_text"]],
        "timedelta_dic": [spans],
        "task_time": [[timedelta(seconds=65), timedelta(minutes=2, seconds=5)]],
        **columns,
    }


def pickled(tmp_path: Path, value: Any) -> Path:
    file = tmp_path / "async_benchmark.pkl"
    file.write_bytes(pickle.dumps(value))
    return file


def test_a_published_file_gives_the_same_task_as_its_row(tmp_path: Path) -> None:
    (task,) = asynchow(path=pickled(tmp_path, table()))
    assert task == load(tmp_path, {**ROW, "id": "async/0"})


def test_a_plan_of_a_published_file_that_is_wrong_is_left_out_where_that_is_allowed(tmp_path: Path) -> None:
    two = {name: [*column, *column] for name, column in table().items()}
    two["task_time"] = [None, *two["task_time"][1:]]
    file = pickled(tmp_path, two)
    with pytest.raises(DataError, match="plan 0: "):
        list(asynchow(path=file))
    with skip_bad_rows(1) as skipped:
        assert [task.id for task in asynchow(path=file)] == ["async/1"]
    assert len(skipped.errors) == 1


class Evil:
    def __reduce__(self) -> Any:
        return (print, ("this was run",))


def test_a_pickle_that_names_a_function_is_refused_and_nothing_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DataError, match=r"async_benchmark\.pkl: the pickle is not loaded \(it wants builtins\.print"):
        list(asynchow(path=pickled(tmp_path, table(titles=[Evil()]))))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps(table())[:-50], "the pickle is not loaded"),
        (b"", "the pickle is not loaded"),
        (b"not a pickle at all", "the pickle is not loaded"),
        (pickle.dumps([1]), "list; expected columns by name"),
        (pickle.dumps({"titles": []}), "expected lists of equal length under titles, steps"),
        (pickle.dumps(table(titles=["a", "b"])), "expected lists of equal length"),
        (pickle.dumps(table(task_time=[[5, 6]])), "plan 0: .*; expected steps, edges and time spans"),
    ],
)
def test_a_pickle_of_another_shape_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "async_benchmark.pkl"
    file.write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(asynchow(path=file))


# -- real plans --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("durations", "which"), [("shortest", 0), ("longest", 1)])
def test_everyday_plans_take_exactly_the_answer_on_the_clock_of_the_executor(
    durations: Any, which: int, shared_data: Path
) -> None:
    path = shared_data / "asynchow" / "plans.jsonl"
    tasks = list(asynchow(path=path, durations=durations))
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(tasks) == 200
    took = times([plan_of(task) for task in tasks])
    assert took == [float(task.answer) for task in tasks] == [row["makespan_s"][which] for row in rows]


def test_a_barrier_between_levels_is_never_faster_and_sometimes_slower(shared_data: Path) -> None:
    tasks = list(asynchow(path=shared_data / "asynchow" / "plans.jsonl"))
    by_level = [level_time(plan_of(task), durations_of(task)) for task in tasks]
    exact = [float(task.answer) for task in tasks]
    assert all(slow >= fast for slow, fast in zip(by_level, exact, strict=True))
    assert sum(slow > fast for slow, fast in zip(by_level, exact, strict=True)) > 10
