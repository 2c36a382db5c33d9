"""Model cards: descriptions of a pool's models that rest on tasks which they were really given.

    tasks -> each model answers them, through the executor -> graded -> a profile: figures with intervals
          -> a writer model says where the model is strong and weak -> the text, with the figures of the profile

    tasks        what is asked, and who grades it      answers      what came back, and its key
    collecting   having a model answer                 cache        what was paid for, on disk
    profile      the figures                           facts        the figures in words
    prompt       what a writer is shown                writing      asking it
    note         what it said                          guard        which of its sentences are kept
    describing   what is to be done for a pool         work         doing it
    description  the result                            recording    the run and its trace

Invariants: whatever was paid for is on disk before anything else happens, under a key of its content, and is not paid
for twice; everything else is worked out again each time. Every figure in a text comes from the profile.
"""

from __future__ import annotations

from .describing import describe
from .description import Described, Description
from .tasks import make_task

__all__ = ["Described", "Description", "describe", "make_task"]
