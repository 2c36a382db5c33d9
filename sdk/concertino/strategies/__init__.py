"""Strategies: the paradigms. Each is a reader and a writer around the one plan and the one executor.

base/              what they share: the contract of a machine, conversations, tags, members and observations as text
parallel_rounds/   ParaManager: rounds of parallel calls
agent_graph/       MAS-Orchestra: a graph of agents, written at once
dependency_plan/   GAP: a plan with dependencies, run in parallel
serial_calls/      ToolOrchestra: one call per turn, in a chat or in its released stateless prompts
role_workflow/     AT-GRPO: roles in turns until they agree
direct_answer      a model alone, asked once
built_in           all of them by name, and how a strategy is found by its name

Here are the contract and the search by name. Each paradigm is public in its own package, so that a run imports only the
one that it follows: `from concertino.strategies.agent_graph import AgentGraph`.
"""

from concertino.core.format_issue import FormatIssue

from .base.machine import (
    Act,
    Ask,
    Done,
    Machine,
    OutlineStep,
    Reading,
    RunLimits,
    Step,
    Strategy,
    TaskContext,
    TurnState,
    Utterance,
)
from .base.text_strategy import ParsedReply, TextStrategy
from .built_in import BUILT_IN, DEFAULT_STRATEGY, installed_strategy, load_strategy, strategy_by_name

__all__ = [
    "BUILT_IN",
    "DEFAULT_STRATEGY",
    "Act",
    "Ask",
    "Done",
    "FormatIssue",
    "Machine",
    "OutlineStep",
    "ParsedReply",
    "Reading",
    "RunLimits",
    "Step",
    "Strategy",
    "TaskContext",
    "TextStrategy",
    "TurnState",
    "Utterance",
    "installed_strategy",
    "load_strategy",
    "strategy_by_name",
]
