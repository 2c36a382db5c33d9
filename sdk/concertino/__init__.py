"""concertino: agents, tools and models from anyone's `pip install` form one pool; a small model leads it.

This page is the table of contents; each name lives in the module of its noun. Themes with names of their own are
subpackages: `concertino.strategies`, `concertino.executor`, `concertino.traces`, `concertino.events`,
`concertino.plugins`, `concertino.schema`, `concertino.reading`, `concertino.testing`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._budget import Budget
    from ._context import Context
    from ._doctor import Finding
    from ._errors import (
        BudgetError,
        CallFailed,
        ConcertinoError,
        FailureClass,
        PlanError,
        PluginError,
        PoolError,
        ProviderError,
        RunError,
        SpecError,
        TraceError,
        UsageError,
    )
    from ._live_pool import LivePool
    from ._models import ChatRequest, Message, Model, Reply, Sampling, ToolCall
    from ._observation import CODES, ErrorInfo, Observation, Status
    from ._orchestrator import Orchestrator, RunHandle, replay
    from ._plan import Call, Plan, Ref
    from ._pool import Pool
    from ._provider_settings import ProviderSettings
    from ._result import Result
    from ._routing import RouterSpec, router
    from ._run import Round, Run
    from ._specs import AgentSpec, ModelSpec, ToolSpec, agent, tool
    from ._stepped_run import SteppedRun
    from ._usage import Cost, Prices, Usage
    from .events import STOP_REASONS
    from .executor import Executor, Limits
    from .hookspecs import hookimpl
    from .strategies import ParallelRounds, Strategy
    from .traces import Trace, TraceStore

_HOMES = {
    "_budget": ["Budget"],
    "_context": ["Context"],
    "_doctor": ["Finding"],
    "_errors": [
        "BudgetError", "CallFailed", "ConcertinoError", "FailureClass", "PlanError", "PluginError", "PoolError",
        "ProviderError", "RunError", "SpecError", "TraceError", "UsageError",
    ],
    "events": ["STOP_REASONS"],
    "_live_pool": ["LivePool"],
    "_models": ["ChatRequest", "Message", "Model", "Reply", "Sampling", "ToolCall"],
    "_observation": ["CODES", "ErrorInfo", "Observation", "Status"],
    "_orchestrator": ["Orchestrator", "RunHandle", "replay"],
    "_plan": ["Call", "Plan", "Ref"],
    "_pool": ["Pool"],
    "_provider_settings": ["ProviderSettings"],
    "_result": ["Result"],
    "_routing": ["RouterSpec", "router"],
    "_run": ["Round", "Run"],
    "_specs": ["AgentSpec", "ModelSpec", "ToolSpec", "agent", "tool"],
    "_stepped_run": ["SteppedRun"],
    "_usage": ["Cost", "Prices", "Usage"],
    "executor": ["Executor", "Limits"],
    "hookspecs": ["hookimpl"],
    "strategies": ["ParallelRounds", "Strategy"],
    "traces": ["Trace", "TraceStore"],
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CODES",
    "STOP_REASONS",
    "AgentSpec",
    "Budget",
    "BudgetError",
    "Call",
    "CallFailed",
    "ChatRequest",
    "ConcertinoError",
    "Context",
    "Cost",
    "ErrorInfo",
    "Executor",
    "FailureClass",
    "Finding",
    "Limits",
    "LivePool",
    "Message",
    "Model",
    "ModelSpec",
    "Observation",
    "Orchestrator",
    "ParallelRounds",
    "Plan",
    "PlanError",
    "PluginError",
    "Pool",
    "PoolError",
    "Prices",
    "ProviderError",
    "ProviderSettings",
    "Ref",
    "Reply",
    "Result",
    "Round",
    "RouterSpec",
    "Run",
    "RunError",
    "RunHandle",
    "Sampling",
    "SpecError",
    "Status",
    "SteppedRun",
    "Strategy",
    "ToolCall",
    "ToolSpec",
    "Trace",
    "TraceError",
    "TraceStore",
    "Usage",
    "UsageError",
    "agent",
    "hookimpl",
    "replay",
    "router",
    "tool",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use, so that `concertino --help` need not import the executor."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'concertino' has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
