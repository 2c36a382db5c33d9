"""A reward: named terms with weights, added up; made in Python or read from a file. And the rewards of five systems.

    name: frugal
    preset: paramanager                # terms to begin with; none by default
    terms:
      diversity: {weight: 0}           # the term of the preset, changed
      efficiency: {cost_target: 4}
      money: {term: shared/spending, of: usd, limit: 0.05, weight: 0.5, when: right}

A term with `when: right` counts in right episodes alone: thrift among the successful, and nothing for failing cheaply.

The invariants: the total is the sum of weight times component, all finite; a term of weight 0 is not computed; a key
that nobody knows is an error that names near ones. So a file says all that the reward does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from concertino import UsageError
from concertino.core.trust import require
from concertino_bench.metrics import Preference

from concertino_train.episodes import Episode
from concertino_train.settings import did_you_mean

from . import at_grpo, gap, mas_orchestra, paramanager, shared, toolorchestra
from .plain import imported_term
from .term import Term

if TYPE_CHECKING:
    from concertino_bench.rescoring.rewarding import GradedRun

When = Literal["always", "right"]


class Weighted(NamedTuple):
    """A term, what its value is multiplied with, and in which episodes it counts: in all, or in right ones alone."""

    term: Term
    weight: float = 1.0
    when: When = "always"


@dataclass(frozen=True)
class Scored:
    """The reward of one episode.

    Attributes:
        total: the sum of weight times component.
        components: value of each term by its name in the reward, before weighting.
    """

    total: float
    components: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {"total": self.total, "components": dict(self.components)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Scored:
        """The inverse of `to_json`."""
        return cls(data["total"], data["components"])


@dataclass(frozen=True)
class Reward:
    """A weighted sum of terms.

    Attributes:
        name: for logs and error messages.
        terms: by component name.
        summary: one line.
    """

    name: str
    terms: Mapping[str, Weighted]
    summary: str = ""

    def __post_init__(self) -> None:
        for name, (_, weight, when) in self.terms.items():
            if when not in ("always", "right"):
                raise UsageError(f"reward {self.name!r}, {name}: when={when!r}; expected 'always' or 'right'")
            if not isinstance(weight, (int, float)) or isinstance(weight, bool) or not 0 <= weight < math.inf:
                raise UsageError(
                    f"reward {self.name!r}, {name}: weight={weight!r}; expected a number, 0 or more: every term says "
                    "what is better"
                )
        if not any(each.weight for each in self.terms.values()):
            raise UsageError(f"reward {self.name!r}: no term has a weight above 0, so it would always be 0")

    @property
    def charges(self) -> frozenset[str]:
        """What it may take reward away for, of `SPENDING`."""
        return frozenset().union(*(each.term.charged for each in self.terms.values() if each.weight))

    def score(self, group: Sequence[Episode]) -> list[Scored]:
        """Score episodes that are compared with each other.

        Args:
            group: G episodes of one group.

        Returns:
            G rewards, in the same order.

        Raises:
            UsageError: the episodes are of several groups, or lack what a term reads.
            UnpricedError: a term charges $ that are not known.
        """
        if len(keys := {episode.group for episode in group}) > 1:
            raise UsageError(
                f"reward {self.name!r}: episodes of {len(keys)} groups ({', '.join(sorted(keys)[:3])}, ...); terms "
                "compare the rollouts of one question, so score one group at a time"
            )
        # A term of weight 0 is not asked: it may need what the episodes lack, such as prices.
        columns = {name: self._column(name, each, group) for name, each in self.terms.items() if each.weight}
        return [
            Scored(
                # fsum rounds once, so the total does not depend on the order of the terms in a file.
                math.fsum(self.terms[name].weight * column[place] for name, column in columns.items()),
                {name: column[place] for name, column in columns.items()},
            )
            for place in range(len(group))
        ]

    def score_runs(self, runs: Sequence[GradedRun]) -> list[Scored]:
        """Score recorded runs that are compared with each other: what `concertino bench rescore` asks a reward for.

        Raises:
            UsageError: as `score`.
        """
        from .recorded import episodes_of

        return self.score(episodes_of(runs))

    def _column(self, name: str, weighted: Weighted, group: Sequence[Episode]) -> list[float]:
        term = weighted.term
        values = [float(value) for value in term.values(group)]
        if len(values) != len(group):
            raise UsageError(f"{term.name} gave {len(values)} values for {len(group)} episodes")
        for value, episode in zip(values, group, strict=True):
            if not math.isfinite(value):
                raise UsageError(
                    f"{term.name} ({name}) gave {value} for episode {episode.id!r}; expected a finite number"
                )
        if weighted.when == "right":
            return [value if episode.right else 0.0 for value, episode in zip(values, group, strict=True)]
        return values

    # -- as data -------------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, from which `from_json` makes an equal reward without any preset."""
        terms = {
            name: {
                "term": term.name,
                **({"weight": weight} if weight != 1 else {}),
                **({"when": when} if when != "always" else {}),
                **term.to_json(),
            }
            for name, (term, weight, when) in self.terms.items()
        }
        return {"name": self.name, **({"summary": self.summary} if self.summary else {}), "terms": terms}

    @classmethod
    def from_json(
        cls, data: Any, *, terms: Mapping[str, type[Term]] | None = None, presets: Mapping[str, Reward] | None = None
    ) -> Reward:
        """A reward from data.

        Args:
            data: `{"name", "preset", "summary", "terms": {component: {"term", "weight", parameters}}}`.
            terms: known terms; by default those that come with this package.
            presets: known rewards to begin with; likewise.

        Raises:
            UsageError: an unknown key, term, preset or parameter, with near names; or a value that cannot be.
        """
        known, made = TERMS if terms is None else terms, PRESETS if presets is None else presets
        if not isinstance(data, Mapping):
            raise UsageError(f"a reward is a table with `terms`; got {type(data).__name__}")
        _known_keys("reward", data, ("name", "preset", "summary", "terms"))
        preset = data.get("preset", "")
        if preset and preset not in made:
            raise UsageError(f"there is no reward {preset!r} to begin with; {did_you_mean(str(preset), list(made))}")
        found = dict(made[preset].terms) if preset else {}
        given = data.get("terms", {})
        if not isinstance(given, Mapping):
            raise UsageError(f"terms={given!r}: expected a table of components")
        for name, entry in given.items():
            found[str(name)] = _weighted(str(name), entry, found, known)
        summary = str(data.get("summary", made[preset].summary if preset else ""))
        return cls(str(data.get("name", preset or "reward")), found, summary)

    @classmethod
    def load(cls, path: str | Path, **known: Any) -> Reward:
        """A reward from a YAML or JSON file; further arguments are those of `from_json`.

        Raises:
            UntrustedFile: on the command line, it imports something, and was not trusted.
            UsageError: as `from_json`, with the file; or it cannot be read.
        """
        file = Path(path)
        try:
            data = _read(file)
        except UsageError as error:
            raise UsageError(f"{file}: {error}") from error
        require(file, data, "document")
        try:
            return cls.from_json(data, **known)
        except UsageError as error:
            raise UsageError(f"{file}: {error}") from error


def _weighted(name: str, entry: Any, found: Mapping[str, Weighted], known: Mapping[str, type[Term]]) -> Weighted:
    """A term as it is given, or the one that is there, changed."""
    where = f"terms.{name}"
    if not isinstance(entry, Mapping):
        raise UsageError(f"{where}: got {entry!r}; expected a table such as {{term: shared/correct, weight: 1}}")
    given = dict(entry)
    before = found.get(name)
    word = given.pop("term", before.term.name if before else None)
    if word is None:
        hint = f"; {did_you_mean(name, list(found))}" if found else ""
        raise UsageError(f"{where}: `term` is missing, and there is no component of that name to change{hint}")
    # `module:name` is imported here, for such a term is in no catalogue.
    if ":" in str(word):
        known = {**known, word: imported_term(str(word))}
    if word not in known:
        raise UsageError(f"{where}: there is no term {word!r}; {did_you_mean(str(word), list(known))}")
    # Another term in the place of the preset's starts from defaults: weight and parameters do not fit it.
    weight = given.pop("weight", before.weight if before and before.term.name == word else 1.0)
    when = given.pop("when", before.when if before and before.term.name == word else "always")
    parameters = {**before.term.to_json(), **given} if before and before.term.name == word else given
    return Weighted(known[word].from_json(parameters, where), weight, when)


def _known_keys(label: str, data: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in data:
        if key not in known:
            raise UsageError(f"{label}: unknown key {key!r}; {did_you_mean(str(key), known)}")


def _read(file: Path) -> Any:
    import yaml

    try:
        text = file.read_text(encoding="utf-8")
        return json.loads(text) if file.suffix == ".json" else yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UsageError(f"cannot be read: {' '.join(str(error).split())}") from error


# -- what comes with this package --------------------------------------------------------------------------------------

BALANCED = Preference(accuracy=1.0, usd=0.5, seconds=0.5)
"""What ToolOrchestra's reward falls back on for episodes without a preference."""


_REWARDS = [
    Reward(
        "paramanager",
        {
            "task": Weighted(paramanager.TaskReward()),
            "format": Weighted(paramanager.Format()),
            "diversity": Weighted(paramanager.Diversity()),
            "efficiency": Weighted(paramanager.Efficiency()),
        },
        "ParaManager Eq. 10: task + format + diversity + efficiency, 0 to 4",
    ),
    Reward(
        "paramanager-success-first",
        {
            "task": Weighted(paramanager.TaskReward()),
            "format": Weighted(paramanager.Format(), 0.5),
            "diversity": Weighted(paramanager.Diversity(), 0.5, "right"),
            "efficiency": Weighted(paramanager.Efficiency(), 0.5, "right"),
        },
        "ParaManager's terms, constrained: diversity and efficiency count in right episodes alone, so that no wrong "
        "one earns more than a right one",
    ),
    Reward(
        "toolorchestra",
        {"preference": Weighted(toolorchestra.PreferenceReward(BALANCED))},
        "ToolOrchestra §3.2: outcome times preferences; less money and time is more",
    ),
    Reward(
        "toolorchestra-as-released",
        {
            "preference": Weighted(toolorchestra.PreferenceReward(BALANCED, "as_released", clock="calls")),
        },
        "ToolOrchestra's published code; pays for spending, for comparison only",
    ),
    Reward(
        "mas-orchestra",
        {"correct": Weighted(mas_orchestra.CorrectAnswer())},
        "MAS-Orchestra Eq. 3: 1 for a right answer",
    ),
    Reward(
        "mas-orchestra-as-released",
        {
            "executed": Weighted(mas_orchestra.Executed(), mas_orchestra.RELEASED_EXECUTED),
            "correct": Weighted(mas_orchestra.CorrectAnswer(), mas_orchestra.RELEASED_CORRECT),
        },
        "MAS-Orchestra's published code: 0.1 for any output, 0.9 for the right one",
    ),
    Reward("gap", {"exact_match": Weighted(gap.GapExactMatch())}, "GAP Eq. 10: exact match"),
    Reward(
        "gap-as-released",
        {"exact_match": Weighted(gap.GapExactMatch("as_released"))},
        "GAP's published training code: every part of the answer among the gold ones",
    ),
    Reward("at-grpo", {"mixed": Weighted(at_grpo.AlphaMix())}, "AT-GRPO Eq. 4: α · team + local"),
    Reward(
        "at-grpo-lambda", {"mixed": Weighted(at_grpo.LambdaMix())}, "AT-GRPO App. A.1: λ · team + (1 - λ) · m · local"
    ),
    Reward("at-grpo-as-released", {"released": Weighted(at_grpo.Released())}, "AT-GRPO's published code"),
]
_TERMS: tuple[type[Term], ...] = (
    shared.Correct,
    shared.Answered,
    shared.OkCalls,
    shared.JudgedAnswer,
    shared.Spending,
    shared.Overlong,
    paramanager.TaskReward,
    paramanager.Format,
    paramanager.Diversity,
    paramanager.Parallelism,
    paramanager.Tools,
    paramanager.Efficiency,
    paramanager.Length,
    paramanager.CostReward,
    toolorchestra.OutcomeReward,
    toolorchestra.PreferenceReward,
    toolorchestra.PreferenceContrast,
    mas_orchestra.CorrectAnswer,
    mas_orchestra.Executed,
    gap.GapExactMatch,
    at_grpo.Team,
    at_grpo.Local,
    at_grpo.AlphaMix,
    at_grpo.LambdaMix,
    at_grpo.Released,
)
TERMS: dict[str, type[Term]] = {term.name: term for term in _TERMS}
"""The terms that come with this package, by name."""
PRESETS: dict[str, Reward] = {reward.name: reward for reward in _REWARDS}
"""The rewards of the five systems, by name."""
