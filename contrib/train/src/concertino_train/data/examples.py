"""An example: a selected trajectory, with the conversations that are made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from concertino_local.codec import Codec

from .conversations import RoleConversation
from .encoding import encode
from .trajectories import Trajectory

BYTES_PER_TOKEN = 3
"""UTF-8 bytes of a token, for estimates where no codec counts."""


@dataclass(frozen=True)
class Example:
    """What a set holds of one run.

    Attributes:
        trajectory: where it comes from; of a rewritten one, with its new rounds.
        conversations: those that teach something.
    """

    trajectory: Trajectory
    conversations: tuple[RoleConversation, ...]

    def tokens(self, codec: Codec | None = None) -> int:
        """Tokens behind the first prompts: what was written and what came back; estimated without a codec."""
        if codec is not None:
            encoded = [encode(each, codec) for each in self.conversations]
            return sum(len(each.ids) - each.prompt for each in encoded)
        texts = [message.text for each in self.conversations for message in each.messages[each.own[0] :]]
        return sum(len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN + 1 for text in texts)


def conversations_in(examples: Sequence[Example]) -> list[RoleConversation]:
    """All conversations, in order."""
    return [conversation for example in examples for conversation in example.conversations]
