"""Scripted experts of the practice domain, as models: what a policy learns its first steps from.

_progress  what an expert knows of its question, and whom it asks next
_expert    reading a conversation, slips
calls      for `ParallelRounds` and `SerialCalls`, with brief prompts and quotes
plans      for `DependencyPlan` and `AgentGraph`, with brief prompts
roles      for the role workflows
"""

from ._expert import Expert
from ._progress import Habits
from .calls import RoundsExpert, SerialExpert
from .plans import GraphExpert, PlanExpert
from .roles import RoleExpert

__all__ = ["Expert", "GraphExpert", "Habits", "PlanExpert", "RoleExpert", "RoundsExpert", "SerialExpert"]
