"""Model cards: descriptions of a pool's models, from how they do on tasks.

    tasks -> each model answers them, through the executor -> graded -> a profile: figures with intervals
          -> a writer model says where the model is strong and weak -> the text, with the figures of the profile

    tasks        what is asked, and its grader         answers      an answer and its key
    collecting   asking a model                        cache        answers and notes on disk
    profile      the figures                           facts        the figures in words
    prompt       what a writer is shown                writing      asking it
    note         what it wrote                         guard        which of its sentences are kept
    describing   planning, for a pool                  work         doing it
    description  the result                            recording    the run and its trace
    asked_elsewhere  asking in other processes

Invariants: an answer is on disk, under a key of its content, before anything else happens, and is not paid for twice.
Everything else is computed again each time. Every figure in a text comes from the profile.
"""

from __future__ import annotations

from .describing import describe
from .description import Described, Description
from .tasks import make_task

__all__ = ["Described", "Description", "describe", "make_task"]
