"""concertino-sim: simulated models for machines without a model, honestly named.

They read and solve one stated grammar of questions (quantities modulo 23, as in MASBENCH) and nothing
else. Published: the models `sim/swift`, `sim/steady`, `sim/sage` and `sim/conductor`, the agent
`sim/solve`, the tools `sim/calculate`, `sim/read_problem` and `sim/combine`. Importing this module imports none of
them; the hooks below do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from concertino import hookimpl

if TYPE_CHECKING:
    from concertino import AgentSpec, ModelSpec, Pool, ToolSpec

__all__ = ["concertino_agents", "concertino_examples", "concertino_models", "concertino_tools"]


@hookimpl
def concertino_tools() -> list[ToolSpec]:
    """The calculator, the reader and the combiner."""
    from .tools import calculate, combine, read_problem

    return [calculate, read_problem, combine]


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


def _models() -> Pool:
    from concertino import Pool

    from .models import model_specs

    return Pool(model_specs(), roles={name: name for name in ("swift", "steady", "sage")})


_TEXT = "The number of each Attic's Chest equals 7. How many Chest does Attic have?"
_QUICK = "it is done at once"

concertino_examples = {
    "calculate": {
        "examples": [({"expression": "20 * 3 + 1"}, 15), ({"expression": "7 - 9", "modulus": 10}, 8)],
        "rejected": [{}, {"expression": 3}, {"expression": "1", "modulus": "two"}],
        "failing": [{"expression": "1 // 0"}, {"expression": "open('x')"}],
        "without": {"slow": _QUICK},
    },
    "solve": {
        "examples": [({"subtask": _TEXT}, lambda content: "\\boxed{7}" in content)],
        "rejected": [{}, {"subtask": "Problem", "model": "nobody"}],
        "make_pool": _models,
        "without": {"failing": "it fails only if its model does"},
    },
    "read_problem": {
        "examples": [({"text": _TEXT}, lambda content: content["count"] == 1)],
        "rejected": [{}, {"text": 3}],
        "without": {"slow": _QUICK, "failing": "what it does not understand is listed"},
    },
    "combine": {
        "examples": [
            ({"opinions": [["\\boxed{4}", "\\boxed{7}", "\\boxed{7}"], ["\\boxed{2}"]]}, "\\boxed{7}\n\\boxed{2}")
        ],
        "rejected": [{}, {"opinions": ["\\boxed{7}"]}, {"opinions": "\\boxed{7}"}],
        "failing": [{"opinions": [["unknown"]]}],
        "without": {"slow": _QUICK},
    },
    "swift": {},
    "steady": {},
    "sage": {},
    "conductor": {},
}
"""What `concertino check` may call, and what is to come of it."""
