"""MASBENCH-like questions: a generator on five axes, an evaluator that reads only the text, published rows, a grader.

What makes a question, `generator` and below, and what answers it from its text, `oracle` and below, share no code.
"""

from .checking import Difference, Report, check
from .generator import AXES, LEVELS, SPLITS, Axis, Split, generate, make_task, split_of, task_sets
from .grader import boxes, grade
from .oracle import Measures, NoAnswer, answers, measure, other_answers
from .reading import ReadingError
from .rows import RowError, from_row, read_jsonl, to_row, write_jsonl
from .wording import RULES

__all__ = [
    "AXES",
    "LEVELS",
    "RULES",
    "SPLITS",
    "Axis",
    "Difference",
    "Measures",
    "NoAnswer",
    "ReadingError",
    "Report",
    "RowError",
    "Split",
    "answers",
    "boxes",
    "check",
    "from_row",
    "generate",
    "grade",
    "make_task",
    "measure",
    "other_answers",
    "read_jsonl",
    "split_of",
    "task_sets",
    "to_row",
    "write_jsonl",
]
