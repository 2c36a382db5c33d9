"""Runs on a cluster: same results as elsewhere, and what dies costs only time."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.rollouts import InProcess, OrderedRuns, Rollouts, RolloutsError, RunOrder, RunResult
from concertino_ray import RayRuns
from concertino_ray.ray_runs import Journals
from rollout_work import Odd, PaidRuns, billed

pytestmark = pytest.mark.slow
both_ways = pytest.mark.parametrize("journals", ["shared", "streamed"])


async def all_of(place: Rollouts, given: Iterable[RunOrder]) -> dict[str, RunResult]:
    async with aclosing(place.submit(given)) as results:
        return {result.id: result async for result in results}


async def until(ready: Callable[[], bool]) -> None:
    while not ready():  # noqa: ASYNC110 (what is waited for happens in other processes)
        await asyncio.sleep(0.05)


def odd(name: str, **task: Any) -> RunOrder:
    return RunOrder(task=task, id=name)


def paid(folder: Path, count: int) -> list[RunOrder]:
    return [RunOrder("Do it.", {"id": f"t{n}"}, folder=str(folder)) for n in range(count)]


def check_bill(log: Path) -> None:
    """No call was made twice but those that a death left in doubt, where that is allowed."""
    for call, seen in billed(log).items():
        assert seen.count("START") == 1 or call.startswith("keyed"), (call, seen)


def test_every_node_has_a_worker_and_a_worker_sees_no_key_but_those_that_are_named(nodes: Any) -> None:
    async def main() -> tuple[dict[str, RunResult], list[Any]]:
        async with RayRuns(Odd(), slots=30, env_from=["OTHER_API_KEY"]) as place:
            first = await all_of(place, [odd("a", env=True), odd("b", **{"raise": "no"})])
            await until(lambda: sum(node.workers for node in place.health()) == 3)
            return first | await all_of(place, [odd(f"o{n}", give=n, sleep=0.3) for n in range(30)]), place.health()

    found, health = asyncio.run(asyncio.wait_for(main(), 180))
    secret = {name for name in found["a"].data["env"] if name.endswith(("_TOKEN", "_KEY"))}
    assert secret == {"OTHER_API_KEY"}
    assert {node.host.partition(":")[0] for node in health} == {"127.0.0.1"}
    assert (found["b"].status, found["b"].detail) == ("failed", "RuntimeError: no")
    assert [found[f"o{n}"].data["give"] for n in range(30)] == list(range(30))
    assert len({found[f"o{n}"].data["pid"] for n in range(30)}) == 3
    assert [(node.state, node.workers, node.lost) for node in health] == [("ready", 1, 0)] * 3
    assert sum(node.done for node in health) == 32


def test_an_order_that_kills_its_workers_fails_alone(nodes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concertino_ray.ray_runs._DEATHS", 2)
    monkeypatch.setattr("concertino_ray.ray_runs._DEATHS_ALONE", 1)

    async def main() -> dict[str, RunResult]:
        async with RayRuns(Odd(), slots=8) as place:
            return await all_of(place, [odd("bad", die=True), *(odd(f"o{n}", give=n, sleep=0.05) for n in range(20))])

    found = asyncio.run(asyncio.wait_for(main(), 180))
    assert found["bad"].status == "failed"
    assert "3 workers died with it; the last: " in found["bad"].detail
    assert [found[f"o{n}"].data["give"] for n in range(20)] == list(range(20))


def test_a_stream_that_is_left_stops_its_runs_in_the_workers(nodes: Any) -> None:
    async def main() -> None:
        async with RayRuns(Odd(), slots=8) as place:
            given = [odd("a"), *(odd(f"s{n}", sleep=600) for n in range(4))]
            async with aclosing(place.submit(given)) as results:
                await anext(results)
            assert (await all_of(place, [odd("b", give=2)]))["b"].data["give"] == 2
            assert sum(node.running for node in place.health()) == 0

    asyncio.run(asyncio.wait_for(main(), 180))


def test_a_pool_that_is_another_one_there_is_refused_with_the_difference(nodes: Any) -> None:
    class Changed(OrderedRuns):
        def to_json(self) -> dict[str, Any]:
            (reference,) = super().to_json()["pools"]
            lock = {**reference["lock"], "members": {**reference["lock"]["members"], "toy/gone": "0"}}
            return {"pools": [{**reference, "lock": lock}]}

    Changed.__module__, Changed.__qualname__ = OrderedRuns.__module__, OrderedRuns.__qualname__

    async def main() -> None:
        async with RayRuns(Changed(ct.Pool.installed("toy/*"))) as place:
            await all_of(place, [RunOrder("q")])

    with pytest.raises(ct.PoolError, match=r"cluster cannot do this work: .*'toy/gone' is locked but not in"):
        asyncio.run(asyncio.wait_for(main(), 180))


@pytest.mark.parametrize("journals", ["shared", pytest.param("streamed", marks=pytest.mark.soak)])
def test_a_worker_that_is_thought_dead_and_lives_changes_nothing(
    nodes: Any, tmp_path: Path, journals: Journals
) -> None:
    async def main() -> dict[str, RunResult]:
        work = PaidRuns(tmp_path / "log", 0.3)
        async with RayRuns(work, slots=12, silence=2.0, journals=journals) as place:
            running = asyncio.create_task(all_of(place, paid(tmp_path / "traces", 12)))
            await until(lambda: len(billed(tmp_path / "log")) >= 12)
            hand = next(hand for node in place._crew._nodes.values() for hand in node.workers if hand.load)
            hand._kills = False  # it is out of reach: nobody can kill it
            os.kill(hand.pid, signal.SIGSTOP)
            try:
                return await running
            finally:
                os.kill(hand.pid, signal.SIGCONT)
                await asyncio.sleep(1.0)  # it goes on now, and finds out
                os.kill(hand.pid, signal.SIGKILL)

    found = asyncio.run(asyncio.wait_for(main(), 180))
    assert {each.stop for each in found.values()} == {"answered"}
    assert list((tmp_path / "traces").glob("*.epoch-1"))
    check_bill(tmp_path / "log")
    assert all(ct.Trace.load(each.trace).finished for each in found.values())


def test_a_node_that_does_not_see_the_traces_is_refused(
    nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concertino_ray.ray_runs.write_private", lambda path, data: None)

    async def main() -> None:
        async with RayRuns(PaidRuns(tmp_path / "log"), journals="shared") as place:
            await all_of(place, paid(tmp_path / "traces", 1))

    with pytest.raises(RolloutsError, match=r"traces is not the folder that the driver sees.*that all nodes share"):
        asyncio.run(asyncio.wait_for(main(), 180))
    assert not (tmp_path / "log").read_text()


def test_workers_that_do_not_see_the_traces_send_them(
    nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concertino_ray.ray_runs.write_private", lambda path, data: None)

    async def main() -> dict[str, RunResult]:
        async with RayRuns(PaidRuns(tmp_path / "log")) as place:
            return await all_of(place, paid(tmp_path / "traces", 6))

    found = asyncio.run(asyncio.wait_for(main(), 180))
    assert {each.stop for each in found.values()} == {"answered"}
    assert {each.trace for each in found.values()} == {str(path) for path in (tmp_path / "traces").iterdir()}
    assert all(ct.Trace.load(each.trace).finished for each in found.values())
    check_bill(tmp_path / "log")


@pytest.mark.soak
def test_a_keeper_of_traces_that_dies_costs_time_alone(nodes: Any, tmp_path: Path) -> None:
    import ray

    async def main() -> dict[str, RunResult]:
        async with RayRuns(PaidRuns(tmp_path / "log", 0.1), slots=12, journals="streamed") as place:
            running = asyncio.create_task(all_of(place, paid(tmp_path / "traces", 30)))
            for count in (30, 90):
                await until(lambda count=count: len(billed(tmp_path / "log")) >= count)
                ray.kill(place._keeper, no_restart=False)
            return await running

    found = asyncio.run(asyncio.wait_for(main(), 180))
    assert {each.stop for each in found.values()} == {"answered"}
    assert all(ct.Trace.load(each.trace).finished for each in found.values())
    check_bill(tmp_path / "log")


@pytest.mark.soak  # `test_ray_deaths.py` kills many
@pytest.mark.parametrize("journals", ["streamed", "shared"])
def test_nodes_that_die_lose_nothing_and_new_ones_get_work(nodes: Any, tmp_path: Path, journals: Journals) -> None:
    async def main() -> tuple[dict[str, RunResult], list[Any]]:
        async with RayRuns(PaidRuns(tmp_path / "log", 0.1), slots=12, journals=journals) as place:
            running = asyncio.create_task(all_of(place, paid(tmp_path / "killed", 60)))
            for count in (30, 120):
                await until(lambda count=count: len(billed(tmp_path / "log")) >= count)
                await asyncio.to_thread(nodes.kill)
                nodes.add()
            results = await running
            await until(lambda: [node.state for node in place.health()].count("gone") == 2)  # Ray notices late
            return results, place.health()

    async def plain() -> dict[str, RunResult]:
        async with InProcess(PaidRuns(tmp_path / "plain", 0.0)) as place:
            return await all_of(place, paid(tmp_path / "here", 60))

    found, health = asyncio.run(asyncio.wait_for(main(), 120))
    expected = asyncio.run(plain())
    assert sum(node.state == "ready" for node in health) >= 1
    assert found.keys() == expected.keys()
    assert {each.stop for each in found.values()} == {"answered"}
    assert {each.answer for each in found.values()} == {each.answer for each in expected.values()}
    check_bill(tmp_path / "log")


def test_a_drained_node_gets_no_more_orders_and_ends_what_it_has(nodes: Any) -> None:
    async def main() -> None:
        async with RayRuns(Odd(), slots=6) as place:
            await all_of(place, [odd("first")])
            await until(lambda: sum(node.workers for node in place.health()) >= 2)
            running = asyncio.create_task(all_of(place, [odd(f"o{n}", give=n, sleep=0.4) for n in range(6)]))
            await asyncio.sleep(0.2)
            drained = next(node.node for node in place.health() if node.running)
            place.drain(drained)
            assert len(await running) == 6
            await until(lambda: not next(node.workers for node in place.health() if node.node == drained))
            seen = await all_of(place, [odd(f"p{n}", give=n) for n in range(6)])
            assert len(seen) == 6
            (health,) = [node for node in place.health() if node.node == drained]
            assert (health.state, health.running, health.lost) == ("draining", 0, 0)
            idle = next(node for node in place.health() if node.workers and node.done)
            place.drain(idle.node)  # its workers begin to end, and what they did counts all the time
            (ending,) = [node for node in place.health() if node.node == idle.node]
            assert (ending.state, ending.workers, ending.done) == ("draining", 0, idle.done)

    asyncio.run(asyncio.wait_for(main(), 180))


def test_a_node_that_joins_gets_work_and_ray_drains_it(nodes: Any) -> None:
    async def main(name: str) -> None:
        async with RayRuns(Odd(), slots=12) as place:
            running = asyncio.create_task(all_of(place, [odd(f"o{n}", give=n, sleep=0.2) for n in range(12)]))
            await until(lambda: any(node.node == name and node.workers for node in place.health()))
            assert len(await running) == 12
            assert len(await all_of(place, [odd(f"p{n}", give=n, sleep=0.2) for n in range(12)])) == 12

            def seen() -> Any:
                return next(node for node in place.health() if node.node == name)

            done = seen().done
            assert done
            why = ["--reason", "DRAIN_NODE_REASON_PREEMPTION", "--reason-message", "maintenance"]
            given = ["--address", nodes.address, "--node-id", name, *why, "--deadline-remaining-seconds", "600"]
            command = [sys.executable, "-m", "ray.scripts.scripts", "drain-node", *given]
            await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
            # Ray ends a node that it drains as soon as nothing is left on it.
            await until(lambda: seen().state in ("draining", "gone") and not seen().workers)
            assert len(await all_of(place, [odd(f"q{n}", give=n) for n in range(6)])) == 6
            assert (seen().done, seen().lost) == (done, 0)

    nodes.add()
    try:
        asyncio.run(asyncio.wait_for(main(nodes.others[-1].node_id), 180))
    finally:
        nodes.kill(-1)
