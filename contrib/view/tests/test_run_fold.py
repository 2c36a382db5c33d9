"""What the page shows of a run: the same from one patch or many, whole also where records are missing or repeated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.core.errors import TraceError
from concertino.strategies import strategy_by_name
from concertino.testing import ScriptedModel
from concertino_view.critical_path import critical_path
from concertino_view.run_file import RunFile
from concertino_view.run_fold import Item, RunFold, _edges
from hostile_traces import write_raw, write_trace
from made_traces import records_of


def folded(records: list[dict[str, Any]]) -> RunFold:
    fold = RunFold()
    for record in records:
        fold.apply(record)
    return fold


def test_many_patches_add_up_to_the_whole() -> None:
    records = records_of(rounds=3, width=4)
    fold, seen = RunFold(), 0
    rows: dict[int, list[Any]] = {}
    for number, record in enumerate(records):
        fold.apply(record)
        if number % 3 == 0 or number == len(records) - 1:
            patch = fold.patch(seen)
            seen = patch["version"]
            rows |= {row[0]: row for row in patch["items"]}
    whole = folded(records).patch()
    assert [rows[index] for index in sorted(rows)] == whole["items"]
    assert patch["head"] == whole["head"]


def test_a_patch_holds_what_changed_and_no_more() -> None:
    records = records_of(rounds=50, width=10)
    fold = folded(records[:-12])
    since = fold.count
    assert fold.patch(since)["items"] == []
    for record in records[-12:-10]:
        fold.apply(record)
    assert 1 <= len(fold.patch(since)["items"]) <= 2


def test_a_call_inside_an_agent_belongs_to_it_and_to_its_round() -> None:
    fold = folded(records_of(rounds=2, width=3))
    agent, inner = fold.item("2.3"), fold.item("2.3/1")
    assert agent is not None
    assert inner is not None
    assert (inner.parent, inner.round, agent.kind) == (agent.index, 2, "agent")


def test_a_call_names_the_calls_that_it_waits_for() -> None:
    fold = folded(records_of(rounds=1, width=3))
    first, second = fold.item("1.1"), fold.item("1.2")
    assert first is not None
    assert second is not None
    assert second.after == [first.index]


def test_a_resumed_run_that_plans_a_round_again_has_each_call_once() -> None:
    records = records_of(rounds=1, width=3)
    plan = next(record for record in records if record["t"] == "plan")
    again = [*records[:-1], plan, {**records[4], "t": "intent", "id": "1.1", "name": "x", "kind": "tool", "at": 9.0}]
    again[-1] = next(record for record in records if record["t"] == "intent" and record["id"] == "1.1") | {"at": 9.0}
    fold = folded(again)
    assert [item.id for item in fold.items if item.id == "1.1"] == ["1.1"]
    found = fold.item("1.1")
    assert found is not None
    assert (found.status, found.ended) == ("running", None)


def test_an_unfinished_run_says_so() -> None:
    head = folded(records_of()[:-1]).head()
    assert (head["stop"], head["over"], head["critical"]) == ("unfinished", False, [])


def test_an_unknown_kind_of_record_changes_nothing() -> None:
    records = records_of()
    fold = folded([records[0], {"t": "weather", "id": "1.1", "at": 1.0}, *records[1:]])
    assert fold.patch()["items"] == folded(records).patch()["items"]


# -- the critical path -------------------------------------------------------------------------------------------------


def item(index: int, started: float, ended: float, kind: str = "tool", **more: Any) -> Item:
    return Item(index, str(index), "x", kind, started=started, ended=ended, status="OK", **more)


def test_the_critical_path_follows_what_a_call_names_and_not_what_happened_to_end_before_it() -> None:
    items = [
        item(0, 0.0, 1.0, "request"),
        item(1, 1.0, 2.0),  # what call 3 waits for
        item(2, 1.0, 2.9),  # ends just before call 3 begins, and has nothing to do with it
        item(3, 3.0, 6.0, after=[1]),
        item(4, 6.0, 7.0, "request"),
    ]
    assert critical_path(items) == [0, 1, 3, 4]


def test_the_critical_path_goes_through_the_slowest_call_of_a_round_and_into_its_agent() -> None:
    items = [
        item(0, 0.0, 1.0, "request"),
        item(1, 1.0, 2.0),
        item(2, 1.0, 5.0, "agent"),
        item(3, 1.1, 2.0, parent=2),
        item(4, 2.0, 4.9, parent=2),
        item(5, 5.0, 6.0, "request"),
    ]
    assert critical_path(items) == [0, 2, 3, 4, 5]


def test_the_critical_path_of_a_call_that_began_while_the_model_wrote_goes_through_that_request() -> None:
    assert critical_path([item(0, 0.0, 2.0, "request"), item(1, 0.5, 4.0), item(2, 4.0, 5.0, "request")]) == [0, 1, 2]


def test_the_critical_path_of_items_that_took_no_time_ends() -> None:
    items = [item(index, 1.0, 1.0, "request" if index % 2 else "tool") for index in range(200)]
    assert len(set(critical_path(items))) == len(critical_path(items))


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_growing_file_is_read_on_from_where_it_was(tmp_path: Path, trace: Path) -> None:
    lines = trace.read_bytes().splitlines(keepends=True)
    growing = tmp_path / "growing.trace.jsonl"
    growing.write_bytes(b"".join(lines[:10]))
    run = RunFile(growing)
    before = run.fold.count
    assert not run.refresh()
    with growing.open("ab") as file:
        file.write(b"".join(lines[10:12]) + lines[12][:20])
    assert run.refresh()
    assert run.fold.count == before + 2
    assert "may still be written" in " ".join(run.patch()["head"]["notes"])
    with growing.open("ab") as file:
        file.write(lines[12][20:] + b"".join(lines[13:]))
    assert run.refresh()
    assert run.patch() == RunFile(trace).patch()
    assert run.bodies(0, 99) == RunFile(trace).bodies(0, 99)


def test_a_damaged_file_is_shown_up_to_there_and_says_what_is_missing(trace: Path) -> None:
    lines = trace.read_bytes().splitlines(keepends=True)
    lines[12] = lines[12].replace(b":", b";", 1)
    trace.write_bytes(b"".join(lines))
    head = RunFile(trace).patch()["head"]
    assert "record 12 and all after it lost" in " ".join(head["notes"])
    assert head["stop"] == "unfinished"


def test_a_lost_side_file_is_a_note_and_the_rest_is_shown(tmp_path: Path) -> None:
    @ct.tool
    async def read(name: str) -> str:
        """Read a file."""
        return "x" * 300_000

    leader = ScriptedModel([("read", {"name": "a"})], [("final_answer", {})], "<answer>3</answer>", strict=False)
    run = ct.Orchestrator(leader).run_sync("How many?", pool=ct.Pool.of(read), trace=tmp_path / "run.trace.jsonl")
    assert run.path is not None
    whole = RunFile(run.path)
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path != run.path]
    assert kept, "the result was expected in a side file"
    assert any("more characters" in section[1] for body in whole.bodies(0, 99) for section in body)
    for path in kept:
        path.unlink()
    lost = RunFile(run.path)
    assert len(lost.fold.items) == len(whole.fold.items)
    assert any("Copy the folder" in note for note in lost.patch()["head"]["notes"])
    assert any(section[0] == "missing" for body in lost.bodies(0, 99) for section in body)


def test_a_file_that_is_no_trace_is_an_error_that_says_so(tmp_path: Path) -> None:
    other = tmp_path / "other.trace.jsonl"
    other.write_text("hello\n")
    with pytest.raises(TraceError, match="not a trace"):
        RunFile(other)
    with pytest.raises(TraceError, match="no records yet"):
        RunFile(write_raw(tmp_path / "empty.trace.jsonl"))


def test_a_long_trace_is_read_in_parts_that_add_up(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "long.trace.jsonl", records_of(rounds=40, width=4))
    run = RunFile(path, seconds=0)
    patch = run.patch()
    whole = {row[0]: row for row in patch["items"]}
    assert not patch["head"]["over"]
    assert "of the file is read so far" in patch["head"]["notes"][0]
    parts = 1
    while run.refresh(0):
        patch = run.patch(patch["version"])
        whole |= {row[0]: row for row in patch["items"]}
        parts += 1
    assert parts > 5
    assert patch["head"]["notes"] == []
    assert patch["head"]["over"]
    assert [whole[index] for index in sorted(whole)] == RunFile(path).patch()["items"]


# -- what happened to an item ------------------------------------------------------------------------------------------


def test_what_happened_to_a_call_stays_with_it_when_it_has_ended() -> None:
    records = records_of(rounds=1, width=2)
    asked = {"t": "approval", "id": "1.2", "name": "tool1", "arguments": {}, "at": 0.85}
    decided = {"t": "decision", "id": "1.2", "approved": True, "at": 0.95}
    place = next(n for n, record in enumerate(records) if record["t"] == "intent" and record["id"] == "1.2")
    # A call that began later, but is recorded before: what follows happened within its own call all the same.
    later = {**records[place], "id": "1.9", "at": 9.0}
    fold = folded([*records[: place + 1], asked, decided, later, *records[place + 1 :]])
    item = fold.item("1.2")
    assert item is not None
    assert item.started is not None
    assert item.ended is not None
    assert [kind for kind, _ in item.marks] == ["approval", "approved", "retry", "stall"]
    assert item.marks[:2] == [("approval", 0.85), ("approved", 0.95)]
    assert all(item.started <= at <= item.ended for _, at in item.marks)
    assert item.note == ""


def test_a_call_that_waits_for_a_person_says_so_until_the_decision() -> None:
    records = records_of(rounds=1, width=2)[:4]
    asked = {"t": "approval", "id": "1.1", "name": "tool0", "arguments": {}, "at": 0.6}
    waiting = folded([*records, asked]).item("1.1")
    denied = folded([*records, asked, {"t": "decision", "id": "1.1", "approved": False, "at": 0.9}]).item("1.1")
    assert waiting is not None
    assert denied is not None
    assert (waiting.note, denied.note) == ("waits for approval", "")
    assert denied.marks == [("approval", 0.6), ("denied", 0.9)]


# -- what an item holds ------------------------------------------------------------------------------------------------


def sections(path: Path, call_id: str) -> dict[str, str]:
    run = RunFile(path)
    found = run.fold.item(call_id)
    assert found is not None
    return {section[0]: section[1] for section in run.bodies(found.index, found.index + 1)[0]}


def test_a_failed_call_shows_arguments_retries_and_error(trace: Path) -> None:
    shown = sections(trace, "1.2")
    assert '"place": 2' in shown["arguments"]
    assert "no_use: it failed" in shown["error"]
    assert "timeout: slow" in shown["attempt 1 failed, repeated after 0.1 s"]
    assert shown["blocked the event loop for 0.3 s"] == "x.py:3"


def test_a_request_shows_its_new_messages_and_marks_issues_at_their_place(trace: Path) -> None:
    body = RunFile(trace).bodies(0, 1)[0]
    assert ["new message: user", "what is known after 1", []] in body
    assert ["reply", "I call 1", [[2, 6, "code: a fault"]]] in body


def test_marks_become_a_section_where_the_text_is_not_shown_as_it_was_written(tmp_path: Path) -> None:
    records = records_of(rounds=1)
    records[2]["reply"]["text"] = "\x1b[2J call 1"
    body = RunFile(write_trace(tmp_path / "x.trace.jsonl", records)).bodies(0, 1)[0]
    assert ["faults of the text", "code: a fault", []] in body


def test_a_call_that_never_began_shows_the_arguments_of_its_plan(tmp_path: Path) -> None:
    records = [r for r in records_of(rounds=1) if r.get("id", "").split("/")[0] not in ("1.2", "1.3")]
    shown = sections(write_trace(tmp_path / "x.trace.jsonl", records), "1.2")
    assert '"place": 2' in shown["arguments"]


def test_secrets_are_hidden_and_long_texts_are_cut_with_a_word(tmp_path: Path) -> None:
    records = records_of(rounds=1, text="")
    secret = "sk-proj-" + "Ab3" * 16
    for record in records:
        if record["t"] == "result" and "content" in record:
            record["content"] = {"key": f"the key is {secret}", "long": "y" * 50_000, "password": "violin-and-viola"}
        if record["t"] == "reply":
            record["reply"]["text"] = f"the key is {secret}"
        if record["t"] in ("run", "end"):
            record["question" if record["t"] == "run" else "answer"] = f"{secret} is the key"
    run = RunFile(write_trace(tmp_path / "x.trace.jsonl", records))
    told = str(run.bodies(0, 99)) + str(run.patch())
    assert secret not in told
    assert "violin-and-viola" not in told
    assert "more characters" in told


@pytest.mark.parametrize("strategy", ["parallel-rounds", "serial-calls", "agent-graph", "dependency-plan"])
async def test_a_run_is_shown_whatever_its_strategy(tmp_path: Path, strategy: str) -> None:
    @ct.tool
    async def add(text: str) -> str:
        """Add."""
        return text

    leader = ScriptedModel([("add", {"text": "1 + 2"})], "<answer>3</answer>", strict=False)
    path = tmp_path / "run.trace.jsonl"
    await ct.Orchestrator(leader, strategy=strategy_by_name(strategy)()).run(
        "How many?", pool=ct.Pool.of(add), trace=path
    )
    found = RunFile(path).patch()
    assert found["head"]["over"]
    assert ["strategy", strategy] in found["head"]["facts"]
    assert found["items"][0][3] == "request"


# -- long traces -------------------------------------------------------------------------------------------------------


def patches_of(run: RunFile, most: int = 10_000) -> Iterator[dict[str, Any]]:
    """What a page gets that follows a run which is read in the smallest parts."""
    since = 0
    for _ in range(most):
        yield (patch := run.patch(since))
        since = patch["version"]
        if not patch["more"]:
            return
        run.refresh(0.0)
    raise AssertionError("the trace is never read to its end")


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every trace is a long one, and of each part few records are read."""
    monkeypatch.setattr("concertino_view.run_file._LONG", 0)
    monkeypatch.setattr("concertino_view.run_file._BETWEEN", 5)


def test_a_long_trace_read_in_parts_is_the_same_as_one_read_at_once(tmp_path: Path, in_parts: None) -> None:
    records = records_of(rounds=4, width=4)
    path = write_trace(tmp_path / "x.trace.jsonl", records)
    whole = RunFold()
    for record in records:
        whole.apply(record)
    rows: dict[int, list[Any]] = {}
    rounds: dict[int, list[Any]] = {}
    versions, without = [], 0
    for patch in patches_of(RunFile(path, 0.0)):
        versions.append(patch["version"])
        rows |= {row[0]: row for row in patch["items"]}
        without += sum(row[3] == "tool" and not row[9] for row in patch["items"])
        for index, label, error in patch["texts"]:
            rows[index][9:11] = [label, error]
        rounds |= {each[0]: each for each in patch["rounds"]}
    assert without > 0, "labels come later"
    assert [rows[index] for index in sorted(rows)] == whole.patch()["items"]
    assert list(rounds.values()) == whole.patch()["rounds"]
    assert versions == sorted(versions)
    assert len(versions) > 10
    # A reader that comes now gets all of it at once.
    again = RunFile(path)
    assert again.patch()["items"] == whole.patch()["items"]
    assert again.patch()["texts"] == []


def test_a_page_that_has_missed_some_texts_gets_them_again(tmp_path: Path, in_parts: None) -> None:
    path = write_trace(tmp_path / "x.trace.jsonl", records_of(rounds=4, width=4))
    run = RunFile(path, 0.0)
    patches = list(patches_of(run))
    read = next(patch for patch in patches if patch["head"]["over"])
    late = {row[0]: row[1:] for row in run.patch(read["version"])["texts"]}
    told = {row[0]: row[1:] for patch in patches[patches.index(read) + 1 :] for row in patch["texts"]}
    assert late == told
    assert late


def test_a_long_trace_that_grows_while_its_texts_are_read_is_whole_in_the_end(tmp_path: Path, in_parts: None) -> None:
    records = records_of(rounds=4, width=4)
    path = write_trace(tmp_path / "x.trace.jsonl", records)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:30]))
    run = RunFile(path, 0.0)
    while run.fold.count < 29:
        run.refresh(0.0)
    with path.open("ab") as file:
        file.write(b"".join(lines[30:]))
    list(patches_of(run))
    whole = RunFold()
    for record in records:
        whole.apply(record)
    assert run.patch()["items"] == whole.patch()["items"]


def test_edges_of_a_round_are_those_of_its_plan() -> None:
    calls = [
        {"name": "add", "arguments": {"a": 1}, "id": "a"},
        {"name": "add", "arguments": {"a": "${a}"}, "id": "b"},
        {"name": "add", "arguments": {}, "id": "c", "after": ["a"]},
        {"name": "add", "arguments": {}, "id": "d"},
    ]
    plan = {"t": "plan", "round": 1, "at": 0.0}
    edges = [
        _edges({**plan, "calls": chosen}) for chosen in (calls, [calls[0], *calls[2:]], [calls[2]], [calls[3]] * 2)
    ]
    assert [[(edge.source, edge.target) for edge in found] for found in edges] == [
        [("a", "b"), ("a", "c")],
        [("a", "c")],
        [],  # what it waits for is not there, so it is no plan
        [],
    ]
