"""A conversation in pieces: its beginning, the assistant's turns, and what stands between them.

    <|im_start|>user\\nHow far?<|im_end|>\\n<|im_start|>assistant\\n       the beginning: up to where the policy writes
    Ten miles.<|im_end|>                                             a turn: what the policy writes, its end included
    \\n<|im_start|>user\\nAnd back?<|im_end|>\\n<|im_start|>assistant\\n  what stands between two turns

Each piece is rendered alone: a turn behind a stand-in question, what stands between behind a stand-in answer. The
pieces are encoded one by one, so a turn that was sampled can take the place of one that was rendered. The invariant:
the texts of the pieces add up to what the template writes for the whole conversation; anything else is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from concertino import Message, UsageError

from .contract import Tools
from .template import ChatTemplate, Form
from .vocabulary import without_marks

QUESTION: Form = {"role": "user", "content": "a stand-in question"}
ANSWER: Form = {"role": "assistant", "content": "a stand-in answer"}


class Piece(NamedTuple):
    """A part of a conversation.

    Attributes:
        text: as the template writes it.
        message: the assistant's message, None for anything but a turn of the assistant.
    """

    text: str
    message: Message | None = None


@dataclass(frozen=True)
class Turns:
    """How one template writes turns.

    Attributes:
        template: the template.
        end: the token that ends a turn.
        end_text: its text.
        tail: what the template writes behind it, before anything else.
    """

    template: ChatTemplate
    end: int
    end_text: str
    tail: str

    def beginning(self, messages: Sequence[Message], tools: Tools = ()) -> str:
        """A conversation without turns of the assistant, up to where it begins to write."""
        return self.template.render(self._forms(messages), tools, opens=True)

    def turn(self, message: Message) -> str:
        """A message of the assistant as it is written, its end included.

        Raises:
            UsageError: it cannot be told from what stands around it.
        """
        asked = self.template.render([QUESTION], opens=True)
        text = self.template.render([QUESTION, self.template.form(message)], opens=False)
        if not text.startswith(asked):
            raise UsageError(
                "the chat template does not begin an assistant's turn as it asks for one: "
                f"{different(asked, text)}; so the turn cannot be located, and nothing could be trained on it"
            )
        if not text.endswith(self.end_text + self.tail):
            raise UsageError(
                f"the chat template ends this turn in another way than others: with {text[-24:]!r}, expected "
                f"{self.end_text + self.tail!r}; a turn needs one end"
            )
        return text[len(asked) : len(text) - len(self.tail)]

    def between(self, fresh: Sequence[Message], tools: Tools = ()) -> str:
        """What stands between the end of a turn and where the assistant begins to write again.

        Raises:
            UsageError: it depends on more than the messages between.
        """
        answer = ANSWER
        # Templates refuse a tool's result that no call stands before.
        if ids := [message.call_id for message in fresh if message.role == "tool"]:
            calls = [{"type": "function", "id": id, "function": {"name": "f", "arguments": {}}} for id in ids]
            answer = {**ANSWER, "tool_calls": calls}
        base = self.template.render([QUESTION, answer], tools, opens=False).removesuffix(self.tail)
        text = self.template.render([QUESTION, answer, *self._forms(fresh)], tools, opens=True)
        if not (text.startswith(base) and base.endswith(self.end_text)):
            raise UsageError(
                "the chat template writes an assistant's turn differently once something follows: "
                f"{different(base, text)}; so a conversation would not continue after what the policy wrote"
            )
        return text[len(base) :]

    def pieces(self, messages: Sequence[Message], tools: Tools = (), *, opens: bool = True) -> list[Piece]:
        """A conversation in pieces.

        Args:
            messages: of all roles.
            tools: function objects.
            opens: with what stands behind the last turn, up to where the assistant writes again; else the last piece
                is the last turn.

        Raises:
            UsageError: the template does not write the whole conversation as these pieces.
        """
        turns = [place for place, message in enumerate(messages) if message.role == "assistant"]
        found: list[Piece] = []
        done = 0
        for place in turns:
            fresh = messages[done:place]
            text = self.between(fresh, tools) if found else self.beginning(fresh, tools)
            found += [Piece(text), Piece(self.turn(messages[place]), messages[place])]
            done = place + 1
        if opens:
            rest = messages[done:]
            found.append(Piece(self.between(rest, tools) if turns else self.beginning(rest, tools)))
        # Without a turn it is one piece, which is the whole.
        if turns:
            self._compare(found, messages[: len(messages) if opens else done], tools, opens)
        return found

    def _forms(self, messages: Sequence[Message]) -> list[Form]:
        return [self.template.form(message) for message in messages]

    def _compare(self, pieces: Sequence[Piece], messages: Sequence[Message], tools: Tools, opens: bool) -> None:
        whole = self.template.render(self._forms(messages), tools, opens=opens)
        joined = "".join(piece.text for piece in pieces) + ("" if opens else self.tail)
        if joined != whole:
            raise UsageError(
                "the chat template writes this conversation differently as a whole than turn by turn: "
                f"{different(joined, whole)}; it needs a template in which a message does not depend on its neighbours"
            )


def different(expected: str, got: str) -> str:
    """Where two texts part, in words."""
    expected, got = without_marks(expected), without_marks(got)
    shorter = min(len(expected), len(got))
    place = next((n for n in range(shorter) if expected[n] != got[n]), shorter)
    start = max(0, place - 12)
    return f"behind {expected[start:place]!r} {expected[place : place + 24]!r}, then {got[place : place + 24]!r}"
