"""What every part of the bench shares: a task, the grade of an answer, a system, and the item that is kept of a run.

task        a question with its right answers, and a named source of them
grade       a verdict with its reason, and what a grader is
system      what is compared: a strategy, who leads it, which members it may use
item        what one system did with one task: the line of a results file
installed   the task sets and graders of all installed distributions
"""

from __future__ import annotations

from .grade import Grade, Grader, GraderServices, Submission, TextGrader, Verdict, text_grader
from .installed import installed_graders, installed_task_sets
from .item import Item, Key, MemberUse
from .system import System
from .task import DataError, Task, TaskSet, World

__all__ = [
    "DataError",
    "Grade",
    "Grader",
    "GraderServices",
    "Item",
    "Key",
    "MemberUse",
    "Submission",
    "System",
    "Task",
    "TaskSet",
    "TextGrader",
    "Verdict",
    "World",
    "installed_graders",
    "installed_task_sets",
    "text_grader",
]
