"""The index beside a large trace: a cache that is believed only where it fits, and that nobody needs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from concertino.core.errors import TraceError
from concertino.runs.registry import Runs
from concertino.traces import Summary, Trace, TraceStore, index
from concertino.traces.index import index_of, known_facts
from concertino.traces.journal import Journal
from concertino.traces.sink import SUFFIX
from concertino.traces.trace import header

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="owners and modes of files are those of POSIX"),
    pytest.mark.usefixtures("every_trace_is_large"),
]
END = {"t": "end", "answer": "42", "stop": "answered", "detail": "", "usage": {"usd": 0.5}, "at": 2.0}


@pytest.fixture
def every_trace_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "FROM_BYTES", 0)


def write(path: Path, question: str = "Why?", calls: int = 3) -> Path:
    with Journal.create(path, header("run")) as journal:
        journal.append({"t": "run", "run": "run", "question": question, "setup": {}, "at": 1.5})
        for number in range(calls):
            journal.append(result(number))
        journal.append(END)
    return path


def result(number: int) -> dict[str, object]:
    return {"t": "result", "id": f"1.{number}", "name": "x", "status": "OK", "started": 0.5, "ended": 1.0}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / f"run{SUFFIX}")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the traces that were read."""
    found: list[str] = []
    load = Trace.load

    def noted(path: str | Path) -> Trace:
        found.append(Path(path).name)
        return load(path)

    monkeypatch.setattr(Trace, "load", noted)
    return found


def listed(path: Path) -> Summary:
    (line,) = TraceStore(path.parent).summaries()
    assert isinstance(line, Summary)
    return line


def test_a_listed_trace_is_read_once(path: Path, reads: list[str]) -> None:
    first = listed(path)
    assert (first.calls, first.answer, first.usd) == (3, "42", 0.5)
    assert listed(path) == first
    info = Runs(path.parent).get("run")
    assert (info.state, info.answer, info.began, info.usage) == ("ended", "42", 1.5, {"usd": 0.5})
    assert reads == [path.name]


def test_without_an_index_the_same_is_known(path: Path) -> None:
    first, info = listed(path), Runs(path.parent).get("run")
    index_of(path).unlink()
    assert (listed(path), Runs(path.parent).get("run")) == (first, info)


def test_an_index_is_for_its_user_alone(path: Path) -> None:
    listed(path)
    assert index_of(path).stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir() if file != path] == [index_of(path).name]


def test_after_growth_truncation_and_replacement_the_trace_is_read_again(path: Path, reads: list[str]) -> None:
    listed(path)
    with path.open("rb+") as file:  # without its end, as after a crash
        file.truncate(path.stat().st_size - 5)
    assert "ends inside this record" in listed(path).damage
    journal, _ = Journal.resume(path)
    with journal:
        journal.append(result(9))
    assert listed(path).calls == 4
    assert listed(path).stop == "unfinished"
    other = write(path.with_name("other"), question="How?", calls=3)
    size, times = path.stat().st_size, path.stat().st_mtime_ns
    other.replace(path)
    os.utime(path, ns=(times, times))
    assert path.stat().st_size != size
    assert listed(path).question == "How?"
    assert len(reads) == 4


def test_a_change_of_the_same_length_at_the_same_time_is_noticed(path: Path) -> None:
    assert not listed(path).damage
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    with path.open("rb+") as file:
        file.write(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "checksum" in listed(path).damage


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "no json", "older", "folder"])
def test_a_damaged_index_is_none(path: Path, damage: str, reads: list[str]) -> None:
    first, file = listed(path), index_of(path)
    data = file.read_bytes()
    if damage == "folder":
        file.unlink()
        file.mkdir()
    else:
        flipped = data[:60] + bytes([data[60] ^ 1]) + data[61:]
        older = data.replace(b'"version": 1', b'"version": 0')
        file.write_bytes({"cut": data[:-9], "flipped": flipped, "empty": b"", "no json": b"x" * 99}.get(damage, older))
    assert known_facts(path) is None
    assert listed(path) == first
    assert reads == [path.name] * 2
    assert (known_facts(path) is not None) == (damage != "folder")


def test_an_index_that_others_can_write_or_that_is_a_link_is_not_believed(path: Path, tmp_path: Path) -> None:
    listed(path)
    index_of(path).chmod(0o620)
    assert known_facts(path) is None
    index_of(path).chmod(0o600)
    assert known_facts(path) is not None
    moved = index_of(path).rename(tmp_path / "moved")
    index_of(path).symlink_to(moved)
    assert known_facts(path) is None


def test_the_index_of_another_trace_is_not_believed(path: Path) -> None:
    listed(path)
    other = write(path.with_name(f"other{SUFFIX}"), question="How?")
    index_of(path).rename(index_of(other))
    assert known_facts(other) is None


def test_a_trace_that_is_being_written_gets_no_index(path: Path) -> None:
    journal, _ = Journal.resume(path)
    with journal:
        assert listed(path).calls == 3
        assert not index_of(path).exists()
        assert Runs(path.parent).get("run").state == "running"
    listed(path)
    assert index_of(path).exists()


def test_a_trace_that_changes_while_it_is_read_gets_no_index(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = Trace.summary

    def slow(self: Trace) -> Summary:
        with path.open("ab") as file:
            file.write(b"more")
        return summary(self)

    monkeypatch.setattr(Trace, "summary", slow)
    listed(path)
    assert not index_of(path).exists()


def test_where_no_index_can_be_written_the_list_is_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    monkeypatch.setattr(Path, "replace", refuse)
    assert listed(path).calls == 3
    assert list(path.parent.iterdir()) == [path]  # no half of one either


def test_a_large_answer_is_not_copied_beside_its_trace(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_MOST", 100)
    assert listed(path).answer == "42"
    assert not index_of(path).exists()


def test_an_index_is_deleted_with_its_trace(path: Path) -> None:
    listed(path)
    Runs(path.parent).delete("run")
    assert not list(path.parent.iterdir())


def test_an_unreadable_trace_is_an_error_with_or_without_an_index(path: Path) -> None:
    listed(path)
    path.write_bytes(b"something else")
    (line,) = TraceStore(path.parent).summaries()
    assert isinstance(line, TraceError)
