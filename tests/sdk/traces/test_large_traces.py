"""Traces that are too large to hold: read once, by their places, with bounded memory, and never taken for another."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import pickle
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.core.late import LateMessage, LateObservation, LateValue
from concertino.core.model import Message
from concertino.core.observation import Observation, Status
from concertino.strategies import Done
from concertino.traces import TraceMemory, records
from concertino.traces.journal import Journal
from concertino.traces.journal_errors import BlobError, JournalError
from concertino.traces.journal_line import encode_json, frame, parse_line, skim_line
from concertino.traces.journal_reader import JournalCursor
from concertino.traces.records import StoredRecords, first_record, last_record
from concertino.traces.trace import header

ROUNDS = 6
PAGE = "Ein Turm, 330 m hoch, sagt die Seite: „ja“ \\ nein. " * 400
called: list[int] = []


@ct.tool(max_chars=100_000)
async def page(i: int) -> str:
    """Give a page."""
    called.append(i)
    return f"{i} {PAGE}"


@ct.tool(max_chars=200)
async def summary(i: int) -> str:
    """Give the begin of a page."""
    called.append(i)
    return f"{i} {PAGE}"


POOL = ct.Pool.of(page, summary)


class Reader(ct.Model):
    """Reads four pages in each round, then answers; does not answer one of its requests."""

    def __init__(self, stops_at: int = -1) -> None:
        self.requests: list[ct.ChatRequest] = []
        self.stops_at, self.stopped = stops_at, asyncio.Event()

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        self.requests.append(request)
        said = sum(message.role == "assistant" for message in request.messages)
        if said == self.stops_at:
            self.stopped.set()
            await asyncio.sleep(60)
        if said == ROUNDS:
            return ct.Reply("<answer>read</answer>", usage=ct.Usage(input_tokens=3))
        calls = [("page", 4 * said), ("page", 4 * said + 1), ("page", 4 * said + 2), ("summary", 4 * said + 3)]
        blocks = [f'<tool_call>{{"name": "{name}", "arguments": {{"i": {i}}}}}</tool_call>' for name, i in calls]
        return ct.Reply("".join(blocks), usage=ct.Usage(input_tokens=3))


def leader(model: Reader) -> ct.Orchestrator[Any]:
    return ct.Orchestrator(model, ct.ParallelRounds(max_rounds=ROUNDS + 1))


async def stop_in_the_fifth_round(file: Path) -> None:
    handle = leader(model := Reader(stops_at=4)).start("What do they say?", pool=POOL, trace=file)
    await model.stopped.wait()
    await handle.cancel()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The trace of a run that was stopped in its fifth round."""
    file = tmp_path / "run.trace.jsonl"
    asyncio.run(stop_in_the_fifth_round(file))
    called.clear()
    return file


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every trace is large."""
    monkeypatch.setattr(records, "HELD_BYTES", 0)


def loaded(path: Path, held: int) -> ct.Trace:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "HELD_BYTES", held)
        return ct.Trace.load(path)


def trace_of(path: Path, results: int, size: int) -> Path:
    """A trace with so many results of so many bytes."""
    with Journal.create(path, header("big")) as journal:
        journal.append({"t": "run", "run": "big", "question": "Why?", "setup": {}, "at": 1.0})
        for number in range(results):
            at = {"started": float(number), "ended": number + 1.0}
            record = {
                "t": "result",
                "id": f"{number}.1",
                "name": "page",
                "status": "OK",
                "content": "x y " * (size // 4),
            }
            journal.append({**record, "attempts": 1, **at})
    return path


# -- what is read ------------------------------------------------------------------------------------------------------


def test_a_large_trace_says_what_it_says_when_it_is_held(path: Path) -> None:
    held, stored = loaded(path, 1 << 30), loaded(path, 0)
    assert isinstance(held.records, list)
    assert isinstance(stored.records, StoredRecords)
    assert list(stored.records) == held.records
    assert [stored.records[place] for place in (0, 5, -1)] == [held.records[place] for place in (0, 5, -1)]
    assert stored.records[3:9:2] == held.records[3:9:2]
    assert stored.summary() == held.summary()
    assert (stored.in_doubt(), stored.seconds(), stored.pending()) == (held.in_doubt(), held.seconds(), {})
    assert stored.observations() == held.observations()
    assert stored.export() == held.export()
    with pytest.raises(IndexError, match="there is no record 999"):
        stored.records[999]


def test_a_trace_that_grows_beyond_the_limit_while_it_is_read_is_not_held(path: Path) -> None:
    half = sum(len(line) for line in path.read_bytes().splitlines()[:20])
    assert isinstance(loaded(path, half).records, StoredRecords)
    assert list(loaded(path, half).records) == loaded(path, 1 << 30).records


@pytest.mark.usefixtures("large")
def test_what_a_large_trace_takes_does_not_grow_with_its_results(tmp_path: Path) -> None:
    def peak(results: int) -> int:
        file = trace_of(tmp_path / f"{results}.trace.jsonl", results, 40_000)
        tracemalloc.start()
        trace, memory = TraceMemory.of_file(file)
        assert len(trace) == results + 1
        assert len(memory) == results
        assert sum(len(record.get("content", "")) for record in trace.records) == results * 40_000
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    few, many = peak(20), peak(400)
    assert many - few < 380 * 4_000  # a tenth of the results


@pytest.mark.usefixtures("large")
def test_torn_and_damaged_lines_are_reported_as_for_a_small_trace(path: Path) -> None:
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    flipped = bytearray(whole)
    flipped[sum(map(len, lines[:20])) + 60] ^= 1
    for damaged in (whole[:-7], bytes(flipped), b"".join(lines[:12] + lines[13:])):
        path.write_bytes(damaged)
        stored, held = ct.Trace.load(path), loaded(path, 1 << 30)
        assert stored.damage == held.damage != ""
        assert list(stored.records) == held.records


@pytest.mark.usefixtures("large")
def test_a_flip_inside_a_text_that_is_skipped_is_damage_too(path: Path) -> None:
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if b'"content":"5 ' in line)
    flipped = bytearray(whole)
    flipped[sum(map(len, lines[:place])) + 9_000] ^= 1
    path.write_bytes(flipped)
    trace = ct.Trace.load(path)
    assert "checksum" in trace.damage
    assert len(trace) == place - 1


@pytest.mark.usefixtures("large")
def test_a_record_that_is_another_one_by_now_is_refused(path: Path) -> None:
    trace = ct.Trace.load(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:200] + b"?" * (len(whole) - 200))
    with pytest.raises(JournalError, match="is not what it was when the trace was loaded"):
        trace.records[-1]
    with pytest.raises(JournalError, match="Load it again"):
        list(trace.records)
    path.unlink()
    with pytest.raises(JournalError, match="keep the file as long as it is in use"):
        trace.records[0]
    assert trace.summary().calls == 16


@pytest.mark.usefixtures("large")
def test_a_trace_is_read_while_another_process_writes_it(path: Path) -> None:
    journal, _ = Journal.resume(path)
    before = ct.Trace.load(path)
    journal.append({"t": "stall", "id": "1.1", "name": "page", "seconds": 1.0, "where": "x"})
    with path.open("ab") as file:
        file.write(b"00000000 {")  # a record that is being written
    assert [record["t"] for record in before.records][-1] == "end"
    after = ct.Trace.load(path)
    assert after.records[-1]["t"] == "stall"
    assert "ends inside this record" in after.damage
    journal.close()


def test_the_first_and_the_last_record_are_read_alone(path: Path) -> None:
    found = loaded(path, 1 << 30).records
    assert first_record(path) == found[0]
    assert last_record(path) == found[-1]
    for torn in (path.read_bytes()[:-3], b""):
        path.write_bytes(torn)
        assert last_record(path) is None


def test_a_large_trace_shows_itself_as_a_small_one_does(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held, stored = loaded(path, 1 << 30), loaded(path, 0)
    assert stored._repr_html_() == held._repr_html_()
    shown = []
    for trace in (held, stored):
        trace.show()
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] != ""


# -- side files --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("large")
def test_small_fields_stand_beside_the_reference_to_a_side_file(path: Path) -> None:
    references = [json.loads(line[9:]) for line in path.read_bytes().splitlines() if b"$blob" in line]
    asked = [each for each in references if each["small"]["t"] == "ask"]
    assert [each["small"]["id"] for each in asked] == ["ask.2", "ask.3", "ask.4", "ask.5"]
    assert all(each["big"] == ["messages"] for each in asked)
    for file in path.with_name(path.name + ".blobs").iterdir():
        file.unlink()
    trace = ct.Trace.load(path)  # none of what it holds is in a side file
    assert trace.summary().calls == 16
    with pytest.raises(BlobError, match="Copy the folder"):
        list(trace.records)


@pytest.mark.usefixtures("large")
def test_references_of_earlier_versions_are_read(path: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.trace.jsonl"
    lines = []
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True)):
        record = parse_line(line, number)
        kept = ("$blob", "bytes") if "$blob" in record else [key for key in record if key != "n"]
        lines.append(frame(encode_json({key: record[key] for key in kept}), number))
    old.write_bytes(b"".join(lines))
    path.with_name(path.name + ".blobs").rename(tmp_path / "old.trace.jsonl.blobs")
    assert list(ct.Trace.load(old).records) == loaded(old, 1 << 30).records
    assert replace(ct.Trace.load(old).summary(), path="") == replace(loaded(old, 0).summary(), path="")
    run = leader(Reader()).resume_sync(old, pool=POOL)
    assert run.answer == "read"


# -- resume and replay -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("large")
def test_a_run_is_resumed_from_a_large_trace_and_ends_as_if_it_had_not_stopped(path: Path) -> None:
    whole = leader(alone := Reader()).run_sync("What do they say?", pool=POOL)
    called.clear()
    run = leader(model := Reader()).resume_sync(path, pool=POOL)
    assert run.answer == "read"
    assert sorted(called) == list(range(16, 24))  # nothing that had ended
    assert [request.messages for request in model.requests] == [r.messages for r in alone.requests[4:]]
    assert [seen.content for seen in run.observations] == [seen.content for seen in whole.observations]
    assert [type(seen) is LateObservation for seen in run.observations[:4]] == [True, True, True, False]
    fulls = [record.get("full") for record in run.trace.of_kind("result")]
    assert fulls == [record.get("full") for record in whole.trace.of_kind("result")]
    assert loaded(path, 1 << 30).finished


@pytest.mark.usefixtures("large")
def test_the_file_of_a_resumed_run_is_read_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    read = JournalCursor.records

    def counted(self: JournalCursor) -> Iterator[dict[str, Any]]:
        for record in read(self):
            given.append(record["n"])
            yield record

    monkeypatch.setattr(JournalCursor, "records", counted)
    count = len(path.read_bytes().splitlines())
    leader(Reader()).resume_sync(path, pool=POOL)
    assert given == [0, 1, *range(count)]  # the first record says how the file is opened


@pytest.mark.usefixtures("large")
def test_contents_that_nobody_looks_at_are_not_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[LateValue] = []
    monkeypatch.setattr(LateValue, "value", lambda self: read.append(self))
    _, memory = TraceMemory.of_file(path)
    assert len(memory) > 16
    assert not read


@pytest.mark.usefixtures("large")
def test_a_large_trace_is_replayed(path: Path) -> None:
    leader(Reader()).resume_sync(path, pool=POOL)
    assert ct.replay(path) == ct.replay(ct.Trace.load(path)) == Done("read", "answered", "")


@pytest.mark.usefixtures("large")
def test_a_damaged_large_trace_is_cut_off_and_repeated_from_there(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if b'"content":"5 ' in line)
    path.write_bytes(b"".join(lines[:place]) + b"?" * 5_000 + b"".join(lines[place:]))
    run = leader(Reader()).resume_sync(path, pool=POOL)
    assert run.answer == "read"
    assert sorted(called) == list(range(6, 24))  # page 5 is in doubt, and may not be asked for again
    assert list(path.parent.glob("*.damaged-*"))


@pytest.mark.usefixtures("large")
def test_a_refused_resume_leaves_the_file_as_it_is_and_unlocked(path: Path) -> None:
    torn = path.read_bytes()[:-4]
    path.write_bytes(torn)
    with pytest.raises(ct.UsageError, match=r"no call '9.9' of run"):
        leader(Reader()).resume_sync(path, pool=POOL, decisions={"9.9": True})
    assert path.read_bytes() == torn
    assert leader(Reader()).resume_sync(path, pool=POOL).answer == "read"


# -- late values -------------------------------------------------------------------------------------------------------


def test_a_late_observation_is_like_any_other() -> None:
    late = LateObservation("1", "page", Status.OK, LateValue(lambda: "text"))
    plain = Observation("1", "page", Status.OK, "text")
    assert late == plain
    assert plain == late
    assert late != replace(plain, content="other")
    assert late.to_json() == plain.to_json()
    assert type(copy.deepcopy(late)) is type(pickle.loads(pickle.dumps(late))) is Observation
    assert replace(late, name="other").content == "text"
    late.content = "new"
    assert late.content == "new"


def test_a_late_message_is_made_once_and_is_like_any_other() -> None:
    made: list[int] = []

    def make() -> str:
        made.append(1)
        return "text"

    late, plain = LateMessage.of_late("user", make), Message("user", "text")
    assert not made
    assert late == plain
    assert plain == late
    assert late.to_json() == plain.to_json()
    assert pickle.loads(pickle.dumps(late)) == plain
    assert replace(late, text="other") == Message("user", "other")
    assert made == [1]


@pytest.mark.parametrize("keep", [0, 100, 3_000])
@pytest.mark.parametrize(
    "piece", ["plain ", 'with "marks" ', "back\\slash ", "\\\\", "é – 😀 ", "\ud83d ", " " * 9, "\n"]
)
def test_a_skimmed_line_has_all_fields_and_begins_of_its_long_texts(piece: str, keep: int) -> None:
    for length in (3, 4_000, 9_001):
        text = (piece * length)[:length]
        record = {"t": "result", "id": "1", "content": text, "ended": 1.5, "full": [text] if length % 2 else text}
        line = frame(encode_json(record), 7)
        whole, skimmed = parse_line(line, 7), skim_line(line, 7, keep)
        assert skimmed.keys() == whole.keys()
        assert {key: skimmed[key] for key in ("t", "id", "ended", "n")} == {
            "t": "result",
            "id": "1",
            "ended": 1.5,
            "n": 7,
        }
        assert whole["content"].startswith(skimmed["content"].rstrip("\ud83d"))
        assert len(skimmed["content"].encode("utf-8", "surrogatepass")) >= min(length, keep - 24)


def test_a_line_that_only_looks_like_a_content_is_not_cut_wrongly() -> None:
    forged = 'x","content":"' + "y" * 9_000
    record = {"t": "result", "id": forged, "content": forged, "ended": 2.0, "full": f'","full":"{forged}'}
    skimmed = skim_line(frame(encode_json(record), 3), 3, 50)
    assert skimmed["ended"] == 2.0
    assert skimmed["id"] == forged
    assert forged.startswith(skimmed["content"])


if os.name != "posix":
    pytestmark = pytest.mark.skip("these tests replace files that are in use")
