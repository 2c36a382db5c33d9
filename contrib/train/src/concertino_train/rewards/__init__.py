"""Rewards: every term of five published systems as a pure function of finished rollouts, and weighted sums of them.

functions       shapes that several share, and what an episode spent
shared          terms of no one system
paramanager, toolorchestra, mas_orchestra, gap, at_grpo
                one system each: functions of numbers, and terms that read them off episodes
_term           what a term is; _reward: terms with weights, from Python or a file
_presets        the rewards of the five systems, by name
_plain          a function of an episode as a term, and terms by `module:name`
_installed      terms and rewards of all installed distributions
"""

from __future__ import annotations

from . import at_grpo, gap, mas_orchestra, paramanager, shared, toolorchestra
from ._installed import Catalogue, installed_rewards
from ._presets import presets
from ._reward import Reward, Scored, Weighted
from ._term import Term, UnpricedError, Variant
from .functions import SPENDING

_TERMS: tuple[type[Term], ...] = (
    shared.Correct, shared.Answered, shared.OkCalls, shared.Spending, shared.Overlong,
    paramanager.Task, paramanager.Format, paramanager.Diversity, paramanager.Parallelism, paramanager.Tools,
    paramanager.Efficiency, paramanager.Length, paramanager.Cost,
    toolorchestra.Outcome, toolorchestra.PreferenceReward,
    mas_orchestra.Correct, mas_orchestra.Executed,
    gap.ExactMatch,
    at_grpo.Team, at_grpo.Local, at_grpo.AlphaMix, at_grpo.LambdaMix, at_grpo.Released,
)  # fmt: skip
TERMS: dict[str, type[Term]] = {term.name: term for term in _TERMS}
"""The terms that come with this package, by name."""
PRESETS: dict[str, Reward] = {reward.name: reward for reward in presets()}
"""The rewards of the five systems, by name."""

__all__ = [
    "PRESETS",
    "SPENDING",
    "TERMS",
    "Catalogue",
    "Reward",
    "Scored",
    "Term",
    "UnpricedError",
    "Variant",
    "Weighted",
    "installed_rewards",
    "reference_page",
]


def reference_page() -> str:
    """The text of `docs/reference/rewards.md`, as Markdown."""
    from ._page import reference_page as page

    return page()
