"""One request while it is answered: its prompt, what was sampled, and what that means as text.

Every sampled token is kept, with its log-probability, the one that ends the reply included; so `len(ids)` is what is
counted as output. A token that ends the reply adds no text. A row is touched by the worker thread alone, except for
`channel.cancelled`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .codec import Detokenizer, StopScanner, TemplateCodec
from .codec.dialects import ReplyReader

if TYPE_CHECKING:
    from .grammar import Grammar
    from .sampling import Chooser


class Channel:
    """The way from the worker thread back to the task that waits.

    Attributes:
        loop: the event loop of that task.
        events: what has come: pieces of text, then a finished `Row`, a result or an exception.
        cancelled: set by the task when it no longer waits; the row leaves at the next step.
    """

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.events: asyncio.Queue[Any] = asyncio.Queue()
        self.cancelled = False

    async def next(self) -> Any:
        """The next event.

        Raises:
            Exception: that the worker has sent.
        """
        event = await self.events.get()
        if isinstance(event, BaseException):
            raise event
        return event


class Transcript:
    """The text of a reply as it grows.

    Args:
        codec: of the model.
        reader: of the reply format.
        stops: texts that end the reply; they are no part of it.
    """

    def __init__(self, codec: TemplateCodec, reader: ReplyReader, stops: Sequence[str]) -> None:
        self._hidden = codec.hidden
        self._detokenizer = Detokenizer(codec.vocabulary.decode)
        self._scanner = StopScanner(stops)
        self._pieces: list[str] = []
        self.reader = reader

    @property
    def text(self) -> str:
        """The visible text so far."""
        return "".join(self._pieces)

    @property
    def stopped(self) -> bool:
        """Whether a stop text was written."""
        return self._scanner.hit

    def add(self, token: int) -> str:
        """The visible text that a token adds."""
        if token in self._hidden:
            return ""
        return self._keep(self.reader.feed(self._scanner.feed(self._detokenizer.add(token))))

    def finish(self) -> str:
        """The visible text that was held back."""
        rest = self._scanner.feed(self._detokenizer.flush())
        return self._keep(self.reader.feed(rest + self._scanner.flush()) + self.reader.finish())

    def _keep(self, piece: str) -> str:
        if piece:
            self._pieces.append(piece)
        return piece


@dataclass
class Row:
    """A request on its way through the batch.

    Attributes:
        prompt: token ids that the model is shown.
        chooser: how it samples.
        limit: tokens of its reply at most.
        ends: token ids that end it.
        channel: who waits for it.
        transcript: its text; None where only tokens are wanted.
        grammar: what its text is held to.
        streams: its pieces of text are wanted as they come.
        ids, logprobs: what was sampled.
        finish_reason: empty while it generates.
        thought: how many of them are reasoning, its marks included.
        cached: prompt tokens whose keys and values were known.
        weights: version of the weights that answer it.
        origin: what else the reply says about where it comes from.
        done: prompt tokens that have been read so far.
        cache: their keys and values, before the row joins the batch.
    """

    prompt: list[int]
    chooser: Chooser
    limit: int
    ends: Collection[int]
    channel: Channel
    transcript: Transcript | None = None
    grammar: Grammar | None = None
    streams: bool = False
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish_reason: str = ""
    thought: int = 0
    cached: int = 0
    weights: str = ""
    origin: dict[str, Any] = field(default_factory=dict)
    done: int = 0
    cache: Any = None

    def constraint(self) -> Grammar | None:
        """The grammar, where it applies: in the visible text, not in reasoning."""
        return self.grammar if self.transcript is None or self.transcript.reader.speaking else None

    def accept(self, token: int, logprob: float) -> str:
        """Take a sampled token.

        Returns:
            The visible text that it adds; `finish_reason` is set if it ends the reply.
        """
        if (grammar := self.constraint()) is not None:
            grammar.take(token)
        self.ids.append(token)
        self.logprobs.append(logprob)
        piece = ""
        if token in self.ends:
            self.finish_reason = "stop"
        elif self.transcript is not None:
            before = self.transcript.reader.thinking
            piece = self.transcript.add(token)
            self.thought += before or self.transcript.reader.thinking
            if self.transcript.stopped:
                self.finish_reason = "stop"
        if not self.finish_reason and len(self.ids) >= self.limit:
            self.finish_reason = "length"
        if self.finish_reason and self.transcript is not None:
            piece += self.transcript.finish()
        return piece
