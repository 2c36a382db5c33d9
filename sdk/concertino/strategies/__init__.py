"""Strategies: the paradigms. Each is a reader and a writer around the one plan and the one executor.

_machine         the contract: Ask, Act, Done; Machine, Strategy
_conversation    a run that is one conversation, which four of the five are
_flaw            a fault of a model's text: code, place, next step; _flaws collects them
_tags            the tags of a text, found in one pass; _tagged_text: blocks of known tags
_observations    observations as an orchestrator reads them
_history         what it reads, kept short
_brief_prompt    what brief prompts have in common: the setting, and members in a line each
_quotes          `${...}` in the arguments of a call, in place of a text that is there already
_offers          members as a text names them
_plan_export     any plan as Mermaid, DOT or JSON
_built_in        which strategies there are; each package is imported at the first use of one of its names

parallel_rounds  ParaManager: rounds of parallel calls
agent_graph      MAS-Orchestra: a graph of agents, written at once
dependency_plan  GAP: a plan with dependencies, carried out in parallel
serial_calls     ToolOrchestra: one call per turn, in a chat or in its released stateless prompts
role_workflow    AT-GRPO: roles in turns until they agree
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from concertino._errors import UsageError

from ._built_in import StrategyTable
from ._flaw import Flaw
from ._machine import Act, Ask, Brief, Done, Machine, Step, Strategy

if TYPE_CHECKING:
    from ._plan_export import plan_to_dot, plan_to_json, plan_to_mermaid
    from .agent_graph import AgentGraph, ArchivedGraph, read_archive
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
        ReleasedRecord,
        ReleasedTask,
        SerialCalls,
        choices_of,
        read_choices,
        read_record,
        read_rows,
        read_task,
        released_prompt,
        token_cutter,
        write_choice,
    )

BUILT_IN: Mapping[str, type[Strategy]] = StrategyTable(
    {
        "parallel-rounds": (".parallel_rounds", "ParallelRounds"),
        "agent-graph": (".agent_graph", "AgentGraph"),
        "dependency-plan": (".dependency_plan", "DependencyPlan"),
        "serial-calls": (".serial_calls", "SerialCalls"),
        "role-workflow": (".role_workflow", "RoleWorkflow"),
    }
)
"""Strategies that come with the SDK, by name."""

_HOMES = {
    "._plan_export": ["plan_to_dot", "plan_to_json", "plan_to_mermaid"],
    ".parallel_rounds": ["ParallelRounds"],
    ".agent_graph": ["AgentGraph", "ArchivedGraph", "read_archive"],
    ".dependency_plan": ["DependencyPlan"],
    ".serial_calls": [
        "EVALUATION_SAMPLING",
        "Choice",
        "Notebook",
        "ReleasedRecord",
        "ReleasedTask",
        "SerialCalls",
        "choices_of",
        "read_choices",
        "read_record",
        "read_rows",
        "read_task",
        "released_prompt",
        "token_cutter",
        "write_choice",
    ],
    ".role_workflow": [
        "Agree",
        "Environment",
        "PassTests",
        "ReachGoal",
        "Role",
        "RoleWorkflow",
        "Stepped",
        "coder_tester",
        "environment_tool",
        "planner_programmer",
        "reasoner_programmer",
    ],
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
    from concertino.schema import near_names

    every = {*BUILT_IN, *(more or {})}
    known_names = sorted(each for each in every if each.rpartition("/")[2] not in every - {each})
    near = near_names(name, known_names, limit=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise UsageError(f"there is no strategy {name!r}; {hint}there are {', '.join(known_names)}")


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
    "Flaw",
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
