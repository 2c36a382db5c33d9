"""Telling a run's listeners of the text of a reply while it is written.

Only runs whose caller asked for text have tellers (`Scope.streams`); in all others models are not even asked for a
stream. What is told is neither kept nor recorded: the finished reply is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from concertino.core.events import TextDelta, TextKind

from .scope import Scope

if TYPE_CHECKING:
    from .model_call import StreamListener


class AnswerFinder(Protocol):
    """Finds the answer in a text; see `concertino.strategies.base.answer_reader`."""

    def feed(self, piece: str) -> str:
        """Take more of the text; gives what is new of the answer."""

    def finish(self) -> str:
        """Take the end of the text."""


class TextTeller:
    """Tells of one request.

    Args:
        call_id: of the request.
        speaker: the strategy's role that speaks, or the name of a model that an agent asks.
        find_answer: makes a finder of the answer for each attempt; None where no answer is looked for.
        then: who else hears the text.
    """

    __slots__ = ("_attempt", "_call_id", "_find_answer", "_finder", "_scope", "_speaker", "_then")

    def __init__(
        self,
        scope: Scope,
        call_id: str,
        speaker: str,
        find_answer: Callable[[], AnswerFinder | None] | None = None,
        then: StreamListener | None = None,
    ) -> None:
        self._scope = scope
        self._call_id = call_id
        self._speaker = speaker
        self._find_answer = find_answer
        self._finder: AnswerFinder | None = None
        self._then = then
        self._attempt = 0

    def on_attempt(self) -> None:
        """An attempt begins: the text heard so far is void."""
        self._attempt += 1
        self._finder = self._find_answer() if self._find_answer is not None else None
        if self._then is not None:
            self._then.on_attempt()

    def on_thought(self, piece: str) -> None:
        """More of the reasoning channel."""
        self._tell("reasoning", piece)

    def on_text(self, piece: str) -> None:
        """More of the text."""
        self._tell("text", piece)
        if self._finder is not None and (answer := self._finder.feed(piece)):
            self._tell("answer", answer)
        if self._then is not None:
            self._then.on_text(piece)

    def on_end(self) -> None:
        """The text is complete."""
        if self._finder is not None and (answer := self._finder.finish()):
            self._tell("answer", answer)

    def _tell(self, kind: TextKind, piece: str) -> None:
        scope = self._scope
        scope.tell(TextDelta(self._call_id, self._speaker, kind, piece, self._attempt, scope.now()))
