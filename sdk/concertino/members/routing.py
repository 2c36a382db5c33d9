"""Routers: several models of a pool under one name, asked in an order that a policy decides at each request.

    fallback          in the order given
    lowest-cost       by the price of this prompt and the model's usual reply; an unknown price comes last
    lowest-latency    by the model's recent seconds per request; one not measured lately comes first
    round-robin       each in turn
    sticky            by the conversation: all of its requests go to one, which has its beginning in its cache
    provider/name     by a ranking of an installed plugin (`concertino_rankings`)

A router is a model like any other: a role can be bound to it, an agent can ask it. The model that answers is asked as
a request of its own, with its own price, breaker and record in the trace. If it fails, the next one is asked; one
that failed `failures` times in a row is *cooling down* and comes last for `cooldown` seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from concertino.core.errors import SpecError
from concertino.core.model import Model
from concertino.core.usage import is_amount

from .specs import ModelSpec

POLICIES = ("fallback", "lowest-cost", "lowest-latency", "round-robin", "sticky")
"""How a router can order its models without a plugin."""

OPTIONS = ("models", "policy", "cooldown", "failures", "per_model")
"""The keys of a router in a pool file."""


@dataclass(frozen=True, eq=False)
class RouterSpec(ModelSpec):
    """Several models under one name.

    Attributes:
        models: pool names, at least one.
        policy: how they are ordered: one of `POLICIES`, or an installed ranking as `provider/name`.
        cooldown: seconds for which a failing model comes last.
        failures: failures in a row after which a model cools down.
        per_model: seconds that one of them may take before the next is asked, None for as long as its own timeout.
    """

    models: tuple[str, ...] = ()
    policy: str = "fallback"
    cooldown: float = 30.0
    failures: int = 1
    per_model: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        label = f"router {self.name!r}"
        wrong = [name for name in self.models if not isinstance(name, str)]
        if wrong:
            raise SpecError(
                f"{label}: {wrong[0]!r} is not a name; write router({self.name!r}, 'one/model', 'other/model')"
            )
        if not self.models or len(set(self.models)) != len(self.models) or self.name in self.models:
            raise SpecError(f"{label}: models={list(self.models)!r}; expected names of other models, each once")
        if self.policy not in POLICIES and not self.ranking:
            raise SpecError(
                f"{label}: policy={self.policy!r}; expected one of {', '.join(POLICIES)}, or a ranking of an installed "
                "plugin as 'provider/name'"
            )
        numbers = (("cooldown", self.cooldown, 0), ("failures", self.failures, 1), ("per_model", self.per_model, 0.001))
        for name, value, least in numbers:
            if not (value is None and name == "per_model") and not is_amount(value, least):
                raise SpecError(f"{label}: {name}={value!r}; expected a number of at least {least:g}")

    @property
    def ranking(self) -> str:
        """The name of the installed ranking that orders the models, empty where a built-in policy does."""
        return self.policy if isinstance(self.policy, str) and "/" in self.policy else ""

    @property
    def needs(self) -> tuple[str, ...]:
        """Its models."""
        return self.models

    def routing(self) -> dict[str, Any]:
        """What a pool file says of it."""
        data: dict[str, Any] = {"models": list(self.models), "policy": self.policy, "cooldown": self.cooldown}
        data["failures"] = self.failures
        return data if self.per_model is None else {**data, "per_model": self.per_model}

    def to_json(self) -> dict[str, Any]:
        """As for a model, with its routing."""
        return {**super().to_json(), "routing": self.routing()}


def router(name: str, *models: str, policy: str = "fallback", **options: Any) -> RouterSpec:
    """Several models of a pool under one name.

    Args:
        name: the name in the pool.
        models: pool names of what it chooses from.
        policy: how it orders them.
        options: `cooldown`, `failures`, `per_model` and `description`. Prices and limits are those of its models.

    Raises:
        SpecError: an option cannot be; says which and why.
    """
    for option in options:
        if option not in (*OPTIONS, "description"):
            hint = "; set it on its models" if option in ModelSpec.__dataclass_fields__ else ""
            raise SpecError(
                f"router {name!r}: unknown option {option!r}{hint}; known: {', '.join(OPTIONS)}, description"
            )
    return RouterSpec(name, _never_made, models=tuple(models), policy=policy, **options)


def router_of(name: str, table: Mapping[str, Any]) -> RouterSpec:
    """The router of a table in a pool file.

    Raises:
        SpecError: a key is unknown or has a wrong value.
    """
    for key in table:
        if key not in OPTIONS:
            raise SpecError(f"router {name!r}: unknown key {key!r}; known: {', '.join(OPTIONS)}")
    models = table.get("models", [])
    if not isinstance(models, list) or not all(isinstance(model, str) for model in models):
        raise SpecError(f"router {name!r}: models={models!r}; expected a list of model names")
    rest = {key: value for key, value in table.items() if key != "models"}
    return router(name, *models, **rest)


def _never_made() -> Model:
    raise NotImplementedError("a router is not asked itself: the executor asks one of its models")
