"""MASBENCH-like questions: a generator on five axes, a check and measures that read only the text, rows, a grader.

generator   questions, from graph (quantities and answers), worlds (names) and wording (sentences)
checking    whether the answers are those of the text     measures   how deep and broad a text is
rows        the columns of the published data set         grader     right, wrong or unparsable
"""

from __future__ import annotations

from .checking import check
from .generator import generate, make_task, task_sets
from .grader import grade
from .measures import measure

__all__ = ["check", "generate", "grade", "make_task", "measure", "task_sets"]
