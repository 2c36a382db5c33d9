"""Word vectors from WordNet, so that a scorer knows something of words that no card of its training had.

A vector has two parts. *Meaning*: the words of a synset, of its gloss and of the synsets above it and like it are
counted in a matrix of words by synsets, whose singular vectors put words near each other that explain each other.
*Polarity*: how good or bad a word sounds, spread from words whose level is known over synonyms, similar and derived
words; an antonym turns the sign.

WordNet (Princeton University) lies in `/usr/share/wordnet` where Debian's package `wordnet-base` is installed. Its
licence allows use, copying and distribution for any purpose with its notice.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from concertino import UsageError
from concertino_scorer.words import base_form
from numpy.typing import NDArray

DEBIAN = Path("/usr/share/wordnet")
PARTS = ("noun", "verb", "adj", "adv")

_LETTERS = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
_ANTONYM, _SIMILAR, _DERIVED, _RELATED, _ABOVE = "!", "&", ("+", "\\"), ("^", "=", "$"), ("@", "@i")
# Pointers to what is below, or that a topic has: a gloss of "music" says little about each of its thousand words.
_NOT_FOLLOWED = ("~", "~i", "-c", "-r", "-u")
_LITTLE_WORDS = (
    "a an the of to in for on at by with from as or and is are was be been being that which who whose this these those "
    "it its into than such used using"
)
_SKIPPED = frozenset(_LITTLE_WORDS.split())


class Pointer(NamedTuple):
    """From a synset, or one word of it, to another.

    Attributes:
        kind: the symbol of WordNet's files.
        target: part of speech and offset.
        source_word: counted from 1; 0 for the whole synset.
        target_word: likewise.
    """

    kind: str
    target: tuple[str, str]
    source_word: int
    target_word: int


@dataclass(frozen=True)
class Synset:
    """Words that mean the same, what they mean, and what they lead to."""

    words: tuple[str, ...]
    pointers: tuple[Pointer, ...]
    gloss: str


class WordNet:
    """The database of a folder.

    Args:
        folder: with the files `data.noun`, `noun.exc` and so on.

    Raises:
        UsageError: the files are not there.
    """

    def __init__(self, folder: Path = DEBIAN) -> None:
        missing = [part for part in PARTS if not (folder / f"data.{part}").is_file()]
        if missing:
            raise UsageError(
                f"{folder}: data.{missing[0]} is missing; install WordNet (Debian: apt-get install wordnet-base), or "
                "name its folder"
            )
        self.folder = folder
        self.synsets = {(part, offset): synset for part in PARTS for offset, synset in self._read(part)}

    def _read(self, part: str) -> Iterator[tuple[str, Synset]]:
        # The layout of a line is that of wndb(5WN).
        for line in (self.folder / f"data.{part}").read_text(encoding="latin-1").splitlines():
            if line.startswith("  "):
                continue  # the licence
            head, _, gloss = line.partition("|")
            fields = head.split()
            count = int(fields[3], 16)
            words = tuple(re.sub(r"\((?:p|a|ip)\)$", "", fields[4 + 2 * i]).lower() for i in range(count))
            at = 5 + 2 * count
            pointers = tuple(
                Pointer(fields[i], (_LETTERS[fields[i + 2]], fields[i + 1]), *_pair(fields[i + 3]))
                for i in range(at, at + 4 * int(fields[at - 1]), 4)
            )
            yield fields[0], Synset(words, pointers, gloss.strip())

    @cached_property
    def lemmas(self) -> frozenset[str]:
        """All single words."""
        words = (word for synset in self.synsets.values() for word in synset.words)
        return frozenset(word for word in words if re.fullmatch(r"[a-z][a-z'-]*", word))

    @cached_property
    def irregular(self) -> dict[str, str]:
        """Base forms of forms that no rule makes."""
        found: dict[str, str] = {}
        for part in PARTS:
            file = self.folder / f"{part}.exc"
            for line in file.read_text().splitlines() if file.is_file() else ():
                form, base, *_ = line.split()
                found.setdefault(form, base)
        return found

    def lemma(self, word: str) -> str:
        """The base form of a word, the word itself if there is none."""
        return base_form(word, self.lemmas, self.irregular)

    def gloss_words(self, synset: Synset) -> list[str]:
        """The words of a gloss that carry meaning, in their base forms."""
        words = re.findall(r"[a-z][a-z'-]+", synset.gloss.lower())
        return [self.lemma(word) for word in words if word not in _SKIPPED]


def _pair(text: str) -> tuple[int, int]:
    return int(text[:2], 16), int(text[2:], 16)


def vocabulary(net: WordNet, most: int) -> list[str]:
    """The words that are used most; of adjectives and adverbs, which tell quality, also those that are used once."""
    used = Counter(word for synset in net.synsets.values() for word in (*synset.words, *net.gloss_words(synset)))
    telling = {word for (part, _), synset in net.synsets.items() if part in ("adj", "adv") for word in synset.words}
    kept = [word for word, count in used.items() if "_" not in word and (word in telling or count >= 3)]
    return sorted(kept, key=lambda word: (-used[word], word))[:most]


def meaning(
    net: WordNet,
    words: list[str],
    size: int,
    seed: int = 0,
    *,
    texts: Sequence[Sequence[str]] = (),
    weight: float = 1.0,
) -> NDArray[np.float32]:
    """Unit vectors by glosses, shape (words, size): truncated SVD of a weighted matrix of words by synsets and texts.

    Args:
        texts: further columns of the matrix, each the words of a text in their base forms.
        weight: of each word of these; a word of a gloss has 1.
    """
    import torch

    place = {word: number for number, word in enumerate(words)}
    cells: dict[tuple[int, int], float] = defaultdict(float)
    contexts = [list(_context(net, synset)) for synset in net.synsets.values()]
    contexts += [[(word, weight) for word in text] for text in texts]
    for column, context in enumerate(contexts):
        for word, counted in context:
            if word in place:
                cells[place[word], column] += counted
    rows, columns = np.array(list(cells)).T
    documents = np.bincount(rows, minlength=len(words))
    values = np.log1p(list(cells.values())) * np.log(len(contexts) / (1 + documents))[rows]
    lengths = np.sqrt(np.bincount(columns, weights=values**2, minlength=len(contexts))) + 1e-6
    values /= np.sqrt(lengths[columns])  # long glosses count for more than one word, and for less than all of theirs
    matrix = torch.sparse_coo_tensor(
        torch.tensor(np.stack([rows, columns])),
        torch.tensor(values, dtype=torch.float32),
        (len(words), len(contexts)),
        check_invariants=True,
    ).coalesce()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        left, weights, _ = torch.svd_lowrank(matrix, q=min(size + 14, *matrix.shape), niter=4)
    vectors = (left * weights.sqrt())[:, :size].numpy()
    vectors = np.pad(vectors, ((0, 0), (0, size - vectors.shape[1])))  # few words have few singular values
    found: NDArray[np.float32] = vectors / (np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-6)
    return found


def rarity(net: WordNet, words: list[str]) -> NDArray[np.float32]:
    """How few synsets each word is in, or in the gloss of; 0 (in all) to 1, shape (words,)."""
    used = Counter(word for synset in net.synsets.values() for word in {*synset.words, *net.gloss_words(synset)})
    counts = np.array([1 + used[word] for word in words])
    found: NDArray[np.float32] = (1 - np.log(counts) / np.log(1 + len(net.synsets))).astype(np.float32)
    return found


def _context(net: WordNet, synset: Synset) -> Iterator[tuple[str, float]]:
    """The words that a synset is explained by, with weights."""
    yield from _parts(net, synset.words, 2.0)
    yield from ((word, 1.0) for word in net.gloss_words(synset))
    for pointer in synset.pointers:
        if pointer.kind == _ANTONYM or pointer.kind in _NOT_FOLLOWED:
            continue
        other = net.synsets[pointer.target]
        yield from _parts(net, other.words, 0.7)
        if pointer.kind in (*_ABOVE, ";c", _SIMILAR):
            yield from ((word, 0.3) for word in net.gloss_words(other))


def _parts(net: WordNet, words: tuple[str, ...], weight: float) -> Iterator[tuple[str, float]]:
    for word in words:
        if "_" in word:
            yield from ((net.lemma(part), min(weight, 0.7)) for part in word.split("_"))
        else:
            yield word, weight


def polarity(net: WordNet, words: list[str], known: Mapping[str, float], rounds: int = 12) -> NDArray[np.float32]:
    """How good each word sounds (-1 to 1) and how sure that is (0 to 1), shape (words, 2).

    Args:
        known: levels of some words, -1 to 1.
        rounds: how many relations far they are spread; each takes a tenth of their strength.
    """
    place = {word: number for number, word in enumerate(words)}
    links: dict[tuple[int, int], float] = defaultdict(float)
    for one, other, weight in _links(net):
        if one in place and other in place and one != other:
            links[place[one], place[other]] += weight
            links[place[other], place[one]] += weight
    seed, fixed = np.zeros(len(words)), np.zeros(len(words), bool)
    for word, level in known.items():
        if (base := net.lemma(word)) in place:
            seed[place[base]], fixed[place[base]] = level, True
    if not links:
        return np.stack([seed, fixed], axis=1).astype(np.float32)
    rows, columns = np.array(list(links)).T
    weights = np.array(list(links.values()))
    degree = np.bincount(rows, weights=np.abs(weights), minlength=len(words)) + 1e-3
    value, strength = seed.copy(), fixed.astype(float)
    for _ in range(rounds):
        spread = np.bincount(rows, weights=weights * value[columns], minlength=len(words)) / degree
        reach = np.bincount(rows, weights=np.abs(weights) * strength[columns], minlength=len(words)) / degree
        value, strength = np.where(fixed, seed, 0.9 * spread), np.where(fixed, 1.0, 0.9 * reach)
    return np.stack([value / np.maximum(strength, 1e-3), strength], axis=1).astype(np.float32)


def _links(net: WordNet) -> Iterator[tuple[str, str, float]]:
    """Pairs of words that sound alike, with weights; below 0 for opposites."""
    for (part, _), synset in net.synsets.items():
        words = synset.words
        yield from ((one, other, 1.0) for i, one in enumerate(words) for other in words[i + 1 :])
        for pointer in synset.pointers:
            others = net.synsets[pointer.target].words
            one, other = words[max(0, pointer.source_word - 1)], others[max(0, pointer.target_word - 1)]
            if pointer.kind == _ANTONYM:
                yield one, other, -1.5
            elif pointer.kind in _DERIVED:
                yield one, other, 0.7
            elif weight := _weight(pointer.kind, part):
                yield from ((one, other, weight) for one in words[:3] for other in others[:3])


def _weight(kind: str, part: str) -> float:
    if kind == _SIMILAR:
        return 0.8
    if kind in _RELATED:
        return 0.5
    # What is above a noun is too wide: "failure" is an "act".
    return 0.3 if kind in _ABOVE and part != "noun" else 0.0
