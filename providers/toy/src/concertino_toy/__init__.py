"""concertino-toy: a toy domain for machines without a model: simulations, a practice pool, a tiny trained orchestrator.

problems    word problems about quantities: their grammar, its reader, its writer and its exact solver
simulated   models that read and solve these problems as far as their skill allows, and the tools beside them
leader      a scripted orchestrator for all five strategies
published   the models under `toy/`
demo        the question and the pool of `concertino demo`
practice    questions about made-up places, and a pool that toy recipes train on
exercises   random questions and pools from which the tiny conductor learned, and the script that it learned from
conductor   the tiny conductor: its weights, and numpy code that runs them

Nothing here imitates intelligence: the simulated models solve one stated grammar, and say so of everything else.
This module imports none of its packages; the hooks below do, so numpy is loaded only for the tiny conductor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from concertino import hookimpl

if TYPE_CHECKING:
    from concertino import AgentSpec, ModelSpec, Pool, ToolSpec


@hookimpl
def concertino_tools() -> list[ToolSpec]:
    """The calculator, the reader and the combiner."""
    from .simulated.tools import calculate, combine, read_problem

    return [calculate, read_problem, combine]


@hookimpl
def concertino_agents() -> list[AgentSpec]:
    """The solver."""
    from .simulated.agents import solve

    return [solve]


@hookimpl
def concertino_models() -> list[ModelSpec]:
    """Three simulated solvers from cheap to expensive, the scripted leader, and the tiny conductor."""
    from .published import model_specs

    return model_specs()


def _solvers() -> Pool:
    from concertino import Pool

    from .simulated.models import solver_specs

    return Pool(solver_specs(), roles={name: name for name in ("swift", "steady", "sage")})


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
        "make_pool": _solvers,
        "without": {"failing": "it fails only if its model does"},
    },
    "read_problem": {
        "examples": [({"text": _TEXT}, lambda content: content["count"] == 1)],
        "rejected": [{}, {"text": 3}],
        "without": {"slow": _QUICK, "failing": "sentences that it does not understand are listed"},
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
    "leader": {},
    "conductor": {
        "prompt": "Which part is next?",
        "honours_max_tokens": True,
        "honours_stop": True,
        "logprobs": True,
    },
}
"""What `concertino check` may call, and the results that it expects."""
