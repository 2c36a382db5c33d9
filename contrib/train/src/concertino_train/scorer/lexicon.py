"""The lexicon of a scorer: words by number, what each means, how rare it is and how good it sounds.

Most words come from WordNet, so that a word that no card of the training had is placed beside words that mean about
the same. Words of the training that WordNet lacks ("hardly ever", "isn't") have a random vector, which the network
learns to read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from concertino_scorer.reading import PUNCTUATION, UNKNOWN, Floats
from concertino_scorer.words import WordNumbers

from .composing import composed_texts
from .counting import counted_words
from .glossary import Entry
from .sentences import texts_of, words_of
from .topics import Topic
from .wordnet import WordNet, meaning, polarity, rarity, vocabulary

RARITY_COLUMNS, POLARITY_COLUMNS = 1, 2
"""After those of the meaning."""
_KNOWN_LENGTH, _LIKE_MEANING, _LIKE_SOUND = 0.9, 0.6, 0.35
"""Of near words: share of the usual length of a vector; cosine; how much better one may sound."""
_WORD = re.compile(r"[^\W\d_][\w'’]*")


@dataclass(frozen=True)
class LexiconSettings:
    """How a lexicon is made.

    Attributes:
        most: words from WordNet.
        size: of the vectors of meaning.
        scale: their length.
        seen: how often training must have a word that gets a vector of its own.
        told: what a word of the glossary counts for meaning, beside one of WordNet's glosses.
    """

    most: int = 25_000
    size: int = 96
    scale: float = 3.0
    seen: int = 4
    told: float = 15.0


@dataclass(frozen=True)
class Lexicon:
    """Words as a network reads them.

    Attributes:
        vectors: by id, shape (words, size + RARITY_COLUMNS + POLARITY_COLUMNS); 0 for numbers and unknown words.
        own_rows: the row of the own vector, 0 for none; shape (words,).
    """

    vocabulary: WordNumbers
    vectors: Floats
    own_rows: np.ndarray

    @property
    def meaning_size(self) -> int:
        """Columns that tell the meaning."""
        return int(self.vectors.shape[1]) - RARITY_COLUMNS - POLARITY_COLUMNS


def build_lexicon(
    net: WordNet,
    authors: Sequence[str],
    topics: Sequence[Topic],
    glossary: Sequence[Entry] = (),
    settings: LexiconSettings | None = None,
    seed: int = 0,
) -> Lexicon:
    """The lexicon of a training.

    Args:
        authors: whose sentences training reads; the levels of their words say how good words sound.
        topics: that training reads.
        glossary: whose words stand near each other.
    """
    settings = settings or LexiconSettings()
    words = vocabulary(net, settings.most)
    texts = [[net.lemma(word) for word in _words_in(entry)] for entry in glossary]
    words += sorted({word for text in texts for word in text} - set(words))
    read = (text for author in authors for text in texts_of(author))
    parts = (text for text in (*counted_words(), *composed_texts()) for _ in range(settings.seen))
    counts = _counted((*read, *_texts_of_topics(topics), *parts))
    known = WordNumbers(words, UNKNOWN + 1, net.irregular)
    more = [word for word, count in sorted(counts.items()) if count >= settings.seen and word not in known]
    added = [*(sign for sign in PUNCTUATION if sign not in known), *more]
    found = WordNumbers([*words, *added], UNKNOWN + 1, net.irregular)
    meant = settings.scale * meaning(net, words, settings.size, seed, texts=texts, weight=settings.told)
    chance = np.random.default_rng(seed)
    drawn = chance.normal(scale=0.2, size=(len(added), settings.size))
    known_rows = np.column_stack([meant, rarity(net, words), polarity(net, words, _levels(authors))])
    added_rows = np.column_stack([drawn, np.zeros((len(added), RARITY_COLUMNS + POLARITY_COLUMNS))])
    rows = np.concatenate([known_rows, added_rows])
    vectors = np.concatenate([np.zeros((UNKNOWN + 1, rows.shape[1])), rows]).astype(np.float32)
    return Lexicon(found, vectors, _own_rows(found, counts, settings.seen))


def near_words(lexicon: Lexicon, count: int = 6) -> dict[int, tuple[int, ...]]:
    """By id of a word that training sees: ids of words that mean about the same and sound about as good.

    For variation: a reader that meets a sentence with one of its words replaced learns to read the vectors.
    """
    size = lexicon.meaning_size
    meaning, sound = lexicon.vectors[:, :size], lexicon.vectors[:, size + RARITY_COLUMNS]
    lengths = np.linalg.norm(meaning, axis=1, keepdims=True)
    # Words without a meaning have a random vector, which is short.
    known = lengths[:, 0] > _KNOWN_LENGTH * lengths.max()
    unit = np.where(known[:, None], meaning / (lengths + 1e-6), 0)
    rows = [number for number in np.flatnonzero(lexicon.own_rows) if known[number]]
    found: dict[int, tuple[int, ...]] = {}
    for start in range(0, len(rows), 1000):
        part = rows[start : start + 1000]
        alike = unit[part] @ unit.T
        alike[np.abs(sound[part][:, None] - sound) > _LIKE_SOUND] = 0
        alike[np.arange(len(part)), part] = 0
        nearest = np.argpartition(-alike, count, axis=1)[:, :count]
        for place, number in enumerate(part):
            near = [int(other) for other in nearest[place] if alike[place, other] > _LIKE_MEANING]
            if near:
                found[int(number)] = tuple(near)
    return found


def _levels(authors: Sequence[str]) -> Mapping[str, float]:
    """How good words sound, -1 to 1, by the mean of the levels that authors gave them."""
    given: dict[str, list[float]] = {}
    for author in authors:
        for level, words in words_of(author).items():
            for word in words:
                given.setdefault(word.lower(), []).append(2 * level - 1)
    for word, sound in counted_words().items():
        given.setdefault(word, []).extend([sound] if sound else [])
    return {word: float(np.mean(levels)) for word, levels in given.items() if levels}


def _words_in(entry: Entry) -> list[str]:
    """The words of an entry; a term of two words is two."""
    return [word.lower() for text in (*entry.names, *entry.words) for word in _WORD.findall(text) if len(word) > 1]


def _texts_of_topics(topics: Sequence[Topic]) -> Iterable[str]:
    return (text for topic in topics for text in (*topic.names, *topic.questions))


def _counted(texts: Iterable[str]) -> Counter[str]:
    return Counter(word.lower().replace("’", "'") for text in texts for word in _WORD.findall(text))


def _own_rows(words: WordNumbers, counts: Counter[str], seen: int) -> np.ndarray:
    numbers: Counter[int] = Counter()
    for word, count in counts.items():
        if (number := words.get(word)) is not None:
            numbers[number] += count
    rows = np.zeros(UNKNOWN + 1 + len(words), np.int64)
    for row, number in enumerate(sorted(number for number, count in numbers.items() if count >= seen), 1):
        rows[number] = row
    return rows
