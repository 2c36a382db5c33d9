"""A router: each question goes to the one model that did best on the most similar questions of a profile."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from concertino import UsageError
from concertino.strategies import Done, Step, TaskContext

from .members import AskedMember, members_of
from .procedure import Log, Procedure, failures, with_instruction
from .profiles import RouterProfile
from .voting import act


@dataclass(frozen=True)
class KnnRouter(Procedure):
    """The model with the most utility, accuracy minus `cost_weight` times $, over the k nearest questions.

    If its call fails or gives no text, the next one in the ranking is asked.

    A profile that was fitted to this very question knows which model answers it, which no router under test may know:
    such a run is refused before anything is asked.

    Args:
        profile: path of a file that `RouterProfile.save` wrote.
        k: neighbours that count.
        cost_weight: how much accuracy a $ is worth; 0 looks at accuracy alone.
        members: visible names to choose from; by default every model that is offered as an agent.
        tries: members that are asked, at most.
        instruction: put below the question; the router does not see it.
        allow_seen: answer questions that the profile was fitted to.
        digest: of the profile, computed if left out. Traces and results files keep it, so two profiles are two systems;
            a profile with another digest is refused.
        fitted: a `RouterProfile` object instead of a file; traces keep its digest only.
    """

    profile: str = ""
    k: int = 20
    cost_weight: float = 0.0
    members: tuple[str, ...] = ()
    tries: int = 2
    instruction: str = ""
    allow_seen: bool = False
    digest: str = ""
    fitted: RouterProfile | None = field(default=None, compare=False, repr=False)

    name = "knn-router"
    reads_tools = True

    def __post_init__(self) -> None:
        self._names("members")
        self._at_least(k=1, tries=1)
        if isinstance(self.cost_weight, bool) or not 0 <= self.cost_weight < float("inf"):
            self._refuse("cost_weight", "a number, 0 or more")
        if self.fitted is not None and not isinstance(self.fitted, RouterProfile):
            self._refuse("fitted", "a RouterProfile; the path of a file is `profile`")
        if not self.digest and (self.fitted is not None or (self.profile and Path(self.profile).is_file())):
            # The dataclass is frozen; the digest makes two profiles under one path two systems.
            object.__setattr__(self, "digest", self._profile().digest)

    def prepare(self, brief: TaskContext) -> Log:
        """Rank the members for this question."""
        log = super().prepare(brief)
        members = members_of(brief.tools, self.members, self.name)
        if not members:  # a replay that does not know the pool
            return log
        profile = self._profile()
        if self.digest and profile.digest != self.digest:
            raise UsageError(
                f"{self.name}: the profile has the digest {profile.digest}, and the settings say {self.digest}: it has "
                "changed since; give the profile that was meant, or make the strategy again without a digest"
            )
        # Leakage: the profile holds the graded outcome of this very question.
        if not self.allow_seen and profile.has_seen(brief.question):
            raise UsageError(
                f"{self.name}: the profile was fitted to this very question ({brief.question[:60]!r}), so it knows "
                "which model is right; fit it to other questions than those that are asked, or set allow_seen=True"
            )
        known = {member: model for member in members if (model := model_of(member.name, profile.models))}
        if not known:
            raise UsageError(
                f"{self.name}: the profile knows {', '.join(profile.models[:6])}, and the members are "
                f"{', '.join(member.name for member in members[:6])}; fit a profile to the models of this pool"
            )
        ranked = profile.rank(
            brief.question, k=self.k, cost_weight=self.cost_weight, among=list(dict.fromkeys(known.values()))
        )
        order = [member for each in ranked for member, model in known.items() if model == each.model]
        of = {each.model: each for each in ranked}
        # As text: a log is dumped and restored as JSON, and `decide` needs no profile then.
        notes = json.dumps([[m.name, of[known[m]].score, of[known[m]].usd, of[known[m]].neighbours] for m in order])
        return replace(log, members=tuple(order[: self.tries]), notes=notes)

    def decide(self, log: Log) -> Step:
        """Ask the best, then the next if that fails."""
        text = (log.results[-1].text or "").strip() if log.results else ""
        if text:
            return Done(text, "answered", self._why(log.members[len(log.results) - 1], log))
        if len(log.results) < len(log.members):
            asked = log.members[len(log.results)]
            return act([asked], with_instruction(log.question, self.instruction), log)
        return Done(None, "model", failures(log.results) or "no member wrote a text")

    def _why(self, asked: AskedMember, log: Log) -> str:
        # Found by name, since a ranking may hold members that were not asked.
        name, score, usd, neighbours = next(each for each in json.loads(log.notes) if each[0] == asked.name)
        cost = "$ unknown" if usd is None else f"${usd:.6f}"
        return f"{name}: {score:.2f} right, {cost}, over {neighbours} neighbours"

    def _profile(self) -> RouterProfile:
        if self.fitted is not None:
            return self.fitted
        if not self.profile:
            raise UsageError(f"{self.name}: no profile; give profile='profile.json', which RouterProfile.save writes")
        path = Path(self.profile)
        # Part of the cache's key, so a file that was written again is read again.
        stamp = path.stat().st_mtime_ns if path.exists() else 0
        return _loaded(str(path.absolute()), stamp)


def model_of(member: str, models: Sequence[str]) -> str | None:
    """The model of a profile that a member stands for: of its name, or of the name behind `ask_`, provider or not."""
    short = member.rpartition("__")[2]
    wanted = {member, short, short.removeprefix("ask_")}
    return next((model for model in models if wanted & {model, _visible(model)}), None)


def _visible(model: str) -> str:
    """The last part of a model's name as a model server would show it."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in model.rpartition("/")[2])[:60]


@lru_cache(maxsize=8)
def _loaded(path: str, stamp: int) -> RouterProfile:
    """A profile is read once as long as its file stays the same."""
    return RouterProfile.load(path)
