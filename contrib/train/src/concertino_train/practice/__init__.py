"""The practice domain: small tasks on which a tiny model learns to orchestrate, in minutes on a processor.

Questions ask for numbers of made-up places; the members of the pool know a topic each, and fail, err, cost and take
time in ways that differ. Nothing has to be computed or known: what is to be learned is whom to ask, at once or in turn,
what to do after a failure, and when to stop.

words, facts, questions   what is asked, and what is true
members                   the pool, and what goes wrong in it
tasks                     the task sets `practice/facts`, `practice/chain`, `practice/fork`, `practice/mixed`
preferences               what a user may prefer, in words and weights
experts                   scripted experts for every strategy, to learn from
workflows                 Plan-Path and Sudoku with brief prompts

Invariant: everything follows from seeds and from the texts themselves; nothing here keeps a state.
"""

from .members import MANNERS, Faults, Manner, practice_pool
from .preferences import WISHES, Wish
from .tasks import LEVELS, task_sets, tasks
from .words import TOPICS
from .workflows import practice_workflow, workflow_pool

__all__ = [
    "LEVELS",
    "MANNERS",
    "TOPICS",
    "WISHES",
    "Faults",
    "Manner",
    "Wish",
    "practice_pool",
    "practice_workflow",
    "task_sets",
    "tasks",
    "workflow_pool",
]
