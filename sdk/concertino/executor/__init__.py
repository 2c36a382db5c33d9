"""The executor: runs plans of calls, in parallel, inside a budget, with one observation per call.

executor     plans over pools, for runs           execution       the one lifecycle of calls and requests to models
plan_run     one plan: edges, order, ends         call            a call of a tool or agent
validation   arguments, results, replies          model_call      a request to a model
bindings     members made ready, their gates      bound           how a member is invoked
ladder       how an execution is stopped          descendants     what must not outlive an execution
gates        bounded concurrency                  ledger          the budget
retry        which failure is repeated            breaker         when not to ask a provider
routes       which model of a router is asked     context         what a call is given
content      results as plain data                error_messages  the wording of every failure
hooks        before and after a call              scope           what the calls of a run share
runtime      what all executions share            turns           who may work in a pass of the event loop
isolation/   threads, processes, orphans, stalls  outward/        members for other programs
"""

from typing import TYPE_CHECKING, Any

from .breaker import BreakerPolicy
from .executor import Executor
from .limits import Limits
from .plan_run import PlanRun
from .retry import RetryPolicy
from .scope import Duplicates, Memory, Scope

if TYPE_CHECKING:
    from concertino.core.bounded_pipe import BoundedLines, TooMuchOutput, run_bounded
    from concertino.core.child_environment import child_environment, only_child_environment

    from .isolation.child_process import ChildProcess, awaitable

__all__ = [
    "BoundedLines",
    "BreakerPolicy",
    "ChildProcess",
    "Duplicates",
    "Executor",
    "Limits",
    "Memory",
    "PlanRun",
    "RetryPolicy",
    "Scope",
    "TooMuchOutput",
    "awaitable",
    "child_environment",
    "only_child_environment",
    "run_bounded",
]

_HOME_OF = {
    "BoundedLines": "concertino.core.bounded_pipe",
    "ChildProcess": "concertino.executor.isolation.child_process",
    "TooMuchOutput": "concertino.core.bounded_pipe",
    "awaitable": "concertino.executor.isolation.child_process",
    "child_environment": "concertino.core.child_environment",
    "only_child_environment": "concertino.core.child_environment",
    "run_bounded": "concertino.core.bounded_pipe",
}
"""Names that are imported at their first use: most runs start no other program."""


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
