"""Terms that belong to no one system: the answer, what was spent, and overlong texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from concertino import UsageError

from concertino_train.episodes import Episode

from .functions import SPENDING, indicator, overlong, spent
from .term import Term

Money = Literal["all", "calls"]


@dataclass(frozen=True)
class Correct(Term):
    """The grade."""

    name = "shared/correct"
    formula = "correct(τ)"
    source = "here"
    meaning = "The score of the grade: 1 for right, 0 for wrong and unparsable."

    def values(self, group: Sequence[Episode]) -> list[float]:
        """The score of each episode."""
        return [episode.correct for episode in group]


@dataclass(frozen=True)
class Answered(Term):
    """Whether there is an answer."""

    name = "shared/answered"
    formula = "1[there is an answer]"
    source = "here"
    meaning = "1 for any answer that is not blank, right or wrong."

    def values(self, group: Sequence[Episode]) -> list[float]:
        """1 or 0 for each episode."""
        return [indicator(episode.answered) for episode in group]


@dataclass(frozen=True)
class OkCalls(Term):
    """The share of calls that went well."""

    name = "shared/ok-calls"
    formula = "calls with status OK / calls; 1 without calls"
    source = "here"
    meaning = "How reliably the policy calls."

    def values(self, group: Sequence[Episode]) -> list[float]:
        """The share of each episode."""
        return [_share([call.ok for call in episode.calls]) for episode in group]


@dataclass(frozen=True)
class JudgedAnswer(Term):
    """How good an answer is beside the others of its group."""

    name = "shared/judged"
    formula = "score(τ) / 10, by a model that is shown all answers of the group"
    source = "here"
    meaning = "A model of the pool compares the answers of a group (`rollout.judge`). Needs no known answer."

    def values(self, group: Sequence[Episode]) -> list[float]:
        """The score of each episode."""
        if missing := [episode.id for episode in group if episode.judged is None]:
            raise UsageError(
                f"{self.name}: no model compared the answers of episode {missing[0]!r}; say which one does: "
                "rollout.judge={model: judge}"
            )
        return [episode.judged or 0.0 for episode in group]


class _Charge(Term):
    """A term that takes away up to 1 for what its field `of` names."""

    of: str

    @property
    def charged(self) -> frozenset[str]:
        """Only `of`."""
        return frozenset({self.of})

    @property
    def bounds(self) -> tuple[float, float]:
        """-1 to 0."""
        return -1.0, 0.0


@dataclass(frozen=True)
class Spending(_Charge):
    """A price for whatever is spent, the same for right and wrong."""

    of: str = "units"
    limit: float = 8.0
    money: Money = "all"

    name = "shared/spending"
    formula = "-min(1, spent(τ) / limit)"
    source = "here"
    meaning = "Takes away reward in proportion to what was spent, down to -1 at the limit."
    parameters: ClassVar[Mapping[str, str]] = {
        "of": f"what is charged: {', '.join(SPENDING)}",
        "limit": "in the unit of `of`, above 0: what costs a whole 1",
        "money": "for `usd`: `all`, or `calls` to leave out the policy's own tokens",
    }
    charges = frozenset(SPENDING)

    def __post_init__(self) -> None:
        self._one_of("of", list(SPENDING))
        self._one_of("money", ("all", "calls"))
        self._above_zero("limit")

    def values(self, group: Sequence[Episode]) -> list[float]:
        """The charge of each episode."""
        own = self.money == "all"
        return [-min(1.0, spent(each, self.of, policy=own, who=self.name) / self.limit) for each in group]


@dataclass(frozen=True)
class Overlong(_Charge):
    """DAPO's soft punishment of long texts."""

    longest: int = 24_576
    margin: int = 4_096
    of: Literal["sequence_tokens", "policy_tokens"] = "sequence_tokens"

    name = "shared/overlong"
    formula = "0 if L ≤ longest - margin; ((longest - margin) - L) / margin if L ≤ longest; else -1"
    source = "DAPO (arXiv 2503.14476), Eq. 13"
    meaning = "No punishment for length until the last `margin` tokens, then a straight line down to -1."
    parameters: ClassVar[Mapping[str, str]] = {
        "longest": "tokens allowed at most, above 0",
        "margin": "tokens before that from which on length is punished, above 0 and at most `longest`",
        "of": "`sequence_tokens` or `policy_tokens`",
    }
    charges = frozenset({"sequence_tokens", "policy_tokens"})

    def __post_init__(self) -> None:
        self._one_of("of", ("sequence_tokens", "policy_tokens"))
        self._above_zero("longest", "margin")
        if self.margin > self.longest:
            raise UsageError(f"{self.name}: margin={self.margin} is more than longest={self.longest}")

    def values(self, group: Sequence[Episode]) -> list[float]:
        """The punishment of each episode."""
        return [overlong(spent(each, self.of), self.longest, self.margin) for each in group]


def _share(marks: Sequence[bool]) -> float:
    # Without calls nothing went wrong; 0 would punish direct answers.
    return sum(marks) / len(marks) if marks else 1.0
