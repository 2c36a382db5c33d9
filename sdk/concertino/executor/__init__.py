"""The executor: runs plans of calls, in parallel, inside a budget, with one observation per call.

executor     members, gates, misbehaviour         limits          gates and queues
plan_run     one plan: edges, order, ends         retry, breaker  transport failures
call         one call of a tool or agent          model_call      one request to a model
bound        how members are invoked              isolation/      threads, processes, orphans, stalls
content      results as plain data                error_messages  the wording of every failure
hooks        before and after a call              scope           what the calls of a run share
context      what a call is given
"""

from .breaker import Breaker, BreakerPolicy
from .executor import Executor
from .isolation.child_process import ChildProcess, awaitable, minimal_environment
from .limits import Limits
from .retry import RetryPolicy
from .scope import Duplicates, Memory, Scope, Sink

__all__ = [
    "Breaker",
    "BreakerPolicy",
    "ChildProcess",
    "Duplicates",
    "Executor",
    "Limits",
    "Memory",
    "RetryPolicy",
    "Scope",
    "Sink",
    "awaitable",
    "minimal_environment",
]
