"""The wording of every failure that the executor itself observes: short, stable, and a direction for the model.

A cause has at most 200 characters and never links, tracebacks or host paths: what was wrong, where, what was expected,
what was given, and what is near. Tests pin these texts; models are trained on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from concertino.core.known_secrets import without_secrets
from concertino.core.observation import CallFailed, ErrorInfo
from concertino.core.provider_error import FailureClass
from concertino.schema import explain, near_names

if TYPE_CHECKING:
    from concertino.schema import Validator, Violation
    from concertino.text.json import ReadingError

    from .retry import Failure

LIMIT = 200
"""Characters of a cause."""


def shorten(text: str, limit: int = LIMIT) -> str:
    """One line of at most `limit` characters, without secrets: of one that is cut, nothing would tell the rest."""
    text = " ".join(without_secrets(text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def unknown_name(name: str, known: Iterable[str]) -> ErrorInfo:
    """No member has this name."""
    known = list(known)
    near = near_names(name, known)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known[:6]) or 'none'}"
    return ErrorInfo(
        "unknown_name",
        shorten(f"no tool or agent is called {name!r}; {hint}"),
        expected="a name from the list",
        got=shorten(name, 80),
        near=tuple(near),
    )


def bad_json(error: ReadingError) -> ErrorInfo:
    """The arguments are not one JSON object."""
    return ErrorInfo("bad_json", shorten(str(error)), expected="one JSON object", got=shorten(error.snippet, 80))


def invalid_arguments(violations: tuple[Violation, ...], validator: Validator) -> ErrorInfo:
    """The arguments break the published schema."""
    first = violations[0]
    return ErrorInfo(
        "invalid_arguments",
        shorten(explain(violations, validator, limit=LIMIT).replace("\n", "; ")),
        first.pointer,
        first.expected,
        first.got,
    )


def refused_arguments(text: str) -> ErrorInfo:
    """The arguments are no plain JSON data, or the plugin's own conversion refused them."""
    return ErrorInfo("invalid_arguments", shorten(text))


def failed(failure: Failure, attempts: int, *, retry_safe: bool) -> ErrorInfo:
    """The last attempt failed."""
    times = f" (after {attempts} attempts)" if attempts > 1 else ""
    text = failure.message + times
    match failure.kind:
        case FailureClass.BUG:
            return ErrorInfo("raised", shorten(text))
        case FailureClass.CALLER | FailureClass.AUTH:
            return ErrorInfo("rejected", shorten(text))
        case FailureClass.CUT_OFF:
            return ErrorInfo("truncated", shorten(text), retryable=True)
        case FailureClass.MAYBE_EXECUTED if not retry_safe:
            return ErrorInfo("unknown_outcome", shorten(f"{text}; it may have been executed, so it was not repeated"))
        case _:
            return ErrorInfo("unavailable", shorten(text), retryable=True)


def throttled_too_long(failure: Failure, attempts: int) -> ErrorInfo:
    """The provider throttled it until the deadline left no time for another attempt."""
    times = f"{attempts} attempts" if attempts > 1 else "1 attempt"
    return ErrorInfo("deadline", shorten(f"throttled until its deadline ({times}): {failure.message}"), retryable=True)


def bad_reply(text: str) -> ErrorInfo:
    """A model's reply breaks the schema that it was asked for."""
    return ErrorInfo("bad_reply", shorten(f"the reply breaks the schema that was asked for: {text}"), retryable=True)


def inner_failure(error: CallFailed) -> ErrorInfo:
    """An agent ended because a call of its own failed: the same code, so that the real cause is seen."""
    inner = error.observation.error
    code = inner.code if inner else "raised"
    return ErrorInfo(code, shorten(str(error)), retryable=bool(inner and inner.retryable))


def timed_out(seconds: float, limit: float | None, *, nested: bool = False) -> ErrorInfo:
    """The deadline passed while it ran: its own, its caller's, or the run's."""
    whose = "its caller's time is over" if nested else "the run's time is over"
    # asyncio fires a timer up to one tick of its clock early.
    if limit is not None and seconds >= limit - 0.01:
        whose = f"its limit is {limit:g} s"
    return ErrorInfo("deadline", f"no result after {seconds:.2f} s; {whose}", retryable=True)


def timed_out_waiting() -> ErrorInfo:
    """The deadline passed before its turn came."""
    return ErrorInfo(
        "queue_deadline", "the deadline passed while it waited for its turn; it was not run", retryable=True
    )


def dependency_failed(call_id: str, status: str) -> ErrorInfo:
    """A predecessor did not succeed."""
    return ErrorInfo("dependency_failed", f"call {call_id!r}, which it depends on, ended with {status}; it was not run")


def budget_exhausted(what: str) -> ErrorInfo:
    """The budget does not cover it."""
    return ErrorInfo("budget_exhausted", f"the remaining budget does not cover it ({what}); it was not run")


def breaker_open(provider: str, seconds: float) -> ErrorInfo:
    """The breaker of the provider is open."""
    text = f"{provider!r} failed too often and is not asked for another {seconds:.0f} s; use another member"
    return ErrorInfo("breaker_open", shorten(text), retryable=True)


def quarantined(name: str, why: str) -> ErrorInfo:
    """The member misbehaved."""
    return ErrorInfo("quarantined", shorten(f"{name!r} is out of use: {why}; use another member"))


def overloaded(limit: int) -> ErrorInfo:
    """Too many calls wait."""
    return ErrorInfo("overloaded", f"more than {limit} calls wait already; it was not run", retryable=True)


def duplicate(call_id: str) -> ErrorInfo:
    """The same call was made before."""
    return ErrorInfo(
        "duplicate", f"the same call was made before as {call_id!r}; use its result, or change the arguments"
    )


def cancelled() -> ErrorInfo:
    """The run was cancelled."""
    return ErrorInfo("cancelled", "the run was cancelled")


def denied(text: str) -> ErrorInfo:
    """A hook refused it."""
    return ErrorInfo("denied", shorten(f"refused: {text}" if text else "refused by a hook"))


def bad_result(text: str) -> ErrorInfo:
    """The plugin's result cannot be used."""
    return ErrorInfo("bad_result", shorten(text))


def in_doubt() -> ErrorInfo:
    """A crash left it open whether the call was executed."""
    text = "the process ended while it ran; it may have been executed, and may not be repeated"
    return ErrorInfo("unknown_outcome", text)
