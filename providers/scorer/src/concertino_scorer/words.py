"""Words by number: a vocabulary that also knows the forms of its words.

`failed` and `failing` are read as `fail` where only that is in the vocabulary. Irregular forms are listed, regular ones
follow from endings, as in WordNet's own search of base forms (morphy).
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence

_ENDINGS = tuple(
    (ending, other)
    for endings, other in (("s es ed ing er est ly", ""), ("ed ing er est", "e"), ("ies ily", "y"), ("men", "man"))
    for ending in endings.split()
)
_DOUBLED = re.compile(r"(.*?([bdgklmnprt]))\2(?:ed|ing|er|est)")


def base_form(word: str, known: Container[str], irregular: Mapping[str, str]) -> str:
    """The base form of a word, the word itself if it is known or has none.

    Args:
        known: words in their base forms.
        irregular: base forms of forms that no rule makes, such as `was`.
    """
    if word in known:
        return word
    if (base := irregular.get(word, "")) in known:
        return base
    for ending, other in _ENDINGS:
        stem = word.removesuffix(ending) + other
        if word.endswith(ending) and len(stem) > 1 and stem in known:
            return stem
    doubled = _DOUBLED.fullmatch(word)
    return doubled[1] if doubled and doubled[1] in known else word


class WordNumbers(Mapping[str, int]):
    """Numbers of words and of their forms.

    Args:
        words: in base forms, in the order of their numbers.
        first: the number of the first one.
        irregular: see `base_form`.
    """

    def __init__(self, words: Sequence[str], first: int = 0, irregular: Mapping[str, str] | None = None) -> None:
        self.words = tuple(words)
        self.first = first
        self.irregular = dict(irregular or {})
        self._numbers = {word: number for number, word in enumerate(self.words, first)}
        self._known: dict[str, int] = {}

    def __getitem__(self, word: str) -> int:
        number = self._known.get(word)
        if number is None:
            number = self._known[word] = self._numbers.get(base_form(word, self._numbers, self.irregular), -1)
        if number < 0:
            raise KeyError(word)
        return number

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.get(word) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __len__(self) -> int:
        return len(self.words)
