"""Scripted experts of the practice domain, as models: a policy learns its first steps from them.

progress  what an expert knows of its question, and whom it asks next
expert    what all experts share: reading a conversation, and slips
calls     for `ParallelRounds` and `SerialCalls`, with brief prompts and references
plans     for `DependencyPlan` and `AgentGraph`, with brief prompts
roles     for the role workflows
choice    the expert for a strategy
"""

from .choice import practice_expert
from .progress import Habits

__all__ = ["Habits", "practice_expert"]
