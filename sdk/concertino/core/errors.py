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
    ├── RunError                    a run could not continue; its trace is intact; the CLI exits 1
    ├── TraceError                  a trace cannot be written, read or resumed
    └── CallFailed                  raised in a call: a model or member did not answer, or it cannot be done
    ProviderError                   raised *by plugins*: says how a remote failure may be retried

    try:
        run = await orchestrator.run(question, pool=pool)
    except concertino.UsageError as error:      # nothing has run yet
        ...
    except concertino.RunError as error:        # error.run holds what was done before
        ...
"""

from __future__ import annotations


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


class TraceError(ConcertinoError):
    """A trace cannot be written, read, resumed or replayed."""
