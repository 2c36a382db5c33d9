"""Groups: which rows are compared, what advantage each has, which are left out, and how the rest fills the steps.

A *row* is one text of the policy, or one whole trajectory: what one line of a training batch holds. All of this is
arithmetic on arrays; numpy is all it needs.

keys        what a group is: one question, or one role in one turn, after one identical prompt
advantages  rewards of groups as advantages
filters     what is left out, and why
sampler     DAPO's dynamic sampling: draw more questions until enough groups have a signal
packing     any number of rows in a constant number of optimiser steps
statistics  how much there is to learn from
"""

from .advantages import AdvantageSettings, compute_advantages
from .filters import Filters
from .keys import GroupKey, Groups
from .packing import pack
from .sampler import DynamicSampler, SamplerSettings

__all__ = [
    "AdvantageSettings",
    "DynamicSampler",
    "Filters",
    "GroupKey",
    "Groups",
    "SamplerSettings",
    "compute_advantages",
    "pack",
]
