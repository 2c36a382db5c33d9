"""References: `${...}` in arguments of a call or in an answer stands for a longer text, which need not be copied.

    ${question}     the user's whole question
    ${question.2}   its second paragraph; blank lines separate paragraphs
    ${1.2}          what the call in place 2 of round 1 returned
    $${             the characters ${

Invariant: there is one pass. What a reference inserts is not searched for references, so nothing in a question or in a
result can refer; a text without `${` is unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from concertino.core.observation import Observation
from concertino.core.plan import Call
from concertino.core.references import Placeholder, as_text, paragraphs, split
from concertino.text.json import ReadingError, read_json

QUESTION = "question"
MOST_CHARACTERS = 1_000_000
"""Characters that the references of one call may insert: results that refer to results could double every round."""

_LISTED = 6
"""Ids of results that a message lists, the newest ones."""


class UnknownReference(ValueError):
    """A reference to nothing; its text says what there is."""


@dataclass(frozen=True)
class Sources:
    """What can be referred to in a run so far.

    Attributes:
        question: the user's question.
        results: texts of the observations that are OK, by `round.place`, both counted from 1.
    """

    question: str
    results: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def paragraphs(self) -> list[str]:
        """The paragraphs of the question."""
        return paragraphs(self.question)

    def find(self, name: str) -> str:
        """The text that a reference stands for.

        Raises:
            UnknownReference: there is none of that name; says which there are.
        """
        if name == QUESTION:
            return self.question
        if name in self.results:
            return self.results[name]
        head, _, number = name.partition(".")
        # `isdigit` alone lets superscripts through, which `int` refuses; the length keeps huge numbers out of it.
        place = int(number) if number.isascii() and number.isdigit() and len(number) < 7 else 0
        if head == QUESTION and 1 <= place <= len(self.paragraphs):
            return self.paragraphs[place - 1]
        raise UnknownReference(
            f"${{{name[:40]}}} refers to nothing; {self._listed()}; write $${{ for the characters ${{"
        )

    def _listed(self) -> str:
        """What can be referred to, in words."""
        count = len(self.paragraphs)
        names = [QUESTION, *([f"{QUESTION}.1" + (f" to {QUESTION}.{count}" if count > 1 else "")] if count else [])]
        newest = list(self.results)[-_LISTED:]
        older = ["…"] if len(self.results) > _LISTED else []
        return f"there are {', '.join([*names, *older, *newest])}"

    def with_round(self, number: int, calls: Iterable[Call], observations: Iterable[Observation]) -> Sources:
        """These, with what the calls of a round returned.

        Args:
            number: of the round, counted from 1.
        """
        returned = {
            place_of(number, call): "" if seen.content is None else as_text(seen.content)
            for call, seen in zip(calls, observations, strict=True)
            if seen.ok
        }
        return replace(self, results={**self.results, **returned})


def place_of(number: int, call: Call) -> str:
    """How the result of a call is referred to: its round, and its place there."""
    return f"{number}.{call.id}"


def fill_call(call: Call, sources: Sources) -> Call:
    """A call with its references filled in; one that refers to nothing gets an error, which says what there is."""
    arguments: Any = call.arguments
    repairs = call.repairs
    if call.error is not None:
        return call
    if isinstance(arguments, str):
        # Untouched where nothing refers: reading and rewriting JSON for nothing would hide the model's own text.
        if "${" not in arguments:
            return call
        try:
            reading = read_json(arguments)
        except ReadingError:
            return call  # what is wrong with it, the executor says
        arguments, repairs = reading.value, repairs + reading.repairs
    try:
        filled = fill(arguments, sources)
    except UnknownReference as error:
        return replace(call, error=("invalid_arguments", str(error)))
    if filled is arguments:
        return call
    return replace(call, arguments=filled, repairs=repairs, guarded=False)


def fill_text(text: str, sources: Sources) -> str:
    """An answer with its references filled in; unchanged if one of them refers to nothing."""
    try:
        return str(fill(text, sources))
    except UnknownReference:
        return text


def fill(value: Any, sources: Sources) -> Any:
    """Plain JSON data with every reference in its texts filled in, at any depth; keys are left alone.

    Returns:
        The very value if it holds no reference.

    Raises:
        UnknownReference: a reference to nothing, one that is not closed, or more text than one call may have.
    """
    return _Filling(sources).fill(value)


class _Filling:
    """One pass over the arguments of one call."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.room = MOST_CHARACTERS

    def fill(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value) if "${" in value else value
        if isinstance(value, Mapping):
            pairs = {key: self.fill(item) for key, item in value.items()}
            # The very value, so that the caller can tell by identity that nothing was filled in.
            return value if all(pairs[key] is item for key, item in value.items()) else pairs
        if isinstance(value, list):
            items = [self.fill(item) for item in value]
            return value if all(new is old for new, old in zip(items, value, strict=True)) else items
        return value

    def _text(self, text: str) -> str:
        return "".join(part if isinstance(part, str) else self._resolve(part) for part in split(text))

    def _resolve(self, mark: Placeholder) -> str:
        if not mark.closed:
            raise UnknownReference(
                f"'${{' at character {mark.start} of an argument is not closed; write ${{name}}, or $${{ for the "
                "characters"
            )
        text = self.sources.find(mark.inner)
        self.room -= len(text)
        if self.room < 0:
            raise UnknownReference(
                f"references insert more than {MOST_CHARACTERS:,} characters; refer to less in one call"
            )
        return text
