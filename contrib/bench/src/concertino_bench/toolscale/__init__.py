"""ToolScale: tasks over a database and tools, graded by replay; a shipped domain, and the synthesis of new ones.

    ferry                        the shipped domain: twenty tools, 55 tasks
    rows, domains, grader        tasks and their worlds; the three criteria as a grader
    pipeline                     domain, schema, entries, tools, intents, tasks, harder tasks, three filters
    sandboxed, trying            tools that a model wrote, which run in a sandbox alone
    asking, schemas, prompts     one step of it
    filters, folder              what is taken out; where everything is kept
    command                      `concertino bench synthesise`

Importing this package imports none of its modules: each name is imported at its first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._cli import command
    from .asking import REASONS, StepFailed
    from .domains import ferry_company, ferry_tasks, synthesised_tasks, task_sets, toolkit_of
    from .filters import Attempt, attempt, golden_error, without_action
    from .folder import folder_tasks, open_domain
    from .grader import ToolscaleGrader
    from .pipeline import synthesise
    from .rows import TaskRow, answer_of, make_task
    from .sandboxed import Runner, SandboxedToolkit, ToolCode, installed_runner, pool_runner
    from .settings import Progress, Report, Settings

_HOMES = {
    "_cli": ["command"],
    "asking": ["REASONS", "StepFailed"],
    "domains": ["ferry_company", "ferry_tasks", "synthesised_tasks", "task_sets", "toolkit_of"],
    "filters": ["Attempt", "attempt", "golden_error", "without_action"],
    "folder": ["folder_tasks", "open_domain"],
    "grader": ["ToolscaleGrader"],
    "pipeline": ["synthesise"],
    "rows": ["TaskRow", "answer_of", "make_task"],
    "sandboxed": ["Runner", "SandboxedToolkit", "ToolCode", "installed_runner", "pool_runner"],
    "settings": ["Progress", "Report", "Settings"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "REASONS",
    "Attempt",
    "Progress",
    "Report",
    "Runner",
    "SandboxedToolkit",
    "Settings",
    "StepFailed",
    "TaskRow",
    "ToolCode",
    "ToolscaleGrader",
    "answer_of",
    "attempt",
    "command",
    "ferry_company",
    "ferry_tasks",
    "folder_tasks",
    "golden_error",
    "installed_runner",
    "make_task",
    "open_domain",
    "pool_runner",
    "synthesise",
    "synthesised_tasks",
    "task_sets",
    "toolkit_of",
    "without_action",
]


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
