"""Casts: a question and the members that may answer it, with how often each is right on such questions.

Names, order, wording, prices, number and true quality are drawn for each cast, so that nothing but the cards tells
whom to ask. Some cards say nothing of quality and some lie, in known shares: what earlier calls showed is then worth
more than what is written.

Invariant: a name, a price and a place in the order tell nothing of the share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from .sentences import KINDS, LEVELS, Voice
from .topics import Topic

Mode = Literal["general", "complementary", "two_topics", "specialists", "several"]
Honesty = Literal["honest", "silent", "lying"]

_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeio"
_LEAST, _MOST = 0.01, 0.99
_ELSEWHERE = 0.2
"""How often, at most, a member is right on topics that are not its own."""
_TERSE = ("{topic}, {said}", "{topic}: {said}", "{topic} ({said})", "{topic}; {said}", "{said}, for {topic}")
_BESIDE = ("cheap", "inexpensive", "low-cost", "costly", "dear", "expensive", "quick", "fast", "slow", "new", "popular")
"""What short cards say beside the quality, and what tells nothing of it."""


@dataclass(frozen=True)
class Card:
    """One member of a cast.

    Attributes:
        name: says nothing.
        text: its description.
        price: cost units of a call.
        share: how often its answers to questions like this one are right, 0 to 1.
        honesty: whether the text means that share, says nothing of it, or means another one.
    """

    name: str
    text: str
    price: float
    share: float
    honesty: Honesty


@dataclass(frozen=True)
class Cast:
    """A question, and who may answer it, in random order."""

    question: str
    topic: str
    cards: tuple[Card, ...]


@dataclass(frozen=True)
class CastSettings:
    """How casts are drawn.

    Attributes:
        sizes: numbers of members, each as often as it stands there.
        kind: the kind of all sentences about shares; None: drawn for each cast, or for each card.
        modes: `general`: each member is as good on every topic; `complementary`: one is made for the topic of the
            question, the others for other topics; `two_topics`: each card speaks of this topic and of another one;
            `specialists`: each knows one of a few topics, more or less well, and nothing else; `several`: each card
            says of two to five topics how well it does them.
        lying: share of cards that mean another share than the true one (`general` only).
        silent: share of cards that say nothing of it (`general` only).
        gap: how much better the best member is than the second at least (`general` only).
    """

    sizes: tuple[int, ...] = (2, 3, 4, 4, 5, 6, 6, 8, 12)
    kind: str | None = None
    modes: tuple[Mode, ...] = (
        *("general", "general", "general", "general", "general"),
        *("complementary", "complementary", "two_topics", "specialists", "specialists", "several"),
    )
    lying: float = 0.1
    silent: float = 0.2
    gap: float = 0.0


def draw_cast(voices: Sequence[Voice], topics: Sequence[Topic], rng: Random, settings: CastSettings) -> Cast:
    """A cast.

    Args:
        voices: who may have written the cards; one writes all of them in half of the casts.
        topics: what the question may be about, two at least.
    """
    size, mode = rng.choice(settings.sizes), rng.choice(settings.modes)
    topic = rng.choice(topics)
    question = rng.choice(topic.questions)
    kind = settings.kind or (rng.choice(KINDS) if rng.random() < 0.6 else None)
    voice = rng.choice(voices) if rng.random() < 0.5 else None
    scale = rng.random()
    shares = _shares(size, rng, settings.gap)
    # Two to four topics, that of the question first: what specialists know, and what several skills are of.
    fields = [topic, *_others(topic, topics, rng, rng.randint(1, 3))]
    cards = []
    for place in range(size):
        spoken_by, spoken_in = voice or rng.choice(voices), kind or rng.choice(KINDS)
        writer = _CardWriter(spoken_by, spoken_in, scale, topic, rng.choice(fields[1:]), rng)
        share, asides = shares[place], rng.choice((0, 0, 1, 1, 2, 3))
        honesty: Honesty = "honest"
        if mode == "general":
            honesty = _honesty(settings, rng)
            lines = writer.general(share if honesty == "honest" else rng.random(), silent=honesty == "silent")
        elif mode == "complementary":
            fits = place == 0
            share = 0.7 + 0.29 * rng.random() if fits else 0.3 * rng.random()
            writer.other = rng.choice(_others(topic, topics, rng, 1))
            lines = writer.made_for(fits)
        elif mode == "specialists":
            # The first two know the topic of the question, so that the card has to be read on.
            knows = topic if place < 2 else rng.choice(fields)
            terse = rng.random() < 0.5
            lines, asides = writer.specialist(knows, share, terse=terse), 0 if terse else asides
            share = share if knows is topic else _ELSEWHERE * rng.random()
        elif mode == "several":
            named = [topic, *_others(topic, topics, rng, rng.randint(2, 4))]
            skills = [(each, rng.random()) for each in (named if rng.random() < 0.8 else named[1:])]
            # A card is read up to a number of words, so nothing else stands in it.
            lines, asides = writer.several(skills), 0
            share = dict(skills).get(topic, _ELSEWHERE * rng.random())
        else:
            share = rng.random()
            lines = writer.two_topics(share)
        lines += writer.neutral(asides)
        rng.shuffle(lines)
        price = round(10 ** rng.uniform(-1, 1.5), 2)
        cards.append(Card(writer.name, " ".join(lines), price, min(_MOST, max(_LEAST, share)), honesty))
    rng.shuffle(cards)
    return Cast(question, topic.name, tuple(cards))


def _shares(size: int, rng: Random, gap: float) -> list[float]:
    while True:
        drawn = [rng.random() if rng.random() < 0.5 else rng.choice(LEVELS) + rng.gauss(0, 0.03) for _ in range(size)]
        best, second = sorted(drawn, reverse=True)[:2]
        if best - second >= gap:
            return [min(_MOST, max(_LEAST, share)) for share in drawn]


def _honesty(settings: CastSettings, rng: Random) -> Honesty:
    chance = rng.random()
    if chance < settings.lying:
        return "lying"
    return "silent" if chance < settings.lying + settings.silent else "honest"


def _others(topic: Topic, topics: Sequence[Topic], rng: Random, count: int) -> list[Topic]:
    """Some other topics, each once."""
    drawn = rng.sample(topics, min(count + 1, len(topics)))
    return [other for other in drawn if other is not topic][:count]


class _CardWriter:
    """Writes the card of one member."""

    def __init__(self, voice: Voice, kind: str, scale: float, topic: Topic, other: Topic, rng: Random) -> None:
        self.voice = voice
        self.kind = kind
        self.scale = scale
        self.topic = topic
        self.other = other
        self.rng = rng
        self.name = "".join(rng.choice(_CONSONANTS) + rng.choice(_VOWELS) for _ in range(rng.randint(2, 4)))

    def general(self, share: float, *, silent: bool) -> list[str]:
        """Sentences about one share; none if the card is silent."""
        if silent:
            return [self.voice.about_topic("purpose", self._called(self.topic), self.name, self.rng)]
        called = self._called(self.topic)
        count = self.rng.choice((1, 1, 1, 2, 3))
        return [self._about_share(share, called)[0] for _ in range(count)]

    def made_for(self, fits: bool) -> list[str]:
        """What it is made for: the topic of the question, or another one."""
        called = self._called(self.topic if fits else self.other)
        chance = self.rng.random()
        if chance < 0.5:
            lines = [self._about_topic("strong_topic", called)]
        elif chance < 0.7:
            lines = [self._about_topic("purpose", called)]
        else:
            lines = [self._spoken(0.85, called)]
        if not fits and self.rng.random() < 0.2:
            lines.append(self._about_topic("weak_topic", self._called(self.topic)))
        return lines

    def two_topics(self, share: float) -> list[str]:
        """How good it is at the question's topic, and how good at another one."""
        elsewhere = 1 - share if self.rng.random() < 0.6 else self.rng.random()
        return [self._spoken(share, self._called(self.topic)), self._spoken(elsewhere, self._called(self.other))]

    def specialist(self, knows: Topic, share: float, *, terse: bool) -> list[str]:
        """What it is made for and how well it does that, in sentences or in a few words."""
        called = self._called(knows)
        if not terse:
            return [self._about_topic("purpose", called), self._about_share(share, called)[0]]
        words = [self.voice.word(share, self.rng), *self.rng.sample(_BESIDE, self.rng.choice((0, 1, 1)))]
        self.rng.shuffle(words)
        text = self.rng.choice(_TERSE).format(topic=called, said=", ".join(words))
        return [text[:1].upper() + text[1:]]

    def several(self, skills: Sequence[tuple[Topic, float]]) -> list[str]:
        """How well it does each of several things."""
        return [self._spoken(share, self._called(topic)) for topic, share in skills]

    def neutral(self, count: int) -> list[str]:
        """Sentences that say nothing of quality."""
        topic = self.topic if self.rng.random() < 0.5 else self.other
        return [self.voice.neutral(self._called(topic), self.name, self.rng) for _ in range(count)]

    def _spoken(self, share: float, called: str) -> str:
        """A sentence about a share that names the topic."""
        for _ in range(12):
            text, spoken = self._about_share(share, called)
            if spoken:
                return text
        return self._about_topic("strong_topic" if share > 0.5 else "weak_topic", called)

    def _about_share(self, share: float, called: str) -> tuple[str, bool]:
        return self.voice.about_share(self.kind, share, called, self.name, self.rng, scale=self.scale)

    def _about_topic(self, what: str, called: str) -> str:
        return self.voice.about_topic(what, called, self.name, self.rng)

    def _called(self, topic: Topic) -> str:
        return self.rng.choice(topic.names)
