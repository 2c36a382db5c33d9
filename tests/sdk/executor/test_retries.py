"""The retry table, cell by cell, against a server that counts what it executed (bar E7)."""

from __future__ import annotations

import asyncio
import random
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import concertino as ct
import pytest
from concertino.executor import BreakerPolicy, Executor, RetryPolicy
from concertino.executor.retry import Failure, RetryBudget, classify

from .scripted_server import ScriptedServer, scripted_server

pytest.importorskip("aiohttp", reason="the retry table is tested over HTTP, with aiohttp as server and client")

QUICK = RetryPolicy(base=0.001)
NEVER_OPENS = BreakerPolicy(consecutive=10**9, minimum=10**9)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


async def ask(server: ScriptedServer, path: str, *, retry_safe: bool, times: int = 1) -> list[ct.Observation]:
    tool = server.tool(retry_safe=retry_safe)
    async with Executor(retries=QUICK, breaker=NEVER_OPENS) as executor:
        return await executor.run([ct.Call("fetch", {"path": path})] * times, ct.Pool.of(tool))


TABLE = [
    # path, attempts and code when a repeat is safe, and when it is not
    *((f"/status/{code}", 1, "rejected", 1, "rejected") for code in (400, 404, 409, 413, 422)),
    *((f"/status/{code}", 1, "rejected", 1, "rejected") for code in (401, 402, 403)),
    *((f"/status/{code}", 5, "unavailable", 1, "unavailable") for code in (429, 529)),
    ("/after/0.001/503", 5, "unavailable", 1, "unavailable"),
    *((f"/status/{code}", 3, "unavailable", 1, "unknown_outcome") for code in (408, 425, 500, 502, 503, 504)),
    ("/reset", 3, "unavailable", 1, "unknown_outcome"),
]


@pytest.mark.parametrize(("path", "safe", "safe_code", "unsafe", "unsafe_code"), TABLE, ids=[row[0] for row in TABLE])
async def test_every_cell_of_the_table_is_executed_as_often_as_it_says(
    path: str, safe: int, safe_code: str, unsafe: int, unsafe_code: str
) -> None:
    for retry_safe, executed, code in ((True, safe, safe_code), (False, unsafe, unsafe_code)):
        async with scripted_server() as server:
            (seen,) = await ask(server, path, retry_safe=retry_safe)
            assert seen.error is not None
            assert (seen.status, seen.error.code) == ("EXEC_ERR", code)
            assert seen.attempts == server.executed[path] == executed
            assert seen.error.retryable == (code == "unavailable")


@pytest.mark.parametrize("retry_safe", [True, False])
async def test_a_request_that_never_arrived_is_repeated_whether_safe_or_not(retry_safe: bool) -> None:
    async with scripted_server() as server:
        (seen,) = await ask(server, f"http://127.0.0.1:{free_port()}/", retry_safe=retry_safe)
        assert (seen.attempts, seen.error and seen.error.code) == (3, "unavailable")


async def test_a_failure_that_passes_is_invisible_but_for_the_attempts() -> None:
    async with scripted_server() as server:
        (seen,) = await ask(server, "/heal/2/500", retry_safe=True)
        assert (seen.status, seen.content, seen.attempts) == ("OK", "well", 3)


async def test_the_server_s_own_waiting_time_wins_over_ours() -> None:
    async with scripted_server() as server:
        await ask(server, "/after/0.2/429", retry_safe=True)
        gaps = [second - first for first, second in zip(server.times, server.times[1:], strict=False)]
        assert len(gaps) == 4
        assert all(0.18 <= gap < 1 for gap in gaps)  # at most +10 % is promised; the rest is for a busy machine


@pytest.mark.slow
async def test_during_an_outage_retries_are_a_tenth_of_the_calls_and_ten_more() -> None:
    async with scripted_server() as server:
        observations = await ask(server, "/status/500", retry_safe=True, times=200)
        assert {o.status for o in observations} == {"EXEC_ERR"}
        assert sum(server.executed.values()) <= 1.1 * 200 + 10


async def test_a_refused_key_switches_the_provider_off_for_the_run_only() -> None:
    async with scripted_server() as server:
        pool = ct.Pool.of(server.tool(name="acme/fetch"))
        async with Executor(breaker=BreakerPolicy(open_for=0)) as executor:
            scope = executor.open(pool)
            plan = ct.Plan([ct.Call("fetch", {"path": "/status/401"})])
            await executor.run_plan(plan, scope)
            (again,) = await executor.run_plan(plan, scope)
            assert (again.error and again.error.code, again.attempts) == ("quarantined", 0)
            await executor.run_plan(plan, executor.open(pool))
        assert server.executed["/status/401"] == 2


# -- the parts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("x"), ct.FailureClass.BUG),
        (TimeoutError(), ct.FailureClass.BUG),
        (ConnectionRefusedError(), ct.FailureClass.NOT_EXECUTED),
        (socket.gaierror(), ct.FailureClass.NOT_EXECUTED),
        (ConnectionResetError(), ct.FailureClass.MAYBE_EXECUTED),
        (BrokenPipeError(), ct.FailureClass.MAYBE_EXECUTED),
        (asyncio.IncompleteReadError(b"", 3), ct.FailureClass.MAYBE_EXECUTED),
        (ct.ProviderError("x", failure=ct.FailureClass.CALLER), ct.FailureClass.CALLER),
    ],
    ids=lambda value: getattr(value, "value", type(value).__name__),
)
def test_exceptions_are_classified_by_type(error: BaseException, kind: ct.FailureClass) -> None:
    assert classify(error).kind is kind


def test_a_date_in_retry_after_counts_as_the_seconds_until_then() -> None:
    import aiohttp
    from multidict import CIMultiDict, CIMultiDictProxy
    from yarl import URL

    when = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    info = aiohttp.RequestInfo(URL("http://x"), "GET", CIMultiDictProxy(CIMultiDict()), URL("http://x"))
    error = aiohttp.ClientResponseError(
        info, (), status=503, headers=CIMultiDictProxy(CIMultiDict({"Retry-After": when}))
    )
    failure = classify(error)
    assert failure.kind is ct.FailureClass.THROTTLED
    assert failure.retry_after == pytest.approx(100, abs=5)


def test_waiting_times_are_jittered_double_and_never_pass_their_longest() -> None:
    random.seed(1)
    policy = RetryPolicy(base=0.5, longest=20, attempts=5)
    failure = Failure(ct.FailureClass.THROTTLED, "slower")
    for attempt in (1, 2, 3, 4):
        delays = [policy.delay(failure, attempt, retry_safe=True) or 0.0 for _ in range(300)]
        assert min(delays) >= 0
        assert max(delays) <= min(20, 0.5 * 2**attempt)
        assert len(set(delays)) > 250
    assert policy.delay(failure, 5, retry_safe=True) is None


def test_a_policy_may_lower_the_attempts_but_not_raise_them() -> None:
    failure = Failure(ct.FailureClass.MAYBE_EXECUTED, "lost")
    assert RetryPolicy(attempts=1).delay(failure, 1, retry_safe=True) is None
    assert RetryPolicy(attempts=50).delay(failure, 3, retry_safe=True) is None


def test_a_retry_budget_is_ten_and_a_tenth_of_the_calls() -> None:
    budget = RetryBudget()
    for _ in range(100):
        budget.called()
    taken = 0
    while budget.take():
        taken += 1
    assert taken in (19, 20)
