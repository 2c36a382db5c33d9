"""Metrics of results: one definition each, computed from items alone.

The idea: a metric is a ratio of two sums over tasks. So one definition gives the value, its interval and the paired
difference of two systems. `METRICS` holds them all by name: `METRICS["cost_of_pass"](items)`. The names beside it are
what has a parameter, gives a table, or is used every day.
"""

from __future__ import annotations

from .bootstrap import intervals
from .catalogue import METRICS
from .correctness import accuracy, value_mean
from .labels import label_f1
from .latency import latency
from .metric import Metric, Value, by_system
from .pairs import compare
from .preferences import Preference, preference_adherence, preference_reward
from .samples import g_pass_at, majority_at, mean_at, pass_at
from .shares import model_share, tool_share
from .spending import usd
from .statuses import status_mix
from .times import seconds

__all__ = [
    "METRICS",
    "Metric",
    "Preference",
    "Value",
    "accuracy",
    "by_system",
    "compare",
    "g_pass_at",
    "intervals",
    "label_f1",
    "latency",
    "majority_at",
    "mean_at",
    "model_share",
    "pass_at",
    "preference_adherence",
    "preference_reward",
    "seconds",
    "status_mix",
    "tool_share",
    "usd",
    "value_mean",
]
