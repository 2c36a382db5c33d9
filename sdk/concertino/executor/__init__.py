"""The executor: runs plans of calls, in parallel, inside a budget, with one observation per call.

_executor    members, gates, misbehaviour          _budget (above)  reserve and settle
_plan_run    one plan: edges, order, ends
_invocation  the life of one call                   _limits          gates and queues
_asking      a request to a model as a call         _retry, _breaker transport failures
_members     how members are invoked                _threads, _processes, _stall, _orphans   isolation
_content     results as plain data                  _causes          the wording of every failure
_hooks       before and after a call                _scope           what the calls of a run share
"""

from ._breaker import Breaker, BreakerPolicy
from ._executor import Executor
from ._limits import Limits
from ._retry import RetryPolicy
from ._scope import Duplicates, Memory, Scope, Sink

__all__ = [
    "Breaker",
    "BreakerPolicy",
    "Duplicates",
    "Executor",
    "Limits",
    "Memory",
    "RetryPolicy",
    "Scope",
    "Sink",
]
