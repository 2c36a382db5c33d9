"""The keeper of traces: an order has one lease, and whoever had the one before changes nothing any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from concertino.traces.fence import JournalFenced, fenced, take_over
from concertino.traces.journal import Journal
from concertino_ray.journal_keeper import JournalKeeper, Piece

NAME = "o.trace.jsonl"


class Worker:
    """A worker with a lease of the order `o`."""

    def __init__(self, keeper: JournalKeeper, folder: Path, *, again: bool = False) -> None:
        self.keeper, self.folder = keeper, folder
        self.told: dict[str, Any] = keeper.begin("o", str(folder), again)

    def send(self, offset: int, data: bytes, name: str = NAME, kind: str = "journal") -> str:
        """Send a piece; gives why the lease is over, empty if it is not."""
        return self.keeper.take([tuple(Piece(self.told["lease"], name, offset, data, kind))]).get(
            self.told["lease"], ""
        )


def test_pieces_come_into_the_file_before_they_are_taken_and_the_next_lease_begins_with_them(tmp_path: Path) -> None:
    keeper = JournalKeeper()
    first = Worker(keeper, tmp_path / "new")
    assert first.told["files"] == []
    assert not first.send(0, b"one\n")
    assert not first.send(4, b"two\n")
    assert (tmp_path / "new" / NAME).read_bytes() == b"one\ntwo\n"
    second = Worker(keeper, tmp_path / "new", again=True)
    assert second.told["files"] == [(NAME, 8)]
    assert keeper.read(second.told["lease"], NAME, 4, 100) == b"two\n"


@pytest.mark.parametrize("again", [True, False])
def test_a_worker_whose_order_another_one_has_is_refused(tmp_path: Path, again: bool) -> None:
    keeper = JournalKeeper()
    zombie = Worker(keeper, tmp_path)
    zombie.send(0, b"one\n")
    heir = Worker(keeper, tmp_path, again=again)
    assert "another worker has this run" in zombie.send(4, b"late\n")
    assert not heir.send(4, b"two\n")
    assert zombie.send(8, b"late\n")
    assert zombie.keeper.read(zombie.told["lease"], NAME, 0, 9) == b""
    assert (tmp_path / NAME).read_bytes() == b"one\ntwo\n"


def test_a_keeper_that_was_begun_again_refuses_who_wrote_before(tmp_path: Path) -> None:
    zombie = Worker(JournalKeeper(), tmp_path)
    zombie.send(0, b"one\n")
    zombie.keeper.end(zombie.told["lease"])  # with its process
    zombie.keeper = JournalKeeper()
    assert zombie.send(4, b"late\n")
    assert Worker(zombie.keeper, tmp_path).told["files"] == [(NAME, 4)]
    assert (tmp_path / NAME).read_bytes() == b"one\n"


def test_an_order_that_another_process_writes_must_wait(tmp_path: Path) -> None:
    old = Worker(JournalKeeper(), tmp_path)
    old.send(0, b"one\n")
    keeper = JournalKeeper()
    assert Worker(keeper, tmp_path).told == {}
    old.keeper.drop("o")
    assert Worker(keeper, tmp_path).told["files"] == [(NAME, 4)]


def test_workers_that_see_the_folder_and_workers_that_do_not_fence_each_other(tmp_path: Path) -> None:
    path, keeper = tmp_path / NAME, JournalKeeper()
    with fenced(again=False), Journal.create(path, {"t": "header", "v": 1}) as zombie:
        heir = Worker(keeper, tmp_path, again=True)
        with pytest.raises(JournalFenced):
            zombie.append({"t": "late"})
        ((_, size),) = heir.told["files"]
        assert not heir.send(size, b"more\n")
    known = path.read_bytes()
    with fenced(again=True):
        take_over(path)
    assert "another one has taken the trace over" in heir.send(size + 5, b"late\n")
    assert path.read_bytes() == known


def test_a_piece_takes_the_place_of_what_stood_there_and_none_may_leave_a_gap(tmp_path: Path) -> None:
    worker = Worker(JournalKeeper(), tmp_path)
    worker.send(0, b"one\ntorn")
    assert not worker.send(4, b"two\n")
    assert (tmp_path / NAME).read_bytes() == b"one\ntwo\n"
    assert "bytes 8 to 9 did not come" in worker.send(9, b"three\n")
    assert worker.send(8, b"three\n")  # its lease is over
    assert (tmp_path / NAME).read_bytes() == b"one\ntwo\n"


def test_a_side_file_gets_its_name_with_its_last_part(tmp_path: Path) -> None:
    worker = Worker(JournalKeeper(), tmp_path)
    side = f"{NAME}.blobs/abc"
    worker.send(0, b"header\n")
    assert not worker.send(0, b"large ", side, "part")
    assert not (tmp_path / side).exists()
    assert Worker(worker.keeper, tmp_path).told["files"] == [(NAME, 7)]
    worker = Worker(worker.keeper, tmp_path)
    worker.send(0, b"large ", side, "part")
    worker.send(6, b"value", side, "last")
    assert (tmp_path / side).read_bytes() == b"large value"
    assert Worker(worker.keeper, tmp_path).told["files"] == [(NAME, 7), (side, 11)]


@pytest.mark.parametrize("name", ["../o.trace.jsonl", "p.trace.jsonl", "o.x/../../y", "/o.trace.jsonl", "o.a/b/c", ""])
def test_a_worker_writes_no_file_but_those_of_its_order(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "traces"
    worker = Worker(JournalKeeper(), folder)
    assert "expected a file of the order o" in worker.send(0, b"x", name)
    assert list(tmp_path.rglob("*")) in ([], [folder])
