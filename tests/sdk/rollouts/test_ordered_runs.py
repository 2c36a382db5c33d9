"""An order that is carried out twice is one run: joined, continued or read; and pools are compared before anything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import concertino as ct
import pytest
from concertino.rollouts import InProcess, OrderedRuns, PoolReference, RunOrder, RunResult, run_once
from concertino.traces.journal_lock import is_being_written
from rollout_work import ROUNDS, PaidRuns, billed


def order(folder: Path, pool: str = "") -> RunOrder:
    return RunOrder("Do it.", {"id": "t"}, seed=1, folder=str(folder), pool=pool)


async def result_of(work: OrderedRuns, given: RunOrder) -> RunResult:
    async with InProcess(work) as place, aclosing(place.submit([given])) as results:
        return await anext(results)


async def until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not so():  # noqa: ASYNC110 (what is waited for is a file)
            await asyncio.sleep(0.002)


def test_a_run_that_has_ended_is_read_and_nothing_is_paid(tmp_path: Path) -> None:
    log = tmp_path / "log"
    first = asyncio.run(result_of(PaidRuns(log), order(tmp_path)))
    again = asyncio.run(result_of(PaidRuns(log), order(tmp_path)))
    assert first.stop == "answered"
    assert (again.id, again.answer, again.usage.usd) == (first.id, first.answer, first.usage.usd)
    assert set(map(tuple, billed(log).values())) == {("START", "END")}
    assert len(billed(log)) == 2 * ROUNDS


def test_a_run_that_was_stopped_is_continued(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def main() -> RunResult:
        place = InProcess(PaidRuns(log, seconds=0.05))
        waiting = asyncio.create_task(_drained(place, order(tmp_path)))
        await until(lambda: len(log.read_text().splitlines()) >= 5)
        waiting.cancel()
        await asyncio.wait([waiting])
        await place.close()
        return await result_of(PaidRuns(log), order(tmp_path))

    result = asyncio.run(main())
    assert result.stop == "answered"
    for call, seen in billed(log).items():
        assert seen.count("START") == 1 or call.startswith("keyed"), call


async def _drained(place: InProcess, given: RunOrder) -> None:
    async with aclosing(place.submit([given])) as results:
        async for _ in results:
            pass


def test_a_run_that_another_has_under_way_is_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def main() -> list[RunResult]:
        # Two places that know nothing of each other, as two processes.
        places = [InProcess(PaidRuns(log, seconds=0.02)) for _ in range(2)]
        first = asyncio.create_task(result_in(places[0]))
        await until(lambda: any(map(is_being_written, tmp_path.glob("*.jsonl"))))
        second = asyncio.create_task(result_in(places[1]))
        found = [await first, await second]
        for place in places:
            await place.close()
        return found

    async def result_in(place: InProcess) -> RunResult:
        async with aclosing(place.submit([order(tmp_path)])) as results:
            return await anext(results)

    one, other = asyncio.run(main())
    assert one.answer == other.answer
    assert set(map(tuple, billed(log).values())) == {("START", "END")}


def test_a_trace_without_a_beginning_is_begun_anew(tmp_path: Path) -> None:
    given = order(tmp_path)
    (tmp_path / f"{given.id}.trace.jsonl").write_bytes(b'{"n":0')  # a worker was killed while it made the file
    result = asyncio.run(result_of(PaidRuns(tmp_path / "log"), given))
    assert result.stop == "answered"


def test_a_trace_of_another_set_up_is_left_as_it_is(tmp_path: Path) -> None:
    asyncio.run(result_of(PaidRuns(tmp_path / "log"), order(tmp_path)))
    path = next(tmp_path.glob("*.jsonl"))
    # Cut off behind the beginning, so that it is to be continued; and then by another strategy.
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
    before = path.read_bytes()

    async def main() -> None:
        work = PaidRuns(tmp_path / "log")
        leader = ct.Orchestrator(strategy="serial-calls")
        try:
            await run_once(leader, "Do it.", next(iter(work.pools.values())), path, run_id="x")
        finally:
            await work.aclose()

    with pytest.raises(ct.TraceError, match="cannot be resumed on another set-up"):
        asyncio.run(main())
    assert path.read_bytes() == before


def test_an_order_for_a_pool_that_is_not_there_fails_with_those_that_are(tmp_path: Path) -> None:
    result = asyncio.run(result_of(PaidRuns(tmp_path / "log"), order(tmp_path, pool="nowhere")))
    assert result.status == "failed"
    assert "pool='nowhere'; expected the id of one of the pools" in result.detail


# -- pools for other processes -----------------------------------------------------------------------------------------

TOY = ct.Pool.installed("toy/*").bind(orchestrator="toy/leader")


def test_a_pool_travels_as_a_reference_and_comes_out_equal(tmp_path: Path) -> None:
    reference = PoolReference.of(TOY, tmp_path)
    assert PoolReference.from_json(reference.to_json()).load().id == TOY.id


def test_a_pool_that_was_loaded_from_a_file_is_loaded_from_that_file(tmp_path: Path) -> None:
    TOY.save(tmp_path / "pool.toml")
    loaded = ct.Pool.load(tmp_path / "pool.toml")
    reference = PoolReference.of(loaded, tmp_path / "none")
    assert reference.file == str(tmp_path / "pool.toml")
    assert reference.load().id == TOY.id
    # A pool that was changed afterwards is not what is in the file.
    assert PoolReference.of(loaded.bind(judge="toy/steady"), tmp_path).file != reference.file


def test_another_pool_is_refused_with_what_differs(tmp_path: Path) -> None:
    reference = PoolReference.of(TOY, tmp_path)
    lock = {**reference.lock, "members": {**reference.lock["members"], "toy/solve": "0" * 16, "toy/gone": "1" * 16}}
    with pytest.raises(ct.PoolError, match=r"the pool is another one here: .*'toy/solve' has changed.*'toy/gone'"):
        PoolReference(reference.file, reference.digest, lock).load()


def test_a_pool_file_that_changed_is_not_even_read(tmp_path: Path) -> None:
    reference = PoolReference.of(TOY, tmp_path)
    Path(reference.file).write_text("this is not TOML")
    with pytest.raises(ct.PoolError, match="the pool file has changed since it was loaded"):
        reference.load()


def test_a_pool_of_functions_of_this_program_cannot_be_sent(tmp_path: Path) -> None:
    @ct.tool
    def here(n: int) -> int:
        """Only here."""
        return n

    with pytest.raises(ct.PoolError, match=r"cannot be sent to another process, which loads it by names: .*'here'"):
        PoolReference.of(ct.Pool.of(here), tmp_path)
