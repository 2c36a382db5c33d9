"""The practice domain: small questions on which a tiny model learns to orchestrate, in minutes on a processor.

Questions ask for numbers of made-up places; the members of the pool know a topic each, and fail, err, cost and take
time in ways that differ. Nothing has to be computed or known: a model learns whom to ask, in parallel or in turn, what
to do after a failure, and when to stop.

words      topics, places, templates of questions, names of members
facts      what is true
questions  what is asked: written, read, answered
members    the pool, and what goes wrong in it
scripts    prompts of role workflows, and a tool that runs scripts of one print
experts    scripted experts for every strategy, to learn from

Invariant: everything follows from seeds and from the texts themselves; nothing here keeps a state.
"""

from .members import Faults, practice_pool
from .questions import draw_question
from .scripts import ROLE_PROMPTS, STEP_PROMPT, workflow_pool
from .words import TOPICS, Split

__all__ = [
    "ROLE_PROMPTS",
    "STEP_PROMPT",
    "TOPICS",
    "Faults",
    "Split",
    "draw_question",
    "practice_pool",
    "workflow_pool",
]
