"""Checks of what a member does when it is called, through the real executor, with the arguments that it gives.

Every check makes its own executor, so that no state of one call (a breaker, a quarantine) reaches another check.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from concertino.core.model import ChatRequest, Model, Reply
from concertino.core.observation import Observation, Status
from concertino.core.plan import Call, Plan
from concertino.executor import Executor, Limits
from concertino.members.specs import AgentSpec
from concertino.pool.pool import Pool

from .calling import run_call, with_member, with_models
from .check import CheckFailed, CheckSkipped, MemberSubject
from .leftovers import LONGEST_STALL, PATIENCE, Leftovers

AT_ONCE = 50
"""Calls that are made side by side."""
DEADLINE = 0.05
"""Seconds that a slow call is given."""
_REPORTING = 0.1
"""Seconds after which a stall is known."""
_MISTAKES = (
    "AttributeError",
    "IndexError",
    "KeyError",
    "NameError",
    "RecursionError",
    "TypeError",
    "UnboundLocalError",
)
_EXITS = ("GeneratorExit", "KeyboardInterrupt", "StopIteration", "SystemExit")


async def examples_give_the_expected_results(subject: MemberSubject) -> None:
    """Each example runs OK and gives the expected result, as JSON and as its output schema says."""
    for arguments, expected in _examples(subject):
        _expect(await _run(subject, arguments), arguments, expected)


async def results_are_not_cut(subject: MemberSubject) -> None:
    """Results of examples are short enough to be shown whole."""
    for arguments, _ in _examples(subject):
        seen = await _run(subject, arguments)
        if seen.truncated:
            raise CheckFailed(
                f"{arguments} gives {seen.truncated:,} characters more than max_chars={subject.spec.max_chars:,}, "
                "and they are cut out of the middle; return less, or offer a parameter that limits it"
            )


async def calls_at_once_are_independent(subject: MemberSubject) -> None:
    """Calls that run at once give what they give one by one."""
    given = _examples(subject)
    examples = [given[number % len(given)] for number in range(AT_ONCE)]
    plan = Plan([Call(subject.spec.name, dict(arguments)) for arguments, _ in examples])
    pool = with_member(subject.make_pool(), subject.spec)
    async with Executor() as executor:
        seen = await executor.run(plan, pool, question=subject.question)
    for observation, (arguments, expected) in zip(seen, examples, strict=True):
        try:
            _expect(observation, arguments, expected)
        except CheckFailed as failed:
            raise CheckFailed(
                f"among {AT_ONCE} calls at once, {failed}; keep no state between calls, and do not block the loop"
            ) from failed


async def the_same_arguments_give_the_same_result(subject: MemberSubject) -> None:
    """A member that only reads gives the same result for the same arguments."""
    if subject.nondeterministic:
        raise CheckSkipped(f"declared as not deterministic: {subject.nondeterministic}")
    if subject.spec.writes:
        raise CheckSkipped("it writes, so a second call may see what the first has done")
    for arguments, _ in _examples(subject):
        first, second = [(await _run(subject, arguments)).content for _ in range(2)]
        if first != second:
            raise CheckFailed(
                f"{arguments} gave {_short(first)}, then {_short(second)}; keep no state between calls, or declare "
                "why results differ with `nondeterministic`"
            )


async def a_call_does_not_block_the_event_loop(subject: MemberSubject) -> None:
    """An asynchronous call leaves the event loop to others."""
    if not subject.spec.is_async or subject.spec.isolation != "loop":
        raise CheckSkipped("it does not run on the event loop")
    for arguments, _ in _examples(subject):
        async with Executor(Limits(stall=LONGEST_STALL)) as executor:
            pool = with_member(subject.make_pool(), subject.spec)
            await executor.run([Call(subject.spec.name, arguments)], pool, question=subject.question)
            # The watchdog reports through the loop, so only a moment after the stall has ended.
            await asyncio.sleep(_REPORTING)
            stalls = executor.runtime.misbehaviour.stalls
        if stalls:
            raise CheckFailed(
                f"{arguments} blocked the event loop for {stalls[0].seconds:.2f} s at {stalls[0].where}; await "
                "instead, write a plain `def`, or declare isolation='thread'"
            )


async def its_cost_is_reported_within_its_bound(subject: MemberSubject) -> None:
    """What a call costs is reported, is not negative, and stays below what its spec lets a budget reserve."""
    for arguments, _ in _examples(subject):
        usage = (await _run(subject, arguments)).usage
        if usage.calls < 1 or min(usage) < 0:
            raise CheckFailed(f"{arguments} reports {usage.to_json()}; a bill holds no negative amounts")
        most = subject.spec.cost.upper_bound(subject.spec.timeout)
        # An agent's bill is its calls', which no spec can bound; 1e-9, because sums of floats are inexact.
        if not isinstance(subject.spec, AgentSpec) and usage.usd > most + 1e-9:
            raise CheckFailed(
                f"{arguments} bills $ {usage.usd:g}, and its spec announces at most $ {most:g}; set Cost(max_usd=...)"
            )


async def a_failure_is_explained(subject: MemberSubject) -> None:
    """A call that cannot work is an EXEC_ERR that says why, and no accident of the code."""
    for arguments in subject.given("failing"):
        seen = await _run(subject, arguments)
        if seen.error is None or seen.status is not Status.EXEC_ERR:
            raise CheckFailed(f"{arguments} ended as {seen.status}; expected an EXEC_ERR: raise what went wrong")
        kind, _, text = seen.error.message.partition(": ")
        if seen.error.code == "raised" and (kind in (*_MISTAKES, *_EXITS) or not text.strip()):
            raise CheckFailed(
                f"{arguments} ended with {seen.error.message!r}; raise ValueError or ProviderError with a text that "
                "says what the orchestrator can do instead"
            )


async def its_timeout_leaves_room(subject: MemberSubject) -> None:
    """Its examples need at most half of its timeout, so that a busy machine does not turn them into failures."""
    timeout = subject.spec.timeout
    if timeout is None:
        raise CheckSkipped("it has no timeout of its own")
    for arguments, _ in _examples(subject):
        seconds = (await _run(subject, arguments)).usage.seconds
        if seconds > timeout / 2:
            raise CheckFailed(f"{arguments} took {seconds:.2f} s, its timeout is {timeout:g} s; declare a longer one")


async def a_deadline_is_honoured(subject: MemberSubject) -> None:
    """A slow call ends soon after its deadline, and nothing of it keeps running."""
    arguments, pool = _slow_call(subject)
    spec = subject.spec.with_(timeout=DEADLINE)
    await _warm_up(subject)
    before = Leftovers()
    async with Executor() as executor:
        started = time.monotonic()
        (seen,) = await executor.run([Call(spec.name, arguments)], with_member(pool, spec), question=subject.question)
        seconds = time.monotonic() - started
        noted = executor.runtime.misbehaviour
        given_up = len(noted.abandoned_calls) + noted.closed_calls
    if seen.status is not Status.TIMEOUT and subject.slow is None:
        raise CheckFailed(
            f"its models never answered, and {arguments} ended as {seen.status} after {seconds:.2f} s; let "
            "CancelledError and CallFailed pass (an `except BaseException` takes both)"
        )
    if seen.status is not Status.TIMEOUT:
        raise CheckFailed(
            f"with {DEADLINE:g} s for {arguments} it ended as {seen.status} after {seconds:.2f} s; give `slow` "
            "arguments that take at least a second"
        )
    if given_up or seconds > PATIENCE:
        raise CheckFailed(
            f"it did not stop when {arguments} was cancelled after {DEADLINE:g} s; let CancelledError pass"
        )
    await before.assert_none("after a deadline")


async def a_cancelled_call_leaves_nothing_behind(subject: MemberSubject) -> None:
    """A cancelled call leaves no task, thread or process behind."""
    arguments, pool = _slow_call(subject)
    await _warm_up(subject)
    before = Leftovers()
    running = asyncio.ensure_future(run_call(subject.spec, arguments, pool=pool, question=subject.question))
    await asyncio.sleep(DEADLINE)
    running.cancel()
    # `await running` would raise the cancellation here and end the check.
    await asyncio.wait({running})
    await before.assert_none("after a cancelled call")


async def a_finished_call_leaves_nothing_behind(subject: MemberSubject) -> None:
    """A finished call leaves no task, thread or process behind."""
    examples = _examples(subject)
    await _warm_up(subject)
    before = Leftovers()
    for arguments, _ in examples:
        await _run(subject, arguments)
    await before.assert_none("after its examples")


CALL_CHECKS = (
    examples_give_the_expected_results,
    results_are_not_cut,
    calls_at_once_are_independent,
    the_same_arguments_give_the_same_result,
    a_call_does_not_block_the_event_loop,
    its_cost_is_reported_within_its_bound,
    a_failure_is_explained,
    its_timeout_leaves_room,
    a_deadline_is_honoured,
    a_cancelled_call_leaves_nothing_behind,
    a_finished_call_leaves_nothing_behind,
)


class _Hanging(Model):
    """Never answers."""

    async def chat(self, request: ChatRequest) -> Reply:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


def _slow_call(subject: MemberSubject) -> tuple[Mapping[str, Any], Pool]:
    """A call that takes long: by its `slow` arguments, or an agent's first example with models that never answer."""
    pool = subject.make_pool()
    roles = subject.spec.models if isinstance(subject.spec, AgentSpec) else ()
    if subject.slow is None and subject.examples and (roles or pool.models):
        return subject.examples[0][0], with_models(pool, roles, _Hanging)
    return subject.given("slow"), pool


def is_accident(observation: Observation) -> bool:
    """Whether a call ended with an exception that only a mistake in its code raises."""
    error = observation.error
    return error is not None and error.code == "raised" and error.message.partition(":")[0] in (*_MISTAKES, *_EXITS)


async def _run(subject: MemberSubject, arguments: Mapping[str, Any]) -> Observation:
    return await run_call(subject.spec, arguments, pool=subject.make_pool(), question=subject.question)


async def _warm_up(subject: MemberSubject) -> None:
    """Let libraries start what they start once."""
    for arguments, _ in subject.examples[:1]:
        await _run(subject, arguments)


def _examples(subject: MemberSubject) -> list[tuple[Mapping[str, Any], Any]]:
    return list(subject.given("examples"))


def _expect(seen: Observation, arguments: Mapping[str, Any], expected: Any) -> None:
    if not seen.ok:
        message = seen.error.message if seen.error else ""
        raise CheckFailed(f"{arguments} ended as {seen.status}: {message}")
    if callable(expected):
        try:
            good = expected(seen.content)
        except AssertionError as error:
            raise CheckFailed(f"{arguments} gave {_short(seen.content)}: {error}") from error
        # None is accepted: the function may use `assert` and return nothing.
        if good is False:
            raise CheckFailed(f"{arguments} gave {_short(seen.content)}, which its example does not accept")
    elif seen.content != expected:
        raise CheckFailed(f"{arguments} gave {_short(seen.content)}; expected {_short(expected)}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:119]}…"
