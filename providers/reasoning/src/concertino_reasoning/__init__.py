"""concertino-reasoning: agents that reason, alone or several at once, and agents that you declare in a file.

Published: `cot`, `self_consistency`, `debate`, `reflexion`, `standard_reasoner`, `critical_reviewer`,
`ensemble_solver`, `conclude`, `extract`, and the agents of the TOML file that `agents` in `[providers.reasoning]` names
(pool file or `concertino.toml`).

    from concertino_reasoning import final_answer, load_agents
"""

from __future__ import annotations

from concertino import AgentSpec, ProviderSettings, hookimpl

from .agents import AGENTS, debate_agent, ensemble_agent, final_answer, reflexion_agent, self_consistency_agent
from .declared.file import load_agents
from .examples import concertino_examples as concertino_examples

__all__ = [
    "debate_agent",
    "ensemble_agent",
    "final_answer",
    "load_agents",
    "reflexion_agent",
    "self_consistency_agent",
]


@hookimpl
def concertino_agents(settings: ProviderSettings) -> list[AgentSpec]:
    """The built-in agents, then those of the file that the settings name."""
    settings.check(["agents"])
    path = settings.path("agents")
    return [*AGENTS, *(load_agents(path) if path else [])]
