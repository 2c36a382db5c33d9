"""The pool that a settings file describes, and its variations.

The invariant: the variation of a question follows from the training's seed and the question's number alone, so that a
resumed training, another rank, and a second run see the same pools.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from concertino import Cost, Pool, PoolError, Prices, Shortlist, UsageError
from concertino_bench.metrics import Preference
from concertino_bench.tasks.unseen import unseen_pool

from concertino_train.config.named import make_named

if TYPE_CHECKING:
    from concertino_train.config.sections import Named, PoolSection, PreferenceSection, Variation

MAKERS: Mapping[str, str] = {
    "practice": "concertino_toy.practice:practice_pool",
    "practice-workflow": "concertino_toy.practice:workflow_pool",
}
"""Functions that make pools, by the names that settings files use."""


def make_pool(section: PoolSection, **changed: Any) -> Pool:
    """The pool of the section `pool`, without variation.

    Args:
        section: of the settings.
        changed: arguments of `pool.make` that are others.

    Raises:
        UsageError: more than one source; an unknown member, model or pattern; or the function refuses its arguments.
    """
    sources = [name for name in ("make", "file", "members") if getattr(section, name)]
    if len(sources) > 1:
        raise UsageError(f"pool: {' and '.join(sources)} are given; expected one source of members")
    if section.make is not None:
        pool = _made(section.make, changed)
    elif section.file:
        pool = Pool.load(section.file)
    else:
        pool = Pool.installed(*section.members)
    pool = pool.bind(**section.roles) if section.roles else pool
    pool = pool.without(*section.without) if section.without else pool
    return pool.offering(*section.offer) if section.offer else pool


def make_shortlist(section: PoolSection) -> Shortlist | None:
    """What the policy sees of the pool; None for all of it."""
    return None if section.shortlist is None else Shortlist.parse(section.shortlist)


def _made(section: Named, changed: Mapping[str, Any]) -> Pool:
    pool = make_named(section, MAKERS, "pool.make", **changed)
    if not isinstance(pool, Pool):
        raise UsageError(f"pool.make: {section.name} gave a {type(pool).__name__}; expected a Pool")
    return pool


class VariedPool:
    """A pool with what differs from question to question.

    Args:
        section: of the settings.
        seed: of the training.

    Raises:
        UsageError: as `make_pool`; or a price, cost or preference is of a member that no variation has.
    """

    def __init__(self, section: PoolSection, seed: int) -> None:
        self.section = section
        self.seed = seed
        self._made = {number: make_pool(section, **make) for number, make in enumerate(section.variation.make)}
        self.plain = make_pool(section) if not self._made else self._made[0]
        self._check()

    def draw(self, number: int) -> tuple[Pool, PreferenceSection | None]:
        """The pool of a question, and what its user prefers.

        Args:
            number: of the question since the training began.
        """
        varied = self.section.variation
        # A text as the seed gives the same numbers in every process, unlike the hash of one.
        rng = random.Random(f"pool {self.seed} {number}")
        pool = self._made[rng.randrange(len(self._made))] if self._made else self.plain
        prices = [{name: Prices(**each.model_dump()) for name, each in table.items()} for table in varied.prices]
        pool = pool.sample(rng, keep=varied.keep, always=varied.always, rename=varied.rename, prices=prices)
        if varied.costs:
            for pattern, cost in rng.choice(varied.costs).items():
                pool = _costing(pool, pattern, Cost(**cost.model_dump()))
        pool = unseen_pool(pool, varied.unseen, f"training {self.seed} {number}")
        return pool, draw_preference(varied, self.seed, number)

    def _check(self) -> None:
        """Refuse names that mean nothing in any of the pools; drawing passes over members that were left out."""
        varied = self.section.variation
        pools = list(self._made.values()) or [self.plain]
        for key, tables in (("prices", varied.prices), ("costs", varied.costs)):
            for name in {name for table in tables for name in table}:
                if not any(_has(pool, name) for pool in pools):
                    self._refuse(key, name)
        for pattern in varied.always:
            if not any(_has(pool, pattern) for pool in pools):
                self._refuse("always", pattern)

    def _refuse(self, key: str, name: str) -> None:
        try:
            self.plain.only(name)
        except PoolError as error:
            raise UsageError(f"pool.variation.{key}: {error}") from error
        raise UsageError(f"pool.variation.{key}: the pool has no member {name!r}")


def draw_preference(varied: Variation, seed: int, number: int) -> PreferenceSection | None:
    """What the user of a question prefers; None where nobody said.

    Args:
        varied: of the settings.
        seed: of the training.
        number: of the question.
    """
    rng = random.Random(f"preference {seed} {number}")
    if not varied.preferences or rng.random() >= varied.preference_share:
        return None
    return rng.choice(varied.preferences)


def asked_with(question: str, prefers: PreferenceSection | None) -> str:
    """A question with what its user prefers behind it."""
    return f"{question}\n\n{prefers.text}" if prefers is not None and prefers.text else question


def preference_of(section: PreferenceSection) -> Preference:
    """The weights, as rewards read them."""
    return Preference(dict(section.members), section.accuracy, section.usd, section.seconds)


def _has(pool: Pool, pattern: str) -> bool:
    try:
        pool.adjust(pattern)
    except PoolError:
        return False
    return True


def _costing(pool: Pool, pattern: str, cost: Cost) -> Pool:
    return pool.adjust(pattern, cost=cost) if _has(pool, pattern) else pool
