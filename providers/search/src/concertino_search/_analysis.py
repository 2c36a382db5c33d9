"""Analysis: text to the terms that BM25 counts.

    whitespace      lower case, split at blanks
    words           Unicode words, folded; each Chinese, Japanese or Thai character is a term
    english, …      as `words`, without English stop words where the language is English, and stemmed by Snowball

Invariant: passages and queries of one index go through the same analyser; its name is part of the index's identity.
"""

from __future__ import annotations

import functools
import re
import threading
import unicodedata
from collections.abc import Callable

import Stemmer  # type: ignore[import-not-found, unused-ignore]

from ._errors import CorpusError

Analyser = Callable[[str], list[str]]
"""Text to terms, in order, with repetitions."""

_UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
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
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _WORD.findall(text.casefold())


class _Stemming:
    """Words without stop words, stemmed; a stemmer is not thread-safe, so each thread has its own."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._stop = _STOP_WORDS if language in ("english", "porter") else frozenset()
        self._local = threading.local()

    def __call__(self, text: str) -> list[str]:
        stem = getattr(self._local, "stem", None)
        if stem is None:
            stem = self._local.stem = functools.lru_cache(50_000)(Stemmer.Stemmer(self._language).stemWord)
        words = _words(text)
        return [stem(word) for word in words if word not in self._stop] or [stem(word) for word in words]
