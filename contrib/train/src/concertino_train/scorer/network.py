"""The network of a scorer, for training; `concertino_scorer.network` reads with it.

Each card is read without the others, so a choice does not depend on the order of the cards; what compares them stands
in the features of their words. Word vectors are frozen. Words that training often sees have a small vector of their own
beside it, which is left out at random, so that the frozen ones have to be read.

The output is a belief per card (`concertino_scorer.beliefs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import NamedTuple

import torch
from concertino_scorer.features import FEATURES
from concertino_scorer.reading import MOST_TOKENS
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class NetworkSettings:
    """Sizes.

    Attributes:
        width: of the hidden vectors.
        layers: of self-attention over the words of a card.
        heads: of each.
        forget: share of own word vectors that a training step leaves out.
        dropout: of the layers.
    """

    width: int = 96
    layers: int = 2
    heads: int = 4
    forget: float = 0.3
    dropout: float = 0.0


class CardBatch(NamedTuple):
    """Cards, padded.

    Attributes:
        ids, mask: shape (cards, tokens).
        features: shape (cards, tokens, FEATURES).
    """

    ids: Tensor
    mask: Tensor
    features: Tensor


class BatchBelief(NamedTuple):
    """What is believed of each card's share of right answers; each shape (cards,).

    Attributes:
        mean: of what the card means, 0 to 1.
        precision: of it, as a number of calls that it is worth.
        trust: the probability that the card means its share at all.
    """

    mean: Tensor
    precision: Tensor
    trust: Tensor

    @property
    def expected(self) -> Tensor:
        """The expected share."""
        return self.trust * self.mean + (1 - self.trust) * 0.5


class CardNetwork(nn.Module):
    """Reads cards.

    Args:
        vectors: frozen, of words by id, shape (words, size).
        own: for each word the row of its own vector, 0 for none; shape (words,).
    """

    def __init__(self, vectors: Tensor, own: Tensor, settings: NetworkSettings | None = None) -> None:
        super().__init__()
        self.settings = settings = settings or NetworkSettings()
        width = settings.width
        self.vectors: Tensor
        self.own_rows: Tensor
        self.register_buffer("vectors", vectors, persistent=False)
        self.register_buffer("own_rows", own, persistent=False)
        self.own = nn.Embedding(int(own.max()) + 1, width)
        nn.init.zeros_(self.own.weight)
        self.enter = nn.Linear(vectors.shape[1], width)
        self.features = nn.Linear(FEATURES, width)
        self.places = nn.Embedding(MOST_TOKENS, width)
        nn.init.normal_(self.places.weight, std=0.02)
        self.neighbours = nn.Conv1d(width, width, 5, padding=2)
        gelu = partial(functional.gelu, approximate="tanh")
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, settings.heads, 2 * width, settings.dropout, gelu, batch_first=True, norm_first=True
            )
            for _ in range(settings.layers)
        )
        self.weigh = nn.Linear(width, 4)
        self.tell = nn.Sequential(nn.Linear(5 * width, width), nn.GELU("tanh"), nn.Linear(width, 3))

    def forward(self, batch: CardBatch) -> BatchBelief:
        """Read a batch."""
        rows = self.own_rows[batch.ids]
        if self.training:
            rows = rows * (torch.rand(rows.shape, device=rows.device) > self.settings.forget)
        own = self.own(rows) * (rows > 0).unsqueeze(-1)
        hidden = self.enter(self.vectors[batch.ids]) + own + self.features(batch.features)
        hidden = hidden + self.places.weight[: batch.ids.shape[1]]
        seen = batch.mask.unsqueeze(-1)
        hidden = hidden * seen
        hidden = hidden + functional.gelu(self.neighbours(hidden.transpose(1, 2)).transpose(1, 2), approximate="tanh")
        for layer in self.layers:
            hidden = layer(hidden, src_key_padding_mask=~batch.mask)
        weights = self.weigh(hidden).masked_fill(~seen, -1e9).softmax(1)
        pooled = torch.einsum("cth,ctd->chd", weights, hidden).flatten(1)
        mean = (hidden * seen).sum(1) / seen.sum(1).clamp(min=1)
        told = self.tell(torch.cat([pooled, mean], -1))
        precision = (1 + 2 * functional.softplus(told[:, 1] + 1.5)).clamp(max=60)
        # Away from 0 and 1, where logarithms have no gradient.
        return BatchBelief(0.01 + 0.98 * told[:, 0].sigmoid(), precision, 0.02 + 0.96 * (told[:, 2] + 2).sigmoid())


def loss_of(
    belief: BatchBelief, shares: Tensor, sizes: Sequence[int], *, spread: float = 0.1, ranking: float = 0.7
) -> Tensor:
    """The loss over casts: how unlikely the true shares are, and how far the order is from theirs.

    Args:
        shares: true ones, shape (cards,), strictly between 0 and 1.
        sizes: numbers of cards of each cast, in the order of the batch.
        spread: of shares that count as about equal, in the order.
        ranking: weight of the order.
    """
    alpha, beta = belief.mean * belief.precision, (1 - belief.mean) * belief.precision
    meant = (alpha - 1) * shares.log() + (beta - 1) * (1 - shares).log() - _log_beta(alpha, beta)
    unlikely = -torch.logaddexp(belief.trust.log() + meant, (1 - belief.trust).log()).mean()
    ends = list(accumulate(sizes))
    parts = [
        (belief.expected[end - size : end], shares[end - size : end]) for end, size in zip(ends, sizes, strict=True)
    ]
    order = [-((true / spread).softmax(0) * (found / spread).log_softmax(0)).sum() for found, true in parts]
    return unlikely + ranking * torch.stack(order).mean()


def _log_beta(alpha: Tensor, beta: Tensor) -> Tensor:
    return torch.lgamma(alpha) + torch.lgamma(beta) - torch.lgamma(alpha + beta)
