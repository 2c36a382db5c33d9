"""DependencyPlan: the paradigm of GAP, a plan with dependencies, carried out in parallel.

strategy  its settings, and a run of it
format    the text of a turn, read and written
tasks     the tasks of a <plan>
queries   the batch of a <search>
graph     the nodes of a <graph>
prompts   what the model is shown
"""

from .strategy import DependencyPlan

__all__ = [
    "DependencyPlan",
]
