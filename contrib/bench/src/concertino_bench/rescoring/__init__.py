"""Old results rescored: other graders and rewards over the traces that are there, without asking anybody.

recorded_run   the run that a trace is the record of, as the object that graders and rewards read
rewarding      what a reward is given of a finished run, and the rewards that are installed
rescore        from a results file and its traces to another results file
"""

from __future__ import annotations

from .recorded_run import as_recorded, run_of
from .rescore import LeftOutItem, Rescored, Rescoring, rescore
from .rewarding import GradedRun, RunReward, RunScore, choose_rewards, installed_run_rewards

__all__ = [
    "GradedRun",
    "LeftOutItem",
    "Rescored",
    "Rescoring",
    "RunReward",
    "RunScore",
    "as_recorded",
    "choose_rewards",
    "installed_run_rewards",
    "rescore",
    "run_of",
]
