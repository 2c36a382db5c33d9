"""A writer that was thought dead and lives changes no trace and begins no call; who takes over repeats none."""

from __future__ import annotations

import asyncio
from pathlib import Path

import concertino as ct
import pytest
from concertino.rollouts import RunOrder
from concertino.traces.fence import JournalFenced, epoch_of, fenced, take_over
from concertino.traces.journal import Journal
from concertino.traces.journal_reader import read_journal
from rollout_work import PaidRuns, billed

HEADER = {"t": "header", "v": 1}


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
