"""A sealed trace tells nothing without its key, and no line or side file of it is changed, moved or left out unseen."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any
from zlib import crc32

import concertino as ct
import pytest
from click.testing import CliRunner
from concertino.cli.traces import traces
from concertino.core.errors import TraceError, UsageError
from concertino.testing import ScriptedModel, fake_tool
from concertino.traces.index import index_of
from concertino.traces.journal import Journal
from concertino.traces.journal_line import frame
from concertino.traces.journal_reader import read_journal, tail_journal
from concertino.traces.records import last_record
from concertino.traces.sealing import VARIABLE, is_sealed, new_key, seal_of_file

pytest.importorskip("cryptography", reason="sealed traces need the package cryptography")

HEADER = {"t": "header", "v": 1}
WORDS = "the heron stood in the reeds"
CALL = '<tool_call>{"name": "look", "arguments": {"x": "1"}}</tool_call>'
FINAL = '<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>'
ANSWER = f"<answer>{WORDS}</answer>"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    made = new_key()
    monkeypatch.setenv(VARIABLE, made)
    return made


def journal(path: Path, count: int = 6) -> Path:
    with Journal.create(path, HEADER) as made:
        for number in range(count):
            made.append({"t": "result", "words": WORDS, "number": number})
    return path


async def recorded(folder: Path, **options: Any) -> Path:
    tool = fake_tool("look", returns=f"{WORDS} " * 4_000, max_chars=200_000)
    leader = ct.Orchestrator(ScriptedModel(CALL, FINAL, ANSWER))
    run = await leader.run("What stood there?", pool=ct.Pool.of(tool), trace=folder, **options)
    assert run.trace.path is not None
    return run.trace.path


def files_of(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def _flipped(line: bytes, place: int) -> bytes:
    """A line with another letter, and the checksum that fits it."""
    data = bytearray(line[9:-1])
    data[place] = ord("A") if data[place] != ord("A") else ord("B")
    return b"%08x %b\n" % (crc32(bytes(data)), bytes(data))


TAMPERED: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "two lines change places": lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]],
    "a line in the middle is dropped": lambda lines: [*lines[:3], *lines[4:]],
    "the first line is dropped": lambda lines: [lines[0], *lines[2:]],
    "a line is doubled": lambda lines: [*lines[:3], lines[2], *lines[3:]],
    "a line is renumbered": lambda lines: [*lines[:2], _renumbered(lines[3], 2), *lines[3:]],
    "a letter is changed": lambda lines: [*lines[:2], _flipped(lines[2], 20), *lines[3:]],
    "the nonce is changed": lambda lines: [*lines[:2], _flipped(lines[2], 3), *lines[3:]],
    "the tag is changed": lambda lines: [*lines[:2], _flipped(lines[2], -6), *lines[3:]],
    "a line of plain JSON is put in": lambda lines: [*lines[:2], frame(b'{"t":"result"}', 2), *lines[3:]],
    "a line is cut": lambda lines: [*lines[:2], lines[2][:40] + b"\n", *lines[3:]],
    "a line holds no base64": lambda lines: [*lines[:2], _framed(b"2 ***"), *lines[3:]],
    "a line is empty": lambda lines: [*lines[:2], _framed(b"2 "), *lines[3:]],
}


def _framed(data: bytes) -> bytes:
    return b"%08x %b\n" % (crc32(data), data)


def _renumbered(line: bytes, number: int) -> bytes:
    return _framed(b"%d %b" % (number, line[9:-1].partition(b" ")[2]))


@pytest.mark.parametrize("attack", TAMPERED)
def test_it_is_noticed_that(attack: str, tmp_path: Path) -> None:
    path = journal(tmp_path / "a.trace.jsonl")
    path.write_bytes(b"".join(TAMPERED[attack](lines_of(path))))
    file = read_journal(path)
    assert file.damage is not None
    assert len(file.records) <= 2
    assert [record["number"] for record in file.records] == list(range(len(file.records)))


def test_it_is_noticed_that_a_line_is_of_another_trace_with_the_same_key(tmp_path: Path) -> None:
    one, two = journal(tmp_path / "one"), journal(tmp_path / "two")
    mixed = lines_of(one)
    mixed[3] = lines_of(two)[3]
    one.write_bytes(b"".join(mixed))
    file = read_journal(one)
    assert len(file.records) == 2
    assert file.damage is not None
    assert "its seal does not fit" in file.damage.reason


def test_it_is_noticed_that_the_header_is_changed(tmp_path: Path) -> None:
    path = journal(tmp_path / "a")
    first, *rest = lines_of(path)
    header = json.loads(first[9:])
    del header["n"]
    path.write_bytes(frame(json.dumps({**header, "run": "another"}).encode(), 0) + b"".join(rest))
    assert read_journal(path).records == []


async def test_it_is_noticed_that_side_files_change_places(tmp_path: Path) -> None:
    path = journal(tmp_path / "a", 0)
    made, _ = Journal.resume(path)
    with made:
        made.append({"t": "result", "text": "a" * 500}, limit=100)
        made.append({"t": "result", "text": "b" * 500}, limit=100)
    one, two = sorted((tmp_path / "a.blobs").iterdir())
    one_bytes = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(one_bytes)
    file = read_journal(path)
    with pytest.raises(TraceError, match="its seal does not fit"):
        file.unpack(file.records[0])


async def test_neither_lines_nor_side_files_nor_names_tell_anything(tmp_path: Path) -> None:
    path = await recorded(tmp_path)
    files = files_of(tmp_path)
    assert len(files) == 3
    assert is_sealed(path)
    for file in files:
        data = file.read_bytes()
        assert WORDS.encode() not in data
        assert b"look" not in data
    blob = next((tmp_path / f"{path.name}.blobs").iterdir())
    content = json.dumps(f"{WORDS} " * 4_000).encode()
    assert sha256(content).hexdigest() != blob.name


async def test_a_sealed_trace_is_read_shown_replayed_and_exported_with_its_key(tmp_path: Path) -> None:
    path = await recorded(tmp_path)
    trace = ct.Trace.load(path)
    assert trace.summary().answer == WORDS
    assert trace.observations()[0].content == f"{WORDS} " * 4_000
    assert ct.replay(trace).answer == WORDS
    assert list(tail_journal(path, until=lambda: True))[-1]["answer"] == WORDS
    last = last_record(path)
    assert last is not None
    assert last["answer"] == WORDS
    for command in ("show", "replay", "export", "follow"):
        result = CliRunner().invoke(traces, [command, str(path)])
        assert result.exit_code == 0, result.output
        assert WORDS in result.output
    listed = CliRunner().invoke(traces, ["list", "--json", "--folder", str(tmp_path)])
    assert json.loads(listed.output)[0]["answer"] == WORDS


async def test_a_run_is_resumed_from_a_sealed_trace_and_its_end_is_sealed_too(tmp_path: Path) -> None:
    tool = fake_tool("look", returns=WORDS)
    run = await ct.Orchestrator(ScriptedModel(CALL, FINAL, ANSWER)).run("?", pool=ct.Pool.of(tool), trace=tmp_path)
    path = run.trace.path
    assert path is not None
    kinds = [record["t"] for record in read_journal(path).records]
    cut = tmp_path / "cut.trace.jsonl"
    cut.write_bytes(b"".join(lines_of(path)[: kinds.index("result") + 2]))
    again = await ct.Orchestrator(ScriptedModel(FINAL, ANSWER)).resume(cut, pool=ct.Pool.of(tool))
    assert again.answer == WORDS
    assert len(tool.calls) == 1
    assert WORDS.encode() not in cut.read_bytes()
    assert read_journal(cut).damage is None


async def test_a_large_sealed_trace_is_read_record_by_record_and_leaves_no_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concertino.traces.records.HELD_BYTES", 1_000)
    monkeypatch.setattr("concertino.traces.index.FROM_BYTES", 100)
    path = await recorded(tmp_path)
    trace = ct.Trace.load(path)
    assert trace.records[-1]["answer"] == WORDS
    assert [record["t"] for record in trace.records][-1] == "end"
    store = ct.TraceStore(tmp_path)
    assert [line.answer for line in store.summaries() if not isinstance(line, TraceError)] == [WORDS]
    assert not index_of(path).exists()


async def test_a_session_is_sealed_and_continued(tmp_path: Path) -> None:
    for _ in range(2):
        session = ct.Session("ada", tmp_path)
        tool = fake_tool("look", returns=WORDS)
        await ct.Orchestrator(ScriptedModel(CALL, FINAL, ANSWER)).run("?", pool=ct.Pool.of(tool), history=session)
    assert len(ct.Session("ada", tmp_path).turns) == 2
    assert WORDS.encode() not in session.path.read_bytes()


async def test_attachments_are_sealed_and_given_back(tmp_path: Path) -> None:
    tool = fake_tool("look", returns=lambda _: ct.File(WORDS.encode(), name="reeds.txt"))
    run = await ct.Orchestrator(ScriptedModel(CALL, FINAL, ANSWER)).run("?", pool=ct.Pool.of(tool), trace=tmp_path)
    assert run.trace.path is not None
    assert ct.Trace.load(run.trace.path).attachments()[0].data == WORDS.encode()
    assert all(WORDS.encode() not in file.read_bytes() for file in files_of(tmp_path))


@pytest.mark.parametrize("cut", [1, 10, 30, 80])
def test_a_torn_last_line_is_dropped_as_in_any_trace(cut: int, tmp_path: Path) -> None:
    path = journal(tmp_path / "a")
    path.write_bytes(path.read_bytes()[:-cut])
    assert len(read_journal(path).records) == 5
    made, records = Journal.resume(path)
    with made:
        assert len(records) == 5
        assert made.damage is not None
        assert made.damage.torn
        made.append({"t": "result", "number": 5})
    file = read_journal(path)
    assert file.damage is None
    assert [record["number"] for record in file.records] == list(range(6))


def test_the_same_record_is_never_sealed_in_the_same_way(tmp_path: Path) -> None:
    path = journal(tmp_path / "a")
    seal = seal_of_file(path)
    assert seal is not None
    line = frame(b'{"t":"result"}', 3)
    assert len({seal.closed(line, 3) for _ in range(200)}) == 200


WITHOUT: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "no key": (lambda patch: patch.delenv(VARIABLE), rf"sealed\. Set {VARIABLE} to the key"),
    "an empty key": (lambda patch: patch.setenv(VARIABLE, ""), rf"sealed\. Set {VARIABLE} to the key"),
    "another key": (lambda patch: patch.setenv(VARIABLE, new_key()), "sealed with another key"),
}


@pytest.mark.parametrize("which", WITHOUT)
def test_one_sentence_says_what_to_do_with(which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = journal(tmp_path / "a")
    before = path.read_bytes()
    change, said = WITHOUT[which]
    change(monkeypatch)
    for attempt in (read_journal, Journal.resume, lambda path: next(tail_journal(path))):
        with pytest.raises(TraceError, match=said) as caught:
            attempt(path)
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("wrong", ["abc", "x" * 44, "A" * 40, "🔑"])
def test_what_is_no_key_is_refused_before_anything_is_written(
    wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, wrong)
    with pytest.raises(UsageError, match="`concertino traces key` makes one") as caught:
        journal(tmp_path / "a")
    assert wrong not in str(caught.value)
    assert not (tmp_path / "a").exists()


def test_without_the_package_one_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "cryptography"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(UsageError, match=r"pip install 'concertino\[sealing\]'"):
        journal(tmp_path / "a")


def test_a_trace_that_was_begun_without_a_key_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    path = journal(tmp_path / "a")
    monkeypatch.setenv(VARIABLE, new_key())
    made, records = Journal.resume(path)
    with made:
        made.append({"t": "result", "number": 6})
    assert len(records) == 6
    assert [record["number"] for record in read_journal(path).records] == list(range(7))
    assert not is_sealed(path)


def test_the_command_makes_keys_that_fit_and_differ() -> None:
    made = [CliRunner().invoke(traces, ["key"]).output.strip() for _ in range(2)]
    assert made[0] != made[1]
    assert len(made[0]) == 44
    assert json.loads(CliRunner().invoke(traces, ["key", "--json"]).output).keys() == {"key"}


def test_an_older_concertino_says_that_a_sealed_trace_is_too_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = journal(tmp_path / "a")
    monkeypatch.setattr("concertino.traces.journal_line.FORMAT_VERSION", 1)
    with pytest.raises(TraceError, match="Upgrade"):
        read_journal(path)
