"""ParallelRounds: the paradigm of ParaManager, rounds of parallel calls.

strategy  its settings, and a run of it
format    the text of a round, read, written and judged
prompts   what the model is shown
"""

from .format import check_round, read_round
from .strategy import ParallelRounds, ParallelRoundsMachine

__all__ = [
    "ParallelRounds",
    "ParallelRoundsMachine",
    "check_round",
    "read_round",
]
