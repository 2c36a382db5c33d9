"""The rewards of the five systems: as their papers print them, and as their code computes them where that differs."""

from __future__ import annotations

from concertino_bench.metrics import Preference

from . import at_grpo, gap, mas_orchestra, paramanager, shared, toolorchestra
from .reward import Reward, Weighted
from .term import Term

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
