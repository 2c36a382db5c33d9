"""DependencyPlan: the paradigm of GAP, a plan with dependencies, carried out in parallel.

_strategy  its settings, and a run of it
_format    the text of a turn, read and written
_tasks     the tasks of a <plan>
_queries   the batch of a <search>
_graph     the nodes of a <graph>
_prompts   what the model is shown
"""

from ._strategy import DependencyPlan

__all__ = [
    "DependencyPlan",
]  # fmt: skip
