"""The lines of one rollout: which of them a question goes on with, and what is read before the policy writes.

The invariant: a line goes on only where all of its messages stand before the new ones, unchanged; anything else, such
as a history that was cut, begins a new line. So no line holds a context that the policy was not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from concertino import Message
from concertino.strategies import Ask
from concertino_local.codec import Codec, Ids, Tools

from concertino_train.policies import Sample
from concertino_train.trajectories import Line, Turn


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
    calls = tuple((call.name, str(call.arguments), call.id) for call in message.tool_calls)
    return message.role, message.text, calls, message.call_id, message.reasoning


@dataclass
class _Talk:
    line: Line
    messages: list[Message]
    ended: bool = True


class Talks:
    """What all roles of one rollout read and wrote."""

    def __init__(self) -> None:
        self._talks: list[_Talk] = []
        self._count = 0

    @property
    def lines(self) -> list[Line]:
        """In the order in which they began."""
        return [talk.line for talk in self._talks]

    @property
    def sampled(self) -> int:
        """Tokens sampled so far."""
        return sum(line.sampled for line in self.lines)

    def read(self, step: Ask, encoder: Encoder) -> Line:
        """The line on which a question is answered, with everything read that the policy is shown."""
        messages = list(step.messages)
        for talk in reversed(self._talks):
            if talk.line.role == step.role and (fresh := _behind(talk.messages, messages)):
                talk.line.read(encoder.onward(fresh, talk.ended, step.tools))
                talk.messages = messages
                return talk.line
        line = Line(step.role)
        line.read(encoder.prompt(messages, step.tools))
        self._talks.append(_Talk(line, messages))
        return line

    def write(self, line: Line, sample: Sample, text: str, codec: Codec, version: int) -> Turn:
        """Put what was sampled behind what was read."""
        talk = next(talk for talk in self._talks if talk.line is line)
        self._count += 1
        line.wrote(sample.ids, sample.logprobs, sample.finish, self._count, version)
        talk.messages.append(Message("assistant", text))
        talk.ended = codec.ended(sample.ids)
        return line.turns[-1]

    def fork(self) -> Talks:
        """An independent copy."""
        twin = Talks()
        twin._count = self._count
        twin._talks = [_Talk(talk.line.fork(), list(talk.messages), talk.ended) for talk in self._talks]
        return twin

    def place(self, line: Line) -> int:
        """Which line it is."""
        return next(place for place, talk in enumerate(self._talks) if talk.line is line)


def _behind(known: Sequence[Message], now: Sequence[Message]) -> list[Message]:
    """Messages that were said since; none where the conversation is another one, or somebody else spoke for us."""
    if len(known) >= len(now) or not all(map(_same, known, now)):
        return []
    fresh = list(now[len(known) :])
    return [] if any(message.role == "assistant" for message in fresh) else fresh


def _same(one: Message, other: Message) -> bool:
    """Equal; of what the policy itself said the text counts, since strategies keep it in several ways."""
    if one is other:
        return True
    if one.role == other.role == "assistant":
        return one.text == other.text
    return one == other
