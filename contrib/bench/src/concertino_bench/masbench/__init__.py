"""MASBENCH-like questions: a generator on five axes, an evaluator that reads only the text, published rows, a grader.

What makes a question, `generator` and below, and what answers it from its text, `oracle` and below, share no code.
"""

from __future__ import annotations

from .checking import check
from .generator import AXES, LEVELS, generate, make_task, task_sets
from .grader import grade
from .oracle import answers, measure
from .rows import read_jsonl, write_jsonl

__all__ = [
    "AXES",
    "LEVELS",
    "answers",
    "check",
    "generate",
    "grade",
    "make_task",
    "measure",
    "read_jsonl",
    "task_sets",
    "write_jsonl",
]
