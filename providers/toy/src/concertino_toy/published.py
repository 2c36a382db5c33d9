"""The models that this distribution publishes: three solvers, the scripted leader, the tiny conductor."""

from __future__ import annotations

from concertino import Model, ModelSpec, Prices

from .leader.scripted import ScriptedLeader
from .simulated.models import solver_specs


def model_specs() -> list[ModelSpec]:
    """The solvers from cheap to expensive, then the two orchestrators."""
    return [*solver_specs(), leader_spec(), conductor_spec()]


def leader_spec() -> ModelSpec:
    """The scripted leader."""
    text = "Simulated orchestrator: a fixed policy that leads solvers, under any of the strategies."
    return ModelSpec("leader", ScriptedLeader, description=text, prices=Prices(input=0.1, output=0.4), accepts=())


def conductor_spec() -> ModelSpec:
    """The tiny conductor."""

    def make() -> Model:
        # Its package imports numpy, which a list of members does not need.
        from .conductor import TinyConductor

        return TinyConductor()

    text = 'Tiny trained orchestrator: leads parallel rounds, prompt="brief", references=True; answers nothing itself.'
    return ModelSpec(
        "conductor", make, description=text, prices=Prices(0.0, 0.0), context=4096, max_tokens=512, accepts=()
    )
