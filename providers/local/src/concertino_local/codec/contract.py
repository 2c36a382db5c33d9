"""A codec: between messages and the token ids of one policy.

A policy reads and writes token ids; a strategy reads and writes messages. The invariant that training rests on: what
the policy sampled is never encoded again. A conversation continues after the sampled ids themselves, and only what
others said is encoded; so the ids that are trained on are the ids that were sampled, whatever the tokenizer would have
made of their text.

`Codec` is the contract, `ByteCodec` the plainest one: a token is a byte of UTF-8. Codecs of real models are made of a
tokenizer and a chat template (`ChatCodec`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from concertino import Message, Reply, Usage

Ids = tuple[int, ...]
Tools = Sequence[Mapping[str, Any]]


class Codec(ABC):
    """Between messages and token ids.

    Attributes:
        end_ids: tokens that end a turn of the policy: it stops behind one, and each is trained.
        pad_id: fills rows up to one length; never trained.
        size: how many tokens there are: ids are from 0 to `size` - 1.
    """

    end_ids: Ids
    pad_id: int
    size: int

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Hash of everything that decides about ids; equal exactly for codecs that encode alike."""

    @abstractmethod
    def prompt(self, messages: Sequence[Message], tools: Tools = ()) -> Ids:
        """A conversation up to where the policy begins to write.

        Assistant messages in it are encoded from their text: they are somebody else's, or an example.
        """

    @abstractmethod
    def onward(self, fresh: Sequence[Message], ended: bool, tools: Tools = ()) -> Ids:
        """What stands between a sampled turn and where the policy begins to write again.

        Args:
            fresh: what was said since, one message or more, none of them the assistant's.
            ended: whether the sampled turn ended with one of `end_ids`; else the turn is closed first.
        """

    @abstractmethod
    def turn(self, message: Message) -> Ids:
        """A turn of the assistant as the policy would write it, the end of the turn included: for teaching."""

    @abstractmethod
    def read(self, ids: Sequence[int], tools: Tools = ()) -> Reply:
        """What sampled ids say, without the end of the turn.

        Args:
            ids: sampled.
            tools: with them, native tool calls are read from the text.

        Returns:
            Text, and native calls where `tools` were given; `finish_reason` is left to the caller.
        """

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """The text of any ids, special tokens shown; for people and tests."""

    def ended(self, ids: Sequence[int]) -> bool:
        """Whether a sampled turn has its end."""
        return bool(ids) and ids[-1] in self.end_ids


class ByteCodec(Codec):
    """A token is a byte; further ones begin and end turns. For tests, and for policies that are scripts.

    A message is `BEGIN role newline text END newline`; the policy writes from behind `assistant newline` to `END`.
    """

    BEGIN, END, PAD = 256, 257, 258
    end_ids = (END,)
    pad_id = PAD
    size = 259

    @property
    def fingerprint(self) -> str:
        """Always the same."""
        return "bytes-1"

    def prompt(self, messages: Sequence[Message], tools: Tools = ()) -> Ids:
        """See `Codec.prompt`; tools are not shown."""
        return (*(token for message in messages for token in self._whole(message)), *self._begin("assistant"))

    def onward(self, fresh: Sequence[Message], ended: bool, tools: Tools = ()) -> Ids:
        closing = b"\n" if ended else (self.END, *b"\n")
        return (*closing, *self.prompt(fresh))

    def turn(self, message: Message) -> Ids:
        return (*_utf8(message.text), self.END)

    def read(self, ids: Sequence[int], tools: Tools = ()) -> Reply:
        """See `Codec.read`; there are no native calls."""
        text = bytes(token for token in ids if token < 256).decode("utf-8", "replace")
        return Reply(text, usage=Usage(output_tokens=len(ids)))

    def decode(self, ids: Sequence[int]) -> str:
        shown = {self.BEGIN: b"<|begin|>", self.END: b"<|end|>", self.PAD: b"<|pad|>"}
        return b"".join(bytes([token]) if token < 256 else shown[token] for token in ids).decode("utf-8", "replace")

    def _whole(self, message: Message) -> Ids:
        return (*self._begin(message.role), *_utf8(message.text), self.END, *b"\n")

    def _begin(self, role: str) -> Ids:
        return (self.BEGIN, *_utf8(role), *b"\n")


def _utf8(text: str) -> bytes:
    # Lone surrogates have no UTF-8.
    return text.encode("utf-8", "replace")
