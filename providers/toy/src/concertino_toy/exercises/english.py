"""English as people write it, with numbers in it: the words of the documentation that comes with every Python.

Invented sentences have few words and few forms, and who has only read such ones loses its place in a real reply. What
is drawn here means nothing, but it has the words, the lengths and the punctuation of what people write. Another version
of Python has other topics, so the same is drawn only under the same one. The invariant: no word makes a number an
answer, or a reply a refusal, that is not one (see `leader.value_in`).
"""

from __future__ import annotations

import re
from functools import cache
from random import Random

_MEANINGFUL = {"answer", "answers", "unknown", "cannot", "know", "missing", "a"}
"""Words that `leader.value_in` looks for."""


@cache
def _words() -> tuple[str, ...]:
    from pydoc_data.topics import topics

    found = (re.findall(r"(?<![\w\\])[A-Za-z][a-z']+[,;]?(?=[\s.])", text) for _, text in sorted(topics.items()))
    return tuple(word for topic in found for word in topic if word.strip(",;").lower() not in _MEANINGFUL)


def phrase(rng: Random, least: int, most: int) -> str:
    """A run of `least` to `most` words, which often make half a sentence."""
    words, count = _words(), rng.randint(least, most)
    start = rng.randrange(len(words) - count)
    return " ".join(words[start : start + count]).rstrip(",;")


def sentence(rng: Random, numbers: list[str]) -> str:
    """A sentence with these numbers in it, at random places; each is followed by a word, often."""
    parts = phrase(rng, 4, 15).split()
    for number in numbers:
        parts.insert(rng.randint(0, len(parts)), number)
    text = " ".join(parts)
    return text[:1].upper() + text[1:] + rng.choice((".", ".", ".", ",", ":", ";", "!"))
