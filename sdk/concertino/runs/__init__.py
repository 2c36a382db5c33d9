"""Runs: a question, driven through a strategy's machine, a model and the executor, to an answer.

orchestrator   starts, resumes and replays runs      loop      drives one run
stepped        a run driven by its holder            eager     calls that start while the model still writes
run            what a run returns                    shared_model   a model that several runs use
"""

from .orchestrator import Orchestrator, RunHandle, replay
from .run import Round, Run, RunError
from .stepped import SteppedRun

__all__ = [
    "Orchestrator",
    "Round",
    "Run",
    "RunError",
    "RunHandle",
    "SteppedRun",
    "replay",
]
