"""Scripted experts of the practice domain, as models: a policy learns its first steps from them.

progress  what an expert knows of its question, and whom it asks next
expert    what all experts share: reading a conversation, and slips
calls     for `ParallelRounds` and `SerialCalls`, with brief prompts and quotes
plans     for `DependencyPlan` and `AgentGraph`, with brief prompts
roles     for the role workflows
"""

from .calls import RoundsExpert, SerialExpert
from .expert import Expert
from .plans import GraphExpert, PlanExpert
from .progress import Habits
from .roles import RoleExpert

__all__ = ["Expert", "GraphExpert", "Habits", "PlanExpert", "RoleExpert", "RoundsExpert", "SerialExpert"]
