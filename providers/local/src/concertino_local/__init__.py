"""concertino-local: causal language models in this process, with transformers and continuous batching.

A model is published only if it is declared: `[models."local/tiny"]` in a pool file or `concertino.toml`, or
`concertino_local.model("tiny", path=...)` in Python. Importing this module imports neither torch nor transformers, and
a declaration loads nothing; the weights are read at the first request.

codec     between messages and token ids; also used for training (concertino-train)
sampling  batched sampling from a network in this process; also used for training
"""

from .declaration import concertino_declare_model as concertino_declare_model
from .declaration import model
from .local_model import LocalModel, TokenSample

__all__ = ["LocalModel", "TokenSample", "model"]
