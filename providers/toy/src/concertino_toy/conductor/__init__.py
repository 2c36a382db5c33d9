"""The tiny conductor: a transformer of a million parameters that leads parallel rounds, with its weights.

No key, no server, no torch: numpy alone. It leads `ParallelRounds(prompt="brief", references=True)` over pools of
solvers
and of models; `MODEL_CARD.md` says what it was trained on, how well it does and what it cannot do.

model        messages in, the text of one turn out; and the strategy that it was trained for
guide        which tokens may follow
transformer  the transformer
tokenizer    texts to tokens and back
threads      one thread of BLAS
"""

from .model import TINY, TinyConductor, strategy

__all__ = ["TINY", "TinyConductor", "strategy"]
