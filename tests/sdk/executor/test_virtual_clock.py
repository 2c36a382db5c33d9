"""The clock that the schedule tests trust."""

from __future__ import annotations

import asyncio

import pytest

from .virtual_clock import Deadlock, run_virtually


def test_a_day_of_sleeping_passes_at_once_and_exactly() -> None:
    async def work() -> list[float]:
        loop = asyncio.get_running_loop()
        seen = []

        async def note(seconds: float) -> None:
            await asyncio.sleep(seconds)
            seen.append(loop.time())

        await asyncio.gather(*(note(seconds) for seconds in (200_000, 3, 1)))
        return seen

    assert run_virtually(work()) == [1, 3, 200_000]  # not at once, it would be stopped after five minutes


def test_waiting_for_nothing_is_reported_as_a_deadlock() -> None:
    async def work() -> None:
        await asyncio.get_running_loop().create_future()

    loop_error = pytest.raises(Deadlock, match="no timer is set")
    with loop_error:
        run_virtually(work())
