"""Studies: the same training several times with one thing changed, over seeds, with confidence intervals.

study       arms and what is compared
catalogue   the studies that are included
runs        each training in a process of its own; an interrupted study can be resumed
comparison  means, paired differences, tables
drawing     the same as a picture
"""

from .catalogue import STUDIES
from .runs import run_study
from .study import Arm, Expected, Study

__all__ = [
    "STUDIES",
    "Arm",
    "Expected",
    "Study",
    "run_study",
]
