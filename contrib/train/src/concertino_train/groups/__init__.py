"""Groups: which rows are compared, what advantage each has, which are left out, and how the rest fills the steps.

A *row* is one text of the policy, or one whole trajectory: what one line of a training batch holds. All of this is
arithmetic on arrays; numpy is all it needs.

_keys        what a group is: one question, or one role in one turn, behind one identical prompt
_advantages  rewards of groups as advantages
_filters     what is left out, and why
_sampler     DAPO's dynamic sampling: sample on until enough groups say something
_packing     any number of rows in a constant number of optimiser steps
_statistics  how much there is to learn from
"""

from ._advantages import Advantages, AdvantageSettings, advantages
from ._filters import Filtered, Filters, homogeneous
from ._keys import GroupKey, Groups, MixedGroupError, prompt_digest
from ._packing import Packing, pack
from ._sampler import DynamicSampler, Sampled, SamplerSettings
from ._statistics import GroupStatistics, distinct_rewards, statistics

__all__ = [
    "AdvantageSettings",
    "Advantages",
    "DynamicSampler",
    "Filtered",
    "Filters",
    "GroupKey",
    "GroupStatistics",
    "Groups",
    "MixedGroupError",
    "Packing",
    "Sampled",
    "SamplerSettings",
    "advantages",
    "distinct_rewards",
    "homogeneous",
    "pack",
    "prompt_digest",
    "statistics",
]
