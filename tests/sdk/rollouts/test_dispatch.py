"""Streams of orders: as many at once as there are slots, by priority, inside a budget, each run once."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from importlib.metadata import EntryPoint
from typing import Any, Self

import concertino as ct
import pytest
from concertino.rollouts import InProcess, RolloutsError, RunOrder, RunResult, Work, check_place, open_rollouts

Does = Callable[[RunOrder], Any]


class Noting(Work):
    """Notes what begins, is stopped and ends; `does` says how long an order takes, or what it spends."""

    def __init__(self, does: Does | None = None) -> None:
        self.does = does
        self.begun: list[str] = []
        self.stopped: list[str] = []
        self.running = self.most = 0
        self.closed = False

    async def perform(self, order: RunOrder) -> RunResult:
        self.begun.append(order.id)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            given = await self.does(order) if self.does else await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.stopped.append(order.id)
            raise
        finally:
            self.running -= 1
        return RunResult(order.id, usage=given or ct.Usage())

    def to_json(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls()

    async def aclose(self) -> None:
        self.closed = True


def orders(count: int, prefix: str = "o", **options: Any) -> list[RunOrder]:
    return [RunOrder(id=f"{prefix}{number}", **options) for number in range(count)]


async def all_of(place: InProcess, given: Iterable[RunOrder], **options: Any) -> list[RunResult]:
    async with aclosing(place.submit(given, **options)) as results:
        return [result async for result in results]


def test_of_an_endless_iterator_no_more_is_taken_than_there_are_slots() -> None:
    taken = 0

    def endless() -> Iterator[RunOrder]:
        nonlocal taken
        for number in itertools.count():
            taken += 1
            yield RunOrder(id=f"o{number}")

    async def main() -> None:
        work = Noting()
        async with InProcess(work, slots=4) as place, aclosing(place.submit(endless())) as results:
            given = 0
            async for _ in results:
                given += 1
                await asyncio.sleep(0.001)  # the others end meanwhile, and wait to be fetched
                assert taken <= given + 3
                if given == 50:
                    break
        assert work.most <= 4
        assert work.closed

    asyncio.run(main())


def test_each_order_gives_one_result() -> None:
    async def main() -> None:
        async with InProcess(Noting(), slots=7) as place:
            results = await all_of(place, orders(100))
            assert sorted(each.id for each in results) == sorted(f"o{n}" for n in range(100))
            assert not place._active  # nothing is kept of what was given
            assert not place._tasks

    asyncio.run(main())


def test_what_breaks_fails_alone_and_says_why() -> None:
    async def breaks(order: RunOrder) -> None:
        if order.id == "o3":
            raise RuntimeError("no")

    async def main() -> None:
        async with InProcess(Noting(breaks)) as place:
            results = await all_of(place, orders(6))
        assert {(each.id, each.detail) for each in results if each.status == "failed"} == {("o3", "RuntimeError: no")}
        assert len(results) == 6

    asyncio.run(main())


def test_an_order_of_higher_priority_is_begun_first() -> None:
    async def main() -> None:
        gate = asyncio.Event()

        async def waits(order: RunOrder) -> None:
            if order.id == "first":
                await gate.wait()

        work = Noting(waits)
        async with InProcess(work, slots=1) as place:
            streams = [
                asyncio.create_task(all_of(place, [RunOrder(id=name, priority=priority)]))
                for name, priority in (("first", 0), ("low", 1), ("high", 5), ("low too", 1))
            ]
            await asyncio.sleep(0.01)
            gate.set()
            await asyncio.gather(*streams)
        assert work.begun == ["first", "high", "low", "low too"]

    asyncio.run(main())


def test_one_order_in_two_streams_is_carried_out_once() -> None:
    async def main() -> None:
        async def slow(order: RunOrder) -> None:
            await asyncio.sleep(0.02)

        work = Noting(slow)
        async with InProcess(work) as place:
            one, other = await asyncio.gather(all_of(place, orders(1)), all_of(place, orders(1)))
        assert work.begun == ["o0"]
        assert one == other

    asyncio.run(main())


def test_who_joins_a_run_goes_on_with_it_when_the_first_is_stopped() -> None:
    async def main() -> None:
        async def slow(order: RunOrder) -> None:
            await asyncio.sleep(0.05)

        work = Noting(slow)
        async with InProcess(work) as place:
            first = asyncio.create_task(all_of(place, orders(1)))
            await asyncio.sleep(0.01)
            second = asyncio.create_task(all_of(place, orders(1)))
            await asyncio.sleep(0.01)
            first.cancel()
            assert [each.status for each in await second] == ["done"]
        assert work.begun == ["o0", "o0"]
        assert work.stopped == ["o0"]

    asyncio.run(main())


def test_a_stream_that_is_left_stops_its_runs_and_no_others() -> None:
    async def main() -> None:
        async def slow(order: RunOrder) -> None:
            await asyncio.sleep(0 if order.id == "o0" else 0.2 if order.id.startswith("p") else 60)

        work = Noting(slow)
        async with InProcess(work, slots=20) as place:
            other = asyncio.create_task(all_of(place, orders(2, "p")))
            async with aclosing(place.submit(orders(5))) as results:
                async for _ in results:
                    break
            assert sorted(work.stopped) == ["o1", "o2", "o3", "o4"]
            assert len(await other) == 2

    asyncio.run(main())


def test_closing_stops_everything_and_says_so_to_who_still_waits() -> None:
    async def main() -> None:
        async def slow(order: RunOrder) -> None:
            await asyncio.sleep(60)

        work = Noting(slow)
        place = InProcess(work)
        waiting = asyncio.create_task(all_of(place, orders(3)))
        await asyncio.sleep(0.01)
        await place.close()
        with pytest.raises(RolloutsError, match="closed while their runs were under way"):
            await waiting
        assert len(work.stopped) == 3
        with pytest.raises(ct.UsageError, match="closed"):
            await all_of(place, orders(1))

    asyncio.run(main())


# -- a shared budget ---------------------------------------------------------------------------------------------------


def spending(usd: float) -> Does:
    async def spend(order: RunOrder) -> ct.Usage:
        await asyncio.sleep(0.001)
        return ct.Usage(usd=usd)

    return spend


def test_what_orders_set_aside_together_is_never_more_than_their_budget() -> None:
    async def main() -> None:
        work = Noting(spending(0.3))
        async with InProcess(work, slots=16) as place:
            given = orders(20, budget=ct.Budget(usd=0.3))
            results = await all_of(place, given, budget=ct.Budget(usd=1.0))
        assert work.most == 3  # 3 * 0.3 <= 1 < 4 * 0.3
        assert sum(each.usage.usd for each in results) <= 1.0
        assert [each.status for each in results].count("done") == 3
        refused = [each for each in results if each.status == "refused"]
        assert len(refused) == 17
        assert "usd 0.1" in refused[0].detail

    asyncio.run(main())


def test_what_a_run_did_not_spend_is_given_back() -> None:
    async def main() -> None:
        work = Noting(spending(0.05))
        async with InProcess(work, slots=16) as place:
            results = await all_of(place, orders(12, budget=ct.Budget(usd=0.3)), budget=ct.Budget(usd=1.0))
        assert [each.status for each in results] == ["done"] * 12
        assert work.most == 3

    asyncio.run(main())


def test_an_order_without_a_limit_cannot_share_a_budget_that_has_one() -> None:
    async def main() -> None:
        async with InProcess(Noting()) as place:
            await all_of(place, orders(1), budget=ct.Budget(usd=1))

    with pytest.raises(ct.UsageError, match=r"order o0: its budget has no limit of usd.*Budget\(usd="):
        asyncio.run(main())


@pytest.mark.parametrize("word", ["local:0", "local:", "local:-1", "here"])
def test_a_place_that_is_not_known_is_refused(word: str) -> None:
    with pytest.raises(ct.UsageError, match=r"expected where runs happen: local .* or local:4"):
        check_place(word)


def test_a_place_is_this_process_or_others() -> None:
    assert [check_place(word) for word in ("", "local", "local:1", "local:16")] == [False, False, True, True]


def test_a_plugin_adds_places_and_a_missing_one_of_ours_says_how_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    def mars_place(word: str) -> Any:
        return lambda work, *, slots, env_from: InProcess(work, slots=len(word))

    entry = EntryPoint("mars", "rovers:mars_place", "concertino.places")
    monkeypatch.setattr(EntryPoint, "load", lambda self: mars_place)

    def listed(*, group: str, name: str = "mars") -> list[EntryPoint]:
        return [entry] if (group, name) == ("concertino.places", "mars") else []

    monkeypatch.setattr("concertino.rollouts.place.entry_points", listed)
    assert check_place("mars:9")
    assert open_rollouts("mars:9", Noting()).slots == 6
    with pytest.raises(ct.UsageError, match=r"on='here': expected .* or local:4 .*, mars"):
        check_place("here")
    with pytest.raises(ct.UsageError, match=r"on='ray': .* another distribution: pip install 'concertino\[ray\]'"):
        check_place("ray")
