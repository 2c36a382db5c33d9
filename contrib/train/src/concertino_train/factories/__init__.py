"""Factories: from the settings of a training to the objects that it uses.

pools      the pool and its variations
questions  tasks as assignments
models     weights, tokenizer, codec
learners   what is trained, and how it samples

Torch is imported by the functions that need it.
"""

from .learners import make_engine, make_learner
from .models import load_model
from .pools import make_pool
from .questions import Questions

__all__ = [
    "Questions",
    "load_model",
    "make_engine",
    "make_learner",
    "make_pool",
]
