"""Telling a run's listeners of the text of a reply while it is written.

Only runs whose caller asked for text have tellers (`Scope.streams`); in all others models are not even asked for a
stream. What is told is neither kept nor recorded: the finished reply is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from concertino.core.events import TextDelta, TextKind

from .scope import Scope

if TYPE_CHECKING:
    from concertino.strategies.base.answer_reader import AnswerReader

    from .model_call import StreamListener


class TextTeller:
    """Tells of one request.

    Args:
        call_id: of the request.
        speaker: the strategy's role that speaks, or the name of a model that an agent asks.
        make_reader: makes a reader of the answer for each attempt; None where no answer is looked for.
        then: who else hears the text.

    Attributes:
        answer: the pieces of the answer that this attempt was told of.
    """

    __slots__ = ("_attempt", "_call_id", "_make_reader", "_reader", "_scope", "_speaker", "_then", "answer")

    def __init__(
        self,
        scope: Scope,
        call_id: str,
        speaker: str,
        make_reader: Callable[[], AnswerReader | None] | None = None,
        then: StreamListener | None = None,
    ) -> None:
        self._scope = scope
        self._call_id = call_id
        self._speaker = speaker
        self._make_reader = make_reader
        self._reader: AnswerReader | None = None
        self._then = then
        self._attempt = 0
        self.answer: list[str] = []

    def on_attempt(self) -> None:
        """An attempt begins: the text heard so far is void."""
        self._attempt += 1
        self.answer = []
        self._reader = self._make_reader() if self._make_reader is not None else None
        if self._then is not None:
            self._then.on_attempt()

    def on_thought(self, piece: str) -> None:
        """More of the reasoning channel."""
        self._tell("reasoning", piece)

    def on_text(self, piece: str) -> None:
        """More of the text."""
        self._tell("text", piece)
        if self._reader is not None and (answer := self._reader.feed(piece)):
            self._tell_answer(answer)
        if self._then is not None:
            self._then.on_text(piece)

    def on_end(self) -> None:
        """The text is complete."""
        if self._reader is not None and (answer := self._reader.finish()):
            self._tell_answer(answer)

    def _tell_answer(self, piece: str) -> None:
        self.answer.append(piece)
        self._tell("answer", piece)

    def _tell(self, kind: TextKind, piece: str) -> None:
        scope = self._scope
        scope.tell(TextDelta(self._call_id, self._speaker, kind, piece, self._attempt, scope.now()))
