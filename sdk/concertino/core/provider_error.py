"""How a remote failure may be retried: the classes of failures, and the exception with which a plugin names one."""

from __future__ import annotations

import enum

from .usage import Usage


class FailureClass(enum.StrEnum):
    """How a failed attempt may be treated: the rows of the table in `docs/explanation/statuses-and-failures.md`."""

    CALLER = "caller"
    """The request itself is wrong (400, 404, 413, 422): never repeated."""
    AUTH = "auth"
    """Key or quota (401, 402, 403): never repeated, and the provider is switched off for the run."""
    THROTTLED = "throttled"
    """429, 529, 503 with Retry-After: repeated when the caller may repeat it."""
    NOT_EXECUTED = "not_executed"
    """The request never arrived (DNS, connection refused, TLS): always safe to repeat."""
    MAYBE_EXECUTED = "maybe_executed"
    """Reset or time-out after sending, 500, 502, 504: repeated only for retry-safe calls."""
    CUT_OFF = "cut_off"
    """The reply broke off after its first token: it is paid for, and not repeated."""
    BUG = "bug"
    """The plugin raised another exception: not repeated."""


class ProviderError(Exception):
    """Raised by a tool, agent or model to say *how* a remote call failed.

    Plugins may raise any exception; this one only adds knowledge that decides about retries.

    Args:
        message: what happened, for a person and for the orchestrator.
        failure: the row of the retry table that applies.
        retry_after: seconds that the server asked to wait, if it did.
        status: the HTTP status, if there was one.
        usage: what the failed attempt consumed, where that is known; it is charged.
    """

    def __init__(
        self,
        message: str,
        *,
        failure: FailureClass = FailureClass.MAYBE_EXECUTED,
        retry_after: float | None = None,
        status: int | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message)
        self.failure = failure
        self.retry_after = retry_after
        self.status = status
        self.usage = usage

    @classmethod
    def from_http(cls, status: int, message: str = "", retry_after: float | None = None) -> ProviderError:
        """The failure class of an HTTP status, as the retry table sorts them."""
        if status in (401, 402, 403):
            failure = FailureClass.AUTH
        elif status in (429, 529) or (status == 503 and retry_after is not None):
            # With Retry-After, a 503 means "later"; without, the request may have been executed.
            failure = FailureClass.THROTTLED
        elif status >= 500 or status in (408, 425):
            failure = FailureClass.MAYBE_EXECUTED
        else:
            failure = FailureClass.CALLER
        return cls(message or f"HTTP {status}", failure=failure, retry_after=retry_after, status=status)
