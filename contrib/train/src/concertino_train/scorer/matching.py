"""Training of what fits a card to a question: questions beside the topics that they belong to.

In a batch of topics, each question is to be nearest to what a description calls its own topic (InfoNCE, van den Oord
et al., 2018, eq. 4). Descriptions are names of topics and sentences around them, so that words such as "specialist" get
a small weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import torch
from concertino_scorer.matching import Matching
from concertino_scorer.reading import UNKNOWN, read_text
from torch import Tensor, nn
from torch.nn import functional

from .glossary import Entry
from .lexicon import RARITY_COLUMNS, Lexicon
from .sentences import Voice
from .topics import Topic

_TOPICS = 48
_NEAR_START = 0.02
_RATE = 1e-2
_FORGET = 0.3


class _Placing(nn.Module):
    """As `concertino_scorer.matching.Matching`, for training."""

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__()
        size = lexicon.meaning_size
        self.register_buffer("vectors", torch.from_numpy(lexicon.vectors))
        self.vectors: Tensor
        # At first, words fit where their vectors do.
        self.register_buffer("start", torch.eye(size))
        self.start: Tensor
        self.projection = nn.Parameter(self.start.clone())
        gate = torch.zeros(size + RARITY_COLUMNS)
        gate[size:] = 6.0  # rare words tell a topic
        self.gate = nn.Parameter(gate)
        self.bias = nn.Parameter(torch.tensor(-3.0))
        self.register_buffer("rows", torch.from_numpy(lexicon.own_rows))
        self.rows: Tensor
        self.own = nn.Parameter(torch.zeros(int(self.rows.max()) + 1, size))
        self.own_gate = nn.Parameter(torch.zeros(len(self.own)))
        self.sharpness = nn.Parameter(torch.tensor(2.5))

    def forward(self, ids: Tensor) -> Tensor:
        """Texts at their places, of length 1; ids have shape (texts, words), 0 beyond the end."""
        vectors, rows = self.vectors[ids], self.rows[ids]
        # Left out at random, so that words that training lacks are placed by their vectors alone.
        rows = rows * (torch.rand(rows.shape, device=rows.device) > _FORGET)
        has_own = rows > 0
        weights = functional.softplus(
            vectors[..., : len(self.gate)] @ self.gate + has_own * self.own_gate[rows] + self.bias
        )
        places = vectors[..., : len(self.projection)] @ self.projection + has_own.unsqueeze(-1) * self.own[rows]
        places = functional.normalize(places, dim=-1)
        known = (ids > UNKNOWN).unsqueeze(-1)
        return functional.normalize((known * weights.unsqueeze(-1) * places).sum(1), dim=-1)


def train_matching(
    lexicon: Lexicon,
    voices: Sequence[Voice],
    topics: Sequence[Topic],
    glossary: Sequence[Entry],
    seed: int,
    steps: int,
    device: torch.device,
) -> Matching:
    """Learn it, in so many steps of 48 topics, half of them from the glossary.

    Args:
        voices: who may have written a description.
        topics: that training reads.
        glossary: further topics, whose words stand for a question.
    """
    torch.manual_seed(seed)
    chance, placing = Random(seed), _Placing(lexicon).to(device)
    half = min(_TOPICS // 2 if glossary else _TOPICS, len(topics))
    optimiser = torch.optim.Adam(placing.parameters(), lr=_RATE)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = _RATE * (1 - step / steps)
        drawn: list[Topic | Entry] = [
            *chance.sample(topics, half),
            *chance.sample(glossary, min(_TOPICS - half, len(glossary))),
        ]
        asked = _ids([_question(subject, chance) for subject in drawn], lexicon).to(device)
        told = _ids([_description(subject, chance.choice(voices), chance) for subject in drawn], lexicon).to(device)
        fits = placing.sharpness.exp() * placing(asked) @ placing(told).T
        right = torch.arange(len(drawn), device=device)
        far = ((placing.projection - placing.start) ** 2).sum()
        loss = functional.cross_entropy(fits, right) + functional.cross_entropy(fits.T, right) + _NEAR_START * far
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
    arrays = (placing.projection, placing.gate, placing.own, placing.own_gate)
    projection, gate, own, own_gate = (each.detach().cpu().numpy() for each in arrays)
    return Matching(projection, gate, placing.bias.item(), own, own_gate)


def _question(subject: Topic | Entry, chance: Random) -> str:
    """A question; of a topic of the glossary, a few of its words."""
    if isinstance(subject, Topic):
        return chance.choice(subject.questions)
    return " ".join(chance.sample(subject.words, min(chance.randint(3, 9), len(subject.words))))


def _description(subject: Topic | Entry, voice: Voice, chance: Random) -> str:
    called = chance.choice(subject.names)
    what = chance.choice(("", "strong_topic", "purpose"))
    return voice.about_topic(what, called, "bilo", chance) if what else called


def _ids(texts: Sequence[str], lexicon: Lexicon) -> Tensor:
    read = [read_text(text, lexicon.vocabulary).ids for text in texts]
    longest = max(map(len, read))
    return torch.tensor([[*ids, *([0] * (longest - len(ids)))] for ids in read])
