"""Studies: the same training several times with one thing changed, over seeds, with intervals.

_study      arms and what is compared
_catalogue  those that come along
_running    each training in a process of its own; goes on where it was interrupted
_comparing  means, paired differences, tables
_drawing    the same as a picture
"""

from ._catalogue import STUDIES
from ._comparing import Estimate, Finding, findings, table
from ._drawing import draw
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
    "draw",
    "findings",
    "run_study",
    "table",
]
