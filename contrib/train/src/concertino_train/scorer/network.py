"""The network of a scorer: a question and a card in, a distribution of the share of right answers out.

Each card is read without the others, so a choice does not depend on the order of the cards. Word vectors are frozen.
Words that training often sees have a small vector of their own beside it, which is left out at random, so that the
frozen ones have to be read. What the question says is matched to each word of the card.

The output is a mixture of two beta distributions: what the card means, with a weight, and the uniform one, for a card
that lies. Evidence of earlier calls changes both, and their weights, in closed form (`posterior`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from .reading import FEATURES, MOST_TOKENS


@dataclass(frozen=True)
class NetworkSettings:
    """Sizes.

    Attributes:
        width: of the hidden vectors.
        layers: of self-attention over the words of a card.
        heads: of each.
        match: width of the vectors by which question and card are matched.
        forget: share of own word vectors that a training step leaves out.
    """

    width: int = 96
    layers: int = 2
    heads: int = 4
    match: int = 64
    forget: float = 0.3


class CardBatch(NamedTuple):
    """Cards and questions, padded.

    Attributes:
        ids, mask: of cards, shape (cards, tokens).
        features: shape (cards, tokens, FEATURES).
        question_ids, question_mask: shape (cards, question tokens).
    """

    ids: Tensor
    mask: Tensor
    features: Tensor
    question_ids: Tensor
    question_mask: Tensor


class Belief(NamedTuple):
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
        vectors: frozen, of words by id, shape (words, size); the last `FROZEN_EXTRA` columns are not matched.
        own: for each word the row of its own vector, 0 for none; shape (words,).
    """

    FROZEN_EXTRA = 2

    def __init__(self, vectors: Tensor, own: Tensor, settings: NetworkSettings | None = None) -> None:
        super().__init__()
        self.settings = settings = settings or NetworkSettings()
        width, meaning = settings.width, vectors.shape[1] - self.FROZEN_EXTRA
        self.vectors: Tensor
        self.own_rows: Tensor
        self.register_buffer("vectors", vectors)
        self.register_buffer("own_rows", own)
        self.own = nn.Embedding(int(own.max()) + 1, width)
        nn.init.zeros_(self.own.weight)
        self.enter = nn.Linear(vectors.shape[1], width)
        self.numbers = nn.Linear(FEATURES, width)
        self.places = nn.Embedding(MOST_TOKENS, width)
        nn.init.normal_(self.places.weight, std=0.02)
        self.match_card = nn.Linear(meaning, settings.match, bias=False)
        self.match_question = nn.Linear(meaning, settings.match, bias=False)
        for matched in (self.match_card, self.match_question):
            nn.init.eye_(matched.weight)  # at first, words match where their frozen vectors do
        self.matched = nn.Linear(3, width)
        self.neighbours = nn.Conv1d(width, width, 5, padding=2)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, settings.heads, 2 * width, 0.1, "gelu", batch_first=True, norm_first=True)
            for _ in range(settings.layers)
        )
        self.weigh = nn.Linear(width, 4)
        self.tell = nn.Sequential(nn.Linear(5 * width, width), nn.GELU(), nn.Linear(width, 3))

    def forward(self, batch: CardBatch) -> Belief:
        """Read a batch."""
        frozen = self.vectors[batch.ids]
        rows = self.own_rows[batch.ids]
        if self.training:
            rows = rows * (torch.rand(rows.shape) > self.settings.forget)
        hidden = self.enter(frozen) + self.own(rows) * (rows > 0).unsqueeze(-1) + self.numbers(batch.features)
        hidden = hidden + self.matched(self._matches(frozen, batch)) + self.places.weight[: batch.ids.shape[1]]
        seen = batch.mask.unsqueeze(-1)
        hidden = hidden * seen
        hidden = hidden + functional.gelu(self.neighbours(hidden.transpose(1, 2)).transpose(1, 2))
        for layer in self.layers:
            hidden = layer(hidden, src_key_padding_mask=~batch.mask)
        weights = self.weigh(hidden).masked_fill(~seen, -1e9).softmax(1)
        pooled = torch.einsum("cth,ctd->chd", weights, hidden).flatten(1)
        mean = (hidden * seen).sum(1) / seen.sum(1).clamp(min=1)
        told = self.tell(torch.cat([pooled, mean], -1))
        precision = (1 + 2 * functional.softplus(told[:, 1] + 1.5)).clamp(max=60)
        # Away from 0 and 1, where logarithms have no gradient.
        return Belief(0.01 + 0.98 * told[:, 0].sigmoid(), precision, 0.02 + 0.96 * (told[:, 2] + 2).sigmoid())

    def _matches(self, frozen: Tensor, batch: CardBatch) -> Tensor:
        """How each word of a card fits the question: its best word, several of them, and all; (cards, tokens, 3)."""
        meaning = slice(0, frozen.shape[-1] - self.FROZEN_EXTRA)
        card = functional.normalize(self.match_card(frozen[..., meaning]), dim=-1)
        asked = self.match_question(self.vectors[batch.question_ids][..., meaning])
        question = functional.normalize(asked, dim=-1)
        alike = torch.einsum("ctd,cqd->ctq", card, question).masked_fill(~batch.question_mask[:, None], -1.0)
        whole = functional.normalize((question * batch.question_mask.unsqueeze(-1)).sum(1), dim=-1)
        several = torch.logsumexp(8 * alike, -1) / 8
        return torch.stack([alike.max(-1).values, several, torch.einsum("ctd,cd->ct", card, whole)], -1)


def posterior(belief: Belief, right: Tensor, wrong: Tensor) -> Tensor:
    """The expected share after some calls, exactly: each part of the mixture is conjugate to their outcomes.

    Args:
        right: right answers of each card's member so far, shape (cards,).
        wrong: wrong ones.
    """
    alpha, beta = belief.mean * belief.precision, (1 - belief.mean) * belief.precision
    one = torch.ones_like(alpha)
    told = belief.trust.log() + _log_beta(alpha + right, beta + wrong) - _log_beta(alpha, beta)
    lied = (1 - belief.trust).log() + _log_beta(one + right, one + wrong)
    trust = (told - torch.logaddexp(told, lied)).exp()
    return trust * (alpha + right) / (belief.precision + right + wrong) + (1 - trust) * (1 + right) / (
        2 + right + wrong
    )


def _log_beta(alpha: Tensor, beta: Tensor) -> Tensor:
    return torch.lgamma(alpha) + torch.lgamma(beta) - torch.lgamma(alpha + beta)


def loss_of(belief: Belief, shares: Tensor, sizes: Sequence[int], *, spread: float = 0.1, ranking: float = 0.7) -> Any:
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
