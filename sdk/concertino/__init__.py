"""concertino: any installed package can add agents, tools and models to one pool; a small model leads it.

Every name below lives in the module of its noun and is imported at its first use, so `concertino --help` imports no
executor. Further public packages: `concertino.strategies`, `concertino.executor`, `concertino.traces`,
`concertino.rollouts`, `concertino.plugins`, `concertino.schema`, `concertino.text`, `concertino.testing`;
`concertino.events` are the events of a run.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .core import events as events
    from .core.approval import ApprovalRequest as ApprovalRequest
    from .core.approval import Approve as Approve
    from .core.approval import Deny as Deny
    from .core.attachment import Attachment as Attachment
    from .core.attachment import Audio as Audio
    from .core.attachment import File as File
    from .core.attachment import Image as Image
    from .core.budget import Budget as Budget
    from .core.errors import BudgetError as BudgetError
    from .core.errors import ConcertinoError as ConcertinoError
    from .core.errors import PlanError as PlanError
    from .core.errors import PluginError as PluginError
    from .core.errors import PoolError as PoolError
    from .core.errors import SpecError as SpecError
    from .core.errors import TraceError as TraceError
    from .core.errors import UsageError as UsageError
    from .core.events import STOP_REASONS as STOP_REASONS
    from .core.known_secrets import keep_headers as keep_headers
    from .core.known_secrets import keep_secret as keep_secret
    from .core.known_secrets import keep_variables as keep_variables
    from .core.known_secrets import read_secret as read_secret
    from .core.known_secrets import without_secrets as without_secrets
    from .core.model import ChatRequest as ChatRequest
    from .core.model import Message as Message
    from .core.model import Model as Model
    from .core.model import Reply as Reply
    from .core.model import Sampling as Sampling
    from .core.model import Thought as Thought
    from .core.model import ToolCall as ToolCall
    from .core.observation import CODES as CODES
    from .core.observation import CallFailed as CallFailed
    from .core.observation import ErrorInfo as ErrorInfo
    from .core.observation import Observation as Observation
    from .core.observation import Status as Status
    from .core.plan import Call as Call
    from .core.plan import Plan as Plan
    from .core.plan import Ref as Ref
    from .core.plan_drawing import plan_to_dot as plan_to_dot
    from .core.plan_drawing import plan_to_json as plan_to_json
    from .core.plan_drawing import plan_to_mermaid as plan_to_mermaid
    from .core.provider_error import FailureClass as FailureClass
    from .core.provider_error import ProviderError as ProviderError
    from .core.provider_settings import ProviderSettings as ProviderSettings
    from .core.result import Result as Result
    from .core.usage import Cost as Cost
    from .core.usage import Prices as Prices
    from .core.usage import Usage as Usage
    from .executor import *
    from .executor.outward import *
    from .members.context import Context as Context
    from .members.context import RunContext as RunContext
    from .members.guards import EndRun as EndRun
    from .members.guards import Guard as Guard
    from .members.guards import GuardedCall as GuardedCall
    from .members.guards import GuardedResult as GuardedResult
    from .members.guards import Replace as Replace
    from .members.guards import guard as guard
    from .members.ranking import IndexedRanking as IndexedRanking
    from .members.ranking import Ranking as Ranking
    from .members.ranking import RankingEntry as RankingEntry
    from .members.ranking import RankingIndex as RankingIndex
    from .members.routing import RouterSpec as RouterSpec
    from .members.routing import router as router
    from .members.specs import AgentSpec as AgentSpec
    from .members.specs import ModelSpec as ModelSpec
    from .members.specs import ToolSpec as ToolSpec
    from .members.specs import agent as agent
    from .members.specs import tool as tool
    from .plugins import *
    from .pool.live import LivePool as LivePool
    from .pool.pool import Pool as Pool
    from .pool.search import ToolSearch as ToolSearch
    from .pool.shortlist import Shortlist as Shortlist
    from .runs.handle import RunHandle as RunHandle
    from .runs.orchestrator import Orchestrator as Orchestrator
    from .runs.registry import RunInfo as RunInfo
    from .runs.registry import Runs as Runs
    from .runs.run import Round as Round
    from .runs.run import Run as Run
    from .runs.run import RunError as RunError
    from .runs.run import RunSummary as RunSummary
    from .runs.session import Session as Session
    from .runs.session import SessionBusy as SessionBusy
    from .runs.session import SessionTurn as SessionTurn
    from .runs.stepped import SteppedRun as SteppedRun
    from .runs.trace_replay import replay as replay
    from .strategies import *
    from .strategies.parallel_rounds import *
    from .traces import *

_NAMES = {
    "core.approval": "ApprovalRequest Approve Deny",
    "core.attachment": "Attachment Audio File Image",
    "core.budget": "Budget",
    "core.errors": "BudgetError ConcertinoError PlanError PluginError PoolError SpecError TraceError UsageError",
    "core.events": "STOP_REASONS events",
    "core.known_secrets": "keep_headers keep_secret keep_variables read_secret without_secrets",
    "core.model": "ChatRequest Message Model Reply Sampling Thought ToolCall",
    "core.observation": "CODES CallFailed ErrorInfo Observation Status",
    "core.plan": "Call Plan Ref",
    "core.plan_drawing": "plan_to_dot plan_to_json plan_to_mermaid",
    "core.provider_error": "FailureClass ProviderError",
    "core.provider_settings": "ProviderSettings",
    "core.result": "Result",
    "core.usage": "Cost Prices Usage",
    "members.context": "Context RunContext",
    "members.guards": "EndRun Guard GuardedCall GuardedResult Replace guard",
    "members.ranking": "IndexedRanking Ranking RankingEntry RankingIndex",
    "members.routing": "RouterSpec router",
    "members.specs": "AgentSpec ModelSpec ToolSpec agent tool",
    "plugins": "Finding hookimpl",
    "strategies": "Strategy",
    "strategies.parallel_rounds": "ParallelRounds",
    "pool.live": "LivePool",
    "pool.pool": "Pool",
    "pool.search": "ToolSearch",
    "pool.shortlist": "Shortlist",
    "traces": "Trace TraceStore",
    "executor": "Executor Limits",
    "executor.outward": "as_function as_langchain_tool as_openai_agents_tool",
    "runs.handle": "RunHandle",
    "runs.orchestrator": "Orchestrator",
    "runs.trace_replay": "replay",
    "runs.registry": "RunInfo Runs",
    "runs.run": "Round Run RunError RunSummary",
    "runs.session": "Session SessionBusy SessionTurn",
    "runs.stepped": "SteppedRun",
}
_HOME_OF = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'concertino' has no attribute {name!r}")
    home = import_module(f".{_HOME_OF[name]}", __name__)
    # `events` is a module itself.
    value = globals()[name] = home if home.__name__.endswith(f".{name}") else getattr(home, name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
