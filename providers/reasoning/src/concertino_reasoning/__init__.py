"""concertino-reasoning: agents that reason, alone or several at once, and agents that you declare in a file.

Published: `cot`, `self_consistency`, `debate`, `reflexion`, `standard_reasoner`, `critical_reviewer`,
`ensemble_solver`, `conclude`, `extract`, and the agents of the TOML file that `agents` in `[providers.reasoning]` names
(pool file or `concertino.toml`). Importing this module imports none of them; the hook below does.

    from concertino_reasoning import load_agents, final_answer
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from concertino import hookimpl

if TYPE_CHECKING:
    from concertino import AgentSpec, ProviderSettings

    from .agents import debate_agent, ensemble_agent, final_answer, reflexion_agent, self_consistency_agent
    from .custom import load_agents
    from .examples import concertino_examples

__all__ = [
    "concertino_agents",
    "concertino_examples",
    "debate_agent",
    "ensemble_agent",
    "final_answer",
    "load_agents",
    "reflexion_agent",
    "self_consistency_agent",
]

_HOME_OF = {
    "concertino_examples": "examples",
    "debate_agent": "agents",
    "ensemble_agent": "agents",
    "final_answer": "agents",
    "load_agents": "custom",
    "reflexion_agent": "agents",
    "self_consistency_agent": "agents",
}


@hookimpl
def concertino_agents(settings: ProviderSettings) -> list[AgentSpec]:
    """The built-in agents, then those of the file that the settings name."""
    from .agents import AGENTS
    from .custom import load_agents

    settings.check(["agents"])
    path = settings.path("agents")
    return [*AGENTS, *(load_agents(path) if path else [])]


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'concertino_reasoning' has no attribute {name!r}")
    return getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
