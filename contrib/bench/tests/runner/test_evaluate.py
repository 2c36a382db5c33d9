"""Running an evaluation: everything is done once, a broken system costs its own items, a crash costs nothing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.testing import fake_tool
from concertino_bench import Grade, Grader, GraderServices, Item, Submission, System, Task, TaskSet, Verdict
from concertino_bench.baselines import MajorityVote
from concertino_bench.masbench import grade, task_sets
from concertino_bench.runner import Evaluation, Outcome, Progress, Selection, evaluate

DEPTH = next(each for each in task_sets() if each.name == "masbench/depth")
POOL = ct.Pool.installed("toy/*").bind(orchestrator="toy/leader")
SYSTEMS = (System("rounds"), System("graph", "agent-graph"))


def asked(*systems: System, count: int = 6, **options: Any) -> Evaluation:
    chosen = options.pop("selections", [Selection(DEPTH, {"level": 3}, limit=count)])
    return Evaluation(chosen, systems or SYSTEMS, **options)


def done(evaluation: Evaluation, out: Path, pool: ct.Pool = POOL, **options: Any) -> Outcome:
    given: dict[str, Any] = {"graders": [grade.grader], **options}  # type: ignore[attr-defined]
    return asyncio.run(evaluate(evaluation, pool, out, **given))


def plain(items: Sequence[Item]) -> list[dict[str, Any]]:
    """Items without their times, in the order of their keys."""
    rows = [item.to_json() for item in sorted(items, key=lambda item: item.key)]
    for row in rows:
        for name in ("seconds", "critical_path", "trace"):
            row.pop(name, None)
        for use in [row, *row["members"].values()]:
            use["usage"].pop("seconds", None)
            use["usage"]["usd"] = round(use["usage"].get("usd", 0.0), 9)
            use.pop("seconds", None)
    return rows


def test_every_system_gets_every_task_as_often_as_asked(tmp_path: Path) -> None:
    outcome = done(asked(samples=2), tmp_path / "r.jsonl")
    keys = {item.key for item in outcome.items}
    assert len(keys) == len(outcome.items) == outcome.total == 6 * 2 * 2
    assert all(item.right for item in outcome.items)
    assert not outcome.missing
    assert {item.pool for item in outcome.items} == {POOL.id}


def test_an_item_says_what_its_run_did(tmp_path: Path) -> None:
    (item, *_) = done(asked(System("graph", "agent-graph"), count=1), tmp_path / "r.jsonl").items
    assert (item.rounds, item.calls, item.stop) == (1, sum(item.widths), "answered")
    assert item.members["toy/solve"].kind == "agent"
    assert item.members["toy/leader"].kind == "model"
    total = ct.Usage()
    for use in item.members.values():
        total = total.plus(use.usage)
    assert total.usd == pytest.approx(item.usage.usd)
    assert total.tokens == item.usage.tokens
    assert ct.Trace.load(tmp_path / item.trace).finished


def test_items_are_written_and_read_back_unchanged(tmp_path: Path) -> None:
    outcome = done(asked(), tmp_path / "r.jsonl")
    lines = (tmp_path / "r.jsonl").read_text().splitlines()
    header, *items = map(json.loads, lines)
    assert header["t"] == "bench"
    assert [Item.from_json(row) for row in items] == list(outcome.items)
    assert [Item.from_json(item.to_json()) for item in outcome.items] == list(outcome.items)


def test_a_finished_file_is_not_done_again(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    done(asked(), out)
    before = out.read_bytes()
    seen: list[Progress] = []
    done(asked(), out, on_progress=seen.append)
    assert out.read_bytes() == before
    assert [(each.done, each.fresh) for each in seen] == [(12, 0)]


def test_what_is_missing_is_done_and_a_torn_line_with_it(tmp_path: Path) -> None:
    out, whole = tmp_path / "r.jsonl", tmp_path / "whole.jsonl"
    done(asked(), whole)
    lines = whole.read_bytes().splitlines(keepends=True)
    out.write_bytes(b"".join(lines[:5]) + lines[5][:40])
    outcome = done(asked(), out)
    assert plain(outcome.items) == plain(done(asked(), whole).items)


def test_a_file_of_another_evaluation_is_refused_with_what_differs(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    done(asked(), out)
    with pytest.raises(ct.UsageError, match="belongs to another evaluation; what differs: samples"):
        done(asked(samples=2), out)
    with pytest.raises(ct.UsageError, match="what differs: pool;"):
        done(asked(), out, POOL.alias({"toy/solve": "other"}))
    with pytest.raises(ct.UsageError, match="what differs: pool;"):
        done(asked(System("rounds", prepare=lambda pool: pool.without("toy/swift")), SYSTEMS[1]), out)
    (tmp_path / "notes.txt").write_text("hello\n")
    with pytest.raises(ct.UsageError, match="its first line is not a header"):
        done(asked(), tmp_path / "notes.txt")


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    done(asked(), out)
    lines = out.read_text().splitlines()
    lines[3] = lines[3][:50]
    out.write_text("\n".join(lines) + "\n")
    with pytest.raises(ct.UsageError, match=r"r\.jsonl, line 4: it is damaged"):
        done(asked(), out)


def test_two_processes_do_not_write_to_one_file(tmp_path: Path) -> None:
    from concertino_bench.runner import ResultsFile

    with (
        ResultsFile(tmp_path / "r.jsonl", {"fingerprint": "x"}),
        pytest.raises(ct.UsageError, match="another process writes"),
    ):
        ResultsFile(tmp_path / "r.jsonl", {"fingerprint": "x"})


def test_a_system_that_breaks_costs_its_own_items_only(tmp_path: Path) -> None:
    class Broken(ct.ParallelRounds):
        def begin(self, brief: Any) -> Any:
            raise RuntimeError("no")

    outcome = done(asked(System("rounds"), System("broken", Broken())), tmp_path / "r.jsonl")
    by = {name: [item for item in outcome.items if item.key.system == name] for name in ("rounds", "broken")}
    assert all(item.right for item in by["rounds"])
    assert {item.error for item in by["broken"]} == {"RuntimeError: no"}
    assert {item.verdict for item in by["broken"]} == {Verdict.UNPARSABLE}


@pytest.mark.parametrize(
    ("system", "says"),
    [
        (System("vote", "majority-vote"), "no model of the pool can be asked as an agent; offer some"),
        (System("gone", MajorityVote(members=("nobody",))), "the pool has no member 'nobody'"),
    ],
    ids=["no members", "a wrong name"],
)
def test_a_system_that_cannot_begin_stops_the_evaluation_before_anybody_is_asked(
    system: System, says: str, tmp_path: Path
) -> None:
    asked_for: list[str] = []

    class Counting(ct.Model):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            asked_for.append("asked")
            return ct.Reply("1")

    evaluation = asked(System("first", "single-model", model=Counting()), system)
    with pytest.raises(ct.UsageError, match=rf"system {system.name}, task masbench/depth.*: .*{says}"):
        done(evaluation, tmp_path / "r.jsonl")
    assert asked_for == []
    assert not list(tmp_path.iterdir())


def test_items_that_ended_for_a_reason_can_be_done_again(tmp_path: Path) -> None:
    class Down(ct.Model):
        up = False

        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            if not self.up:
                raise ct.ProviderError("it is down", failure="caller")
            return ct.Reply(r'<reasoning>r</reasoning><tool_call>{"name": "final_answer", "arguments": {}}</tool_call>')

    system = System("own", model=Down())
    assert {item.stop for item in done(asked(system), tmp_path / "r.jsonl").items} == {"model"}
    Down.up = True
    outcome = done(asked(system), tmp_path / "r.jsonl", redo=["model"])
    assert {item.stop for item in outcome.items} == {"answered"}
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 1 + 6


def test_no_run_begins_once_the_money_is_spent(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    outcome = done(asked(count=40, max_usd=0.02), out, concurrency=2)
    spent = sum(item.usage.usd for item in outcome.items)
    assert 0.02 <= spent < 0.05
    assert outcome.missing
    assert "of max_usd=0.02" in outcome.stopped
    assert not done(asked(count=40), out).missing  # the guard is not part of what is evaluated


def test_a_guard_in_money_needs_prices(tmp_path: Path) -> None:
    pool = POOL.price({"toy/steady": None})
    with pytest.raises(ct.UsageError, match="the price of toy/steady is unknown"):
        done(asked(max_usd=1.0), tmp_path / "r.jsonl", pool)
    assert not (tmp_path / "r.jsonl").exists()


def test_a_system_without_its_model_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ct.UsageError, match="system rounds: the pool has no model or role 'boss'"):
        done(asked(System("rounds", model="boss")), tmp_path / "r.jsonl")
    assert not (tmp_path / "r.jsonl").exists()


def test_each_sample_has_a_seed_of_its_own(tmp_path: Path) -> None:
    seeds: list[int | None] = []

    class Noting(ct.Model):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            seeds.append(request.sampling.seed)
            return ct.Reply("<answer>1</answer>")

    done(asked(System("own", model=Noting()), count=1, samples=3, seed=5), tmp_path / "r.jsonl", concurrency=1)
    assert sorted(set(seeds)) == [5, 6, 7]  # type: ignore[type-var]


def test_at_most_so_many_runs_are_under_way_at_once(tmp_path: Path) -> None:
    running, most = 0, 0

    class Counting(ct.Model):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1
            return ct.Reply("<answer>1</answer>")

    done(asked(System("own", model=Counting()), count=20), tmp_path / "r.jsonl", concurrency=4)
    assert most == 4


class Judge(Grader):
    """Asks a model and calls a tool."""

    name = "judge"
    needs = ("model:judge", "tool:look")

    async def grade(self, task: Task, submission: Submission, services: GraderServices) -> Grade:
        reply = await services.ask("judge", ct.ChatRequest([ct.Message("user", submission.text)]))
        seen = await services.call("look", {})
        return Grade(Verdict.RIGHT if reply.text == "yes" and seen.ok else Verdict.WRONG, "it was judged")


class Fixed(ct.Model):
    """Says yes."""

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        return ct.Reply("yes", usage=ct.Usage(input_tokens=10, output_tokens=1))


def test_a_grader_may_ask_and_call_and_its_spending_is_counted_apart(tmp_path: Path) -> None:
    pool = POOL.adding(ct.ModelSpec("judge", Fixed), fake_tool("look", returns="1"))
    outcome = done(asked(count=2, grader="judge"), tmp_path / "r.jsonl", pool, graders=[Judge()])
    for item in outcome.items:
        assert item.right
        assert item.graded.input_tokens == 10
        assert "judge" not in item.members


def test_a_grader_that_needs_what_is_not_there_is_refused_first(tmp_path: Path) -> None:
    with pytest.raises(ct.UsageError, match="the grader judge asks the model 'judge'"):
        done(asked(grader="judge"), tmp_path / "r.jsonl", graders=[Judge()])
    with pytest.raises(ct.UsageError, match="did you mean 'judge'"):
        done(asked(grader="jugde"), tmp_path / "r.jsonl", graders=[Judge()])
    with pytest.raises(ct.UsageError, match="tasks of the kind 'masbench' need one grader, and there is none"):
        done(asked(), tmp_path / "r.jsonl", graders=[])


def test_a_grader_that_raises_leaves_an_unparsable_item_that_says_so(tmp_path: Path) -> None:
    class Faulty(Grader):
        name = "faulty"
        kinds = ("masbench",)

        async def grade(self, task: Task, submission: Submission, services: GraderServices) -> Grade:
            raise KeyError("x")

    (item, *_) = done(asked(count=1), tmp_path / "r.jsonl", graders=[Faulty()]).items
    assert (item.verdict, item.reason) == (Verdict.UNPARSABLE, "the grader failed: KeyError: 'x'")


class Counter:
    """A world: a number that its tool counts up."""

    def __init__(self, start: int) -> None:
        self.number = start

    def members(self) -> list[ct.ToolSpec]:
        def up() -> int:
            """Count."""
            self.number += 1
            return self.number

        return [ct.tool(up)]

    def state(self) -> int:
        return self.number


class State(Grader):
    """Compares states."""

    name = "state"
    kinds = ("count",)

    async def grade(self, task: Task, submission: Submission, services: GraderServices) -> Grade:
        right = submission.state == task.metadata["state"]
        return Grade(Verdict.RIGHT if right else Verdict.WRONG, f"the state is {submission.state}")


def test_each_run_acts_in_a_world_of_its_own(tmp_path: Path) -> None:
    tasks = [Task(f"count-{n}", "Count up once.", (), "count", metadata={"start": n, "state": n + 1}) for n in range(5)]
    home = TaskSet("counts", "Counting.", lambda: iter(tasks), lambda task: Counter(task.metadata["start"]))

    class Once(ct.Model):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            called = any(message.role != "system" and "OK" in message.text for message in request.messages)
            name = "final_answer" if called else "up"
            return ct.Reply(
                f'<reasoning>r</reasoning><tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>'
                if not (called and "final" in str(request.messages[-1].text))
                else "<answer>counted</answer>"
            )

    evaluation = Evaluation([Selection(home)], [System("own", model=Once())], samples=2)
    outcome = done(evaluation, tmp_path / "r.jsonl", graders=[State()])
    assert [item.reason for item in outcome.items if not item.right] == []
    assert len(outcome.items) == 10


def test_a_run_that_ended_before_it_was_graded_is_not_run_again(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    whole = done(asked(), out)
    lines = out.read_bytes().splitlines(keepends=True)
    out.write_bytes(b"".join(lines[:4]))  # their traces are there, and finished
    traces = {path: path.read_bytes() for path in (tmp_path / "r.traces").iterdir()}
    again = done(asked(), out)
    assert plain(again.items) == plain(whole.items)
    assert {path: path.read_bytes() for path in traces} == traces


def test_a_file_that_was_removed_is_begun_anew_and_nothing_is_taken_from_old_traces(tmp_path: Path) -> None:
    asks: list[int] = []

    class Counting(ct.Model):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            asks.append(1)
            return ct.Reply('<reasoning>r</reasoning><tool_call>{"name": "final_answer", "arguments": {}}</tool_call>')

    system, out = System("own", model=Counting()), tmp_path / "r.jsonl"
    done(asked(system, count=2), out)
    before = len(asks)
    out.unlink()
    done(asked(system, count=2), out)
    assert len(asks) == 2 * before


def test_a_task_that_has_changed_makes_another_evaluation(tmp_path: Path) -> None:
    def home(answer: str) -> TaskSet:
        return TaskSet("own", "Own.", lambda: iter([Task("t", "What?", (answer,), "masbench")]))

    done(asked(selections=[Selection(home("1"))]), tmp_path / "r.jsonl")
    with pytest.raises(ct.UsageError, match="belongs to another evaluation"):
        done(asked(selections=[Selection(home("2"))]), tmp_path / "r.jsonl")


@pytest.mark.parametrize("text", ["my notes", "line one\nline two", '{"t": "something"}\n', ""])
def test_a_file_of_something_else_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    out = tmp_path / "notes.txt"
    out.write_text(text)
    if text:
        with pytest.raises(ct.UsageError):
            done(asked(), out)
        assert out.read_text() == text
    else:
        assert not done(asked(count=1), out).missing


def test_a_header_that_a_crash_cut_off_is_written_again(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    out.write_text('{"t":"bench","version":1,"tit')
    assert not done(asked(count=1), out).missing
    assert json.loads(out.read_text().splitlines()[0])["t"] == "bench"


def test_what_is_to_be_done_again_is_asked_again_even_if_that_crashed_before(tmp_path: Path) -> None:
    class Down(ct.Model):
        asked = 0

        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            Down.asked += 1
            raise ct.ProviderError("it is down", failure="caller")

    from concertino_bench.runner import ResultsFile

    out, system = tmp_path / "r.jsonl", System("own", model=Down())
    done(asked(system, count=2), out)
    header = json.loads(out.read_text().splitlines()[0])
    ResultsFile(out, header, redo=("model",)).close()  # a process that took them out, and died
    before = Down.asked
    done(asked(system, count=2), out)
    assert Down.asked == 2 * before


def test_an_answer_is_graded_whole_and_kept_shortened(tmp_path: Path) -> None:
    long = "x" * 30_000 + r" \boxed{1}"

    class Talker(ct.Model):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            return ct.Reply(long)

    class Length(Grader):
        name = "length"
        kinds = ("masbench",)

        async def grade(self, task: Task, submission: Submission, services: GraderServices) -> Grade:
            return Grade(Verdict.RIGHT, f"{len(submission.text)} characters")

    from concertino_bench.baselines import SingleModel

    system = System("own", SingleModel(), model=Talker())
    (item,) = done(asked(system, count=1), tmp_path / "r.jsonl", graders=[Length()]).items
    assert item.reason == f"{len(long)} characters"
    assert item.answer is not None
    assert "characters left out" in item.answer
    assert item.answer.endswith(r"\boxed{1}")


def test_calls_are_graded_with_the_arguments_that_they_ran_with(tmp_path: Path) -> None:
    seen: list[Any] = []

    class Calls(Grader):
        name = "calls"
        kinds = ("masbench",)

        async def grade(self, task: Task, submission: Submission, services: GraderServices) -> Grade:
            seen.extend(submission.calls)
            return Grade(Verdict.RIGHT, "seen")

    done(asked(System("graph", "agent-graph"), count=2), tmp_path / "r.jsonl", graders=[Calls()])
    json.dumps(seen)
    combined = [call for call in seen if call["name"].endswith("combine")]
    assert combined
    assert "${" not in json.dumps(combined)
    assert {call["status"] for call in seen} == {"OK"}


def test_a_world_that_breaks_costs_its_own_item(tmp_path: Path) -> None:
    class Broken(Counter):
        def state(self) -> int:
            raise RuntimeError("lost")

    tasks = [Task(f"count-{n}", "Count up once.", (), "count", metadata={"start": n, "state": n}) for n in range(3)]
    home = TaskSet(
        "counts", "Counting.", lambda: iter(tasks), lambda task: (Broken if task.id == "count-1" else Counter)(0)
    )
    outcome = done(asked(System("rounds"), selections=[Selection(home)]), tmp_path / "r.jsonl", graders=[State()])
    assert [item.key.task for item in outcome.items if item.error == "RuntimeError: lost"] == ["count-1"]
    assert len(outcome.items) == 3


def test_a_task_that_its_grader_cannot_grade_is_refused_before_anything_is_paid(tmp_path: Path) -> None:
    class Picky(State):
        def check(self, task: Task) -> None:
            raise ValueError("it has no state to compare with")

    home = TaskSet("counts", "Counting.", lambda: iter([Task("t", "Count.", (), "count")]))
    with pytest.raises(ct.UsageError, match="the grader state cannot grade t: it has no state"):
        done(asked(selections=[Selection(home)]), tmp_path / "r.jsonl", graders=[Picky()])
    assert not (tmp_path / "r.jsonl").exists()


def test_a_limit_above_a_generator_s_own_count_is_met() -> None:
    assert len(list(Selection(DEPTH, {"level": 2}, limit=130).tasks())) == 130


def test_a_level_of_zero_and_an_empty_answer_are_kept() -> None:
    item = Item(("s", "t", 0), "k", Verdict.WRONG, "r", level=0, answer="")  # type: ignore[arg-type]
    read = Item.from_json(json.loads(json.dumps(item.to_json())))
    assert (read.level, read.answer) == (0, "")


CHILD = """
import asyncio, sys

import concertino as ct
from concertino_bench import System
from concertino_bench.masbench import grade, task_sets
from concertino_bench.runner import Evaluation, Selection, evaluate
from concertino_toy.leader import ScriptedLeader
from concertino_toy.simulated.models import model_spec, STEADY, SWIFT
from concertino_toy.simulated.skills import Pace

depth = next(each for each in task_sets() if each.name == "masbench/depth")
pool = ct.Pool.installed("toy/*").bind(orchestrator="toy/leader")
evaluation = Evaluation([Selection(depth, {"level": 4}, limit=60)], [System("rounds"), System("graph", "agent-graph")])
pace = float(sys.argv[2])

async def slow(**_):
    await asyncio.sleep(pace)

async def main():
    executor = ct.Executor()
    original = ct.Orchestrator.__init__
    def patched(self, *a, **k):
        k["before"] = [slow]
        original(self, *a, **k)
    ct.Orchestrator.__init__ = patched
    await evaluate(evaluation, pool, sys.argv[1], graders=[grade.grader], concurrency=4)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_killed_evaluation_goes_on_and_gives_the_same_table(tmp_path: Path) -> None:
    whole = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path / "whole.jsonl"), "0"], check=False, timeout=120)
    assert whole.returncode == 0
    out = tmp_path / "killed.jsonl"
    kills = 0
    for pause in (1.2, 1.5, 1.8):
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(out), "0.05"])
        time.sleep(pause)
        if child.poll() is None:
            os.kill(child.pid, signal.SIGKILL)
            kills += 1
        child.wait()
    assert kills == 3
    early = len(out.read_bytes().splitlines()) - 1 if out.exists() else 0
    assert early < 120
    last = subprocess.run([sys.executable, "-c", CHILD, str(out), "0"], check=False, timeout=120)
    assert last.returncode == 0
    assert plain(read(out)) == plain(read(tmp_path / "whole.jsonl"))


def read(path: Path) -> list[Item]:
    return [Item.from_json(json.loads(line)) for line in path.read_text().splitlines()[1:]]
