"""concertino: any installed package can add agents, tools and models to one pool; a small model leads it.

Every name below lives in the package of its noun and is imported at its first use, so `concertino --help` imports no
executor. Further public packages: `concertino.strategies`, `concertino.executor`, `concertino.traces`,
`concertino.plugins`, `concertino.schema`, `concertino.text`, `concertino.testing`; `concertino.events` are the events
of a run.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .core import *
    from .executor import *
    from .members import *
    from .plugins import *
    from .pool import *
    from .runs import *
    from .strategies import *
    from .strategies.parallel_rounds import *
    from .traces import *

_NAMES = {
    "core": """
        BudgetError ConcertinoError PlanError PluginError PoolError SpecError TraceError UsageError
        CallFailed FailureClass ProviderError CODES ErrorInfo Observation Result Status
        Budget Cost Prices Usage Call Plan Ref ChatRequest Message Model Reply Sampling ToolCall STOP_REASONS events
        plan_to_dot plan_to_json plan_to_mermaid
    """,
    "members": "AgentSpec Context ModelSpec RouterSpec ToolSpec agent router tool",
    "plugins": "Finding ProviderSettings hookimpl",
    "pool": "LivePool Pool",
    "strategies": "Strategy",
    "strategies.parallel_rounds": "ParallelRounds",
    "traces": "Trace TraceStore",
    "executor": "Executor Limits",
    "runs": "Orchestrator Round Run RunError RunHandle SteppedRun replay",
}
_PACKAGE_OF = {name: package for package, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_PACKAGE_OF)


def __getattr__(name: str) -> Any:
    """Import a name's package at its first use."""
    if name not in _PACKAGE_OF:
        raise AttributeError(f"module 'concertino' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_PACKAGE_OF[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
