"""Signs of collapse: figures that a training should not have for long, what they mean, and what to try.

Orchestrators collapse in a few known ways: one tool takes all calls, rounds or texts shrink to nothing or grow without
end, all rollouts of a question get the same reward, the format is lost. Each has a monitor with a bound.

The invariant: a warning is given when a figure has been bad for `patience` steps in a row, once, and again only after
the figure was good in between; so a log holds as many warnings as there were troubles. A training whose groups carry no
signal from the beginning says so within ten steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concertino_train.config.learning import MonitorSection


@dataclass(frozen=True)
class CollapseWarning:
    """A sign of collapse.

    Attributes:
        code: which monitor.
        step: at which step.
        seen: what was seen, with numbers.
        advice: what to try.
    """

    code: str
    step: int
    seen: str
    advice: str

    def __str__(self) -> str:
        return f"{self.code} at step {self.step}: {self.seen}. Try: {self.advice}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)


ADVICE: Mapping[str, str] = {
    "tool_entropy": "a term that pays for variety (paramanager/diversity), questions that need several members, a "
    "random subset of members for each question (pool.variation.keep), a higher temperature",
    "rounds": "harder questions, less weight on terms that take away for length and cost, a larger budget",
    "length": "less weight on terms that take away for length and cost; look at traces for answers without work",
    "longer": "a term that takes away for length (shared/overlong), fewer turn_tokens, a filter of overlong rollouts",
    "zero_variance": "dynamic sampling (algorithm.sampling.enabled), questions of mixed outcome, a larger group_size, "
    "a reward with more than two values",
    "no_signal": "questions that the policy gets right sometimes (tasks.train, tasks.outcomes), a higher temperature "
    "(rollout.temperature), a larger rollout.group_size, shorter teaching (trainer.sft.steps), a reward with more than "
    "two values (reward.terms), dynamic sampling (algorithm.sampling.enabled)",
    "format": "more supervised learning before, a lower learning rate, a format term in the reward, a filter of rows "
    "without the form (algorithm.filters.format)",
}
"""What to try, by monitor."""


_FIRST_STEPS = 8
"""Of a training: over them the share of groups without signal is taken."""


class Monitors:
    """Looks at the figures of every step.

    Args:
        settings: bounds, patience and warm-up.
    """

    def __init__(self, settings: MonitorSection) -> None:
        self.settings = settings
        self._bad: dict[str, int] = {code: 0 for code in ADVICE if code != "no_signal"}
        self._lengths: list[float] = []
        self._equal: list[float] = []
        """Shares of groups with equal rewards in the first steps."""

    def look(self, step: int, figures: Mapping[str, float]) -> list[CollapseWarning]:
        """What is a reason to worry since this step.

        Args:
            step: of the training, from 1.
            figures: `tool_entropy`, `members`, `calls`, `rounds`, `tokens`, `groups/zero_variance`, `format`, as far as
                they are known.
        """
        # What is usual is taken from the first steps, before any of them can have collapsed.
        if len(self._lengths) < max(1, self.settings.warmup) and "tokens" in figures:
            self._lengths.append(figures["tokens"])
        found = self._without_signal(step, figures)
        if step <= self.settings.warmup:
            return found
        for code, seen in self._signs(figures).items():
            self._bad[code] = self._bad[code] + 1 if seen else 0
            # Equal and not more: one warning for each trouble.
            if self._bad[code] == self.settings.patience:
                steps = f"for {self._bad[code]} steps in a row" if self._bad[code] > 1 else "now"
                found.append(CollapseWarning(code, step, f"{seen} {steps}", ADVICE[code]))
        return found

    def _without_signal(self, step: int, figures: Mapping[str, float]) -> list[CollapseWarning]:
        """Whether most groups of the first steps had equal rewards, from which nothing is learnt."""
        bound, share = self.settings.no_signal, figures.get("groups/zero_variance")
        if bound is None or share is None or len(self._equal) == _FIRST_STEPS:
            return []
        self._equal.append(share)
        mean = sum(self._equal) / len(self._equal)
        if len(self._equal) < _FIRST_STEPS or mean <= bound:
            return []
        seen = f"{mean:.0%} of the groups of the first {_FIRST_STEPS} steps have equal rewards, most is {bound:.3g}"
        return [CollapseWarning("no_signal", step, seen, ADVICE["no_signal"])]

    def _signs(self, figures: Mapping[str, float]) -> dict[str, str]:
        """What is bad, by monitor; an empty text where nothing is."""
        own, usual = self.settings, sum(self._lengths) / len(self._lengths) if self._lengths else 0.0
        # With one member to choose, or without any call, how evenly calls are spread says nothing.
        several = figures.get("calls", 0.0) > 0 and figures.get("offered", 2.0) > 1
        tokens = figures.get("tokens")
        return {
            "tool_entropy": _below(
                figures.get("tool_entropy") if several else None,
                own.tool_entropy,
                "calls go to few members: evenness {value:.2f} of shares",
            ),
            "rounds": _below(figures.get("rounds"), own.rounds, "{value:.2f} rounds"),
            "length": _below(
                tokens,
                None if own.length is None else own.length * usual,
                f"{{value:.0f}} tokens a rollout, {usual:.0f} in the beginning",
            ),
            "longer": _above(
                tokens,
                None if own.longer is None or not usual else own.longer * usual,
                f"{{value:.0f}} tokens a rollout, {usual:.0f} in the beginning",
            ),
            "zero_variance": _above(
                figures.get("groups/zero_variance"), own.zero_variance, "{value:.0%} of groups have equal rewards"
            ),
            "format": _below(figures.get("format"), own.format, "{value:.0%} of rollouts have the exact form"),
        }

    def dump(self) -> dict[str, Any]:
        """Its state, as plain JSON data."""
        return {"bad": dict(self._bad), "lengths": list(self._lengths), "equal": list(self._equal)}

    def restore(self, dumped: Mapping[str, Any]) -> None:
        """Continue where `dump` was made."""
        self._bad.update(dumped["bad"])
        self._lengths = list(dumped["lengths"])
        self._equal = list(dumped["equal"])


def _below(value: float | None, bound: float | None, text: str) -> str:
    return text.format(value=value) + f", least is {bound:.3g}" if _given(value, bound, lambda v, b: v < b) else ""


def _above(value: float | None, bound: float | None, text: str) -> str:
    return text.format(value=value) + f", most is {bound:.3g}" if _given(value, bound, lambda v, b: v > b) else ""


def _given(value: float | None, bound: float | None, bad: Callable[[float, float], bool]) -> bool:
    return value is not None and bound is not None and bad(value, bound)
