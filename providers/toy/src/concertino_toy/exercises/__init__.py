"""Random exercises from which the tiny conductor learned to lead, and on which it is measured.

wording        words from which everything is drawn
english        English sentences that mean nothing
exercise       questions, and pools that answer them or fail
teacher        the scripted policy that is learned
conversations  runs of it, with the turns to learn marked
trial          how well a model leads, on exercises that training never showed
"""

from .conversations import Said, collect
from .exercise import Writer
from .teacher import Assignee, ConductorTeacher
from .trial import boxes, is_clean, try_out
from .wording import problem_writer

__all__ = [
    "Assignee",
    "ConductorTeacher",
    "Said",
    "Writer",
    "boxes",
    "collect",
    "is_clean",
    "problem_writer",
    "try_out",
]
