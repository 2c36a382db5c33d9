"""Baselines as systems of an evaluation, made for one pool.

Invariant: every system sees the same models of the same pool, at the same prices; what differs is the strategy and
which members it may call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from concertino import ModelSpec, Pool, RouterSpec, UsageError
from concertino.schema import suggestion
from concertino.strategies import Strategy

from concertino_bench.graders.answer_keys import Form
from concertino_bench.tasks.system import System

from .loops import Prompted, Serial, SingleWithTools
from .profiles import RouterProfile
from .routing import KnnRouter
from .single import SelfRefine, SingleModel
from .voting import Cascade, MajorityVote
from .workflow import StaticWorkflow


@dataclass(frozen=True)
class _Bench:
    """What the systems of one pool share."""

    pool: Pool
    models: tuple[ModelSpec, ...]
    leader: str
    answers: Form
    profile: str | RouterProfile
    workflow: str
    allow_seen: bool = False

    @property
    def cheap_first(self) -> list[str]:
        """Full names of the models by price; those of unknown price last."""
        return [model.name for model in sorted(self.models, key=_price_order)]


def systems(
    pool: Pool,
    names: Sequence[str] | None = None,
    *,
    leader: str = "",
    answers: Form = "auto",
    profile: str | RouterProfile = "",
    workflow: str = "",
    allow_seen: bool = False,
) -> list[System]:
    """The baselines as systems.

    Args:
        pool: whose models are asked, each of them as a single model and all of them in votes, cascades and routers.
        names: of `NAMES`; by default all that can work with this pool and these arguments.
        leader: the model that leads the loops; by default the pool's role `orchestrator`, else its cheapest model.
        answers: how votes compare answers: `number`, `text` or `auto`.
        profile: what `knn-router` goes by: a `RouterProfile` or the file of one.
        workflow: the file of `static-workflow`.
        allow_seen: let `knn-router` answer questions that its profile was fitted to.

    Returns:
        One system for each name, and one for each model under `single-model:<model>`.

    Raises:
        UsageError: an unknown name, or one that cannot work; says what it lacks.
    """
    for name in names or ():
        if name not in NAMES:
            hint = suggestion(name, NAMES)
            raise UsageError(f"there is no baseline {name!r}; {hint}")
    models = tuple(model for model in pool.models if not isinstance(model, RouterSpec))
    if not models:
        raise UsageError("the pool holds no model; baselines ask the models of a pool")
    # min keeps the first of equal keys, so the pool's order decides between models of one price
    cheapest = min(models, key=_price_order).name
    chosen = pool.model(leader or pool.roles.get("orchestrator", "") or cheapest).name
    bench = _Bench(pool, models, chosen, answers, profile, workflow, allow_seen)
    found: list[System] = []
    for name in names or NAMES:
        lacks = _lacks(name, bench)
        if not lacks:
            found += _MAKERS[name](bench)
        elif names is not None:
            raise UsageError(f"baseline {name!r}: {lacks}")
    return found


def _lacks(name: str, bench: _Bench) -> str:
    """What keeps a baseline from working, empty if nothing does."""
    if name == "knn-router" and not bench.profile:
        return "it needs profile=..., a RouterProfile or the file of one"
    if name == "static-workflow" and not bench.workflow:
        return "it needs workflow=..., the file of a graph"
    if name == "single-with-tools" and not any(spec.kind == "tool" for _, spec in bench.pool.actions):
        return "the pool holds no tool"
    return ""


# -- one maker per name --------------------------------------------------------------------------------------------


def _single(bench: _Bench) -> list[System]:
    return [
        System(
            f"single-model:{model.short_name}",
            SingleModel(),
            model.name,
            prepare=partial(experts, models=(model.name,)),
            summary=f"{model.short_name} alone",
        )
        for model in bench.models
    ]


def _with_tools(bench: _Bench) -> list[System]:
    return [
        System("single-with-tools", SingleWithTools(), bench.leader, prepare=tools_only, summary="one model, tools")
    ]


def _vote(bench: _Bench) -> list[System]:
    expensive_first = visible(bench.pool, bench.cheap_first[::-1])  # of tied answers, the first one wins
    strategy = MajorityVote(members=tuple(expensive_first), answers=bench.answers)
    return [_asking(bench, "majority-vote", strategy, "all models vote; a tie goes to the most expensive")]


def _refine(bench: _Bench) -> list[System]:
    return [_asking(bench, "self-refine", SelfRefine(), "draft, critique, revision")]


def _router(bench: _Bench) -> list[System]:
    given = bench.profile
    at_hand = isinstance(given, RouterProfile)
    own: dict[str, Any] = {"fitted" if at_hand else "profile": given, "allow_seen": bench.allow_seen}
    strategy = KnnRouter(**own)
    return [_asking(bench, "knn-router", strategy, "the best model of the nearest questions")]


def _cascade(bench: _Bench) -> list[System]:
    strategy = Cascade(members=tuple(visible(bench.pool, bench.cheap_first)), answers=bench.answers)
    return [_asking(bench, "cascade", strategy, "cheap models first, until two agree")]


def _workflow(bench: _Bench) -> list[System]:
    prepare = partial(offered, models=tuple(model.name for model in bench.models))
    strategy = StaticWorkflow(file=bench.workflow)
    return [System("static-workflow", strategy, bench.leader, prepare=prepare, summary="a fixed graph")]


def _loop(bench: _Bench, strategy: Serial | Prompted, summary: str) -> list[System]:
    prepare = partial(offered, models=tuple(model.name for model in bench.models))
    return [System(strategy.name, strategy, bench.leader, prepare=prepare, summary=summary)]


_MAKERS: dict[str, Callable[[_Bench], list[System]]] = {
    "single-model": _single,
    "single-with-tools": _with_tools,
    "majority-vote": _vote,
    "self-refine": _refine,
    "knn-router": _router,
    "cascade": _cascade,
    "static-workflow": _workflow,
    "serial": lambda bench: _loop(bench, Serial(), "one call in a round"),
    "prompted": lambda bench: _loop(bench, Prompted(), "parallel rounds, prompted"),
}
NAMES = tuple(_MAKERS)
"""The baselines, simplest first."""


def _asking(bench: _Bench, name: str, strategy: Strategy, summary: str) -> System:
    """A system whose members are the models and nothing else."""
    names = tuple(model.name for model in bench.models)
    return System(name, strategy, bench.leader, prepare=partial(experts, models=names), summary=summary)


# -- pools ---------------------------------------------------------------------------------------------------------


def offered(pool: Pool, models: Sequence[str]) -> Pool:
    """The pool with these models offered as agents, where they are not yet."""
    behind = {spec.needs for _, spec in pool.actions}
    missing = [model for model in models if (model,) not in behind]
    return pool.offering(*missing) if missing else pool


def experts(pool: Pool, models: Sequence[str]) -> Pool:
    """The pool with these models as agents, and no other tool or agent."""
    found = offered(pool, models)
    return found.only(*(spec.name for _, spec in found.actions if spec.needs and spec.needs[0] in models))


def tools_only(pool: Pool) -> Pool:
    """The pool without agents."""
    return pool.only(*(spec.name for _, spec in pool.actions if spec.kind == "tool"))


def visible(pool: Pool, models: Sequence[str]) -> list[str]:
    """Visible names of the agents that these models are offered as, in the order of the models."""
    # Strategies name members as the leader's model server shows them, which may differ from the pool's names.
    names = {spec.needs[0]: name for name, spec in experts(pool, models).actions}
    return [names[model] for model in models]


def _price_order(model: ModelSpec) -> tuple[bool, float]:
    """Cheap before expensive, and an unknown price last."""
    return model.prices is None, model.prices.input + model.prices.output if model.prices else 0.0
