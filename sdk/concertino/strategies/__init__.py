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
from concertino.core.plan_drawing import plan_to_dot, plan_to_json, plan_to_mermaid

from .agent_graph import AgentGraph
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
from .dependency_plan import DependencyPlan
from .parallel_rounds import ParallelRounds
from .role_workflow import (
    Agree,
    Environment,
    PassTests,
    ReachGoal,
    Role,
    RoleWorkflow,
    Stepped,
    coder_tester,
    environment_tool,
    planner_programmer,
    reasoner_programmer,
)
from .serial_calls import (
    EVALUATION_SAMPLING,
    Choice,
    Notebook,
    SerialCalls,
    choices_of,
    read_choices,
    released_prompt,
    token_cutter,
    write_choice,
)

__all__ = [
    "BUILT_IN",
    "DEFAULT_STRATEGY",
    "EVALUATION_SAMPLING",
    "Act",
    "AgentGraph",
    "Agree",
    "Ask",
    "Choice",
    "DependencyPlan",
    "Done",
    "Environment",
    "FormatIssue",
    "Machine",
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
    "plan_to_dot",
    "plan_to_json",
    "plan_to_mermaid",
    "planner_programmer",
    "read_choices",
    "reasoner_programmer",
    "released_prompt",
    "strategy_by_name",
    "token_cutter",
    "write_choice",
]
