"""Which recorded question a message asks: found as words, wherever in the message they stand.

A text is compared as a sequence of words and signs, without case, with one kind of quote and dash; so neither curly
apostrophes nor runs of blanks nor line breaks count, and a question is found inside any prompt that quotes it.

Invariant: a question is found only if the message holds all of its words side by side. Nothing is guessed: what is
similar is only named in an error.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

_WORD = re.compile(r"\w+|[^\w\s]")
_ID_LINE = re.compile(r"^[ \t]*(?:question[ _])?id[ \t]*:[ \t]*(\S(?:.*\S)?)[ \t]*$", re.MULTILINE | re.IGNORECASE)
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u2032\u02bc`", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
    }
)
_START = 8
"""Words by which questions are distinguished before they are compared as a whole."""


class Near(NamedTuple):
    """The recorded question that is most like a message.

    Attributes:
        id: of the question.
        share: of the words of both that they have in common, 0 to 1.
    """

    id: str
    share: float


def words_of(text: str) -> list[str]:
    """The words and signs of a text, as they are compared."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).translate(_SIGNS).casefold())


def normalised(text: str) -> str:
    """The text as it is compared: its words, each with a blank before and behind."""
    return f" {' '.join(words_of(text))} "


def _outer(spans: Iterable[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """The spans that no other one contains, in the order of the text; found in one sweep from its beginning."""
    reached = -1
    for begin, end, text in sorted(spans, key=lambda span: (span[0], -span[1])):
        if end > reached:  # else one that begins no later reaches as far
            reached = end
            yield begin, end, text


class QuestionIndex:
    """Recorded questions, by their words.

    Args:
        questions: texts by id; one that is empty is found by its id alone.
    """

    def __init__(self, questions: Mapping[str, str]) -> None:
        self._ids = frozenset(questions)
        self._by_text: dict[str, list[str]] = {}
        self._starts: dict[str, list[str]] = {}
        self._lengths: set[int] = set()
        for question, text in questions.items():
            self._add(question, words_of(text))

    def _add(self, question: str, words: Sequence[str]) -> None:
        if not words:
            return
        text = f" {' '.join(words)} "
        known = self._by_text.setdefault(text, [])
        known.append(question)
        if len(known) == 1:
            start = min(_START, len(words))
            self._lengths.add(start)
            self._starts.setdefault(" ".join(words[:start]), []).append(text)

    def find(self, message: str) -> list[str]:
        """Ids of the questions that a message asks.

        A line `id: …` decides; so does a message that is an id and nothing else. Otherwise it is whatever question
        the message holds, unless it is part of another one that the message holds.
        """
        named = list(dict.fromkeys(found for found in _ID_LINE.findall(message) if found in self._ids))
        if named:
            return named
        found = self._in_text(message)
        if not found and message.strip() in self._ids:
            return [message.strip()]
        return [question for text in found for question in self._by_text[text]]

    def _in_text(self, message: str) -> list[str]:
        words = words_of(message)
        whole = f" {' '.join(words)} "
        if whole in self._by_text:
            return [whole]
        # A recording may hold thousands of questions: those whose first words differ are never compared.
        spans: list[tuple[int, int, str]] = []
        at = 0
        for place, word in enumerate(words):
            for length in self._lengths:
                start = " ".join(words[place : place + length])
                likely = self._starts.get(start, ())
                spans += [(at, at + len(text), text) for text in likely if whole.startswith(text, at)]
            at += len(word) + 1
        return list(dict.fromkeys(text for _, _, text in _outer(spans)))

    def nearest(self, message: str) -> Near | None:
        """The question whose words are most like those of a message; None without any in common."""
        asked = set(words_of(message))
        best: Near | None = None
        for text, ids in self._by_text.items():
            words = set(text.split())
            share = 2 * len(words & asked) / (len(words) + len(asked)) if words & asked else 0.0
            if share > (best.share if best else 0.0):
                best = Near(ids[0], share)
        return best
