"""The guard: which of a writer's sentences stand in a description. It drops whole sentences and rewrites none.

A sentence goes that holds a figure (figures come from the profile), the known answer of a task, a run of words from a
question or from what the examined model wrote (so that nothing it wrote speaks through the writer), markup, the first
person, a comparison with other models, or an order to the reader. A remark goes as a whole that the figures contradict:
a strength in kinds of task that were mostly failed, a weakness in kinds without a failure.

This is a safety net, not a guarantee: it keeps texts honest and takes away the easy ways to abuse them. What must hold
whatever a writer says, the figures, the limit and that no text of the model is copied, does not rest on the writer's
good will.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from concertino_bench.graders.judge_agreement import wilson
from concertino_bench.graders.verbatim import holds, plain

from .note import Note, Remark
from .profile import GradedAnswer, Profile

DESCRIPTION_LIMIT = 2048
"""Characters of a member's description in a pool."""
_RUN = 5
"""Words in a row that count as copied."""
_LONGEST = 240
"""Characters of a sentence."""
_MOST = 5
"""Sentences in one list."""

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_WORD = re.compile(r"\w+")
_NUMBER = r"(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|hundred)"
_FIGURE = re.compile(
    rf"\d|%|\bper\s?cent\b|\b{_NUMBER}\s+(?:out\s+)?of\s+(?:the\s+)?{_NUMBER}\b|\b(?:dozens?|hundreds?|thousands?)\b",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"[<>{}\[\]`|\\]|https?:|www\.", re.IGNORECASE)
_OUT_OF_PLACE = {
    "the first person": re.compile(r"\b(?:I|[Mm](?:e|y|ine|yself)|[Ww]e|[Oo]urs?|us)\b"),
    "a comparison with other models": re.compile(
        r"\b(?:best|better than|worse than|worst|superior|inferior|unrivalled|unmatched|state[- ]of[- ]the[- ]art|"
        r"other (?:models?|agents?|tools?)|any other|than others)\b",
        re.IGNORECASE,
    ),
    "an order to the reader, or an overstatement": re.compile(
        r"\b(?:you|your|always|never)\b|^\W*(?:use|choose|call|pick|prefer|select|ignore|disregard|trust|send|route|"
        r"give|avoid|forget|write|say|do not|don't)\b|\b(?:ignore|disregard)\b",
        re.IGNORECASE,
    ),
}
_SAY_NOTHING = frozenset({"yes", "no", "true", "false", "none", "all", "some", "both", "neither", "null"})
"""Answers that tell nothing when they stand in a sentence."""


class KeptSentences(NamedTuple):
    """What is left of a note: sentences, and how many went for which reason."""

    strengths: tuple[str, ...]
    weaknesses: tuple[str, ...]
    dropped: dict[str, int]

    def __bool__(self) -> bool:
        return bool(self.strengths or self.weaknesses)


def keep(note: Note, profile: Profile, graded: Sequence[GradedAnswer]) -> KeptSentences:
    """What of a note may stand in a description."""
    guard = _Guard(profile, graded)
    strengths = guard.sentences(note.strengths, strong=True)
    weaknesses = guard.sentences(note.weaknesses, strong=False)
    return KeptSentences(strengths, weaknesses, dict(guard.dropped))


def join(kept: KeptSentences, facts: str) -> str:
    """The sentences before the facts, as many as fit the limit of a description."""
    strengths, weaknesses = list(kept.strengths), list(kept.weaknesses)
    while True:
        parts = [f"{title}: {' '.join(s)}" for title, s in (("Strong", strengths), ("Weak", weaknesses)) if s]
        text = " ".join([*parts, facts])
        if len(text) <= DESCRIPTION_LIMIT:
            return text
        if not (strengths or weaknesses):
            return text[:DESCRIPTION_LIMIT]
        # From the longer list and from its end, where a writer puts what matters least; figures are never cut first.
        (strengths if len(strengths) >= len(weaknesses) else weaknesses).pop()


class _Guard:
    """The reasons against sentences about one model."""

    def __init__(self, profile: Profile, graded: Sequence[GradedAnswer]) -> None:
        self.dropped: Counter[str] = Counter()
        self._profile = profile
        # Longest first: of two kinds, one of which begins the other, an alternation takes the first that fits.
        by_length = sorted(profile.by_kind, key=len, reverse=True)
        self._kinds = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, by_length))})(?!\w)", re.IGNORECASE)
        answers = {plain(one.item.task.answers[0]) for one in graded}
        # Short answers such as "A" or "7" stand in every other sentence.
        self._answers = {answer for answer in answers if len(answer) > 2 and answer not in _SAY_NOTHING}
        self._runs: set[tuple[str, ...]] = set()
        for one in graded:
            for text in (one.item.task.question, one.item.task.answers[0], one.answer.text, one.answer.reasoning):
                self._runs.update(_runs(text))

    def sentences(self, remarks: Iterable[Remark], *, strong: bool) -> tuple[str, ...]:
        """The sentences of remarks against which nothing speaks, without repetitions."""
        kept: dict[str, None] = {}
        for remark in remarks:
            if self._contradicted(remark, strong=strong):
                self.dropped["contradicted by the figures"] += 1
                continue
            for sentence in _sentences(remark.text):
                reason = self._against(sentence)
                if reason:
                    self.dropped[reason] += 1
                else:
                    kept.setdefault(sentence)
        return tuple(kept)[:_MOST]

    def _contradicted(self, remark: Remark, *, strong: bool) -> bool:
        """Whether the figures of the kinds that a remark rests on, or of all, say the opposite."""
        rates = [rate for kind, rate in self._profile.by_kind.items() if kind in remark.kinds]
        rates = rates or [self._profile.overall]
        tasks = sum(rate.tasks for rate in rates)
        accuracy = sum(rate.accuracy * rate.tasks for rate in rates) / tasks
        # Only clear figures contradict: a strength falls if even the upper end of the interval is below one half.
        return wilson(accuracy * tasks, tasks)[1] < 0.5 if strong else accuracy == 1

    def _against(self, sentence: str) -> str:
        """Why a sentence may not stand there, empty if it may."""
        # Names of kinds are the profile's own, and may hold digits or words that are refused elsewhere.
        named = self._kinds.sub("kind", sentence)
        if _FIGURE.search(named):
            return "a figure"
        if _MARKUP.search(named) or not sentence.isprintable():
            return "markup"
        if len(sentence) > _LONGEST:
            return "too long"
        folded = plain(named)
        if any(holds(folded, answer) for answer in self._answers):
            return "the answer of a task"
        if not self._runs.isdisjoint(_runs(sentence)):
            return "words of a task or an answer"
        return next((why for why, pattern in _OUT_OF_PLACE.items() if pattern.search(sentence)), "")


def _sentences(text: str) -> Iterator[str]:
    for sentence in _SENTENCE.split(text):
        flat = " ".join(sentence.split()).rstrip(";")
        if _WORD.search(flat):
            yield flat if flat[-1] in ".!?" else f"{flat}."


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    """All runs of `_RUN` words of a text."""
    words = _WORD.findall(text.casefold())
    return (tuple(words[place : place + _RUN]) for place in range(len(words) - _RUN + 1))
