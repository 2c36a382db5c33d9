"""Rewards: every term of five published systems as a pure function of finished rollouts, and weighted sums of them.

functions       shapes that several share, and what an episode spent
shared          terms of no one system
paramanager, toolorchestra, mas_orchestra, gap, at_grpo
                one system each: functions of numbers, and terms that read them off episodes
term            what a term is
reward          terms with weights, from Python or a file; all terms and the rewards of the five systems, by name
plain           a function of an episode as a term, and terms by `module:name`
recorded        episodes of runs that are read back from their traces
installed       terms and rewards of all installed distributions
"""

from .installed import installed_rewards
from .reward import PRESETS, TERMS, Reward, Scored, Weighted
from .term import Term, UnpricedError

__all__ = [
    "PRESETS",
    "TERMS",
    "Reward",
    "Scored",
    "Term",
    "UnpricedError",
    "Weighted",
    "installed_rewards",
]
