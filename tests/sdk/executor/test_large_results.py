"""Large results are held once, and neither their text nor their record holds up the event loop."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino import events
from concertino.core.background import THREAD_NAME
from concertino.executor.content import large_data, takes_long, to_content
from concertino.strategies.parallel_rounds.format import write_round
from concertino.testing import ScriptedModel
from concertino.traces import JournalSink
from concertino.traces.blobs import BlobStore

SIZE = 300_000
ROWS = [f"row {number} " + "x" * 900 for number in range(SIZE // 1_000)]
TEXT = "".join(ROWS)


@ct.tool
async def text() -> str:
    """Give a long text."""
    return TEXT


@ct.tool(timeout=0.5)
async def rows() -> dict[str, list[str]]:
    """Give many rows."""
    return {"rows": ROWS}


def lead(*calls: str) -> ct.Orchestrator:
    return ct.Orchestrator(
        ScriptedModel(write_round("Go.", [(name, {}) for name in calls]), "<answer>done</answer>"),
        ct.ParallelRounds(max_parallel=100),
    )


def ends(run: ct.Run) -> list[events.CallEnded]:
    return [event for event in run.events if isinstance(event, events.CallEnded)]


@pytest.fixture
def written_by(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The thread and size of each side file, as it is complete."""
    found: list[tuple[str, int]] = []
    real = BlobStore.write

    def write(self: BlobStore, value_json: bytes, digest: str = "") -> dict[str, Any]:
        reference = real(self, value_json, digest)
        found.append((threading.current_thread().name, len(value_json)))
        return reference

    monkeypatch.setattr(BlobStore, "write", write)
    return found


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Side files are not written before it is set."""
    go = threading.Event()
    real = BlobStore.write

    def write(self: BlobStore, value_json: bytes, digest: str = "") -> dict[str, Any]:
        assert go.wait(20)
        return real(self, value_json, digest)

    monkeypatch.setattr(BlobStore, "write", write)
    yield go
    go.set()


async def test_the_whole_result_is_the_tools_own_object_and_what_the_model_reads_is_cut() -> None:
    run = await lead("text", "rows").run("What?", pool=ct.Pool.of(text, rows))
    one, many = ends(run)
    assert one.full is TEXT
    assert many.full == {"rows": ROWS}
    assert many.full["rows"] is not ROWS, "the tool may change its list later"
    assert all(mine is theirs for mine, theirs in zip(many.full["rows"], ROWS, strict=True))
    whole = json.dumps({"rows": ROWS}, ensure_ascii=False)
    content = many.observation.content
    assert content.startswith(whole[:10_000])
    assert content.endswith(whole[-5_000:])
    assert many.observation.truncated == len(whole) - rows.max_chars


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (TEXT, False),
        ({"a": 1}, False),
        ([1, 2, 3], False),
        ({"rows": ROWS}, True),
        ([{"text": "x" * 30_000}, "x"], False),
        ([*range(300)], True),
        ({"text": "x" * 30_000}, True),
        (ct.Result({"rows": ROWS}), True),
    ],
)
def test_what_takes_long_is_guessed_from_two_levels(value: Any, expected: bool) -> None:
    assert takes_long(value) is expected


@pytest.mark.parametrize("value", [{"rows": ROWS, 1: "x"}, {"rows": [float("nan"), *ROWS]}, [(), *ROWS], {"a": "x"}, 7])
def test_only_plain_data_that_is_cut_is_written_out_elsewhere(value: Any) -> None:
    assert large_data(value, 8 << 20, 16_000) is None


def test_a_copy_of_large_data_is_what_json_gives_back() -> None:
    value = {"rows": ROWS, "n": [1, 2.5, None, True, {"é": []}]}
    content, written = to_content(value, 8 << 20, 16_000)
    assert written == json.dumps(value, ensure_ascii=False)
    assert content == json.loads(written)
    assert content["n"] is not value["n"]


@pytest.mark.parametrize("durability", ["process", "power"])
async def test_side_files_are_written_in_a_thread_and_complete_before_a_record_names_them(
    tmp_path: Path, written_by: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch, durability: Any
) -> None:
    named: list[bool] = []
    real = JournalSink.append_packed

    def append_packed(self: JournalSink, packed: bytes) -> None:
        record = json.loads(packed)
        if "$blob" in record:
            named.append((self.path.with_name(f"{self.path.name}.blobs") / record["$blob"]).is_file())
        real(self, packed)

    monkeypatch.setattr(JournalSink, "append_packed", append_packed)
    leader = lead(*["text", "rows"] * 10)
    run = await leader.run("What?", pool=ct.Pool.of(text, rows), trace=tmp_path, durability=durability)
    assert [seen.ok for seen in run.observations] == [True] * 20
    # The results, and the request in which the model reads them.
    assert named == [True] * 21
    assert {name for name, _ in written_by} == {THREAD_NAME}
    assert run.path is not None
    trace = ct.Trace.load(run.path)
    results = {record["id"]: record for record in trace.records if record["t"] == "result"}
    assert results["1.1"]["full"] == TEXT
    assert results["1.2"]["full"] == {"rows": ROWS}
    assert [record["t"] for record in trace.records].count("intent") == 20


async def test_other_calls_go_on_while_a_side_file_is_written(tmp_path: Path, held: threading.Event) -> None:
    seen: list[str] = []

    @ct.tool
    async def small() -> str:
        """Give little."""
        seen.append("small")
        return "little"

    def told(event: events.Event) -> None:
        if isinstance(event, events.CallEnded):
            seen.append(event.observation.name)
            held.set()

    run = await lead("text", "small").run("What?", pool=ct.Pool.of(text, small), trace=tmp_path, on_event=told)
    assert seen == ["small", "small", "text"]
    assert [observation.ok for observation in run.observations] == [True, True]


async def test_a_result_that_is_being_written_is_on_record_although_its_run_is_cancelled(
    tmp_path: Path, held: threading.Event
) -> None:
    handle = lead("text").start("What?", pool=ct.Pool.of(text), trace=tmp_path)
    await _begun(handle)
    cancelling = asyncio.create_task(handle.cancel())
    await asyncio.sleep(0.02)
    held.set()
    run = await cancelling
    assert run.stop == "cancelled"
    assert run.path is not None
    [result] = [record for record in ct.Trace.load(run.path).records if record["t"] == "result"]
    assert (result["status"], result["full"]) == ("OK", TEXT)


async def _begun(handle: ct.RunHandle) -> None:
    """Return when the call has begun, and is at work or has its result."""
    async with asyncio.timeout(20):
        while not any(isinstance(event, events.CallStarted) for event in handle._collect().events):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.02)


async def test_a_run_that_is_cancelled_does_not_wait_for_ever_for_a_disk(tmp_path: Path, held: threading.Event) -> None:
    handle = lead("text").start("What?", pool=ct.Pool.of(text), trace=tmp_path)
    await _begun(handle)
    run = await asyncio.wait_for(handle.cancel(), 5)
    assert run.stop == "cancelled"
    assert [seen.error.code for seen in run.observations if seen.error] == ["cancelled"]


async def test_a_time_limit_does_not_count_the_writing(tmp_path: Path, held: threading.Event) -> None:
    run = lead("rows").start("What?", pool=ct.Pool.of(rows), trace=tmp_path)
    asyncio.get_running_loop().call_later(0.8, held.set)
    assert [seen.status for seen in (await run).observations] == [ct.Status.OK]


async def test_a_disk_that_refuses_a_side_file_costs_the_record_and_not_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: BlobStore, digest: str, value_json: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(BlobStore, "_replace", refuse)
    run = await lead("text").run("What?", pool=ct.Pool.of(text), trace=tmp_path)
    assert run.answer == "done"
    assert run.observations[0].ok
    assert "No space left" in run.detail
    assert run.path is not None
    assert "result" not in [record["t"] for record in ct.Trace.load(run.path).records]


async def test_attachments_of_a_result_are_written_in_the_thread_before_it(
    tmp_path: Path, written_by: list[tuple[str, int]]
) -> None:
    image = ct.Image(b"\x89PNG\r\n\x1a\n" + bytes(100), name="cat.png")

    @ct.tool
    async def picture() -> ct.Image:
        """Give a picture."""
        return image

    run = await lead("picture").run("What?", pool=ct.Pool.of(picture), trace=tmp_path)
    assert written_by == [(THREAD_NAME, len(image.data))]
    kinds = [type(event).__name__ for event in run.events]
    assert kinds[kinds.index("Attached") + 1] == "CallEnded"
    assert run.path is not None
    assert [each.data for each in ct.Trace.load(run.path).attachments()] == [image.data]


async def test_attachments_of_a_question_are_written_in_the_thread_once_and_recorded_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    real = BlobStore._replace

    def replace(self: BlobStore, digest: str, data: bytes) -> None:
        written.append(threading.current_thread().name)
        real(self, digest, data)

    monkeypatch.setattr(BlobStore, "_replace", replace)
    image = ct.Image(b"\x89PNG\r\n\x1a\n" + bytes(100), name="cat.png")
    leader = ct.Orchestrator(ScriptedModel("<answer>A cat.</answer>"))
    run = await leader.run(["What is this?", image], pool=ct.Pool.of(text), trace=tmp_path)
    assert (run.answer, written) == ("A cat.", [THREAD_NAME])
    assert run.path is not None
    trace = ct.Trace.load(run.path)
    assert [record["t"] for record in trace.records if record["t"] in ("run", "attach", "ask")] == [
        "run",
        "attach",
        "ask",
    ]
    assert [each.data for each in trace.attachments()] == [image.data]


async def test_a_hundred_large_results_at_once_let_the_loop_go_on_between_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from concertino.executor import turns

    monkeypatch.setattr(turns, "SLICE", 0.0)
    passes, taken = 0, []
    real: Callable[..., Any] = to_content

    def count(*arguments: Any) -> Any:
        taken.append(passes)
        return real(*arguments)

    monkeypatch.setattr("concertino.executor.call.to_content", count)
    monkeypatch.setattr("concertino.executor.call.large_data", lambda *_: None)

    async def beat() -> None:
        nonlocal passes
        while True:
            passes += 1
            await asyncio.sleep(0)

    beating = asyncio.create_task(beat())
    run = await lead(*["rows"] * 50).run("What?", pool=ct.Pool.of(rows))
    beating.cancel()
    assert [seen.ok for seen in run.observations] == [True] * 50
    assert len(set(taken)) > 40
