"""Strategies: the paradigms. Each is a reader and a writer around the one plan and the one executor.

base/              what they share: the contract of a machine, conversations, tags, members and observations as text
parallel_rounds/   ParaManager: rounds of parallel calls
agent_graph/       MAS-Orchestra: a graph of agents, written at once
dependency_plan/   GAP: a plan with dependencies, run in parallel
serial_calls/      ToolOrchestra: one call per turn, in a chat or in its released stateless prompts
role_workflow/     AT-GRPO: roles in turns until they agree
built_in           the five by name, and how a strategy is found by its name
"""

from concertino.core.format_issue import FormatIssue

from .agent_graph.strategy import AgentGraph
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
from .dependency_plan.strategy import DependencyPlan
from .parallel_rounds.strategy import ParallelRounds
from .role_workflow.environment import Environment, Stepped, environment_tool
from .role_workflow.role import Agree, PassTests, ReachGoal, Role
from .role_workflow.strategy import RoleWorkflow
from .role_workflow.workflows import coder_tester, planner_programmer, reasoner_programmer
from .serial_calls.choices import ModelChoice, choices_of, write_choice
from .serial_calls.notebook import Notebook
from .serial_calls.released_prompts import token_cutter
from .serial_calls.strategy import SerialCalls

__all__ = [
    "BUILT_IN",
    "DEFAULT_STRATEGY",
    "Act",
    "AgentGraph",
    "Agree",
    "Ask",
    "DependencyPlan",
    "Done",
    "Environment",
    "FormatIssue",
    "Machine",
    "ModelChoice",
    "Notebook",
    "OutlineStep",
    "ParallelRounds",
    "ParsedReply",
    "PassTests",
    "ReachGoal",
    "Reading",
    "Role",
    "RoleWorkflow",
    "RunLimits",
    "SerialCalls",
    "Step",
    "Stepped",
    "Strategy",
    "TaskContext",
    "TextStrategy",
    "TurnState",
    "Utterance",
    "choices_of",
    "coder_tester",
    "environment_tool",
    "installed_strategy",
    "load_strategy",
    "planner_programmer",
    "reasoner_programmer",
    "strategy_by_name",
    "token_cutter",
    "write_choice",
]
