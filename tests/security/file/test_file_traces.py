"""Traces of strangers: whatever stands in them, each reader ends with one sentence, and with file and line."""

from __future__ import annotations

import asyncio
import json
import os
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from click.testing import Result
from concertino.core.errors import ConcertinoError
from concertino.traces import TraceStore
from concertino.traces.journal_line import encode_json, frame
from hostile_traces import HEADER, write_raw, write_trace, wronged

READERS = {
    "show": ("traces", "show", "runs/r.trace.jsonl"),
    "show as json": ("traces", "show", "--json", "runs/r.trace.jsonl"),
    "list": ("traces", "list", "--folder", "runs"),
    "export": ("traces", "export", "runs/r.trace.jsonl"),
    "export lines": ("traces", "export", "--format", "jsonl", "runs/r.trace.jsonl"),
    "replay": ("traces", "replay", "runs/r.trace.jsonl"),
    "follow": ("traces", "follow", "runs/r.trace.jsonl"),
}


def held(done: Result, *, refused: bool = True) -> None:
    """A command said what is wrong in one sentence, or worked; nothing got through."""
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    assert "unexpected" not in done.stderr
    assert "Traceback" not in done.output
    assert "\x1b" not in done.stderr
    assert len(done.stderr) < 2_000
    if done.exit_code:
        errors = [line for line in done.stderr.splitlines() if line.startswith(("Error: ", '{"error": '))]
        assert len(errors) == 1, done.stderr
    assert not refused or done.exit_code in (1, 2) or "not a record of a trace" in done.output


def test_the_trace_of_these_attacks_is_right_where_nothing_was_changed(
    cli: Any, trace: Path, recorded: list[dict[str, Any]], resume: Callable[[Path], str]
) -> None:
    for name, command in READERS.items():
        assert cli(*command).exit_code == 0, name
    unfinished = write_trace(Path("open.trace.jsonl"), recorded[:3])
    assert resume(unfinished) == ""


# -- wrong fields ------------------------------------------------------------------------------------------------------


def spoil(seed: int, cli: Any, recorded: list[dict[str, Any]], resume: Callable[[Path], str]) -> None:
    """Each reader reads a trace with one wrong field."""
    what, records = wronged(recorded, seed)
    path = write_trace(Path("runs/r.trace.jsonl"), records)
    outcomes = {name: cli(*command) for name, command in READERS.items() if name != "follow" or "t" in records[-1]}
    for name, done in outcomes.items():
        try:
            held(done, refused=False)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {name}: {what}: {error}") from None
    told = outcomes["show"].stderr
    for name in ("show as json", "export", "replay", "follow"):
        if "not a record of a trace" in told:
            assert "not a record of a trace" in outcomes[name].stderr, f"seed {seed}, {name}: {what}"
            assert f", {what.partition(':')[0]}: " in outcomes[name].stderr
    write_trace(path, records[:-1])
    said = resume(path)
    assert len(said) < 2_000, f"seed {seed}: {what}"
    assert not said or "r.trace.jsonl" in said or "trace r" in said or "run r" in said, f"seed {seed}: {what}: {said}"


@pytest.mark.usefixtures("trace")
@pytest.mark.parametrize("seed", range(40))
def test_a_wrong_field_is_one_sentence_from_each_reader(
    cli: Any, recorded: list[dict[str, Any]], resume: Callable[[Path], str], seed: int
) -> None:
    spoil(seed, cli, recorded, resume)


@pytest.mark.slow
@pytest.mark.usefixtures("trace")
@pytest.mark.parametrize("block", range(8))
def test_hundreds_of_wrong_fields_are_one_sentence_each(
    cli: Any, recorded: list[dict[str, Any]], resume: Callable[[Path], str], block: int
) -> None:
    for seed in range(1_000 + 60 * block, 1_060 + 60 * block):
        spoil(seed, cli, recorded, resume)


FIELDS: dict[str, tuple[str, tuple[Any, ...], Any]] = {
    "an id that is a list": ("intent", ("id",), []),
    "a name that is a number": ("result", ("name",), 3),
    "a status that nobody knows": ("result", ("status",), "FINE"),
    "a time that is a text": ("result", ("ended",), "now"),
    "a time that is true": ("result", ("started",), True),
    "a time without end": ("intent", ("at",), 1e300),
    "a time far before all": ("intent", ("at",), -1e300),
    "a count of a thousand digits": ("plan", ("round",), 10**1000),
    "usage that is a list": ("result", ("usage",), []),
    "an amount that is a text": ("reply", ("observation", "usage"), {"calls": "many"}),
    "an amount without end": ("reply", ("reply", "usage"), {"usd": 1e308}),
    "calls that are a table": ("plan", ("calls",), {}),
    "a call that is a text": ("plan", ("calls",), ["add"]),
    "a call without a name": ("plan", ("calls",), [{"id": "1", "arguments": {}}]),
    "arguments of a planned call that are a number": ("plan", ("calls", 0, "arguments"), 3),
    "a call that waits for a number": ("plan", ("calls", 0, "after"), [3]),
    "an error that is a text": ("result", ("error",), "it failed"),
    "an error without a message": ("result", ("error",), {"code": "raised"}),
    "an answer that is a table": ("end", ("answer",), {"x": 1}),
    "a reason that is null": ("end", ("stop",), None),
    "messages that are texts": ("ask", ("messages",), ["hello"]),
    "a message without a role": ("ask", ("messages",), [{"text": "hello"}]),
    "a reply that is a text": ("reply", ("reply",), "hello"),
    "a reply whose text is a list": ("reply", ("reply", "text"), ["hello"]),
    "token ids that are texts": ("reply", ("reply", "token_ids"), ["a"]),
    "tool calls that are a table": ("reply", ("reply", "tool_calls"), {"name": "x"}),
    "a set-up that is a list": ("run", ("setup",), []),
    "a strategy that is a number": ("run", ("setup", "strategy"), 3),
    "a budget that is a text": ("run", ("setup", "budget"), {"usd": "all"}),
    "members that are numbers": ("run", ("setup", "members"), {"add": 3}),
    "roles that are lists": ("run", ("setup", "roles"), {"orchestrator": []}),
    "tools that are texts": ("run", ("setup", "tools"), ["add"]),
    "a history that is a text": ("run", ("setup", "history"), "hello"),
    "guards that are numbers": ("run", ("setup", "guards"), [3]),
    "a question that is a table": ("run", ("question",), {"x": 1}),
    "a run that began in the year 30,000": ("run", ("at",), 9e11),
    "an attachment of an unknown kind": ("attach", ("attachments", 0, "kind"), "program"),
    "attachments that are names": ("attach", ("attachments",), ["x.txt"]),
    "a decision that is a text": ("decision", ("approved",), "yes"),
    "an attempt that is a text": ("retry", ("attempt",), "first"),
    "a stall of no seconds": ("stall", ("seconds",), None),
    "an id of a million characters": ("intent", ("id",), "x" * 1_000_000),
    "an id that is a title of a terminal": ("result", ("status",), "\x1b]0;x\x07"),
    "a call inside itself": ("intent", ("parent",), "1.1"),
    "a call inside another one's name": ("intent", ("parent",), "7"),
}


@pytest.mark.usefixtures("trace")
@pytest.mark.parametrize("attack", FIELDS)
def test_a_field_of_a_wrong_type_is_named_with_its_line(
    cli: Any, recorded: list[dict[str, Any]], resume: Callable[[Path], str], attack: str
) -> None:
    kind, (*way, last), value = FIELDS[attack]
    records = json.loads(json.dumps(recorded))
    number = next(number for number, record in enumerate(records) if record["t"] == kind)
    target = records[number]
    for step in way:
        target = target[step]
    target[last] = value
    path = write_trace(Path("runs/r.trace.jsonl"), records)
    where = f"r.trace.jsonl, line {number + 2}: not a record of a trace: "
    for name, command in READERS.items():
        done = cli(*command)
        held(done)
        assert where in (done.stdout if name == "list" else done.stderr), name
    if kind != "end":
        write_trace(path, records[:-1])
    assert where in resume(path)


# -- wrong files -------------------------------------------------------------------------------------------------------


def _line(path: Path, body: bytes) -> None:
    run = {"t": "run", "run": "r", "question": "q", "setup": {}, "at": 1.0}
    write_raw(path, encode_json(run), body)


def _nested(depth: int) -> bytes:
    return b'{"t":"result","id":"1.1","name":"add","status":"OK","content":%b%b,"started":1,"ended":1}' % (
        b"[" * depth,
        b"]" * depth,
    )


def _cycle(path: Path) -> None:
    inside = [("1.1", "1.2"), ("1.2", "1.1")]
    records = [
        {"t": "intent", "id": call, "name": "x", "kind": "agent", "arguments": {}, "at": 1.0, "parent": parent}
        for call, parent in inside
    ]
    write_trace(path, [{"t": "run", "run": "r", "question": "q", "setup": {}, "at": 1.0}, *records])


def _chain(path: Path) -> None:
    ids = ["1.1" + "/1.1" * depth for depth in range(400)]
    records = [
        {"t": "intent", "id": inner, "name": "x", "kind": "agent", "arguments": {}, "at": 1.0, "parent": outer}
        for outer, inner in pairwise(ids)
    ]
    write_trace(path, [{"t": "run", "run": "r", "question": "q", "setup": {}, "at": 1.0}, *records])


def _blob(path: Path, reference: dict[str, Any], value: bytes = b"", place: str = "") -> None:
    folder = path.with_name(path.name + ".blobs")
    folder.mkdir()
    if place:
        (folder / place).write_bytes(value)
    run = {"t": "run", "run": "r", "question": "q", "setup": {}, "at": 1.0}
    write_raw(path, encode_json(run), encode_json(reference))


def _blob_of(path: Path, value: bytes) -> None:
    import hashlib

    digest = hashlib.sha256(value).hexdigest()
    _blob(path, {"$blob": digest, "bytes": len(value)}, value, digest)


def _blob_pipe(path: Path) -> None:
    _blob(path, {"$blob": "0" * 64, "bytes": 3})
    os.mkfifo(path.with_name(path.name + ".blobs") / ("0" * 64))


def _blob_link(target: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        _blob(path, {"$blob": "0" * 64, "bytes": 3})
        (path.with_name(path.name + ".blobs") / ("0" * 64)).symlink_to(target)

    return make


def _holes(path: Path) -> None:
    """A file with holes: a right begin, and then a terabyte without a line end."""
    path.write_bytes(frame(encode_json(HEADER), 0) + b"00000000 {")
    os.truncate(path, 1 << 40)


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "nested a thousand levels deep": (lambda p: _line(p, _nested(900)), "nested too deep"),
    "nested beyond the stack": (lambda p: _line(p, _nested(100_000)), "nested too deep"),
    "not a number": (lambda p: _line(p, b'{"t":"plan","round":NaN,"calls":[],"at":1}'), "NaN, which is not JSON"),
    "a number without end": (lambda p: _line(p, b'{"t":"plan","round":1e999,"calls":[],"at":1}'), "line 3"),
    "a time without end": (lambda p: _line(p, b'{"t":"plan","round":1,"calls":[],"at":1e999}'), "line 3"),
    "minus infinity": (lambda p: _line(p, b'{"t":"plan","round":1,"calls":[],"at":-Infinity}'), "-Infinity"),
    "a number of ten thousand digits": (
        lambda p: _line(p, b'{"t":"plan","round":%b,"calls":[],"at":1}' % (b"9" * 10_000)),
        "digits",
    ),
    "a record that is a list": (lambda p: _line(p, b'["t","n"]'), "damaged"),
    "a record without a kind": (lambda p: _line(p, b'{"id":"1.1"}'), "'t' is missing"),
    "a kind that is a list": (lambda p: _line(p, b'{"t":[]}'), "line 3"),
    "two kinds": (lambda p: _line(p, b'{"t":"plan","t":"result"}'), "line 3"),
    "calls that contain each other": (_cycle, "line 3"),
    "calls inside calls without end": (_chain, "levels"),
    "a version of a later time": (lambda p: p.write_bytes(frame(encode_json({**HEADER, "v": 99}), 0)), "version 99"),
    "a version that is true": (lambda p: p.write_bytes(frame(encode_json({**HEADER, "v": True}), 0)), "not a header"),
    "a version below all": (lambda p: p.write_bytes(frame(encode_json({**HEADER, "v": -1}), 0)), "no records yet"),
    "a header that is a run": (lambda p: p.write_bytes(frame(b'{"t":"run"}', 0)), "not a header"),
    "a first record that is a result": (lambda p: write_raw(p, _nested(1)), "begins with a 'run' record"),
    "a side file with the name of another": (
        lambda p: _blob(p, {"$blob": "../../../../etc/passwd", "bytes": 3}),
        "not a blob name",
    ),
    "a side file with an absolute name": (lambda p: _blob(p, {"$blob": "/etc/passwd", "bytes": 3}), "not a blob name"),
    "a side file whose name is a number": (lambda p: _blob(p, {"$blob": 3, "bytes": 3}), "not a blob name"),
    "a side file whose name has two lines": (
        lambda p: _blob(p, {"$blob": "0" * 64 + "\n", "bytes": 3}),
        "not a blob name",
    ),
    "a side file that is a pipe": (_blob_pipe, "it is a named pipe"),
    "a side file that is a link to a device": (_blob_link("/dev/zero"), "it is a device"),
    "a side file that is a link to another file": (_blob_link("/etc/hostname"), "damaged"),
    "a side file that is a link to nothing": (_blob_link("/nothing/there"), "cannot be read"),
    "a side file without JSON": (lambda p: _blob_of(p, b"hello"), "not written by concertino"),
    "a side file of bytes": (lambda p: _blob_of(p, b"\xff\xfe"), "not written by concertino"),
    "a side file that is nested too deep": (lambda p: _blob_of(p, _nested(900)), "nested too deep"),
    "a side file with a text": (lambda p: _blob_of(p, b'"hello"'), "line 3"),
    "a side file with a wrong record": (lambda p: _blob_of(p, b'{"t":"plan","round":[]}'), "line 3"),
    "a folder": (lambda p: p.mkdir(), "no trace "),
    "a link to a device": (lambda p: p.symlink_to("/dev/zero"), "no trace "),
    "a link to itself": (lambda p: p.symlink_to(p), "no trace "),
    "a pipe": (os.mkfifo, "no trace "),
    "a file with holes": (_holes, ""),
    "an empty file": (lambda p: p.touch(), "Delete it"),
    "a line of zeros": (lambda p: p.write_bytes(bytes(4096)), "not a trace"),
}


@pytest.mark.usefixtures("trace")
@pytest.mark.parametrize("attack", FILES)
def test_a_file_that_is_no_trace_is_one_sentence(cli: Any, attack: str) -> None:
    path = Path("runs/hostile.trace.jsonl")
    make, words = FILES[attack]
    make(path)
    for command in ("show", "export", "replay"):
        done = cli("traces", command, str(path))
        held(done, refused=False)
        assert done.exit_code == 1 or "damaged" in done.stderr
        # What a damaged file still holds may be driven again, or say another reason.
        assert words in done.stderr or command == "replay"
    listed = cli("traces", "list", "--folder", "runs")
    held(listed, refused=False)
    assert listed.exit_code == 0
    assert any(line.startswith("r ") for line in listed.stdout.splitlines()), "the other trace is listed"


@pytest.mark.parametrize("name", ["a file with holes", "a number of ten thousand digits"])
def test_a_hostile_trace_takes_little_memory(cli: Any, trace: Path, name: str) -> None:
    path = trace.with_name("hostile.trace.jsonl")
    FILES[name][0](path)
    tracemalloc.start()
    cli("traces", "show", str(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 << 20


@pytest.mark.usefixtures("here")
def test_duplicated_ids_are_one_call(cli: Any, recorded: list[dict[str, Any]]) -> None:
    twice = [record for record in recorded for _ in range(2 if record["t"] == "result" else 1)]
    path = write_trace(Path("twice.trace.jsonl"), twice)
    done = cli("traces", "show", "--json", str(path))
    held(done, refused=False)
    assert json.loads(done.stdout)["summary"]["calls"] == 3


def test_a_folder_of_traces_is_read_by_the_sdk_without_the_hostile_ones(trace: Path) -> None:
    for number, (make, _) in enumerate(FILES.values()):
        make(trace.with_name(f"h{number}.trace.jsonl"))
    assert [info.id for info in ct.Runs(trace.parent).list(state="ended")] == ["r"]


def test_following_a_run_by_the_sdk_refuses_a_wrong_record(trace: Path, recorded: list[dict[str, Any]]) -> None:
    records = json.loads(json.dumps(recorded))
    records[4]["at"] = records[4]["started"] = records[4]["round"] = "now"
    write_trace(trace, records)

    async def follow() -> None:
        async for _ in ct.Runs(trace.parent).follow("r"):
            pass

    with pytest.raises(ConcertinoError, match="line 6: not a record of a trace"):
        asyncio.run(follow())


def test_a_linked_folder_of_side_files_costs_no_file_elsewhere(
    trace: Path, here: Path, resume: Callable[[Path], str]
) -> None:
    mine = here / "mine"
    mine.mkdir()
    for name in ("letter.txt", "draft.tmp", f"{'0' * 64}.1-1.tmp"):
        (mine / name).touch()
    trace.with_name(trace.name + ".blobs").symlink_to(mine)
    assert "finished" in resume(trace)
    TraceStore(trace.parent).delete("r")
    assert len(list(mine.iterdir())) == 3
    assert not list(trace.parent.iterdir())
