"""Running systems over tasks, and keeping what came of it.

evaluation     what is run          evaluate        running it: bounded, resumable, guarded in $
files          what is run, as TOML results_file    what is kept          desk   what graders may use
"""

from .desk import Desk, choose_graders, grading_pool
from .evaluate import Outcome, Progress, evaluate, run_id_of
from .evaluation import Evaluation, Selection
from .files import EvaluationFile, find_set, load_evaluation, make_selection, make_system, options_of
from .results_file import ResultsFile

__all__ = [
    "Desk",
    "Evaluation",
    "EvaluationFile",
    "Outcome",
    "Progress",
    "ResultsFile",
    "Selection",
    "choose_graders",
    "evaluate",
    "find_set",
    "grading_pool",
    "load_evaluation",
    "make_selection",
    "make_system",
    "options_of",
    "run_id_of",
]
