"""Simulated models: they solve the word problems of `concertino_toy.problems` as far as their skill allows.

skills   what a model can do, how it errs, how long it takes, and how its server fails
models   the chat models, and their specifications
roles    what a model writes in a workflow of roles: an answer, a script, a test
agents   the solver: one subtask, one model
tools    the calculator, the reader and the combiner
"""

from .models import SAGE, STEADY, SWIFT, model_spec
from .skills import Pace, Skill

__all__ = ["SAGE", "STEADY", "SWIFT", "Pace", "Skill", "model_spec"]
