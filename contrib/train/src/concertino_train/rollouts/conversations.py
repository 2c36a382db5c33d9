"""The token sequences of one rollout: which of them a question continues, and what is read before the policy writes.

The invariant: a sequence is continued only if all of its messages come before the new ones, unchanged. Anything else,
such as a history that was cut, begins a new sequence. So no sequence holds a context that the policy was not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from concertino import Message
from concertino.strategies import Ask
from concertino_local.codec import Codec, Ids, Tools

from concertino_train.policies import Sample

from .sequences import TokenSequence, TokenTurn


class Encoder:
    """A codec that remembers: rollouts of a group are shown the same again and again."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self._known: dict[Any, Ids] = {}

    def prompt(self, messages: Sequence[Message], tools: Tools) -> Ids:
        """See `Codec.prompt`."""
        return self._remembered((None, *map(_key, messages), repr(tools)), lambda: self.codec.prompt(messages, tools))

    def onward(self, fresh: Sequence[Message], ended: bool, tools: Tools) -> Ids:
        """See `Codec.onward`."""
        key = (ended, *map(_key, fresh), repr(tools))
        return self._remembered(key, lambda: self.codec.onward(fresh, ended, tools))

    def _remembered(self, key: Any, encode: Callable[[], Ids]) -> Ids:
        if key not in self._known:
            self._known[key] = encode()
        return self._known[key]


def _key(message: Message) -> Any:
    # Arguments are often dicts, which have no hash.
    calls = tuple((call.name, str(call.arguments), call.id) for call in message.tool_calls)
    return message.role, message.text, calls, message.call_id, message.reasoning


@dataclass
class _Conversation:
    sequence: TokenSequence
    messages: list[Message]
    ended: bool = True


class Conversations:
    """What all roles of one rollout read and wrote."""

    def __init__(self) -> None:
        self._conversations: list[_Conversation] = []
        self._count = 0

    @property
    def sequences(self) -> list[TokenSequence]:
        """In the order in which they began."""
        return [conversation.sequence for conversation in self._conversations]

    @property
    def sampled(self) -> int:
        """Tokens sampled so far."""
        return sum(sequence.sampled for sequence in self.sequences)

    def read(self, step: Ask, encoder: Encoder) -> TokenSequence:
        """The sequence on which a question is answered, with everything read that the policy is shown."""
        messages = list(step.messages)
        for conversation in reversed(self._conversations):
            if conversation.sequence.role == step.role and (fresh := _behind(conversation.messages, messages)):
                conversation.sequence.read(encoder.onward(fresh, conversation.ended, step.tools))
                conversation.messages = messages
                return conversation.sequence
        sequence = TokenSequence(step.role)
        sequence.read(encoder.prompt(messages, step.tools))
        self._conversations.append(_Conversation(sequence, messages))
        return sequence

    def write(self, sequence: TokenSequence, sample: Sample, text: str, codec: Codec, version: int) -> TokenTurn:
        """Put what was sampled behind what was read."""
        conversation = next(conversation for conversation in self._conversations if conversation.sequence is sequence)
        # Counted over all roles, so that a turn's number is its place in the rollout.
        self._count += 1
        sequence.wrote(sample.ids, sample.logprobs, sample.finish, self._count, version)
        conversation.messages.append(Message("assistant", text))
        # A text that was cut off has no end token, and `onward` then writes one in front of what follows.
        conversation.ended = codec.ended(sample.ids)
        return sequence.turns[-1]

    def fork(self) -> Conversations:
        """An independent copy."""
        twin = Conversations()
        twin._count = self._count
        twin._conversations = [
            _Conversation(each.sequence.fork(), list(each.messages), each.ended) for each in self._conversations
        ]
        return twin

    def place(self, sequence: TokenSequence) -> int:
        """Index of a sequence among those of the rollout."""
        return next(
            place for place, conversation in enumerate(self._conversations) if conversation.sequence is sequence
        )


def _behind(known: Sequence[Message], now: Sequence[Message]) -> list[Message]:
    """Messages that were said since; none where the conversation is another one, or somebody else spoke for us."""
    if len(known) >= len(now) or not all(map(_same, known, now)):
        return []
    fresh = list(now[len(known) :])
    # A turn of the assistant that the policy did not sample would be trained as its own.
    return [] if any(message.role == "assistant" for message in fresh) else fresh


def _same(one: Message, other: Message) -> bool:
    """Equal; of what the policy itself said the text counts, since strategies keep it in several ways."""
    if one is other:
        return True
    if one.role == other.role == "assistant":
        return one.text == other.text
    return one == other
