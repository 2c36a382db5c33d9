"""Strategies: the paradigms. Each is a reader and a writer around the one plan and the one executor.

_machine          the contract: Ask, Act, Done; Machine, Strategy
_parallel_rounds  ParaManager: rounds of parallel calls
_round_format     its text, read and written
_round_prompts    what the model is shown
_agent_graph      MAS-Orchestra: a graph of agents, written at once
_graph_format     its text, read and written
_graph_export     any plan as Mermaid, DOT or JSON
_graph_archive    graphs kept as data
_dependency_plan  GAP: a plan with dependencies, executed in parallel
_gap_format       its turns, read and written; _gap_plan, _gap_graph, _gap_queries: their parts
_serial_calls     ToolOrchestra: one call per turn, in a chat or in the released stateless prompts
_serial_format    its text, read and written; _serial_prompts: what a chat shows
_choices          models that a tool offers under aliases
_notebook         documents, code and attempts of a run; _released_prompts: Orchestrator-8B's bytes around them
_released_rows    rows that ToolOrchestra published
_role_workflow    AT-GRPO: roles in turns until they agree; _role_machine: a run of one
_role             roles and endings as data; _role_document: workflows as TOML and JSON
_role_format      what a role's text says; _role_template, _role_prompts: what it is asked
_role_record      what was said, told again; _agreement: whether two roles say the same
_environment      worlds that a workflow acts in
_built_in         which strategies there are; each module is imported at the first use of one of its names
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from concertino._errors import UsageError

from ._built_in import StrategyTable
from ._machine import Act, Ask, Brief, Done, Machine, Step, Strategy

if TYPE_CHECKING:
    from ._agent_graph import AgentGraph
    from ._choices import Choice, choices_of, read_choices, write_choice
    from ._dependency_plan import DependencyPlan
    from ._environment import Environment, Stepped, environment_tool
    from ._graph_archive import ArchivedGraph, read_archive
    from ._graph_export import plan_to_dot, plan_to_json, plan_to_mermaid
    from ._notebook import Notebook
    from ._parallel_rounds import ParallelRounds
    from ._released_prompts import EVALUATION_SAMPLING, released_prompt, token_cutter
    from ._released_rows import ReleasedRecord, ReleasedTask, read_record, read_rows, read_task
    from ._role import Agree, PassTests, ReachGoal, Role
    from ._role_workflow import RoleWorkflow
    from ._role_workflows import coder_tester, planner_programmer, reasoner_programmer
    from ._serial_calls import SerialCalls

BUILT_IN: Mapping[str, type[Strategy]] = StrategyTable(
    {
        "parallel-rounds": ("._parallel_rounds", "ParallelRounds"),
        "agent-graph": ("._agent_graph", "AgentGraph"),
        "dependency-plan": ("._dependency_plan", "DependencyPlan"),
        "serial-calls": ("._serial_calls", "SerialCalls"),
        "role-workflow": ("._role_workflow", "RoleWorkflow"),
    }
)
"""Strategies that come with the SDK, by name."""

_HOMES = {
    "._agent_graph": ["AgentGraph"],
    "._choices": ["Choice", "choices_of", "read_choices", "write_choice"],
    "._dependency_plan": ["DependencyPlan"],
    "._environment": ["Environment", "Stepped", "environment_tool"],
    "._graph_archive": ["ArchivedGraph", "read_archive"],
    "._graph_export": ["plan_to_dot", "plan_to_json", "plan_to_mermaid"],
    "._notebook": ["Notebook"],
    "._parallel_rounds": ["ParallelRounds"],
    "._released_prompts": ["EVALUATION_SAMPLING", "released_prompt", "token_cutter"],
    "._released_rows": ["ReleasedRecord", "ReleasedTask", "read_record", "read_rows", "read_task"],
    "._role": ["Agree", "PassTests", "ReachGoal", "Role"],
    "._role_workflow": ["RoleWorkflow"],
    "._role_workflows": ["coder_tester", "planner_programmer", "reasoner_programmer"],
    "._serial_calls": ["SerialCalls"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def strategy_by_name(name: str, more: Mapping[str, type[Strategy]] | None = None) -> type[Strategy]:
    """A strategy class by its name; `more` are those of plugins.

    Raises:
        UsageError: no strategy of that name; names near ones.
    """
    for known in (more or {}, BUILT_IN):
        if name in known:
            return known[name]
    raise UsageError(f"there is no strategy {name!r}; there are {', '.join(sorted({*BUILT_IN, *(more or {})}))}")


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use: a run needs one strategy, not all."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'concertino.strategies' has no attribute {name!r}")
    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


__all__ = [
    "BUILT_IN",
    "EVALUATION_SAMPLING",
    "Act",
    "AgentGraph",
    "Agree",
    "ArchivedGraph",
    "Ask",
    "Brief",
    "Choice",
    "DependencyPlan",
    "Done",
    "Environment",
    "Machine",
    "Notebook",
    "ParallelRounds",
    "PassTests",
    "ReachGoal",
    "ReleasedRecord",
    "ReleasedTask",
    "Role",
    "RoleWorkflow",
    "SerialCalls",
    "Step",
    "Stepped",
    "Strategy",
    "choices_of",
    "coder_tester",
    "environment_tool",
    "plan_to_dot",
    "plan_to_json",
    "plan_to_mermaid",
    "planner_programmer",
    "read_archive",
    "read_choices",
    "read_record",
    "read_rows",
    "read_task",
    "reasoner_programmer",
    "released_prompt",
    "strategy_by_name",
    "token_cutter",
    "write_choice",
]  # fmt: skip
