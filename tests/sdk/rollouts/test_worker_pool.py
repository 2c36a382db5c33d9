"""Worker processes: they see no keys, what kills them costs only time, and nobody but the culprit fails."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.rollouts import InProcess, OrderedRuns, Processes, Rollouts, RolloutsError, RunOrder, RunResult
from rollout_work import Doomed, Odd, PaidRuns, billed

pytestmark = pytest.mark.slow
KILLS = 8


async def all_of(place: Rollouts, given: Iterable[RunOrder]) -> dict[str, RunResult]:
    async with aclosing(place.submit(given)) as results:
        return {result.id: result async for result in results}


def odd(name: str, **task: Any) -> RunOrder:
    return RunOrder(task=task, id=name)


def test_a_worker_sees_no_key_but_those_that_are_named_and_prints_harm_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ACME_API_KEY", "sesame")
    monkeypatch.setenv("OTHER_API_KEY", "sesame too")

    async def main() -> dict[str, RunResult]:
        async with Processes(Odd(), 1, env_from=["OTHER_API_KEY"]) as place:
            return await all_of(place, [odd("a", env=True), odd("b", print=True, give=1), odd("c", **{"raise": "no"})])

    found = asyncio.run(main())
    seen = found["a"].data["env"]
    assert "ACME_API_KEY" not in seen
    assert seen["OTHER_API_KEY"] == "sesame too"
    assert found["b"].data["give"] == 1
    assert (found["c"].status, found["c"].detail) == ("failed", "RuntimeError: no")


def test_an_order_that_kills_its_workers_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concertino.rollouts.worker_pool._DEATHS", 2)
    monkeypatch.setattr("concertino.rollouts.worker_pool._DEATHS_ALONE", 1)

    async def main() -> tuple[dict[str, RunResult], list[int]]:
        async with Processes(Odd(), 2, slots=8) as place:
            given = [odd("bad", die=True), *(odd(f"o{n}", give=n, sleep=0.05) for n in range(30))]
            return await all_of(place, given), place.pids

    found, pids = asyncio.run(main())
    assert found["bad"].status == "failed"
    assert "3 workers died with it; the last: its process ended with signal 9" in found["bad"].detail
    assert [found[f"o{n}"].data["give"] for n in range(30)] == list(range(30))
    assert not any(_lives(pid) for pid in pids)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_stream_that_is_left_stops_its_runs_in_the_workers(tmp_path: Path) -> None:
    async def main() -> None:
        async with Processes(Odd(), 1, slots=8) as place:
            async with aclosing(place.submit([odd("a"), *(odd(f"s{n}", sleep=600) for n in range(4))])) as results:
                first = await anext(results)
            again = (await all_of(place, [odd("b", give=2)]))["b"]
            assert again.data["give"] == 2
            assert again.data["pid"] == first.data["pid"]  # the runs were stopped, and not their worker

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_worker_that_cannot_be_made_is_said_at_once(tmp_path: Path) -> None:
    class Changed(OrderedRuns):
        def to_json(self) -> dict[str, Any]:
            (reference,) = super().to_json()["pools"]
            lock = {**reference["lock"], "members": {**reference["lock"]["members"], "toy/gone": "0"}}
            return {"pools": [{**reference, "lock": lock}]}

    Changed.__module__, Changed.__qualname__ = OrderedRuns.__module__, OrderedRuns.__qualname__

    async def main() -> None:
        work = Changed(ct.Pool.installed("toy/*"))
        async with Processes(work, 1) as place:
            await all_of(place, [RunOrder("q")])

    with pytest.raises(ct.PoolError, match=r"a worker process cannot do this work: .*'toy/gone' is locked but not in"):
        asyncio.run(main())


def test_workers_that_die_before_they_are_ready_end_the_stream() -> None:
    async def main() -> None:
        async with Processes(Doomed(), 1) as place:
            await all_of(place, [odd("a")])

    with pytest.raises(RolloutsError, match=r"3 workers died before they were ready; .*exit code 3; .*out of every"):
        asyncio.run(main())


def begun_again(trace: str) -> list[str]:
    """Calls that were begun after their result was on record."""
    ended: set[str] = set()
    again = []
    for record in ct.Trace.load(trace).records:
        if record["t"] == "intent" and record["id"] in ended:
            again.append(record["id"])
        elif record["t"] == "result":
            ended.add(record["id"])
    return again


def test_killed_workers_lose_nothing_and_no_paid_call_is_made_twice(tmp_path: Path) -> None:
    def given(folder: str) -> list[RunOrder]:
        return [RunOrder("Do it.", {"id": f"t{n}"}, folder=str(tmp_path / folder)) for n in range(80)]

    async def killed() -> dict[str, RunResult]:
        async with Processes(PaidRuns(tmp_path / "log", 0.05), 2, slots=8) as place:
            killer = asyncio.create_task(kill(place))
            try:
                found = await all_of(place, given("killed"))
            finally:
                killer.cancel()
                await asyncio.wait([killer])
            return found

    kills = 0

    async def kill(place: Processes) -> None:
        nonlocal kills
        chance = random.Random(7)
        while kills < KILLS:
            await asyncio.sleep(chance.uniform(0.02, 0.3))
            if pids := place.pids:
                os.kill(chance.choice(pids), signal.SIGKILL)
                kills += 1

    async def plain() -> dict[str, RunResult]:
        async with InProcess(PaidRuns(tmp_path / "plain", 0.0)) as place:
            return await all_of(place, given("plain"))

    found = asyncio.run(killed())
    expected = asyncio.run(plain())
    assert kills == KILLS
    assert found.keys() == expected.keys()
    assert {each.stop for each in found.values()} == {"answered"}
    for call, seen in billed(tmp_path / "log").items():
        # In doubt is what a kill left begun: it is asked again under its key only where that is allowed.
        assert seen.count("START") == 1 or call.startswith("keyed"), (call, seen)
    assert {each.id: again for each in found.values() if (again := begun_again(each.trace))} == {}
    assert {each.answer for each in found.values()} == {each.answer for each in expected.values()}


def test_workers_come_and_go_while_runs_are_under_way() -> None:
    async def main() -> list[list[tuple[str, int, int]]]:
        async with Processes(Odd(), 1, slots=6) as place:
            seen = []

            async def note(count: int, name: str) -> None:
                assert len(await all_of(place, [odd(f"{name}{n}", give=n, sleep=0.1) for n in range(count)])) == count
                seen.append([(each.state, each.running, each.done) for each in place.health()])

            await note(2, "a")
            place.resize(3)
            await note(6, "b")
            running = asyncio.create_task(note(6, "c"))
            await asyncio.sleep(0.05)
            place.resize(1)
            await running
            while [each.state for each in place.health()].count("gone") < 2:  # noqa: ASYNC110 (processes end)
                await asyncio.sleep(0.02)
            await note(2, "d")
            assert len(place.pids) == 1
            return seen

    first, more, _, fewer = asyncio.run(main())
    assert first == [("ready", 0, 2)]
    assert [(state, running) for state, running, _ in more] == [("ready", 0)] * 3
    assert all(done for *_, done in more)
    assert [state for state, *_ in fewer] == ["ready", "gone", "gone"]
    assert sum(done for *_, done in fewer) == 2 + 6 + 6 + 2


def test_a_worker_that_died_is_counted_once_with_all_its_orders() -> None:
    async def main() -> list[int]:
        async with Processes(Odd(), 1, slots=4) as place:
            await all_of(place, [odd("a")])
            running = asyncio.create_task(all_of(place, [odd(f"o{n}", sleep=0.2) for n in range(4)]))
            await asyncio.sleep(0.05)
            os.kill(place.pids[0], signal.SIGKILL)
            await running
            return [each.lost for each in place.health()]

    assert asyncio.run(main()) == [1]
