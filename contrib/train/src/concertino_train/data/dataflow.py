"""Which calls of a trajectory need which results, read from what they hold.

A call needs an earlier result if its arguments hold something that the result brought in:

    a word       that stood nowhere before that result: not in the question, not in the tools, not in the policy's texts
    a number     that stands in the result, unless the argument copies it with its neighbours from the question
    a name or a  that stood nowhere at all: it may have been worked out, so every earlier result is needed
    number

Beside the data, a call waits for an earlier one that failed (it may be its repair), that is the very same call (it may
be a repetition), or where one of the two writes.

What a call was made *because of*, a condition or a doubt, is not in its data and is not seen.

The invariant: doubt makes a dependency. One too many costs parallelism; one too few would teach a policy to call with
what it cannot know yet.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from concertino import Observation

COPIED = 4
"""Words in a row that stand in the question too are copied from it, and bring nothing in."""
SHORTEST = 3
"""Letters of a word that can tell a result; shorter ones are everywhere."""

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "about after all and any are been before between both but can could did does each for from had has have her "
        "his how its into many more most much nor not one only other our out over same she should some such than "
        "that the their them then there these they this those two was were what when where which while who whom "
        "whose why will with would you your",
    )
)
_SHORT_WORDS = frozenset(
    re.findall(r"\w+", "am an as at be by do go he if in is it me my no of oh on or so to up us we")
)


@dataclass(frozen=True)
class MadeValue:
    """One call of a trajectory, in the order in which they were made.

    Attributes:
        name: as it was called.
        arguments: as data.
        seen: its observation.
        thought: what the policy wrote before it.
        written: what tells it from another call, where that is not the arguments.
    """

    name: str
    arguments: Any
    seen: Observation
    thought: str = ""
    written: Any = None

    def repeats(self, other: MadeValue) -> bool:
        """Whether it is the very same call again."""
        return (self.name, self.arguments, self.written) == (other.name, other.arguments, other.written)


def dependencies(known: str, calls: Sequence[MadeValue], writes: Collection[str] = ()) -> list[frozenset[int]]:
    """For each call the places of the earlier calls whose end it needs.

    Args:
        known: everything that the policy had read before its first call: instructions, tools, question.
        calls: in the order in which they were made.
        writes: names of members that change something.
    """
    flow = _Flow(known)
    found: list[frozenset[int]] = []
    for place, made in enumerate(calls):
        needed = flow.sources(made.arguments)
        for earlier, other in enumerate(calls[:place]):
            if not other.seen.ok or made.repeats(other) or other.name in writes or made.name in writes:
                needed.add(earlier)
        found.append(frozenset(needed))
        # Behind its own sources: a call cannot need itself.
        flow.told(made)
    return found


def sources_of(known: str, calls: Sequence[MadeValue], place: int) -> dict[str, int]:
    """Words of a call's arguments that came from earlier results, each with the place of that result."""
    flow = _Flow(known)
    for made in calls[:place]:
        flow.told(made)
    return flow.traced(calls[place].arguments)


def rounds_of(needs: Sequence[Collection[int]], most: int) -> list[list[int]]:
    """Rounds in which every call goes out as early as its needs allow, in order, so many at most in each.

    Returns:
        Places of calls, round by round.
    """
    left, done = list(range(len(needs))), set[int]()
    found: list[list[int]] = []
    while left:
        ready = [place for place in left if set(needs[place]) <= done][:most]
        found.append(ready)
        done.update(ready)
        left = [place for place in left if place not in done]
    return found


class _Flow:
    """Which value came from which call, along a trajectory."""

    def __init__(self, known: str) -> None:
        words = list(_tokens(known))
        self.runs = {tuple(words[at : at + COPIED]) for at in range(len(words) - COPIED + 1)}
        self.known = set(words)
        self.origin: dict[str, int] = {}
        self.numbers: list[frozenset[str]] = []

    def told(self, made: MadeValue) -> None:
        """The policy's text with its call, then the result."""
        for text in (made.thought, *leaves(made.arguments)):
            # A word of a result that the policy repeats is still the result's.
            self.known.update(word for word in _tokens(text) if word not in self.origin)
        words = [word for text in leaves(made.seen.content) for word in _tokens(text)]
        for word in words:
            if word not in self.known:
                self.origin.setdefault(word, len(self.numbers))
        self.numbers.append(frozenset(word for word in words if word[0].isdigit()))

    def sources(self, arguments: Any) -> set[int]:
        """Places of the results that arguments hold something of, or may rest on."""
        found: set[int] = set()
        for word, name in self._brought_in(arguments):
            found |= {place for place, numbers in enumerate(self.numbers) if word in numbers}
            if word in self.origin:
                found.add(self.origin[word])
            if self._guessed(word, name):
                found |= set(range(len(self.numbers)))
        return found

    def traced(self, arguments: Any) -> dict[str, int]:
        """Words of arguments that a result brought in, each with the first such result; guessed ones with the last."""
        found: dict[str, int] = {}
        for word, name in self._brought_in(arguments):
            with_it = [place for place, numbers in enumerate(self.numbers) if word in numbers]
            if with_it:
                found[word] = with_it[0]
            elif word in self.origin:
                found[word] = self.origin[word]
            elif self._guessed(word, name) and self.numbers:
                found[word] = len(self.numbers) - 1
        return found

    def _guessed(self, word: str, name: bool) -> bool:
        """A name or number that stood nowhere: it may have been worked out."""
        return (name or word[0].isdigit()) and word not in self.known and word not in self.origin

    def _brought_in(self, arguments: Any) -> Iterator[tuple[str, bool]]:
        """Words that are not copied from what was known, each with whether it is written as a name."""
        for text in leaves(arguments):
            places = [(match.group(), match.start()) for match in _TOKEN.finditer(text)]
            words = [_plain(word) for word, _ in places]
            copied = {
                at + step
                for at in range(len(words) - COPIED + 1)
                if tuple(words[at : at + COPIED]) in self.runs
                for step in range(COPIED)
            }
            for at, word in enumerate(words):
                name = _is_name(places[at][0], after=words[at + 1] if at + 1 < len(words) else "", first=at == 0)
                telling = word[0].isdigit() or (len(word) >= SHORTEST and word not in _FUNCTION_WORDS)
                if at not in copied and (telling or (name and word not in _SHORT_WORDS)):
                    yield word, name


def _is_name(written: str, *, after: str, first: bool) -> bool:
    """Whether a word may be a name: a capital says so, also of a first word, but for that of `Population of ...`.

    Scripts without capitals do not say it, so that every word of theirs may be one.
    """
    if written[0].isdigit():
        return False
    if written.lower() == written.upper():
        return True
    return written[0].isupper() and not (first and (after == "of" or written.casefold() in _FUNCTION_WORDS))


def leaves(value: Any) -> Iterator[str]:
    """The texts and numbers in data, as texts."""
    # Truth values stand everywhere and tell no result from another.
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    else:
        yield json.dumps(value)


def _tokens(text: str) -> Iterator[str]:
    return (_plain(match.group()) for match in _TOKEN.finditer(text))


def _plain(word: str) -> str:
    return word.replace(",", "") if word[0].isdigit() else word.casefold()
