"""Agents that search and read through the pool, and cite what they read."""

from .gathered import AgentTools
from .knowledge import knowledge_searcher
from .research import ResearchLimits, deep_research

__all__ = ["AgentTools", "ResearchLimits", "deep_research", "knowledge_searcher"]
