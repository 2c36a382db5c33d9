"""One batch sampler for requests that come and go, and for training's batches that begin together.

choice    the next token of each row, and its log-probability
cache     keys and values of a batch whose rows have different lengths, come and leave
prefixes  keys and values of earlier sequences, for prompts that begin alike
network   a causal language model as the sampler sees it
sampler   `BatchSampler`: prompts are read, every step adds a token to each row, rows leave
lockstep  `complete_batch`: a batch of rows from its first token to its last
"""

from .choice import SamplingRule
from .lockstep import SamplingWork, complete_batch
from .network import Network
from .prefixes import PrefixCache
from .sampler import BatchRow

__all__ = [
    "BatchRow",
    "Network",
    "PrefixCache",
    "SamplingRule",
    "SamplingWork",
    "complete_batch",
]
