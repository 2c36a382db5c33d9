"""ToolScale: tasks over a database and tools, graded by replay; a shipped domain, and the synthesis of new ones.

ferry                        the shipped domain: twenty tools, 55 tasks
rows, domains, grader        tasks and their worlds; the three criteria as a grader
pipeline                     domain, schema, entries, tools, intents, tasks, harder tasks, three filters
sandboxed, trying            tools that a model wrote, which run in a sandbox alone
asking, schemas, prompts     one step of it
filters, folder              what is taken out; where everything is kept
"""

from __future__ import annotations

from .domains import task_sets
from .folder import folder_tasks
from .grader import ToolscaleGrader
from .pipeline import synthesise
from .settings import SynthesisSettings

__all__ = [
    "SynthesisSettings",
    "ToolscaleGrader",
    "folder_tasks",
    "synthesise",
    "task_sets",
]
