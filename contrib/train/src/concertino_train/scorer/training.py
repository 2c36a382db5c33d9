"""Training of a scorer, from nothing to one file: `concertino train scorer FILE`.

    lexicon     words and what they mean, from WordNet and the sentences of training
    matching    questions beside the topics that they belong to
    sentences   the network reads single sentences: what share does each mean?
    casts       it reads all cards of a question: who is best, how sure is that, and whom to trust?

Every step draws new casts, so no card is seen twice. Progress is kept in a file beside it: a training that was
interrupted continues where it stood, with the same draws.

Invariant: authors and topics that are held out are never read.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import torch
from concertino import UsageError
from concertino_scorer.features import all_features
from concertino_scorer.model_file import ScorerModel
from concertino_scorer.network import NetworkWeights
from concertino_scorer.reading import UNKNOWN, CardText, Floats, read_text
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from concertino_train.device import check_device

from .casts import CastSettings, draw_cast
from .composing import composed
from .counting import counted
from .glossary import load_glossary
from .lexicon import LexiconSettings, build_lexicon, near_words
from .matching import train_matching
from .network import BatchBelief, CardBatch, CardNetwork, NetworkSettings, loss_of
from .sentences import HELD_OUT, KINDS, LEVELS, Voice, author_names
from .topics import load_topics
from .wordnet import DEBIAN, WordNet

Report = Callable[[str], None]

_SHARED_AUTHOR = "figures"
"""Wrote the sentences with numbers that all authors use; not a voice of its own."""
_COUNTED, _COUNTED_SHARE = ("exams", "errors", "figures"), 0.35
_COMPOSED: Mapping[str, float] = {"praise": 0.4, "errors": 0.3, "exams": 0.15}
"""Share of the sentences of a kind that are put together from parts."""
_NAME = "bilo"
"""Of a member of whom a single sentence speaks; names tell nothing."""
_WARM_UP, _REPORTED_EVERY = 50, 200
_SAVED_EVERY = 60.0
"""Seconds between two states that a training can be resumed from."""


@dataclass(frozen=True)
class ScorerSettings:
    """How a scorer is trained.

    Attributes:
        sentence_steps: steps over single sentences, of `sentence_batch` each.
        cast_steps: steps over casts, of `cast_batch` each.
        matching_steps: steps of questions beside topics.
        seed: of all draws.
        held_out: authors that are not read.
        replaced: share of words that a step replaces by words that mean about the same.
        unread: share of words that it takes for unknown.
    """

    sentence_steps: int = 9_000
    cast_steps: int = 9_000
    matching_steps: int = 4_000
    sentence_batch: int = 80
    cast_batch: int = 16
    sentence_rate: float = 2e-3
    cast_rate: float = 1e-3
    seed: int = 0
    held_out: tuple[str, ...] = HELD_OUT
    replaced: float = 0.05
    unread: float = 0.06
    lexicon: LexiconSettings = field(default_factory=LexiconSettings)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    casts: CastSettings = field(default_factory=CastSettings)


class TrainingVoice(Voice):
    """The voice of an author that training reads; now and then it counts, or puts a sentence together from parts.

    An author has a few scales, totals and turns of phrase, which a network of this size learns by heart.
    """

    def about_share(
        self, kind: str, share: float, topic: str, name: str, rng: Random, *, scale: float = 0.5
    ) -> tuple[str, bool]:
        """As `Voice`; some sentences are drawn by `counted` and by `composed`."""
        text = ""
        if kind in _COUNTED and rng.random() < _COUNTED_SHARE:
            text = counted(share, topic, name, rng)
        elif rng.random() < _COMPOSED.get(kind, 0):
            text = composed(share, kind, topic, name, rng)
        if text:
            return text, topic.lower() in text.lower()
        return super().about_share(kind, share, topic, name, rng, scale=scale)


class Drawn(NamedTuple):
    """What one step reads.

    Attributes:
        batch: the cards of all casts.
        shares: of right answers, as meant; shape (cards,).
        sizes: cards of each cast.
    """

    batch: CardBatch
    shares: Tensor
    sizes: list[int]


class _Stage(NamedTuple):
    name: str
    steps: int
    rate: float
    draw: Callable[[Random], Drawn]
    loss: Callable[[BatchBelief, Tensor, Sequence[int]], Tensor]


class _Draws(Dataset[Drawn]):
    """Batches by the number of their step."""

    def __init__(self, draw: Callable[[Random], Drawn], chance: Callable[[int], Random]) -> None:
        self._draw = draw
        self._chance = chance

    def __getitem__(self, step: int) -> Drawn:
        return self._draw(self._chance(step))


class ScorerTraining:
    """One training; `run` does what is left of it.

    Args:
        state: a file that keeps where it stands; a training with the same settings continues there.
        report: told a line now and then.
        wordnet: the folder of WordNet's files.
        device: `cpu` or `cuda`: what computes.
        workers: processes that draw batches beside it; 0 draws between the steps. Neither changes what is drawn.
    """

    def __init__(
        self,
        settings: ScorerSettings,
        state: Path,
        report: Report,
        wordnet: Path = DEBIAN,
        *,
        device: str = "cpu",
        workers: int = 0,
    ) -> None:
        self.settings = settings
        self.state = state
        self.report = report
        check_device(device, f"device={device!r}")
        self.device = torch.device(device)
        self.workers = workers
        self.authors = [name for name in author_names() if name not in (*settings.held_out, _SHARED_AUTHOR)]
        self.voices = [TrainingVoice(author) for author in self.authors]
        self.topics = load_topics()
        self._saved_state()  # refuses one of other settings before a minute is spent on words
        began = _cpu_seconds()
        report("words: WordNet's meanings and relations ...")
        glossary = load_glossary()
        self.lexicon = build_lexicon(
            WordNet(wordnet), [*self.authors, _SHARED_AUTHOR], self.topics, glossary, settings.lexicon, settings.seed
        )
        report(f"matching: {settings.matching_steps} steps ...")
        self.matching = train_matching(
            self.lexicon, self.voices, self.topics, glossary, settings.seed, settings.matching_steps, self.device
        )
        self._near = near_words(self.lexicon) if settings.replaced else {}
        self._placed = self.matching.placed(self.lexicon.vectors, self.lexicon.own_rows)
        torch.manual_seed(settings.seed)
        self.network = CardNetwork(
            torch.from_numpy(self.lexicon.vectors), torch.from_numpy(self.lexicon.own_rows), settings.network
        ).to(self.device)
        self.spent = _cpu_seconds() - began

    def run(self) -> ScorerModel:
        """Train, or continue, and return the scorer."""
        known = self._saved_state()
        settings = self.settings
        stages = (
            _Stage("sentences", settings.sentence_steps, settings.sentence_rate, self.draw_sentences, _sentence_loss),
            _Stage("casts", settings.cast_steps, settings.cast_rate, self.draw_casts, loss_of),
        )
        for stage in stages:
            if known and stage.name != known["stage"]:
                continue  # it is over
            self._run_stage(stage, known)
            known = {}
        self.network.eval()
        return self.model()

    def model(self) -> ScorerModel:
        """The scorer as it is now."""
        arrays = {name: array.detach().cpu().numpy() for name, array in self.network.state_dict().items()}
        about = {
            "settings": asdict(self.settings),
            "authors": self.authors,
            "topics": len(self.topics),
            "cpu_seconds": round(self.spent),
        }
        weights = NetworkWeights(arrays, self.settings.network.heads)
        lexicon = self.lexicon
        return ScorerModel(lexicon.vocabulary, lexicon.vectors, lexicon.own_rows, self.matching, weights, about)

    # -- stages ----------------------------------------------------------------------------------------------------

    def _run_stage(self, stage: _Stage, known: dict[str, Any]) -> None:
        network, first = self.network, 0
        network.train()
        optimiser = torch.optim.AdamW(network.parameters(), lr=stage.rate, weight_decay=0.02, fused=True)
        if known:
            first = known["step"]
            network.load_state_dict(known["network"])
            optimiser.load_state_dict(known["optimiser"])
            self.spent = known["spent"]
            self.report(f"{stage.name}: continues after {first} of {stage.steps} steps")
        saved, began, losses = time.monotonic(), _cpu_seconds(), []
        for step, drawn in enumerate(self._drawn(stage, first), first):
            torch.manual_seed(self._chance(stage.name, step, "forget").getrandbits(32))
            for group in optimiser.param_groups:
                group["lr"] = stage.rate * min(1.0, (step + 1) / _WARM_UP) * max(0.02, 1 - step / stage.steps)
            batch = CardBatch(*(each.to(self.device) for each in drawn.batch))
            loss = stage.loss(network(batch), drawn.shares.to(self.device), drawn.sizes)
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            losses.append(loss.detach())
            if (step + 1) % _REPORTED_EVERY == 0:
                self.report(f"{stage.name}: {step + 1} of {stage.steps} steps, loss {torch.stack(losses).mean():.3f}")
                losses.clear()
            if time.monotonic() > saved + _SAVED_EVERY:
                self._save(stage.name, step + 1, optimiser, self.spent + _cpu_seconds() - began)
                saved = time.monotonic()
        self.spent += _cpu_seconds() - began
        self._save(stage.name, stage.steps, optimiser, self.spent)

    def _drawn(self, stage: _Stage, first: int) -> Iterable[Drawn]:
        """What the steps from the first one on read, in order."""
        draws = _Draws(stage.draw, lambda step: self._chance(stage.name, step))
        context = "fork" if self.workers else None  # otherwise each would build the lexicon again
        return DataLoader(
            draws,
            batch_size=None,
            sampler=range(first, stage.steps),
            num_workers=self.workers,
            multiprocessing_context=context,
            generator=torch.Generator(),
        )

    def _chance(self, *parts: object) -> Random:
        """Of the step, not of the training: a training that was interrupted draws the same."""
        return Random(":".join(map(str, (self.settings.seed, *parts))))

    def draw_sentences(self, chance: Random) -> Drawn:
        """Single sentences, some beside one that says nothing."""
        questions, texts, shares = [], [], []
        for _ in range(self.settings.sentence_batch):
            topic, voice = chance.choice(self.topics), chance.choice(self.voices)
            share = chance.choice(LEVELS) if chance.random() < 0.6 else chance.random()
            kind, called = chance.choice(KINDS), chance.choice(topic.names)
            lines = [voice.about_share(kind, share, called, _NAME, chance, scale=chance.random())[0]]
            if chance.random() < 0.3:
                lines.append(voice.neutral(chance.choice(topic.names), _NAME, chance))
            chance.shuffle(lines)
            questions.append(chance.choice(topic.questions))
            texts.append(" ".join(lines))
            shares.append(share)
        read = [self._varied(text, chance) for text in texts]
        features = [self._features(question, [text])[0] for question, text in zip(questions, read, strict=True)]
        return Drawn(batch_of(read, features), torch.tensor(shares), [1] * len(shares))

    def draw_casts(self, chance: Random) -> Drawn:
        """Casts, whose cards are compared."""
        settings = self.settings
        casts = [draw_cast(self.voices, self.topics, chance, settings.casts) for _ in range(settings.cast_batch)]
        texts, features = [], []
        for cast in casts:
            read = [self._varied(card.text, chance) for card in cast.cards]
            texts += read
            features += self._features(cast.question, read)
        shares = torch.tensor([card.share for cast in casts for card in cast.cards])
        return Drawn(batch_of(texts, features), shares, [len(cast.cards) for cast in casts])

    def _read(self, text: str) -> CardText:
        return read_text(text, self.lexicon.vocabulary)

    def _varied(self, text: str, chance: Random) -> CardText:
        """A text with some words replaced, and some not read."""
        read, own = self._read(text), self.settings

        def other(number: int) -> int:
            drawn = chance.random()
            if number <= UNKNOWN or drawn >= own.replaced + own.unread:
                return number
            return UNKNOWN if drawn < own.unread else chance.choice(self._near.get(number, (number,)))

        return replace(read, ids=tuple(other(number) for number in read.ids))

    def _features(self, question: str, cards: Sequence[CardText]) -> list[Floats]:
        return all_features(self._read(question).ids, cards, self.lexicon.vectors, self._placed)

    # -- state -----------------------------------------------------------------------------------------------------

    def _save(self, stage: str, step: int, optimiser: torch.optim.Optimizer, spent: float) -> None:
        settings = json.dumps(asdict(self.settings))
        state = {"settings": settings, "stage": stage, "step": step, "spent": spent}
        parts = {"network": self.network.state_dict(), "optimiser": optimiser.state_dict()}
        fresh = self.state.with_suffix(".new")
        torch.save({**state, **parts}, fresh)
        fresh.replace(self.state)

    def _saved_state(self) -> dict[str, Any]:
        """Where an interrupted training with these settings stood; {} if there is none."""
        if not self.state.is_file():
            return {}
        known: dict[str, Any] = torch.load(self.state, map_location=self.device, weights_only=True)
        if known["settings"] != json.dumps(asdict(self.settings)):
            raise UsageError(
                f"{self.state}: a training with other settings was interrupted here; delete the file, or choose another"
            )
        return known


def _sentence_loss(belief: BatchBelief, shares: Tensor, sizes: Sequence[int]) -> Tensor:
    """How far is the share that is read from the one that was meant?"""
    return functional.binary_cross_entropy(belief.mean, shares) + functional.mse_loss(belief.mean, shares)


def _cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def batch_of(texts: Sequence[CardText], features: Sequence[Floats]) -> CardBatch:
    """Cards, padded to the longest."""
    longest = max(len(text.ids) for text in texts)
    ids = torch.zeros(len(texts), longest, dtype=torch.long)
    mask = torch.zeros(len(texts), longest, dtype=torch.bool)
    found = torch.zeros(len(texts), longest, features[0].shape[1])
    for row, (text, each) in enumerate(zip(texts, features, strict=True)):
        ids[row, : len(text.ids)] = torch.tensor(text.ids)
        mask[row, : len(text.ids)] = True
        found[row, : len(text.ids)] = torch.from_numpy(each)
    return CardBatch(ids, mask, found)
