"""Conversations as token ids with labels: what supervised training reads.

    prompt | turn | onward | turn | onward | turn
     -100    ids     -100     -100    -100    ids        the second turn is context

The invariant: a label is the id itself exactly where the token belongs to a taught turn, its end included; every other
label is `IGNORED`. Nothing is cut, and nothing follows the last taught turn. Any codec will do: what is trained on is
what it would have a rollout read and write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from concertino import UsageError
from concertino_local.codec import Codec, Ids

from .conversations import RoleConversation

IGNORED = -100
"""The label of tokens that are not trained."""


@dataclass(frozen=True)
class LabelledConversation:
    """One conversation as ids.

    Attributes:
        id: of the conversation.
        ids: token ids; shape (T,).
        labels: as `ids` where a token is trained, else `IGNORED`; shape (T,).
        prompt: tokens before the first turn of the policy.
    """

    id: str
    ids: Ids
    labels: tuple[int, ...]
    prompt: int = 0

    @property
    def trained(self) -> int:
        """How many tokens are trained."""
        return sum(label != IGNORED for label in self.labels)

    def turns(self) -> list[Ids]:
        """The trained tokens, stretch by stretch."""
        found: list[list[int]] = []
        before = IGNORED
        for label in self.labels:
            if label != IGNORED:
                if before == IGNORED:
                    found.append([])
                found[-1].append(label)
            before = label
        return [tuple(each) for each in found]


def encode(conversation: RoleConversation, codec: Codec) -> LabelledConversation:
    """A conversation as ids and labels, up to its last taught turn.

    Raises:
        UsageError: nothing of it is taught, or the codec's turn has no end.
    """
    if not conversation.train:
        raise UsageError(f"conversation {conversation.id} teaches nothing; leave it out")
    ids: list[int] = list(codec.prompt(conversation.messages[: conversation.own[0]], conversation.tools))
    labels = [IGNORED] * len(ids)
    prompt = len(ids)
    last = conversation.train[-1]
    taught = set(conversation.train)
    for number, place in enumerate(conversation.own):
        turn = codec.turn(conversation.messages[place])
        if not codec.ended(turn):
            raise UsageError(
                f"conversation {conversation.id}: {type(codec).__name__}.turn gave a turn without an end; a policy "
                "that is taught no end never stops"
            )
        ids += turn
        # The mask m of ParaManager Eq. 9, as labels.
        labels += turn if place in taught else [IGNORED] * len(turn)
        if place == last:
            break
        fresh = conversation.messages[place + 1 : conversation.own[number + 1]]
        # `turn` has written the end, so nothing has to be closed.
        between = codec.onward(fresh, True, conversation.tools)
        ids += between
        labels += [IGNORED] * len(between)
    return LabelledConversation(conversation.id, tuple(ids), tuple(labels), prompt)


def encode_all(conversations: Iterable[RoleConversation], codec: Codec) -> Iterator[LabelledConversation]:
    """One after the other; those that teach nothing are passed over."""
    return (encode(each, codec) for each in conversations if each.train)


def token_lengths(encoded: Sequence[LabelledConversation]) -> dict[str, float]:
    """Figures of their lengths: least, median, 95th percentile and most tokens, and the share that is trained."""
    if not encoded:
        return {}
    sizes = sorted(len(each.ids) for each in encoded)
    total = sum(sizes)
    return {
        "least": sizes[0],
        "median": sizes[len(sizes) // 2],
        "p95": sizes[min(len(sizes) - 1, int(0.95 * len(sizes)))],
        "most": sizes[-1],
        "total": total,
        "trained": sum(each.trained for each in encoded),
        "trained_share": round(sum(each.trained for each in encoded) / total, 4),
    }
