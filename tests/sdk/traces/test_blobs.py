"""Side files of a journal: whole before they are named, checked when they are read."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from concertino.traces import blobs as _blobs
from concertino.traces.blobs import BLOB_LIMIT, BlobStore, pack, unpack
from concertino.traces.journal import Journal
from concertino.traces.journal_errors import BlobError, JournalEncodeError, JournalWriteError
from concertino.traces.journal_reader import read_journal

HEADER = {"t": "header", "v": 1}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.trace"


def folder(path: Path) -> Path:
    return path.with_name("run.trace.blobs")


@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_large_value_goes_to_a_file_named_by_its_content_and_comes_back(path: Path, durability: Any) -> None:
    value = b'{"page":"' + b"words " * 100_000 + b'"}'
    with Journal.create(path, HEADER, durability=durability) as journal:
        reference = journal.externalise(value)
        journal.append({"content": reference})
    digest = hashlib.sha256(value).hexdigest()
    assert reference == {"$blob": digest, "bytes": len(value)}
    assert [p.name for p in folder(path).iterdir()] == [digest]
    assert (folder(path) / digest).read_bytes() == value
    file = read_journal(path)
    assert file.unpack(file.records[0]["content"]) == {"page": "words " * 100_000}
    assert path.stat().st_size < 500


def test_equal_values_are_kept_once(path: Path) -> None:
    with Journal.create(path, HEADER) as journal:
        assert journal.externalise(b"[1]") == journal.externalise(b"[1]")
        journal.externalise(b"[2]")
    assert len(list(folder(path).iterdir())) == 2


@pytest.mark.parametrize("size", [BLOB_LIMIT - 2, BLOB_LIMIT - 1])
def test_pack_moves_a_value_out_only_above_its_limit(path: Path, size: int) -> None:
    value = "x" * size  # two quotes more as JSON
    with Journal.create(path, HEADER) as journal:
        packed = pack(value, journal)
    assert (packed == value) == (size + 2 <= BLOB_LIMIT)
    assert unpack(packed, BlobStore(path)) == value


@pytest.mark.parametrize(
    "value", [{"$blob": "0" * 64, "bytes": 1}, {"$blob": "../../etc/passwd"}, {"$blob": None, "x": 1}]
)
def test_a_value_that_poses_as_a_reference_comes_back_as_itself(path: Path, value: Any) -> None:
    with Journal.create(path, HEADER) as journal:
        packed = pack(value, journal)
    assert packed != value
    assert unpack(packed, BlobStore(path)) == value


@pytest.mark.parametrize("value", [None, 0, "", [], {}, {"a": [1, "\ud83d"]}, "日本語"])
@pytest.mark.parametrize("limit", [0, 10**6])
def test_pack_and_unpack_are_inverse(path: Path, value: Any, limit: int) -> None:
    with Journal.create(path, HEADER) as journal:
        assert unpack(pack(value, journal, limit), BlobStore(path)) == value


def test_pack_refuses_what_json_cannot_say(path: Path) -> None:
    with Journal.create(path, HEADER) as journal, pytest.raises(JournalEncodeError, match="the value cannot"):
        pack({1, 2}, journal)


def test_records_can_be_read_without_their_side_files_which_are_missed_only_when_used(path: Path) -> None:
    with Journal.create(path, HEADER) as journal:
        reference = journal.externalise(b'"large"')
        journal.append({"content": reference})
    (folder(path) / reference["$blob"]).unlink()
    file = read_journal(path)
    assert file.damage is None
    with pytest.raises(BlobError, match=r"value of 7 bytes cannot be read .* Copy the folder run\.trace\.blobs"):
        file.unpack(file.records[0]["content"])


@pytest.mark.parametrize("damaged", [b"", b'"larg', b'"lArge"', b'"large" '])
def test_a_damaged_side_file_is_noticed(path: Path, damaged: bytes) -> None:
    with Journal.create(path, HEADER) as journal:
        reference = journal.externalise(b'"large"')
    (folder(path) / reference["$blob"]).write_bytes(damaged)
    with pytest.raises(BlobError, match="checksum differs"):
        BlobStore(path).read(reference)


@pytest.mark.parametrize("name", ["../run.trace", "/etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n", "", None, 7])
def test_a_reference_is_never_taken_as_a_path(path: Path, name: Any) -> None:
    with pytest.raises(BlobError, match="is not a blob name"):
        BlobStore(path).read({"$blob": name, "bytes": 1})


def test_a_resumed_journal_writes_a_damaged_side_file_anew(path: Path) -> None:
    with Journal.create(path, HEADER) as journal:
        reference = journal.externalise(b'"large"')
    (folder(path) / reference["$blob"]).write_bytes(b"")
    with Journal.resume(path)[0] as journal:
        assert journal.externalise(b'"large"') == reference
    assert BlobStore(path).read(reference) == b'"large"'


@pytest.mark.parametrize("taken", [0, 3])
def test_a_refused_side_file_leaves_nothing_and_the_next_try_works(
    path: Path, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    real, plan = os.write, [taken] if taken else []

    def full(fd: int, data: bytes) -> int:
        if plan:
            return real(fd, data[: plan.pop()])
        raise OSError(errno.ENOSPC, "injected")

    with Journal.create(path, HEADER) as journal:
        with monkeypatch.context() as disk:
            disk.setattr(os, "write", full)
            with pytest.raises(JournalWriteError, match="Free space"):
                journal.externalise(b'"large"')
        assert list(folder(path).iterdir()) == []
        assert BlobStore(path).read(journal.externalise(b'"large"')) == b'"large"'


def test_resume_sweeps_what_a_killed_writer_left_half_written(path: Path) -> None:
    with Journal.create(path, HEADER) as journal:
        reference = journal.externalise(b'"large"')
    (folder(path) / f"{reference['$blob']}.1-0.tmp").write_bytes(b'"la')
    Journal.resume(path)[0].close()
    assert [p.name for p in folder(path).iterdir()] == [reference["$blob"]]


def test_with_power_a_side_file_is_on_disk_before_it_has_its_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        steps.append("rename")
        return real(self, target)

    monkeypatch.setattr(_blobs, "sync_file", lambda fd: steps.append("file"))
    monkeypatch.setattr(_blobs, "sync_folder", lambda at: steps.append(at.name))
    monkeypatch.setattr(Path, "replace", replace)
    BlobStore(path, sync=True).write(b"1")
    assert steps == [path.parent.name, "file", "rename", "run.trace.blobs"]
    steps.clear()
    BlobStore(path).write(b"2")
    assert steps == ["rename"]
