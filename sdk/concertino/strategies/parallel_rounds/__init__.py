"""ParallelRounds: the paradigm of ParaManager, rounds of parallel calls.

_strategy  its settings, and a run of it
_format    the text of a round, read, written and judged
_prompts   what the model is shown
"""

from ._format import check_round, read_round
from ._strategy import ParallelRounds, ParallelRoundsMachine

__all__ = [
    "ParallelRounds",
    "ParallelRoundsMachine",
    "check_round",
    "read_round",
]  # fmt: skip
