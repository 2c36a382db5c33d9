"""The values that everything else speaks of: plans, observations, budgets, model messages, events and errors.

Invariant: nothing here knows a pool, an executor or a strategy, and only `documents` and `settings` read files.
"""

from . import events
from .budget import Budget
from .errors import BudgetError, ConcertinoError, PlanError, PluginError, PoolError, SpecError, TraceError, UsageError
from .events import STOP_REASONS
from .model import ChatRequest, Message, Model, Reply, Sampling, ToolCall
from .observation import CODES, CallFailed, ErrorInfo, Observation, Status
from .plan import Call, Plan, Ref
from .plan_drawing import plan_to_dot, plan_to_json, plan_to_mermaid
from .provider_error import FailureClass, ProviderError
from .result import Result
from .usage import Cost, Prices, Usage

__all__ = [
    "CODES",
    "STOP_REASONS",
    "Budget",
    "BudgetError",
    "Call",
    "CallFailed",
    "ChatRequest",
    "ConcertinoError",
    "Cost",
    "ErrorInfo",
    "FailureClass",
    "Message",
    "Model",
    "Observation",
    "Plan",
    "PlanError",
    "PluginError",
    "PoolError",
    "Prices",
    "ProviderError",
    "Ref",
    "Reply",
    "Result",
    "Sampling",
    "SpecError",
    "Status",
    "ToolCall",
    "TraceError",
    "Usage",
    "UsageError",
    "events",
    "plan_to_dot",
    "plan_to_json",
    "plan_to_mermaid",
]
