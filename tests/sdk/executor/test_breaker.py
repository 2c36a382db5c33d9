"""The breaker: what opens it, what does not, and how a provider comes back (bar E8)."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

import concertino as ct
import pytest
from concertino.executor import BreakerPolicy, Executor, RetryPolicy
from concertino.executor.breaker import Breaker

from .virtual_clock import run_virtually


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def breaker(clock: Clock, **policy: float) -> Breaker:
    return Breaker(BreakerPolicy(**{"jitter": 0.0, **policy}), clock, random.Random(1))  # type: ignore[arg-type]


def outage(clock: Clock, subject: Breaker, *, until: float, alone: bool) -> list[tuple[float, bool]]:
    """One call per 0.1 s against a target that is down until then; (time, went through) of each call let out."""
    let_out = []
    while clock.now < until + 100:
        if subject.allows(alone=alone):
            well = clock.now >= until
            let_out.append((clock.now, well))
            subject.succeeded() if well else subject.failed()
            if well:
                return let_out
        clock.now += 0.1
    raise AssertionError("it never came back")


def test_during_an_outage_there_is_one_probe_per_window_and_one_after_healing_closes_it() -> None:
    clock = Clock()
    let_out = outage(clock, subject := breaker(clock), until=60, alone=False)
    assert len([when for when, _ in let_out if when < 0.5]) == 5
    probes = [when for when, _ in let_out[5:]]
    windows = [second - first for first, second in zip([0.4, *probes], probes, strict=False)]
    assert all(window >= 29.9 for window in windows)
    assert len(probes) <= 3
    assert [well for _, well in let_out].count(True) == 1
    assert subject.state == "closed"


def test_the_only_target_is_never_shut_out() -> None:
    clock = Clock()
    subject = breaker(clock)
    let_out = outage(clock, subject, until=60, alone=True)
    assert let_out[-1][0] < 60.2
    assert subject.state == "closed"


def test_an_open_breaker_of_the_only_target_lets_one_call_out_at_a_time() -> None:
    subject = breaker(Clock())
    for _ in range(5):
        subject.failed()
    assert [subject.allows(alone=True) for _ in range(3)] == [True, False, False]
    subject.failed()
    assert subject.allows(alone=True)


def test_half_of_many_failures_in_half_a_minute_open_it_and_older_ones_do_not_count() -> None:
    clock = Clock()
    subject = breaker(clock)
    for _ in range(10):
        subject.failed()
        subject.succeeded()
    assert subject.state == "closed"
    subject.failed()
    assert subject.state == "open"
    subject = breaker(clock)
    for _ in range(10):
        subject.failed()
        subject.succeeded()
    clock.now += 31
    subject.failed()
    assert subject.state == "closed"


def test_each_opening_lasts_longer_up_to_five_minutes() -> None:
    clock = Clock()
    subject = breaker(clock)
    lengths = []
    for _ in range(5):
        subject.failed()
    for _ in range(12):
        lengths.append(subject.seconds_left())
        clock.now += lengths[-1]
        assert subject.allows()
        subject.failed()
    assert lengths[:3] == pytest.approx([30, 60, 90])
    assert max(lengths) == pytest.approx(300)


def test_a_probe_that_tells_nothing_lets_the_next_one_try() -> None:
    clock = Clock()
    subject = breaker(clock)
    for _ in range(5):
        subject.failed()
    clock.now = 31
    assert subject.allows()
    assert not subject.allows()
    subject.undecided()
    assert subject.allows()


# -- in the executor --------------------------------------------------------------------------------------------------


def failing(error: BaseException, name: str = "acme/ask", **options: object) -> ct.ToolSpec:
    async def ask(well: bool = False) -> str:
        """Ask a provider."""
        await asyncio.sleep(0.001)
        if well:
            return "well"
        raise error

    return ct.tool(name=name, **options)(ask)  # type: ignore[call-overload,no-any-return]


OTHER = failing(ValueError(), "other/ask_too")


async def ask_often(executor: Executor, pool: ct.Pool, times: int, **options: object) -> list[ct.Observation]:
    return [(await executor.run([ct.Call("ask")], pool, **options))[0] for _ in range(times)]  # type: ignore[arg-type]


def state_after(error: BaseException, times: int, budget: ct.Budget | None = None, **options: object) -> str:
    async def run() -> str:
        async with Executor(retries=RetryPolicy(base=0.001)) as executor:
            await ask_often(executor, ct.Pool.of(failing(error, **options), OTHER), times, budget=budget)
            return executor.bindings.provider("acme").breaker.state

    return run_virtually(run())


@pytest.mark.parametrize("status", [400, 404, 413, 422, 429])
def test_the_caller_s_own_errors_and_throttling_never_open_it(status: int) -> None:
    assert state_after(ct.ProviderError.from_http(status), 60) == "closed"


def test_a_plugin_s_own_exceptions_never_open_it() -> None:
    assert state_after(ValueError("bug"), 60) == "closed"


def test_the_caller_s_own_short_deadline_never_opens_it() -> None:
    assert state_after(ConnectionResetError(), 60, ct.Budget(seconds=0.0001)) == "closed"


@pytest.mark.parametrize("error", [ConnectionRefusedError("refused"), ConnectionResetError("reset")])
def test_connection_errors_open_it(error: BaseException) -> None:
    assert state_after(error, 5) == "open"


def test_failures_of_later_attempts_count() -> None:
    assert state_after(ct.ProviderError.from_http(500), 2, retry_safe=True) == "open"
    assert state_after(ct.ProviderError.from_http(500), 2, retry_safe=False) == "closed"


def test_a_refused_key_opens_it_at_once() -> None:
    assert state_after(ct.ProviderError.from_http(401), 1) == "open"


def test_while_it_is_open_calls_are_refused_free_of_charge_and_say_for_how_long() -> None:
    async def run() -> ct.Observation:
        async with Executor(retries=RetryPolicy(base=0.001)) as executor:
            pool = ct.Pool.of(failing(ConnectionResetError(), cost=ct.Cost(units=1)), OTHER)
            return (await ask_often(executor, pool, 6))[-1]

    seen = run_virtually(run())
    assert seen.error is not None
    assert (seen.error.code, seen.attempts, seen.usage.units) == ("breaker_open", 0, 0)
    assert "'acme' failed too often and is not asked for another 3" in seen.error.message


def test_a_lone_provider_is_still_asked_and_recovers_with_the_first_success() -> None:
    async def run() -> list[str]:
        async with Executor(retries=RetryPolicy(base=0.001)) as executor:
            pool = ct.Pool.of(failing(ConnectionResetError()))
            await ask_often(executor, pool, 8)
            states = [executor.bindings.provider("acme").breaker.state]
            (seen,) = await executor.run([ct.Call("ask", {"well": True})], pool)
            return [*states, seen.content, executor.bindings.provider("acme").breaker.state]

    assert run_virtually(run()) == ["open", "well", "closed"]


def test_a_probe_cut_off_by_its_caller_does_not_block_the_next() -> None:
    async def run() -> str:
        clock = Clock()
        async with Executor(retries=RetryPolicy(base=0.001)) as executor:
            executor.bindings.provider("acme").breaker = breaker(clock)
            pool = ct.Pool.of(failing(ConnectionResetError()), OTHER)
            await ask_often(executor, pool, 5)
            clock.now = 31
            await executor.run([ct.Call("ask")], pool, budget=ct.Budget(seconds=0.0001))
            (seen,) = await executor.run([ct.Call("ask", {"well": True})], pool)
            return str(seen.content)

    assert run_virtually(run()) == "well"


class Slow(ct.Model):
    """Answers after a while, or never."""

    seconds = 0.0

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        await asyncio.sleep(Slow.seconds)
        return ct.Reply("yes")


@pytest.mark.parametrize(("limit", "state"), [(5.0, "open"), (0.5, "closed")])
def test_time_outs_of_a_model_count_once_it_had_most_of_its_usual_time(limit: float, state: str) -> None:
    @ct.agent(timeout=None)
    async def ask(*, ctx: ct.Context) -> str:
        """Ask."""
        return (await ctx.model().chat("?")).text

    async def work() -> str:
        other = ct.ModelSpec("other/model", Slow)
        pool = ct.Pool.of(ask, ct.ModelSpec("slow/model", Slow), other).bind(default="slow/model")
        async with Executor() as executor:
            Slow.seconds = 2.0
            await executor.run([ct.Call("ask", {}) for _ in range(3)], pool)
            Slow.seconds = 60.0
            await executor.run([ct.Call("ask", {}) for _ in range(5)], pool, budget=ct.Budget(seconds=limit))
            return executor.bindings.provider("slow").breaker.state

    assert run_virtually(work()) == state
