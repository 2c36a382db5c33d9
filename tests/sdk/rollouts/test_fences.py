"""A writer that was thought dead and lives changes no trace and begins no call; who takes over repeats none."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.rollouts import RunOrder
from concertino.traces import fence, journal
from concertino.traces.fence import JournalFenced, enter, epoch_of, fenced, take_over
from concertino.traces.journal import Journal
from concertino.traces.journal_reader import read_journal
from rollout_work import PaidRuns, billed

HEADER = {"t": "header", "v": 1}


def taken(path: Path) -> Journal:
    """The journal of one that has taken a trace over."""
    with fenced(again=True):
        take_over(path)
        return Journal.resume(path)[0]


def test_a_writer_is_refused_from_the_moment_on_in_which_another_one_takes_over(tmp_path: Path) -> None:
    path = tmp_path / "r.trace.jsonl"
    with fenced(again=False), Journal.create(path, HEADER) as zombie:
        zombie.append({"t": "a"})
        take_over(path)
        with pytest.raises(JournalFenced, match=r"another one has taken the trace over.*Read how the run ended"):
            zombie.append({"t": "late"})
        with fenced(again=True):
            heir, known = Journal.resume(path)
        with heir:
            assert [record["t"] for record in known] == ["a"]
            heir.append({"t": "b"})
        with pytest.raises(JournalFenced):
            zombie.append({"t": "later"})
    assert [record["t"] for record in read_journal(path).records] == ["a", "b"]


def test_an_epoch_that_has_begun_refuses_even_before_the_copy_is_there(tmp_path: Path) -> None:
    path = tmp_path / "r.trace.jsonl"
    with fenced(again=False), Journal.create(path, HEADER) as zombie:
        Path(f"{path}.epoch-1").touch()  # who takes over was stopped here
        with pytest.raises(JournalFenced):
            zombie.append({"t": "late"})
    take_over(path)
    assert epoch_of(path) == 2


def test_who_is_refused_while_it_begins_a_trace_removes_nothing_of_the_other(tmp_path: Path) -> None:
    path = tmp_path / "r.trace.jsonl"
    patch = pytest.MonkeyPatch()

    def held_up(*given: Any, real: Any = journal.write_all) -> None:
        patch.undo()
        real(*given)
        take_over(path)

    patch.setattr(journal, "write_all", held_up)
    with fenced(again=False), pytest.raises(JournalFenced):
        Journal.create(path, HEADER)
    assert path.exists()


def test_a_file_that_was_replaced_is_not_written_to(tmp_path: Path) -> None:
    path = tmp_path / "r.trace.jsonl"
    with fenced(again=False), Journal.create(path, HEADER) as zombie:
        path.unlink()
        with pytest.raises(JournalFenced):
            zombie.append({"t": "late"})
        Journal.create(path, HEADER).close()
        with pytest.raises(JournalFenced):
            zombie.append({"t": "later"})


def test_without_fences_nothing_is_looked_at_and_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.trace.jsonl"
    with Journal.create(path, HEADER) as journal:
        take_over(path)
        journal.append({"t": "a"})


def test_of_two_that_take_over_the_last_one_wins_wherever_the_other_was_held_up(tmp_path: Path) -> None:
    """Whatever the first one was about to do, nothing of it comes into the trace, and nothing of the other is lost."""
    for place, (where, name) in enumerate([(os, "fsync"), (Path, "replace"), (fence, "_put"), (Path, "read_bytes")]):
        path = tmp_path / f"{place}.trace.jsonl"
        Journal.create(path, HEADER).close()
        real = getattr(where, name)
        heirs: list[Journal] = []
        patch = pytest.MonkeyPatch()

        def held_up(*given: Any, path: Path = path, real: Any = real, patch: Any = patch, heirs: Any = heirs) -> Any:
            patch.undo()
            heirs.append(taken(path))
            heirs[0].append({"t": "paid"})
            return real(*given)

        with fenced(again=True):
            patch.setattr(where, name, held_up)
            with pytest.raises(JournalFenced):
                take_over(path)
        with heirs[0] as heir:
            heir.append({"t": "more"})
        assert [record["t"] for record in read_journal(path).records] == ["paid", "more"]
        assert not list(tmp_path.glob("*.copy"))


def test_who_was_overtaken_before_it_opened_the_trace_writes_nothing_into_the_other_ones(tmp_path: Path) -> None:
    path = tmp_path / "r.trace.jsonl"
    Journal.create(path, HEADER).close()
    with fenced(again=True):
        take_over(path)
        taken(path).close()
        with pytest.raises(JournalFenced):
            Journal.resume(path)
    assert not read_journal(path).records


def test_a_first_writer_waits_for_no_copy_that_may_still_come(tmp_path: Path) -> None:
    """Somebody began an epoch and was held up; whoever opens the trace then begins the next one."""
    path = tmp_path / "r.trace.jsonl"
    Journal.create(path, HEADER).close()

    def late(*given: Any) -> None:
        with fenced(again=False):
            enter(path)
            first, _ = Journal.resume(path)
            with first:
                first.append({"t": "a"})

    with pytest.MonkeyPatch.context() as patch, fenced(again=True):
        patch.setattr(fence, "_put", lambda *given, put=fence._put: [patch.undo(), late(), put(*given)])
        with pytest.raises(JournalFenced):
            take_over(path)
    assert [record["t"] for record in read_journal(path).records] == ["a"]


def test_a_trace_that_is_deleted_leaves_no_epochs_behind(tmp_path: Path) -> None:
    store = ct.TraceStore(tmp_path)
    path = store.path_for("r")
    Journal.create(path, HEADER).close()
    for _ in range(3):
        take_over(path)
    Path(f"{path}.epoch-2.copy").touch()  # of one that was killed
    assert epoch_of(path) == 3
    store.delete("r")
    assert not list(tmp_path.iterdir())


def test_taking_over_what_is_not_there_does_nothing(tmp_path: Path) -> None:
    take_over(tmp_path / "r.trace.jsonl")
    assert not list(tmp_path.iterdir())


def test_two_that_live_make_each_call_once_when_one_was_thought_dead(tmp_path: Path) -> None:
    """The zombie is in the middle of a call when the other one takes over; its next call is refused."""

    async def main() -> tuple[str, str]:
        work = PaidRuns(tmp_path / "log", 0.1)
        order = RunOrder("Do it.", folder=str(tmp_path / "traces"))

        async def perform(again: bool) -> str:
            with fenced(again=again):
                return (await work.perform(order)).stop

        zombie = asyncio.create_task(perform(again=False))
        await asyncio.sleep(0.05)  # its first calls are under way
        return await perform(again=True), await zombie

    heir, zombie = asyncio.run(main())
    assert (heir, zombie) == ("answered", "model")
    calls = billed(tmp_path / "log")
    assert len(calls) == 6, calls
    assert {seen.count("START") for call, seen in calls.items() if call.startswith("once")} == {1}
    assert ct.Trace.load(next((tmp_path / "traces").glob("*.jsonl"))).finished
