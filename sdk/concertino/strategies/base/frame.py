"""The frame of a run: what its caller adds around the messages of the strategy.

    system message of the strategy
    + instructions, + the type of the answer     at its end
    earlier turns                                then
    the strategy's own conversation              as it is

A strategy knows nothing of it, so instructions, histories and typed answers work with every strategy, those of plugins
too. The machine's messages are never changed: each request gets a list of its own.

Invariant: the frame is fixed when a run begins, so each request extends the one before it, and servers can reuse what
they have computed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from concertino.core.errors import UsageError
from concertino.core.known_secrets import hidden
from concertino.core.model import Message
from concertino.text.foreign_text import FOREIGN, Quoting

from .history import OBSERVED, compacted_turns
from .machine import Ask, Strategy


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around the messages of every request.

    Attributes:
        told: the caller's instructions.
        addition: what stands at the end of the system message: the instructions and the type of the answer.
        history: earlier turns, as they were given.
        earlier: the same, as this strategy's model reads them.
    """

    told: str = ""
    addition: str = ""
    history: tuple[Message, ...] = ()
    earlier: tuple[Message, ...] = ()

    @classmethod
    def of(
        cls,
        strategy: Strategy,
        instructions: str,
        history: Sequence[Message],
        answer_schema: Any = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> Frame:
        """The frame of a run.

        Args:
            instructions: of the caller.
            history: earlier turns, user and assistant.
            answer_schema: JSON schema that the answer has to satisfy, None for a text.
            tools: function objects on offer; no earlier turn can hold the mark of one.
        """
        instructions = hidden(instructions)
        history = [_without_secrets(message) for message in history]
        texts = [f"# Instructions\n{instructions}"] if instructions else []
        if answer_schema is not None:
            texts.append(
                "# Form of the final answer\nThe text of the final answer is one JSON value that satisfies this JSON "
                f"schema, and nothing else:\n{json.dumps(answer_schema, ensure_ascii=False)}"
            )
        limit = getattr(strategy, "history_tokens", None)
        # Half of what the conversation may take: the other half is this run's own.
        kept = compacted_turns(history, limit // 2) if limit else tuple(history)
        quoting = strategy.quoting(tools) if kept else FOREIGN
        earlier = tuple(_in_form(message, strategy, quoting) for message in kept)
        return cls(instructions, "\n\n".join(texts), tuple(history), earlier)

    def __bool__(self) -> bool:
        return bool(self.addition or self.earlier)

    def around(self, step: Ask) -> Ask:
        """The same request with the frame around its messages."""
        messages = list(step.messages)
        first = next((place for place, message in enumerate(messages) if message.role != "system"), len(messages))
        added = len(self.earlier)
        messages[first:first] = self.earlier
        if self.addition and first:
            last = messages[first - 1]
            messages[first - 1] = replace(last, text=f"{last.text}\n\n{self.addition}")
        elif self.addition:
            messages.insert(0, Message("system", self.addition))
            added += 1
        # A conversation that was asked about before has had the frame already.
        fresh = step.fresh + added if step.fresh >= len(step.messages) else step.fresh
        return replace(step, messages=messages, fresh=fresh)


NO_FRAME = Frame()
"""The frame of a run that is given a question alone."""


def _without_secrets(message: Message) -> Message:
    text = hidden(message.text)
    return message if text is message.text else replace(message, text=text)


def _in_form(message: Message, strategy: Strategy, quoting: Quoting) -> Message:
    """An earlier turn as this strategy's model reads it: quoted, and an answer in the form in which it writes one."""
    # The mark of results below a question was written by `history`, which leaves none in the question itself.
    question, mark, results = message.text.partition(OBSERVED) if message.role == "user" else (message.text, "", "")
    text = quoting.text(question) + mark + quoting.text(results)
    if message.role == "assistant":
        with suppress(UsageError):  # a strategy that writes no answers reads plain ones
            text = strategy.write_answer(text)[-1]
    return message if text == message.text else replace(message, text=text)


def instructions_text(given: object, context: Any) -> str:
    """Instructions as text: a function is called with the run's context.

    Raises:
        UsageError: it is neither a text nor a function that gives one.
    """
    if given is None:
        return ""
    text = given(context) if callable(given) else given
    if not isinstance(text, str):
        what = f"{given!r} returned {text!r}" if callable(given) else f"instructions={given!r}"
        raise UsageError(f"{what}: expected a text, or a function of the run's context that returns one")
    return text.strip()
