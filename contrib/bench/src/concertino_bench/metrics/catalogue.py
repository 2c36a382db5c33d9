"""All metrics by name and by group: the table of contents, from which the page of the reference is made."""

from __future__ import annotations

from .calibration import CALIBRATION_ERROR, accuracy_attempted, attempts_f1
from .correctness import GRADER_VALUE, accuracy, partial_credit, unparsable
from .labels import LABEL_F1
from .latency import LATENCY
from .metric import Metric
from .preferences import (
    PREFERENCE_ADHERENCE,
    PREFERENCE_REWARD,
)
from .samples import G_PASS_AT_K, MAJ_AT_K, MEAN_AT_K, PASS_AT_K
from .shapes import depth, parallel_rounds, width
from .shares import (
    MODEL_SHARE,
    TOOL_SHARE,
    model_entropy,
    tool_entropy,
    unique_tools,
)
from .spending import (
    cached_tokens,
    calls,
    cost_of_pass,
    grading_usd,
    input_tokens,
    output_tokens,
    rounds,
    units,
    usd,
)
from .statuses import STATUS_MIX, format_rate, ok_rate, recovery_rate
from .times import critical_path, path_share, seconds, speedup

_CONTENTS: dict[str, tuple[Metric, ...]] = {
    "Answers": (
        accuracy,
        MEAN_AT_K,
        PASS_AT_K,
        G_PASS_AT_K,
        MAJ_AT_K,
        LABEL_F1,
        partial_credit,
        unparsable,
        accuracy_attempted,
        attempts_f1,
        CALIBRATION_ERROR,
        GRADER_VALUE,
    ),
    "Spending": (usd, cost_of_pass, units, calls, rounds, input_tokens, output_tokens, cached_tokens, grading_usd),
    "Time": (seconds, critical_path, speedup, path_share, LATENCY),
    "Members": (TOOL_SHARE, MODEL_SHARE, tool_entropy, model_entropy, unique_tools),
    "Plans": (width, depth, parallel_rounds),
    "Statuses and form": (STATUS_MIX, ok_rate, recovery_rate, format_rate),
    "Preferences": (PREFERENCE_ADHERENCE, PREFERENCE_REWARD),
}
METRICS: dict[str, Metric] = {metric.name: metric for group in _CONTENTS.values() for metric in group}
"""All definitions by name: the table of contents. Those whose `terms` are None need a parameter, or give a table."""
GROUPS: dict[str, tuple[str, ...]] = {name: tuple(each.name for each in group) for name, group in _CONTENTS.items()}
"""Names of metrics by what they are about."""
