"""One request while it is answered: its prompt, what was sampled, and what that means as text.

Every sampled token is kept, with its log-probability, the one that ends the reply included; so `len(ids)` is what is
counted as output. A token that ends the reply adds no text. The worker thread alone touches a row, except for
`channel.cancelled`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from .codec import TemplateCodec
from .codec.dialects import ReplyReader
from .codec.text import Detokenizer, StopScanner
from .grammar import Grammar
from .jobs import Channel
from .sampling import BatchRow


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


@dataclass(eq=False)
class RequestRow(BatchRow):
    """A request on its way through the batch.

    Attributes:
        limit: tokens of its reply at most.
        ends: token ids that end it.
        channel: who waits for it.
        transcript: its text; None where only tokens are wanted.
        grammar: what its text is held to.
        streams: its pieces of text are wanted as they come.
        logprobs: of the sampled `ids`.
        finish_reason: empty while it generates.
        thought: how many of its tokens are reasoning, its marks included.
        number: of its arrival.
        weights: version of the weights that answer it.
        origin: what else the reply says about where it comes from.
    """

    limit: int = 1
    ends: Collection[int] = ()
    channel: Channel = field(kw_only=True)
    transcript: Transcript | None = None
    grammar: Grammar | None = None
    streams: bool = False
    logprobs: list[float] = field(default_factory=list)
    finish_reason: str = ""
    thought: int = 0
    number: int = 0
    weights: str = ""
    origin: dict[str, Any] = field(default_factory=dict)

    @property
    def is_constrained(self) -> bool:
        """Whether the reply is held to a grammar."""
        return self.grammar is not None

    def allowed_tokens(self) -> torch.Tensor | None:
        """What the grammar allows next, where it applies: in the visible text, not in reasoning."""
        return self.grammar.allowed() if self.grammar is not None and self._speaks else None

    @property
    def _speaks(self) -> bool:
        return self.transcript is None or self.transcript.reader.speaking

    def accept(self, token: int, logprob: float) -> str:
        """Take a sampled token.

        Returns:
            The visible text that it adds; `finish_reason` is set if it ends the reply.
        """
        # Before the transcript moves on: the token was chosen under the grammar as it stands now.
        if self.grammar is not None and self._speaks:
            self.grammar.take(token)
        self.ids.append(token)
        self.logprobs.append(logprob)
        piece = ""
        if token in self.ends:
            self.finish_reason = "stop"
        elif self.transcript is not None:
            # A token may open or close the reasoning, and its marks count as part of it.
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
