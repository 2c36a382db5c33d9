"""Transport retries: which failed attempt may be repeated, how often, and after how long.

These are the retries *inside* a call. Repeating with other arguments, or asking another member, is up to the
orchestrator, which sees an observation. The table (also in `docs/explanation/statuses-and-failures.md`):

    failure          attempts   repeated                     counts against the provider
    caller               1      never                        no
    auth                 1      never                        opens the breaker at once
    throttled            5      if retry-safe                no; halves the provider's gate
    not_executed         3      always                       yes
    maybe_executed       3      only if retry-safe           yes
    cut_off              1      never: tokens have flowed    yes
    bug                  1      never                        no
    our deadline         1      never                        models, after 80 % of their usual time

Waiting times come from tenacity: full jitter, 0.5 s doubling up to 20 s; a server's Retry-After wins. No wait crosses
the deadline. A provider's retry budget (10 % of its calls + 10) ends retrying during an outage; throttled calls have
one of their own (their number + 50), since a provider that says "later" is up.
"""

from __future__ import annotations

import asyncio
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from concertino.core.known_secrets import without_secrets
from concertino.core.provider_error import FailureClass, ProviderError

from .isolation.threads import Foreign

if TYPE_CHECKING:
    from tenacity.wait import wait_base

ATTEMPTS: dict[FailureClass, int] = {
    FailureClass.CALLER: 1,
    FailureClass.AUTH: 1,
    FailureClass.THROTTLED: 5,
    FailureClass.NOT_EXECUTED: 3,
    FailureClass.MAYBE_EXECUTED: 3,
    FailureClass.CUT_OFF: 1,
    FailureClass.BUG: 1,
}
"""Attempts per failure class, the first included."""

COUNTS_AGAINST_BREAKER = frozenset(
    {FailureClass.AUTH, FailureClass.NOT_EXECUTED, FailureClass.MAYBE_EXECUTED, FailureClass.CUT_OFF}
)
"""Failures that say something about the provider, and not only about one call."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt, classified."""

    kind: FailureClass
    message: str
    retry_after: float | None = None


def classify(error: BaseException) -> Failure:
    """The row of the table for an exception, by type: `ProviderError` says it itself."""
    text = without_secrets(_describe(error))
    if isinstance(error, ProviderError):
        return Failure(error.failure, text, error.retry_after)
    # Before their base class: a connection that was refused has certainly executed nothing.
    if isinstance(error, (ConnectionRefusedError, socket.gaierror)):
        return Failure(FailureClass.NOT_EXECUTED, text)
    if isinstance(error, (ConnectionError, asyncio.IncompleteReadError)):
        return Failure(FailureClass.MAYBE_EXECUTED, text)
    module = type(error).__module__
    # By the name of the module: aiohttp is not imported for tools that do not use it.
    if module.startswith("aiohttp"):
        return _classify_aiohttp(error, text)
    return Failure(FailureClass.BUG, text)


def _classify_aiohttp(error: BaseException, text: str) -> Failure:
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorError):
        return Failure(FailureClass.NOT_EXECUTED, text)
    if isinstance(error, aiohttp.ClientResponseError):
        after = _retry_after(error.headers)
        known = ProviderError.from_http(error.status, text, after)
        return Failure(known.failure, text, after)
    if isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, aiohttp.ClientPayloadError)):
        return Failure(FailureClass.MAYBE_EXECUTED, text)
    return Failure(FailureClass.BUG, text)


def _retry_after(headers: Any) -> float | None:
    """Seconds that the header asks for, given as a number or as a date."""
    from email.utils import parsedate_to_datetime

    # Without the header, the text is "None": neither a number nor a date.
    text = str((headers or {}).get("Retry-After"))
    try:
        return float(text)
    except (TypeError, ValueError):
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _describe(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:  # a plugin's __str__ may do anything
        text = "(its text cannot be read)"
    if isinstance(error, (ProviderError, Foreign)) and text:
        return text
    name = type(error).__name__
    return f"{name}: {text}" if text else name


class RetryBudget:
    """How many retries a provider may still cause; by default 10 more than a tenth of its calls."""

    __slots__ = ("left", "per_call")

    def __init__(self, first: float = 10.0, per_call: float = 0.1) -> None:
        self.left = first
        self.per_call = per_call

    def called(self) -> None:
        """A call began."""
        self.left += self.per_call

    def take(self) -> bool:
        """Use one retry, if there is one."""
        if self.left < 1:
            return False
        self.left -= 1
        return True


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Waiting times between attempts, in seconds; `attempts` may lower the table's numbers for everything."""

    base: float = 0.5
    longest: float = 20.0
    attempts: int = 5

    def wait(self) -> wait_base:
        """The tenacity strategy: full jitter, doubling."""
        from tenacity.wait import wait_random_exponential

        return wait_random_exponential(multiplier=self.base, max=self.longest)

    def delay(self, failure: Failure, attempt: int, *, retry_safe: bool) -> float | None:
        """Seconds before the next attempt, or None if there is to be none.

        Args:
            failure: what happened.
            attempt: number of the attempt that failed, from 1.
            retry_safe: repeating a call that may have been executed does no harm.
        """
        if attempt >= min(ATTEMPTS[failure.kind], self.attempts):
            return None
        if failure.kind is not FailureClass.NOT_EXECUTED and not retry_safe:
            return None
        if failure.retry_after is not None:
            return max(0.0, failure.retry_after)
        # Imported at the first retry, which most runs never come to.
        import tenacity

        # tenacity only computes the wait: it knows neither our deadline nor a provider's retry budget.
        state = tenacity.RetryCallState(tenacity.Retrying(), None, (), {})
        state.attempt_number = attempt
        return float(self.wait()(state))
