"""Spans while runs go on: from the settings file, under the caller's span, with other libraries' spans below ours."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from contextvars import copy_context
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.core.caller import called_by
from concertino.plugins import default_manager
from concertino_otel import spans as current
from concertino_otel.ids import read_traceparent, span_id, trace_id
from concertino_otel.options import Options
from concertino_otel.shipping import Shipper
from waiting import until

from .five_strategies import NAMES, leader_of, pool_of, turns_of
from .otlp_receiver import assert_one_tree, receiving, values

HERE = Path(__file__).parent
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def start_otel(folder: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose a settings file that has spans sent in every run."""
    file = folder / "concertino.toml"
    file.write_text(f'always = ["otel"]\n[providers.otel]\nurl = "{url}"\n', encoding="utf-8")
    monkeypatch.setenv("CONCERTINO_CONFIG", str(file))


@pytest.fixture(autouse=True)
def no_shipper_stays(monkeypatch: pytest.MonkeyPatch) -> Any:
    from concertino_otel import shipping

    monkeypatch.setattr(shipping, "_shippers", [])
    # The plugins of a process are found once; each test here has a settings file of its own.
    default_manager.cache_clear()
    yield
    default_manager.cache_clear()
    for shipper in shipping._shippers:
        shipper.close(5)


async def test_a_run_sends_its_spans_by_itself_under_the_span_of_its_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", CALLER)
    with receiving() as receiver:
        start_otel(tmp_path, receiver.url, monkeypatch)
        run = await leader_of("parallel-rounds").run("q", pool=pool_of(), trace=tmp_path / "runs")
        await asyncio.to_thread(until, lambda: any(not each.name.find("invoke_agent c") for each in receiver.spans()))
        root = assert_one_tree(receiver.spans())
    assert (root.trace_id.hex(), root.parent_span_id.hex()) == (CALLER[3:35], CALLER[36:52])
    assert run.trace.setup["noted"] == {"otel": {"traceparent": CALLER}}


def test_a_shipper_sends_what_a_process_before_left_behind(tmp_path: Path) -> None:
    with receiving() as receiver:
        receiver.away = True
        shipper = Shipper(Options(receiver.url, exit_seconds=0.5))
        first = asyncio.run(leader_of("parallel-rounds").run("q", pool=pool_of(), trace=tmp_path))
        shipper.ship(Path(str(first.path)))
        until(lambda: receiver.asked)
        assert shipper.close() is False
        assert receiver.spans() == []
        receiver.away = False
        second = asyncio.run(leader_of("parallel-rounds").run("q", pool=pool_of(), trace=tmp_path))
        shipper = Shipper(Options(receiver.url, exit_seconds=10))
        shipper.ship(Path(str(second.path)))
        assert shipper.close() is True
        traces = {span.trace_id for span in receiver.spans()}
    assert traces == {trace_id(first.id), trace_id(second.id)}


async def test_spans_of_other_libraries_are_below_the_call_that_makes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = pytest.importorskip("opentelemetry.trace", reason="opentelemetry-api is not installed")
    seen: dict[str, Any] = {}

    def look(name: str) -> None:
        seen[name] = api.get_current_span().get_span_context()

    @ct.tool
    async def inner() -> str:
        """Look inside."""
        look("inner")
        return "x"

    @ct.tool
    def threaded() -> str:
        """Look in a thread."""
        look("threaded")
        return "x"

    @ct.agent
    async def outer(*, ctx: ct.Context) -> str:
        """Look before and after a call."""
        look("before")
        await ctx.call("inner", {})
        look("after")
        return "x"

    turns = [ct.ParallelRounds().write_turn([ct.Call("outer", {}, "a"), ct.Call("threaded", {}, "b")], "")]

    class Looking(ct.Model):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            look("leader")
            return ct.Reply(turns.pop() if turns else "".join(ct.ParallelRounds().write_answer("x")))

    start_otel(tmp_path, "http://127.0.0.1:9", monkeypatch)
    leader = ct.Orchestrator(ct.ModelSpec("m/lead", Looking))
    run = await leader.run("q", pool=ct.Pool.of(outer, inner, threaded), trace=tmp_path / "runs")
    assert run.stop == "answered"
    at = {name: context.span_id.to_bytes(8, "big") for name, context in seen.items()}
    assert at["before"] == at["after"] == span_id(run.id, "1.1")
    [inside] = [record["id"] for record in run.trace.records if record["t"] == "intent" and record.get("parent")]
    assert at["inner"] == span_id(run.id, inside)
    assert at["threaded"] == span_id(run.id, "1.2")
    assert at["leader"] == span_id(run.id, "run")
    assert {context.trace_id.to_bytes(16, "big") for context in seen.values()} == {trace_id(run.id)}
    assert not api.get_current_span().get_span_context().is_valid


def test_a_traceparent_that_is_none_is_ignored() -> None:
    assert read_traceparent(CALLER) is not None
    for wrong in ("", None, "00-0-0-00", CALLER.replace("00-0a", "ff-0a"), f"00-{'0' * 32}-{'1' * 16}-01", 7):
        assert read_traceparent(wrong) is None


def test_the_caller_of_a_request_wins_over_that_of_the_process_and_a_wrong_one_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = CALLER.replace("b7ad", "c7ad")
    monkeypatch.setenv("TRACEPARENT", other)
    with called_by(CALLER):
        assert copy_context().run(current.began, "asked", Path("nowhere")) == {"traceparent": CALLER}
    with called_by("00-what-a-stranger-wrote"):
        assert copy_context().run(current.began, "asked", Path("nowhere")) == {"traceparent": other}


def test_the_ids_of_old_runs_are_forgotten() -> None:
    for number in range(3000):
        copy_context().run(current.began, f"many-{number}", Path("nowhere"))
    assert len(current._trace_ids) <= 1024


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_is_killed_and_resumed_by_another_process_is_one_tree(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    with receiving() as receiver:
        file = tmp_path / "concertino.toml"
        file.write_text(f'always = ["otel"]\n[providers.otel]\nurl = "{receiver.url}"\n', encoding="utf-8")
        environ = {**os.environ, "CONCERTINO_CONFIG": str(file), "TRACEPARENT": CALLER}
        program = [sys.executable, str(HERE / "killed_run.py"), name, str(folder)]
        child = subprocess.Popen([*program, "begin"], env=environ)
        try:
            until(lambda: receiver.spans() and _asks_its_model(folder), "a call of the child")
            time.sleep(0.4)
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait()
        before = len(receiver.spans())
        environ.pop("TRACEPARENT")
        subprocess.run([*program, "resume"], env=environ, check=True, timeout=60)
        spans = receiver.spans()
    assert before, "the first process sent nothing"
    root = assert_one_tree(spans)
    assert root.parent_span_id.hex() == CALLER[36:52]
    assert values(root)["concertino.stop"] == "answered"
    assert len(turns_of(name)) <= sum(span.name.startswith("chat ") for span in spans)


def _asks_its_model(folder: Path) -> bool:
    return any(b'"parent"' in path.read_bytes() for path in folder.glob("*.trace.jsonl")) or any(
        b'"name":"helper","kind"' in path.read_bytes() for path in folder.glob("*.trace.jsonl")
    )


@pytest.mark.slow
async def test_the_command_sends_a_trace_and_says_what_it_did(tmp_path: Path) -> None:
    run = await leader_of("parallel-rounds").run("q", pool=pool_of(), trace=tmp_path)
    with receiving() as receiver:
        command = [
            sys.executable,
            "-m",
            "concertino",
            "traces",
            "export",
            str(run.path),
            "--json",
            "--otlp",
            receiver.url,
        ]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=True, cwd=tmp_path)
        told = json.loads(done.stdout)
        assert told["sent"] == len(receiver.spans())
    assert (told["run_id"], told["over"], told["receiver"]) == (run.id, True, receiver.url)
    assert told["trace_id"] == trace_id(run.id).hex()
