"""Traces of runs: written as they happen, read again, resumed without repeating a call, replayed without a model."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import concertino as ct
import pytest
from concertino.executor.execution import Execution
from concertino.strategies import Done
from concertino.strategies.dependency_plan import DependencyPlan
from concertino.testing import ScriptedModel

from .conftest import FINAL, round_of

Led = Callable[..., ct.Orchestrator]
ANSWER = "<answer>\\boxed{3}</answer>"
TURNS = round_of(("add", {"a": 1, "b": 2}), ("ask_worker", {"question": "?"})), FINAL, ANSWER
CRASH = Path(__file__).parents[3] / "benchmarks" / "crash.py"


async def finished(pool: ct.Pool, led_by: Led, folder: Path) -> ct.Run:
    return await led_by(*TURNS).run("q", pool=pool, trace=folder)


def cut_after(path: Path, kind: str, count: int = 1) -> Path:
    """A copy of a trace as a crash right after the `count`-th record of a kind would leave it."""
    kept, left = [], count
    for line in path.read_bytes().splitlines(keepends=True):
        kept.append(line)
        left -= json.loads(line[9:])["t"] == kind
        if left == 0:
            break
    target = path.with_name(f"cut.{kind}{count}.trace.jsonl")
    target.write_bytes(b"".join(kept))
    return target


async def test_the_file_holds_what_the_run_holds_in_memory(pool: ct.Pool, led_by: Led, tmp_path: Path) -> None:
    run = await finished(pool, led_by, tmp_path)
    loaded = ct.Trace.load(str(run.path))
    in_file = [{key: value for key, value in record.items() if key != "n"} for record in loaded.records]
    assert in_file == json.loads(json.dumps(run.trace.records))


async def test_a_saved_trace_reads_back_the_same(pool: ct.Pool, led_by: Led, tmp_path: Path) -> None:
    run = await led_by(*TURNS).run("q", pool=pool)
    saved = ct.Trace.load(run.trace.save(tmp_path / "kept.trace.jsonl"))
    assert saved.summary().to_json() | {"path": ""} == run.trace.summary().to_json() | {"path": ""}


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("run", 1),
        ("ask", 1),
        ("reply", 1),
        ("plan", 1),
        ("intent", 1),
        ("intent", 3),
        ("result", 1),
        ("result", 3),
        ("reply", 2),
        ("ask", 3),
        ("reply", 3),
    ],
)
async def test_a_run_interrupted_anywhere_ends_as_if_it_had_not_been(
    pool: ct.Pool, led_by: Led, tmp_path: Path, kind: str, count: int
) -> None:
    pool = _repeatable(pool)
    run = await finished(pool, led_by, tmp_path)
    path = cut_after(Path(str(run.path)), kind, count)
    done = [seen for seen in ct.Trace.load(path).observations() if seen.ok]
    replies = len(ct.Trace.load(path).replies())
    resumed = await led_by(*TURNS[replies:]).resume(path, pool=pool)
    assert (resumed.answer, resumed.stop) == (run.answer, run.stop)
    assert [seen.content for seen in resumed.observations] == [seen.content for seen in run.observations]
    again = {seen.call_id: seen for seen in resumed.trace.observations()}
    assert all(again[seen.call_id].replayed for seen in done if seen.call_id in again)
    assert resumed.usage._replace(seconds=0) == run.usage._replace(seconds=0)
    assert ct.Trace.load(path).finished


def _repeatable(pool: ct.Pool) -> ct.Pool:
    return ct.Pool(
        [member.with_(retry_safe=True) if isinstance(member, ct.ToolSpec) else member for member in pool.members],
        roles=pool.roles,
    )


async def test_a_call_in_doubt_that_may_not_be_repeated_is_not(pool: ct.Pool, led_by: Led, tmp_path: Path) -> None:
    run = await finished(pool, led_by, tmp_path)
    path = cut_after(Path(str(run.path)), "intent", 1)
    resumed = await led_by(*TURNS[1:]).resume(path, pool=pool)
    doubtful = resumed.observations[0]
    assert doubtful.status is ct.Status.EXEC_ERR
    assert doubtful.error is not None
    assert doubtful.error.code == "unknown_outcome"


async def test_what_is_on_record_begins_no_task_and_takes_no_place(
    pool: ct.Pool, led_by: Led, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = cut_after(Path(str((await finished(pool, led_by, tmp_path)).path)), "reply", 3)
    begun: list[str] = []
    start = Execution.start
    monkeypatch.setattr(Execution, "start", lambda self: (begun.append(self.call_id), start(self)))
    resumed = await led_by().resume(path, pool=pool)
    assert resumed.answer == "\\boxed{3}"
    assert len(resumed.observations) == 2
    assert not begun


async def test_resuming_needs_the_same_pool_and_says_what_changed(pool: ct.Pool, led_by: Led, tmp_path: Path) -> None:
    run = await finished(pool, led_by, tmp_path)
    path = cut_after(Path(str(run.path)), "plan")
    with pytest.raises(ct.TraceError, match="hang is missing"):
        await led_by().resume(path, pool=pool.without("hang"))
    with pytest.raises(ct.TraceError, match="add has changed"):
        await led_by().resume(path, pool=pool.describe({"add": "Other words."}))


async def test_a_finished_run_cannot_be_resumed(pool: ct.Pool, led_by: Led, tmp_path: Path) -> None:
    run = await finished(pool, led_by, tmp_path)
    with pytest.raises(ct.TraceError, match=r"the run is finished \(answered\)"):
        await led_by().resume(str(run.path), pool=pool)


async def test_a_trace_replays_to_the_same_end_without_any_model(pool: ct.Pool, led_by: Led, tmp_path: Path) -> None:
    run = await finished(pool, led_by, tmp_path)
    assert ct.replay(ct.Trace.load(str(run.path))) == Done(run.answer, run.stop)
    assert ct.replay(str(run.path)) == Done(run.answer, run.stop)


async def test_a_replay_under_another_limit_says_where_it_goes_another_way(pool: ct.Pool, led_by: Led) -> None:
    turns = round_of(("add", {"a": 1, "b": 2})), round_of(("add", {"a": 3, "b": 4})), FINAL, ANSWER
    run = await led_by(*turns).run("q", pool=pool)
    assert ct.replay(run.trace, ct.ParallelRounds(max_rounds=1)).stop == "rounds"
    without_results = ct.Trace([record for record in run.trace.records if record["t"] != "result"])
    with pytest.raises(ct.TraceError, match="wants call"):
        ct.replay(without_results)


async def test_a_long_result_is_cut_for_the_model_and_whole_for_the_next_call(led_by: Led, tmp_path: Path) -> None:
    @ct.tool(max_chars=100)
    async def long(n: int) -> str:
        """A long text."""
        return "x" * n

    @ct.tool
    async def measure(text: str) -> int:
        """Its length."""
        return len(text)

    plan = ct.Plan.parse([ct.Call("long", {"n": 200_000}, "a"), ct.Call("measure", {"text": "${a}"}, "b")])
    async with ct.Executor() as executor:
        cut, length = await executor.run(plan, ct.Pool.of(long, measure))
    assert (cut.truncated, length.content) == (199_900, 200_000)
    assert len(cut.content) < 200


async def test_a_journal_on_a_full_disk_stops_calls_and_keeps_results(
    pool: ct.Pool, led_by: Led, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from concertino.traces import JournalSink

    real, written = JournalSink.append, []

    def append(self: JournalSink, event: object) -> None:
        written.append(event)
        if len(written) > 5:  # run, ask, reply, plan, intent: the result does not fit any more
            raise OSError(28, "No space left on device")
        real(self, event)  # type: ignore[arg-type]

    monkeypatch.setattr(JournalSink, "append", append)
    run = await led_by(round_of(("add", {"a": 1, "b": 2})), FINAL, ANSWER).run("q", pool=pool, trace=tmp_path)
    assert run.observations[0].content == 3
    assert "No space left" in run.detail


@pytest.mark.slow
def test_nothing_seen_is_lost_and_nothing_finished_is_repeated_when_the_process_is_killed() -> None:
    """E1 of the reliability page, in short; `python benchmarks/crash.py` kills 200 times."""
    done = subprocess.run([sys.executable, CRASH, "--quick", "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["kills"] >= 20
    assert figures["in_doubt_asked_again"] > 0
    wrong = ("lost", "repeated", "once_executed_twice", "answers_wrong")
    assert {name: figures[name] for name in wrong} == dict.fromkeys(wrong, 0)


async def test_a_resumed_run_records_nothing_twice_and_its_clock_goes_on(
    pool: ct.Pool, led_by: Led, tmp_path: Path
) -> None:
    turns = round_of(("add", {"a": 1, "b": 2}), ("nobody", {}), ("hang", {"seconds": 0.1})), FINAL, ANSWER
    run = await led_by(*turns).run("q", pool=pool, trace=tmp_path)
    path = cut_after(Path(str(run.path)), "result", 3)
    interrupted = ct.Trace.load(path).summary().seconds
    await led_by(*turns[1:]).resume(path, pool=pool)
    trace = ct.Trace.load(path)
    ids = [(record["t"], record["id"]) for record in trace.records if "id" in record]
    assert len(ids) == len(set(ids))
    assert trace.summary().seconds >= interrupted >= 0.1
    assert (trace.summary().calls, trace.summary().failed) == (3, 1)


async def test_time_spent_before_an_interruption_counts_against_the_budget(
    pool: ct.Pool, led_by: Led, tmp_path: Path
) -> None:
    turns = round_of(("hang", {"seconds": 0.15})), FINAL, ANSWER
    run = await led_by(*turns).run("q", pool=pool, trace=tmp_path, budget=ct.Budget(seconds=10))
    path = cut_after(Path(str(run.path)), "result", 1)
    lines = path.read_bytes().splitlines(keepends=True)
    assert b'"ended":' in lines[-1]
    resumed = await led_by(*turns[1:]).resume(path, pool=pool)
    assert resumed.seconds >= 0.15
    shown = next(record for record in resumed.trace.records if record["t"] == "ask" and record["id"] == "ask.2")
    assert float(shown["messages"][-1]["text"].split('"seconds": ')[1].split("}")[0]) <= 10 - 0.15


async def test_a_finished_run_can_be_gone_through_again_without_asking_or_calling_anybody(tmp_path: Path) -> None:
    calls: list[str] = []

    @ct.tool
    def note(text: str) -> str:
        """Note it."""
        calls.append(text)
        return text

    turns = (
        '<reasoning>r</reasoning><tool_call>{"name": "note", "arguments": {"text": "a"}}</tool_call>',
        '<reasoning>r</reasoning><tool_call>{"name": "final_answer", "arguments": {}}</tool_call>',
        "<answer>done</answer>",
    )
    pool, path = ct.Pool.of(note), tmp_path / "run.trace.jsonl"
    first = await ct.Orchestrator(ScriptedModel(*turns)).run("What?", pool=pool, trace=path)
    before = path.read_bytes()
    with pytest.raises(ct.TraceError, match="is finished"):
        await ct.Orchestrator(ScriptedModel()).resume(path, pool=pool)
    again = await ct.Orchestrator(ScriptedModel()).resume(path, pool=pool, finished="recall")
    assert (again.answer, again.stop, again.usage) == (first.answer, first.stop, first.usage)
    assert [seen.content for seen in again.observations] == ["a"]
    assert calls == ["a"]
    assert path.read_bytes() == before


@pytest.mark.parametrize("fails", [False, True])
async def test_what_waited_for_a_cancelled_call_has_its_chance_when_the_run_goes_on(
    tmp_path: Path, fails: bool
) -> None:
    ran: list[str] = []
    begun, slow = asyncio.Event(), asyncio.Event()

    @ct.tool(retry_safe=True)
    async def step(text: str) -> str:
        """Take a step."""
        ran.append(text)
        begun.set()
        if text == "first":
            await slow.wait()
            if fails:
                raise ValueError("it broke")
        return text

    plan = '<graph><node id="s1">step("first")</node><node id="s2" depends="s1">step("{s1} second")</node></graph>'
    pool, path = ct.Pool.of(step), tmp_path / "run.trace.jsonl"
    strategy = DependencyPlan()
    handle = ct.Orchestrator(ScriptedModel(plan), strategy).start("What?", pool=pool, trace=path)
    await begun.wait()
    cut = await handle.cancel()
    assert cut.stop == "cancelled"
    slow.set()
    run = await ct.Orchestrator(ScriptedModel("<answer>done</answer>"), strategy).resume(path, pool=pool)
    codes = [seen.error.code if seen.error else "OK" for seen in run.rounds[0].observations]
    assert codes == (["raised", "dependency_failed"] if fails else ["OK", "OK"])
    assert run.answer == "done"
    assert ran == (["first", "first"] if fails else ["first", "first", "first second"])
