"""Exceptions that reach the person who runs concertino, and the ones a plugin may raise.

A *call* that fails is never an exception: it is an `Observation` that the orchestrator reads. Exceptions are for what
no orchestrator can repair: a wrong declaration, a wrong pool file, a damaged trace. Each message says what was given,
what was expected, where, and the next step.

    ConcertinoError
    ├── UsageError                  the caller's input is wrong; the CLI exits 2
    │   ├── SpecError               a tool, agent or model is declared wrongly
    │   ├── PoolError               unknown member, name clash, unreadable pool file
    │   ├── PlanError               duplicate id, cycle, reference to an unknown call
    │   └── BudgetError             a budget that no call fits, or that cannot be enforced
    ├── PluginError                 an installed distribution is broken
    ├── RunError                    a run could not go on; its trace is intact; the CLI exits 1
    ├── TraceError                  a trace cannot be written, read or resumed
    └── CallFailed                  raised in a call: somebody needed did not answer, or it cannot be done
    ProviderError                   raised *by plugins*: says how a remote failure may be retried

    try:
        run = await orchestrator.run(question, pool=pool)
    except concertino.UsageError as error:      # nothing has run yet
        ...
    except concertino.RunError as error:        # error.run holds what was done before
        ...
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._observation import Observation
    from ._run import Run
    from ._usage import Usage


class ConcertinoError(Exception):
    """Base of every exception that concertino raises itself."""


class UsageError(ConcertinoError):
    """The caller gave something that cannot work; nothing has run."""


class SpecError(UsageError):
    """A tool, agent or model is declared in a way that cannot work."""


class PoolError(UsageError):
    """A pool cannot be built, read or changed as asked."""


class PlanError(UsageError):
    """A plan is not a directed acyclic graph of known calls."""


class BudgetError(UsageError):
    """A budget that no call fits, or that cannot be enforced on this pool."""


class PluginError(ConcertinoError):
    """An installed distribution cannot be used."""


class RunError(ConcertinoError):
    """A run could not go on. `run` holds everything that happened before."""

    def __init__(self, message: str, run: Run | None = None) -> None:
        super().__init__(message)
        self.run = run


class TraceError(ConcertinoError):
    """A trace cannot be written, read, resumed or replayed."""


class CallFailed(ConcertinoError):
    """Inside an agent: a call it made through its `Context` did not succeed. `observation` says why.

    An agent that lets it pass ends with the same error code, so the orchestrator sees the real cause. A tool or agent
    may raise one of its own, with `because`.
    """

    def __init__(self, observation: Observation) -> None:
        error = observation.error
        text = error.message if error else str(observation.status)
        super().__init__(f"{observation.name}: {text}" if observation.name else text)
        self.observation = observation

    @classmethod
    def because(cls, message: str, *, code: str = "failed", content: Any = None, retryable: bool = False) -> CallFailed:
        """What a tool or agent raises to end its own call with EXEC_ERR, a code of its own, and what there is to show.

            raise ct.CallFailed.because("exit status 1", code="script_failed", content={"stderr": text})

        Args:
            message: what went wrong and what the orchestrator can do about it.
            code: a word for programs, in lower_snake_case.
            content: what there is to show nevertheless: plain JSON data.
            retryable: whether the very same call may succeed later.
        """
        from ._observation import ErrorInfo, Observation, Status

        return cls(Observation("", "", Status.EXEC_ERR, content, ErrorInfo(code, message, retryable=retryable)))


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
    """The plugin raised something of its own: not repeated."""


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
            failure = FailureClass.THROTTLED
        elif status >= 500 or status in (408, 425):
            failure = FailureClass.MAYBE_EXECUTED
        else:
            failure = FailureClass.CALLER
        return cls(message or f"HTTP {status}", failure=failure, retry_after=retry_after, status=status)
