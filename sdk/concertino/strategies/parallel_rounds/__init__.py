"""ParallelRounds: the paradigm of ParaManager, rounds of parallel calls.

strategy  its settings, and a run of it
format    the text of a round, read, written and judged
prompts   what the model is shown
"""

from .strategy import ParallelRounds

__all__ = [
    "ParallelRounds",
]
