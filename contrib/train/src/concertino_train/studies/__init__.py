"""Studies: the same training several times with one thing changed, over seeds, with intervals.

_study      arms and what is compared
_catalogue  those that come along
_running    each training in a process of its own; goes on where it was interrupted
_comparing  means, paired differences, tables
"""

from ._catalogue import STUDIES
from ._comparing import Estimate, Finding, findings, table
from ._running import StudyFailed, Trained, run_study
from ._study import SEEDS, Arm, Expected, Study

__all__ = [
    "SEEDS",
    "STUDIES",
    "Arm",
    "Estimate",
    "Expected",
    "Finding",
    "Study",
    "StudyFailed",
    "Trained",
    "findings",
    "run_study",
    "table",
]
