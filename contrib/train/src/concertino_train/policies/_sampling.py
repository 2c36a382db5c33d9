"""Choosing the next token of each row.

The invariants: a row's choice depends on its own logits and its own random numbers, never on its neighbours; and the
log-probability of a token is that of a forward pass at the temperature of sampling (at temperature 1 where the most
probable token is taken), over the whole vocabulary also where `top_p` leaves out its tail.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import torch

GREEDY = 1e-5
"""Temperatures up to this take the most probable token."""


def choose(
    logits: torch.Tensor, uniforms: torch.Tensor, temperature: float, top_p: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The next token of each row, and its log-probability.

    Args:
        logits: shape (rows, vocabulary), in float32.
        uniforms: a random number from [0, 1) for each row, shape (rows,).
        temperature: 0 takes the most probable token.
        top_p: share of probability that is sampled from.

    Returns:
        Token ids and log-probabilities, each of shape (rows,); a log-probability that is no number says that the
        logits are none.
    """
    greedy = temperature <= GREEDY
    scores = logits if greedy or temperature == 1.0 else logits / temperature
    total = scores.logsumexp(-1)
    tokens = scores.argmax(-1) if greedy else _draw((scores - total[:, None]).exp_(), uniforms, top_p)
    return tokens, scores.gather(-1, tokens[:, None])[:, 0] - total


def _draw(probabilities: torch.Tensor, uniforms: torch.Tensor, top_p: float) -> torch.Tensor:
    """The token at each row's random number, on the line where tokens lie side by side, each as long as probable."""
    wide = torch.float32 if probabilities.device.type == "mps" else torch.float64  # sums of very many small numbers
    order = None
    if top_p < 1.0:
        probabilities, order = probabilities.sort(dim=-1, descending=True, stable=True)
        before = probabilities.cumsum(-1, dtype=wide) - probabilities
        probabilities = probabilities.masked_fill(before >= top_p, 0.0)
    line = probabilities.cumsum(-1, dtype=wide)
    places = torch.searchsorted(line, (uniforms.to(wide) * line[:, -1])[:, None], right=True)
    # Rounding may put a number behind the end of the line: the last token with a length is meant.
    last = probabilities.shape[-1] - 1 - (probabilities > 0).flip(-1).byte().argmax(-1, keepdim=True)
    places = torch.minimum(places, last)
    return (places if order is None else order.gather(-1, places))[:, 0]


def draw_uniforms(seed: int, ids: Sequence[int], count: int) -> list[float]:
    """Random numbers from [0, 1): the same for the same seed and prompt, whatever `count` is and whoever asks beside.

    The prompt counts, so that turns of one rollout with one seed do not draw alike.
    """
    import numpy

    digest = zlib.crc32(numpy.asarray(ids, dtype=numpy.int64).tobytes())
    state = numpy.random.SeedSequence((seed % 2**64, digest, len(ids)))
    numbers: list[float] = numpy.random.Generator(numpy.random.PCG64(state)).random(count).tolist()
    return numbers
