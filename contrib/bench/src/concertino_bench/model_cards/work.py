"""The work of describing: answers, profile and text of each model, all models side by side.

Invariant: a model is described by all of its answers or not at all. One whose answers are incomplete keeps its text and
is named in `Described.unfinished`; what it did answer is kept and not asked again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from concertino import Budget, ModelSpec, Prices

from concertino_bench.tasks.grade import Grader

from .answers import CardQuestion, ModelAnswer
from .cache import Cache
from .collecting import Collected, Collector, gather
from .description import Described, Description, DescriptionProgress
from .facts import write_facts
from .guard import join, keep
from .profile import GradedAnswer, Profile, grade, measure
from .recording import recorded
from .writing import Writer

if TYPE_CHECKING:
    from concertino import Pool
    from concertino.executor import Executor

logger = logging.getLogger("concertino")


@dataclass
class Work:
    """One call of `describe`, under way.

    Attributes:
        specs: the models to describe.
        items: what is to be asked of each, by name.
        known: the answers that are there already, by the items' keys, by model.
        author: the writer model, if there is one.
    """

    specs: Sequence[ModelSpec]
    items: Mapping[str, Sequence[CardQuestion]]
    known: Mapping[str, dict[str, ModelAnswer]]
    author: ModelSpec | None
    cache: Cache
    graders: Sequence[Grader]
    on_progress: Callable[[DescriptionProgress], None] | None
    asked: dict[str, int] = field(default_factory=dict)
    unfinished: dict[str, str] = field(default_factory=dict)
    fresh: int = 0
    prices: Mapping[str, Prices | None] = field(default_factory=dict)
    begun: float = field(default_factory=time.monotonic)

    async def run(
        self, pool: Pool, asked: Pool, executor: Executor, budget: Budget, concurrency: int, trace: Path | None
    ) -> Described:
        """Describe every model, side by side.

        Args:
            asked: the same pool as it is asked.
        """
        # The writer may stand outside of the pool that is described; requests to it count all the same.
        scope_pool = asked if self.author is None or self.author.name in asked else asked.adding(self.author)
        self.prices = {spec.name: spec.prices for spec in pool.models}
        question = f"describe {', '.join(spec.name for spec in self.specs)}"
        with recorded(executor, scope_pool, budget, question, trace) as models:
            collector = Collector(models, self.cache, concurrency, self._answered)
            writer = Writer(self.author, models, self.cache) if self.author is not None else None
            found = await gather([self._one(spec, collector, writer) for spec in self.specs])
        if writer is not None and writer.asked:
            self.asked[writer.spec.name] = self.asked.get(writer.spec.name, 0) + writer.asked
        descriptions = tuple(description for description in found if description is not None)
        failed = models.scope.sink_failed
        incomplete = [f"{trace}: the trace is incomplete: {failed}"] if failed else []
        return Described(
            pool=pool.describe({description.model: description.text for description in descriptions}),
            descriptions=descriptions,
            unfinished={spec.name: self.unfinished[spec.name] for spec in self.specs if spec.name in self.unfinished},
            asked=self.asked,
            known={name: len(answers) for name, answers in self.known.items()},
            problems=(*self.cache.problems, *incomplete),
            usage=models.scope.ledger.usage,
        )

    async def _one(self, spec: ModelSpec, collector: Collector, writer: Writer | None) -> Description | None:
        items = self.items[spec.name]
        collected = await collector.collect(spec, items, self.known[spec.name])
        if collected.asked:
            self.asked[spec.name] = collected.asked
        missing = _why_undescribed(collected, len(items))
        if missing:
            self.unfinished[spec.name] = missing
            return None
        graded = grade(((item, collected.answers[item.key]) for item in items), self.graders)
        profile = measure(spec.name, graded, self.prices)
        facts = write_facts(profile)
        if writer is None:
            return Description(spec.name, facts, profile, "", profile.at)
        return await self._written(writer, profile, graded, facts)

    async def _written(
        self, writer: Writer, profile: Profile, graded: Sequence[GradedAnswer], facts: str
    ) -> Description:
        """The description with the writer's text, or with a note on why there is none."""
        said = await writer.write(profile, graded)
        by = writer.spec.name
        if said.note is None:
            silent = f"the figures alone: {by} did not write: {said.trouble}"
            return Description(profile.model, facts, profile, "", profile.at, (silent,))
        kept = keep(said.note, profile, graded)
        left_out = tuple(f"left out of what {by} wrote: {why} ({n})" for why, n in sorted(kept.dropped.items()))
        if not kept:
            notes = (*left_out, f"the figures alone: nothing that {by} wrote could be kept")
            return Description(profile.model, facts, profile, "", said.at, notes)
        return Description(profile.model, join(kept, facts), profile, by, said.at, left_out)

    def _answered(self, model: str) -> None:
        """Count an answer and report progress."""
        self.fresh += 1
        if self.on_progress is None:
            return
        known = sum(map(len, self.known.values()))
        total = sum(map(len, self.items.values()))
        seconds = time.monotonic() - self.begun
        try:
            self.on_progress(DescriptionProgress(model, known + self.fresh, total, known, seconds))
        except Exception:  # an observer must not stop work that is paid for
            logger.exception("on_progress failed and is not called any more")
            self.on_progress = None


def _why_undescribed(collected: Collected, wanted: int) -> str:
    """Why a model cannot be described, empty if it can."""
    if collected.open:
        return f"{wanted - collected.open} of {wanted} answers are there, then {collected.reason}"
    if not any(answer.ok for answer in collected.answers.values()):
        codes = ", ".join(sorted({answer.code for answer in collected.answers.values()}))
        return f"none of {wanted} requests was answered ({codes})"
    return ""
