"""concertino-sim: simulated models for machines without a model, honestly named.

They read and solve one stated grammar of questions (quantities modulo 23, as in MASBENCH) and nothing
else. Published: the models `sim/swift`, `sim/steady`, `sim/sage` and `sim/conductor`, the agent
`sim/solve`, the tools `sim/calculate` and `sim/read_problem`. Importing this module imports none of
them; the hooks below do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from concertino import hookimpl

if TYPE_CHECKING:
    from concertino import AgentSpec, ModelSpec, ToolSpec

__all__ = ["concertino_agents", "concertino_examples", "concertino_models", "concertino_tools"]


@hookimpl
def concertino_tools() -> list[ToolSpec]:
    """The calculator and the reader."""
    from .tools import calculate, read_problem

    return [calculate, read_problem]


@hookimpl
def concertino_agents() -> list[AgentSpec]:
    """The solver."""
    from .agents import solve

    return [solve]


@hookimpl
def concertino_models() -> list[ModelSpec]:
    """Three solvers, cheap to dear, and the conductor."""
    from .models import model_specs

    return model_specs()


concertino_examples = {
    "calculate": {
        "examples": [({"expression": "20 * 3 + 1"}, 15), ({"expression": "7 - 9", "modulus": 10}, 8)],
        "rejected": [{}, {"expression": 3}, {"expression": "1", "modulus": "two"}],
    },
    "solve": {"rejected": [{}, {"subtask": "Problem", "model": "nobody"}]},
    "read_problem": {"rejected": [{}, {"text": 3}]},
    "swift": {},
    "steady": {},
    "sage": {},
}
"""What `concertino check` may call, and what is to come of it."""
