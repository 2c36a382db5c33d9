"""Running systems over tasks, and keeping the results.

evaluation    what is run                evaluator     running it: bounded, resumable, within a limit of $
item_work     what is done for one item, in this process or another
files         evaluations as TOML        results_file  the items on disk
services      what graders may use             evaluation_origin  how another process makes it again
"""

from __future__ import annotations

from .evaluation import Evaluation, Selection
from .evaluation_origin import EvaluationOrigin
from .evaluator import Outcome, Progress, evaluate
from .files import load_evaluation, make_selection
from .results_file import ResultsFile
from .services import PoolServices, choose_graders, grading_pool

__all__ = [
    "Evaluation",
    "EvaluationOrigin",
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
