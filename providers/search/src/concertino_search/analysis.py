"""Analysis: text to the terms that BM25 counts.

    whitespace      lower case, split at blanks
    words           Unicode words, folded; each Chinese, Japanese or Thai character is a term
    english, …      as `words`, without English stop words where the language is English, and stemmed by Snowball

Invariant: passages and queries of one index go through the same analyser; its name is part of the index's identity.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable

import Stemmer

from .errors import CorpusError

Analyser = Callable[[str], list[str]]
"""Text to terms, in order, with repetitions."""

_UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_STEMS = 50_000
"""Words whose stems an analyser remembers."""
_STOP_TEXT = """
a an and are as at be but by did do does for from had has have how if in into is it its no not of on or s such t that
the their then there these they this to was were what when where which who whom whose why will with
"""
_STOP_WORDS = frozenset(_STOP_TEXT.split())


def analyser(name: str) -> Analyser:
    """The analyser of a name.

    Raises:
        CorpusError: no analyser has that name; lists the known ones.
    """
    if name == "whitespace":
        return lambda text: text.lower().split()
    if name == "words":
        return _words
    if name in Stemmer.algorithms():
        return _Stemming(name)
    raise CorpusError(f"analyser {name!r}: expected whitespace, words, or one of {', '.join(Stemmer.algorithms())}")


def _words(text: str) -> list[str]:
    # NFKC leaves ASCII as it is, so the quick way gives the same terms.
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


class _Stems(dict[str, str]):
    """Stems by word, computed at the first use of each, for all threads; cleared when there are many.

    A mapping, since `map` over its items takes a fifth of the time of a call per word. A stemmer is not thread-safe, so
    each thread has its own.
    """

    def __init__(self, language: str) -> None:
        super().__init__()
        self._language = language
        self._stop = _STOP_WORDS if language in ("english", "porter") else frozenset()
        self._local = threading.local()

    def stem(self, word: str) -> str:
        """The stem of any word."""
        stemmer = getattr(self._local, "stemmer", None)
        if stemmer is None:
            stemmer = self._local.stemmer = Stemmer.Stemmer(self._language)
        return str(stemmer.stemWord(word))

    def __missing__(self, word: str) -> str:
        if len(self) >= _STEMS:
            self.clear()
        found = self[word] = "" if word in self._stop else self.stem(word)
        return found


class _Stemming:
    """Words without stop words, stemmed; a text of stop words alone keeps them."""

    def __init__(self, language: str) -> None:
        self._stems = _Stems(language)

    def __call__(self, text: str) -> list[str]:
        words = _words(text)
        return list(filter(None, map(self._stems.__getitem__, words))) or [self._stems.stem(word) for word in words]
