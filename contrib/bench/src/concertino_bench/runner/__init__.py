"""Running systems over tasks, and keeping the results.

evaluation     what is run          evaluate        running it: bounded, resumable, guarded in $
files          what is run, as TOML results_file    what is kept          desk   what graders may use
"""

from __future__ import annotations

from .evaluation import Evaluation, Selection
from .evaluator import Outcome, Progress, evaluate
from .files import EvaluationFile, load_evaluation, make_selection
from .results_file import ResultsFile
from .services import PoolServices, choose_graders, grading_pool

__all__ = [
    "Evaluation",
    "EvaluationFile",
    "Outcome",
    "PoolServices",
    "Progress",
    "ResultsFile",
    "Selection",
    "choose_graders",
    "evaluate",
    "grading_pool",
    "load_evaluation",
    "make_selection",
]
