"""What an audit found: findings with a level, what was seen, and what to change.

The invariant: a finding stands for something that was computed from the episodes given, and quotes it; whoever reads
only the finding knows what to do next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from concertino import UsageError

Level = Literal["fail", "warn", "note"]
_ORDER: tuple[Level, ...] = ("fail", "warn", "note")


class AuditFailed(UsageError):
    """A reward or a batch that should not be trained on. `report` holds everything."""

    def __init__(self, message: str, report: AuditReport) -> None:
        super().__init__(message)
        self.report = report


@dataclass(frozen=True)
class AuditFinding:
    """One thing that was found.

    Attributes:
        level: `fail`: do not train; `warn`: look at it; `note`: good to know.
        code: one of `CODES`.
        seen: what was seen, with numbers.
        change: what to change; empty for a note that needs nothing.
        groups: where, at most five.
    """

    level: Level
    code: str
    seen: str
    change: str = ""
    groups: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {**asdict(self), "groups": list(self.groups)}


CODES: Mapping[str, str] = {
    "unscored": "the reward cannot score the episodes: it lacks something, or a price is not known",
    "spending-pays": "an episode gets more if it spends more, all else being equal",
    "right-hurts": "a wrong episode gets less if it is right, all else being equal",
    "higher-cost-rewarded": "of two right episodes of a group, the costlier one gets more",
    "wrong-above-right": "a wrong episode gets more than a right one of its group",
    "success-not-first": "a wrong episode can earn more than a right one: the reward can rise while success falls",
    "nothing-charged": "nothing that was spent is part of the reward",
    "one-pool": "all questions have the same pool, so that it can be learnt by heart",
    "choice-by-place": "pools differ, and the first call goes to the same place of the list whatever stands there",
    "all-equal": "all rewards of all groups are the same",
    "zero-variance": "many groups have equal rewards, so that nothing is learnt from them",
    "homogeneous": "many groups have rewards that hardly differ",
    "equal-rewards": "episodes of a group differ in result and spending, and their rewards are all equal",
    "group-of-one": "a group with one episode has nothing to compare",
    "mixed-group": "a group holds episodes of several questions, or rows with different prompts",
    "repeated-episode": "a group holds the same episode twice",
    "masked-reward": "a reward or an advantage stands on a token that the policy did not write",
    "nothing-trained": "a row has an advantage and no token to train",
    "filter-idle": "the filters leave out nothing",
    "filter-all": "the filters leave out everything",
    "empty": "there are no episodes",
}
"""Everything that can be found."""


ZERO_VARIANCE_WARN, ZERO_VARIANCE_FAIL = 0.5, 1.0
"""Share of groups with equal rewards from which on that is a warning, and a failure."""
HOMOGENEITY, HOMOGENEOUS_WARN = 0.1, 0.5
"""Std below which rewards hardly differ, and the share of such groups from which on that is a warning."""
WRONG_ABOVE_RIGHT_FAIL = 0.25
"""Share of pairs of a wrong and a right episode of one group, above which a wrong one that earns more is a failure."""


@dataclass(frozen=True)
class AuditReport:
    """The findings, gravest first, and the figures behind them.

    Attributes:
        reward: its name.
        findings: gravest first.
        figures: numbers of the batch: groups, episodes, shares, distinct rewards.
    """

    reward: str
    findings: tuple[AuditFinding, ...]
    figures: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, reward: str, findings: list[AuditFinding], figures: Mapping[str, Any]) -> AuditReport:
        """A report with its findings in order."""
        return cls(reward, tuple(sorted(findings, key=lambda each: _ORDER.index(each.level))), figures)

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not self.at("fail")

    def at(self, level: Level) -> tuple[AuditFinding, ...]:
        """The findings of one level."""
        return tuple(each for each in self.findings if each.level == level)

    def refuse(self, force: bool = False) -> AuditReport:
        """Raise if something failed, unless forced; else give the report back.

        Raises:
            AuditFailed: says what failed and what to change.
        """
        failed = self.at("fail")
        if failed and not force:
            told = "\n".join(f"  {each.code}: {each.seen}. {each.change}" for each in failed)
            raise AuditFailed(
                f"the audit of reward {self.reward!r} failed, so nothing is trained:\n{told}\n"
                "Change that, or force it if you know better",
                self,
            )
        return self

    def text(self) -> str:
        """For people."""
        figures = ", ".join(f"{name} {_shown(value)}" for name, value in self.figures.items())
        lines = [f"reward {self.reward}: {figures}"]
        for each in self.findings:
            lines.append(f"{each.level:<4}  {each.code}: {each.seen}")
            if each.groups:
                lines.append(f"      in {', '.join(each.groups)}")
            if each.change:
                lines.append(f"      {each.change}")
        if not self.findings:
            lines.append("nothing found")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "reward": self.reward,
            "ok": self.ok,
            "figures": dict(self.figures),
            "findings": [each.to_json() for each in self.findings],
        }


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
