"""Reading a journal: every cut and flipped byte, streams, followers, and files that are something else."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from concertino.traces.journal import Journal
from concertino.traces.journal_errors import JournalError, JournalTooNew
from concertino.traces.journal_line import FORMAT_VERSION, encode_json, frame, parse_line
from concertino.traces.journal_reader import read_journal, tail_journal
from hypothesis import given, settings
from hypothesis import strategies as st

HEADER = {"t": "header", "v": 1}
RECORDS = 1000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.trace"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A log of 1000 records (and the header) as bytes."""
    path = tmp_path_factory.mktemp("log") / "run.trace"
    chance = random.Random(3)
    with Journal.create(path, HEADER) as journal:
        for i in range(1, RECORDS + 1):
            journal.append({"i": i, "content": "wörter\n" * chance.randrange(12)})
    return path.read_bytes()


def begins(log: bytes, n: int) -> int:
    """The offset of record `n`."""
    return sum(len(line) for line in log.splitlines(keepends=True)[:n])


# -- damage ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_log_cut_at_any_byte_of_its_last_4_kb_loses_only_the_torn_record(path: Path, log: bytes) -> None:
    # The first records of it alone, for each cut reads the whole file.
    log = log[: begins(log, RECORDS // 16)]
    assert len(log) > 4096
    for cut in range(len(log) - 4096, len(log) + 1):
        path.write_bytes(log[:cut])
        file = read_journal(path)
        whole = log.count(b"\n", 0, cut)
        assert [r["i"] for r in file.records] == list(range(1, whole)), cut
        start = log.rfind(b"\n", 0, cut) + 1
        if start == cut:
            assert file.damage is None
        else:
            assert file.damage is not None
            assert (file.damage.offset, file.damage.dropped) == (start, cut - start)
            assert (file.damage.record, file.damage.torn) == (whole, True)


def test_a_log_cut_anywhere_is_resumed_and_written_on(path: Path, log: bytes) -> None:
    for cut in range(len(log) - 4096, len(log) + 1, 61):
        path.write_bytes(log[:cut])
        journal, records = Journal.resume(path)
        with journal:
            assert journal.append({"i": "new"}) == len(records) + 1
        file = read_journal(path)
        assert file.damage is None
        assert file.records[:-1] == records
        assert file.records[-1]["i"] == "new"
    assert [p.name for p in path.parent.iterdir()] == ["run.trace"], "a torn tail is not worth a copy"


@pytest.mark.slow
@pytest.mark.parametrize("n", [RECORDS // 2, RECORDS])
@pytest.mark.parametrize("flip", [0x01, 0x20, 0x80, 0xFF])
def test_a_flip_of_any_byte_of_a_record_loses_it_and_what_follows_and_says_so(
    path: Path, log: bytes, n: int, flip: int
) -> None:
    start, end = begins(log, n), begins(log, n + 1)
    for offset in range(start, end):
        path.write_bytes(log[:offset] + bytes([log[offset] ^ flip]) + log[offset + 1 :])
        file = read_journal(path)
        assert [r["i"] for r in file.records] == list(range(1, n)), offset
        assert file.damage is not None
        assert (file.damage.offset, file.damage.dropped) == (start, len(log) - start)
        assert f"record {n} " in str(file.damage)


def test_resume_keeps_a_copy_of_intact_bytes_behind_a_damaged_record(path: Path, log: bytes) -> None:
    start = begins(log, 500)
    damaged = log[: start + 20] + b"\x00" + log[start + 21 :]
    path.write_bytes(damaged)
    journal, records = Journal.resume(path)
    journal.close()
    assert len(records) == 499
    assert journal.damage is not None
    assert journal.damage.saved == path.with_name(f"run.trace.damaged-{start}")
    assert journal.damage.saved.read_bytes() == damaged[start:]
    assert str(journal.damage.saved) in str(journal.damage)
    assert path.read_bytes() == log[:start]


def test_reading_never_changes_a_damaged_file(path: Path, log: bytes) -> None:
    path.write_bytes(log[:-5])
    read_journal(path)
    assert path.read_bytes() == log[:-5]


@pytest.mark.parametrize("case", ["lost", "doubled", "swapped", "zeros", "foreign", "no object"])
def test_whole_lines_in_the_wrong_place_are_damage_too(path: Path, log: bytes, case: str) -> None:
    lines = log.splitlines(keepends=True)[:20]
    wrong = {
        "lost": [lines[11]],
        "doubled": [lines[9]],
        "swapped": [lines[11], lines[10]],
        "zeros": [bytes(4096), lines[10]],
        "foreign": [b'{"t":"call","n":10}\n'],
        "no object": [frame(b"[]", 10).replace(b",", b"")],
    }[case]
    path.write_bytes(b"".join(lines[:10] + wrong))
    file = read_journal(path)
    assert len(file.records) == 9
    assert file.damage is not None
    assert file.damage.record == 10


def test_a_damaged_header_is_an_error_because_nothing_can_be_trusted(path: Path, log: bytes) -> None:
    for offset in range(log.index(b"\n") + 1):
        path.write_bytes(log[:offset] + bytes([log[offset] ^ 0xFF]) + log[offset + 1 :])
        with pytest.raises(JournalError, match=r"header is damaged|not a trace"):
            read_journal(path)


def test_a_log_cut_inside_its_header_says_that_nothing_is_recorded(path: Path, log: bytes) -> None:
    for cut in range(log.index(b"\n") + 1):
        path.write_bytes(log[:cut])
        for read in (read_journal, Journal.resume):
            with pytest.raises(JournalError, match="nothing is recorded in it"):
                read(path)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 3000), st.integers(0, 200))
def test_any_bytes_spliced_anywhere_behind_the_header_leave_a_true_prefix(
    tmp_path_factory: pytest.TempPathFactory, log: bytes, junk: bytes, at: int, removed: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "spliced.trace"
    at = max(at, log.index(b"\n") + 1)
    path.write_bytes(log[:at] + junk + log[at + removed : 5000])
    file = read_journal(path)
    assert [r["i"] for r in file.records] == list(range(1, len(file.records) + 1))
    assert begins(log, len(file.records) + 1) <= max(at, 5000)


# -- other files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"hello world\n", b"\x89PNG\r\n\x1a\n", b"{}", b"\n", b"DEADBEEF {}\n"])
def test_another_kind_of_file_is_not_a_journal(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(JournalError, match="not a trace"):
        read_journal(path)


def test_a_sound_line_that_is_no_header_is_not_enough(path: Path) -> None:
    path.write_bytes(frame(b'{"t":"call"}', 0))
    with pytest.raises(JournalError, match="not a trace: its first record is not a header"):
        read_journal(path)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"nothing\.trace: file not found"):
        read_journal(tmp_path / "nothing.trace")
    with pytest.raises(JournalError, match="Check that it is a file"):
        read_journal(tmp_path)


def test_a_journal_from_a_later_version_names_both_versions_and_the_way_out(path: Path) -> None:
    content = frame(encode_json({"t": "header", "v": FORMAT_VERSION + 1}), 0) + b"what comes is unknown\n"
    path.write_bytes(content)
    for read in (read_journal, Journal.resume):
        with pytest.raises(JournalTooNew) as caught:
            read(path)
        text = str(caught.value)
        assert str(path) in text
        assert f"version {FORMAT_VERSION + 1}" in text
        assert f"version {FORMAT_VERSION}." in text
        assert "pip install --upgrade concertino" in text
    assert path.read_bytes() == content


def test_an_intact_record_too_deep_for_this_stack_is_no_damage(path: Path) -> None:
    deep = b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    before = frame(encode_json(HEADER), 0) + frame(deep, 1) + frame(b"{}", 2)
    path.write_bytes(before)
    with pytest.raises(JournalError, match="intact but nested too deep"):
        Journal.resume(path)
    assert path.read_bytes() == before


# -- lines -------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.text().filter(lambda key: key != "n"), JSON, max_size=5), st.integers(0, 10**9))
def test_a_line_gives_back_its_record_and_is_one_line(record: dict[str, Any], n: int) -> None:
    line = frame(encode_json(record), n)
    assert parse_line(line, n) == {**record, "n": n}
    assert line.index(b"\n") == len(line) - 1


@pytest.mark.parametrize("code", [0xD800, 0xDBFF, 0xDC00, 0xDFFF])
@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=3), max_size=6))
def test_half_characters_survive(code: int, parts: list[str]) -> None:
    content = chr(code).join(parts) + chr(code)
    assert parse_line(frame(encode_json({"x": content}), 0), 0)["x"] == content


# -- following ---------------------------------------------------------------------------------------------


def test_a_follower_sees_the_header_first_and_every_record_as_it_comes(path: Path) -> None:
    done = threading.Event()

    def write(journal: Journal) -> None:
        for i in range(1, 301):
            journal.append({"i": i, "pad": "x" * (i * 101)})
            if i % 50 == 0:
                time.sleep(0.01)
        done.set()

    with Journal.create(path, HEADER) as journal:
        thread = threading.Thread(target=write, args=(journal,))
        thread.start()
        records = list(tail_journal(path, poll=0.002, until=done.is_set))
        thread.join()
    assert records[0]["t"] == "header"
    assert [r["i"] for r in records[1:]] == list(range(1, 301))


@pytest.mark.parametrize("there", [0, 7, 30])
def test_a_follower_may_come_before_the_header_is_complete(path: Path, log: bytes, there: int) -> None:
    path.write_bytes(log[:there])
    timer = threading.Timer(0.05, lambda: path.write_bytes(log[: begins(log, 1)]))
    timer.start()
    followed = tail_journal(path, poll=0.001)
    assert next(followed)["t"] == "header"
    timer.join()


def test_a_follower_waits_for_the_rest_of_a_torn_line(path: Path, log: bytes) -> None:
    start = begins(log, 5)
    path.write_bytes(log[: start + 7])
    followed = tail_journal(path, poll=0.001)
    assert [next(followed)["n"] for _ in range(5)] == [0, 1, 2, 3, 4]
    timer = threading.Timer(0.05, lambda: path.write_bytes(log[: begins(log, 7)]))
    timer.start()
    assert [next(followed)["n"] for _ in range(2)] == [5, 6]
    followed.close()
    timer.join()


def test_a_follower_raises_where_a_finished_line_is_damaged(path: Path, log: bytes) -> None:
    start = begins(log, 5)
    path.write_bytes(log[: start + 12] + b"?" + log[start + 13 :])
    followed = tail_journal(path, poll=0.001)
    assert [next(followed)["n"] for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(JournalError, match=r"record 5 and all after it lost .* resume the run"):
        next(followed)


def test_a_follower_of_a_missing_file_says_so_at_once(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="file not found"):
        next(tail_journal(tmp_path / "no.trace"))
