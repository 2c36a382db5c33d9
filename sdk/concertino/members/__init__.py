"""Members of a pool: tools, agents and models, as providers declare them, and the context that a call receives."""

from .context import Context
from .routing import RouterSpec, router
from .specs import AgentSpec, ModelSpec, ToolSpec, agent, tool

__all__ = [
    "AgentSpec",
    "Context",
    "ModelSpec",
    "RouterSpec",
    "ToolSpec",
    "agent",
    "router",
    "tool",
]
