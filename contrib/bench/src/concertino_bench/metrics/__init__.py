"""Metrics of results: one definition each, computed from items alone.

The idea: a metric is a ratio of two sums over tasks. So one definition gives the value, its interval and the paired
difference of two systems. `METRICS` is the table of contents; the page of the reference is made from it.
"""

from __future__ import annotations

from ._metric import Metric, Terms, Value, by_system, by_task, define
from .accuracy import GRADER_VALUE, MEAN_AT_K, accuracy, mean_at, partial_credit, unparsable, value_mean
from .answer_keys import FORMS, Form, answer_key, found_key
from .intervals import LEVEL, RESAMPLES, intervals
from .latency import LATENCY, Latency, latency, percentile
from .pairs import Comparison, Difference, McNemar, compare, holm, mcnemar_p
from .passes import PASS_AT_K, pass_at, pass_at_k
from .preferences import (
    PREFERENCE_ADHERENCE,
    PREFERENCE_REWARD,
    Preference,
    preference_adherence,
    preference_reward,
)
from .shapes import depth, parallel_rounds, width
from .shares import (
    MODEL_SHARE,
    TOOL_SHARE,
    Entropy,
    Share,
    model_entropy,
    model_share,
    tool_entropy,
    tool_share,
    unique_tools,
)
from .spending import (
    cached_tokens,
    calls,
    cost_of_pass,
    grading_usd,
    input_tokens,
    known_usd,
    output_tokens,
    rounds,
    units,
    usd,
)
from .statuses import STATUS_MIX, format_rate, ok_rate, recovery_rate, status_mix
from .times import critical_path, path_share, seconds, speedup
from .votes import MAJ_AT_K, majority, majority_at

_CONTENTS: dict[str, tuple[Metric, ...]] = {
    "Answers": (accuracy, MEAN_AT_K, PASS_AT_K, MAJ_AT_K, partial_credit, unparsable, GRADER_VALUE),
    "Spending": (
        usd, cost_of_pass, units, calls, rounds, input_tokens, output_tokens, cached_tokens, grading_usd
    ),
    "Time": (seconds, critical_path, speedup, path_share, LATENCY),
    "Members": (TOOL_SHARE, MODEL_SHARE, tool_entropy, model_entropy, unique_tools),
    "Plans": (width, depth, parallel_rounds),
    "Statuses and form": (STATUS_MIX, ok_rate, recovery_rate, format_rate),
    "Preferences": (PREFERENCE_ADHERENCE, PREFERENCE_REWARD),
}  # fmt: skip
METRICS: dict[str, Metric] = {metric.name: metric for group in _CONTENTS.values() for metric in group}
"""All definitions by name: the table of contents. Those whose `terms` are None need a parameter, or give a table."""
GROUPS: dict[str, tuple[str, ...]] = {name: tuple(each.name for each in group) for name, group in _CONTENTS.items()}
"""Names of metrics by what they are about."""


def reference_page() -> str:
    """The page of the reference about metrics, as Markdown."""
    from ._page import reference_page as page

    return page()


__all__ = [
    "FORMS",
    "GROUPS",
    "LEVEL",
    "METRICS",
    "RESAMPLES",
    "Comparison",
    "Difference",
    "Entropy",
    "Form",
    "Latency",
    "McNemar",
    "Metric",
    "Preference",
    "Share",
    "Terms",
    "Value",
    "accuracy",
    "answer_key",
    "by_system",
    "by_task",
    "cached_tokens",
    "calls",
    "compare",
    "cost_of_pass",
    "critical_path",
    "define",
    "depth",
    "format_rate",
    "found_key",
    "grading_usd",
    "holm",
    "input_tokens",
    "intervals",
    "known_usd",
    "latency",
    "majority",
    "majority_at",
    "mcnemar_p",
    "mean_at",
    "model_entropy",
    "model_share",
    "ok_rate",
    "output_tokens",
    "parallel_rounds",
    "partial_credit",
    "pass_at",
    "pass_at_k",
    "path_share",
    "percentile",
    "preference_adherence",
    "preference_reward",
    "recovery_rate",
    "reference_page",
    "rounds",
    "seconds",
    "speedup",
    "status_mix",
    "tool_entropy",
    "tool_share",
    "unique_tools",
    "units",
    "unparsable",
    "usd",
    "value_mean",
    "width",
]
