"""Running systems over tasks, and keeping what came of it.

evaluation     what is run          evaluate        running it: bounded, resumable, guarded in $
results_file   what is kept         desk            what graders may use
"""

from .desk import Desk, choose_graders, grading_pool
from .evaluate import Outcome, Progress, evaluate, run_id_of
from .evaluation import Evaluation, EvaluationFile, Selection, find_set, load_evaluation, make_system
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
    "make_system",
    "run_id_of",
]
