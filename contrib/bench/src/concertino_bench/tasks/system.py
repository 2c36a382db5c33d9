"""A system is what a bench compares: a strategy, who leads it, and which members of the pool it may use.

The invariant: every system runs through the same orchestrator, executor, budget and trace, the simplest baseline too.
So what is compared are paradigms and models, and never two ways of counting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from concertino.strategies import DEFAULT_STRATEGY

if TYPE_CHECKING:
    from concertino import Model, ModelSpec, Pool, Sampling, Shortlist, Strategy


Counterfactual = Literal["order reversed", "cards permuted"]
"""What can be changed of a pool, to see whether a choice follows the descriptions."""
COUNTERFACTUALS: tuple[Counterfactual, ...] = get_args(Counterfactual)


@dataclass(frozen=True)
class System:
    """One thing to compare.

    Attributes:
        name: what reports call it.
        strategy: the paradigm, as an object or a name that a plugin declares, baselines included.
        model: who leads: a role or a name of the pool.
        only: patterns of members that it has; all by default.
        offer: patterns of models that its leader may call as agents, `ask_<name>`.
        roles: further roles, bound to names of the pool.
        sampling: how its leader samples; a run of sample k takes `seed + k`.
        eager: begin calls while the leader still writes.
        shortlist: lists the members of each task's pool that a ranking puts first.
        copies: a model. All models but it and the leader are copies of it. Their names stay, because agents of a pool
            name the models that they need.
        prepare: a last change of the pool, for what patterns cannot say.
        summary: one line for reports.
        change: what is changed of the pool that it meets, to see whether its choice follows the descriptions.
    """

    name: str
    strategy: Strategy | str = DEFAULT_STRATEGY
    model: str | Model | ModelSpec = "orchestrator"
    only: Sequence[str] = ()
    offer: Sequence[str] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    sampling: Sampling | None = None
    eager: bool = False
    shortlist: Shortlist | None = None
    copies: str = ""
    prepare: Callable[[Pool], Pool] | None = None
    summary: str = ""
    change: Counterfactual | Literal[""] = ""

    def pool(self, pool: Pool) -> Pool:
        """The pool with the members and roles of this system."""
        # Patterns first: they would leave out the agents that are offered next.
        seen = pool.only(*self.only) if self.only else pool
        seen = seen.offering(*self.offer) if self.offer else seen
        seen = seen.bind(**self.roles) if self.roles else seen
        seen = self._with_copies(seen) if self.copies else seen
        return self.prepare(seen) if self.prepare else seen

    def _with_copies(self, pool: Pool) -> Pool:
        copied = pool.model(self.copies)
        leader = pool.model(self.model).name if isinstance(self.model, str) else ""
        for spec in pool.models:
            if spec.name not in (copied.name, leader):
                pool = pool.replace(spec.name, copied.with_(name=spec.name))
        return pool

    def to_json(self) -> dict[str, Any]:
        """The system as the header of a results file holds it."""
        return {
            "name": self.name,
            "strategy": self.strategy if isinstance(self.strategy, str) else self.strategy.to_json(),
            "model": self.model if isinstance(self.model, str) else getattr(self.model, "name", "a model object"),
            "only": list(self.only),
            "offer": list(self.offer),
            "roles": dict(self.roles),
            "sampling": asdict(self.sampling) if self.sampling is not None else None,
            "eager": self.eager,
            "summary": self.summary,
            **({"shortlist": self.shortlist.to_json()} if self.shortlist else {}),
            **({"copies": self.copies} if self.copies else {}),
            **({"change": self.change} if self.change else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> System:
        """The inverse of `to_json`, for a system without objects of its own.

        Raises:
            UsageError: its strategy is not installed.
        """
        from concertino import Sampling, Shortlist
        from concertino.strategies.built_in import installed_strategy

        given = dict(data)
        if not isinstance(strategy := given["strategy"], str):
            given["strategy"] = installed_strategy(strategy["name"]).from_json(strategy)
        if (sampling := given.get("sampling")) is not None:
            given["sampling"] = Sampling(**{**sampling, "stop": tuple(sampling.get("stop", ()))})
        if given.get("shortlist"):
            given["shortlist"] = Shortlist.parse(given["shortlist"])
        return cls(**given)

    def own_objects(self) -> list[str]:
        """What of it is an object of this program, so that `to_json` loses it; in words."""
        from concertino import UsageError

        from .named_change import change_to_json

        own = [] if isinstance(self.model, str) else ["model"]
        own += ["change of the pool (prepare)"] if self.prepare and not change_to_json(self.prepare) else []
        try:
            same = System.from_json(self.to_json())
        except (UsageError, TypeError, ValueError, LookupError, AttributeError):
            return [*own, "strategy"]
        own += ["strategy"] if type(same.strategy) is not type(self.strategy) else []
        return own + (["shortlist"] if same.shortlist != self.shortlist else [])


def with_counterfactuals(systems: Iterable[System]) -> list[System]:
    """Each system as it is, with the order of the pool reversed, and with its descriptions permuted."""
    return [
        changed
        for system in systems
        for changed in (
            system,
            *(replace(system, name=f"{system.name}, {each}", change=each) for each in COUNTERFACTUALS),
        )
    ]
