"""What a run is given: its question, and what stands beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from concertino.core.approval import Approver, Decision
from concertino.core.attachment import Attachment
from concertino.core.errors import UsageError
from concertino.core.known_secrets import hidden
from concertino.strategies.base.frame import NO_FRAME, Frame

if TYPE_CHECKING:
    from .answer_type import AnswerType

Question = str | Attachment | Sequence[str | Attachment]
"""What is asked: a text, or texts and attachments in order."""


@dataclass(frozen=True, slots=True)
class RunInput:
    """What a run is given beside its question.

    Attributes:
        frame: what stands around the strategy's messages.
        answer_type: what the answer must be; None for a text.
        deps: what `ctx.deps` gives.
        streams: listeners get text as it is written.
        approver: decides about calls that need approval.
        decisions: what was decided already.
        session: name of the session that the run is a turn of.
        attachments: of the question and the history, or what is known of an earlier process.
        spared: seconds before this process during which a person decided.
    """

    frame: Frame = NO_FRAME
    answer_type: AnswerType | None = None
    deps: Any = None
    streams: bool = False
    approver: Approver | None = None
    decisions: Mapping[str, Decision] | None = None
    session: str = ""
    attachments: tuple[Attachment, ...] = ()
    spared: float = 0.0


PLAIN_INPUT = RunInput()
"""A run that is given its question alone."""


def read_question(question: Any) -> tuple[str, tuple[Attachment, ...]]:
    """The question as a text without known secrets, with marks for its attachments, and these."""
    if isinstance(question, str):
        return _asked(hidden(question), question), ()
    parts = [question] if isinstance(question, Attachment) or not isinstance(question, Sequence) else question
    for place, part in enumerate(parts):
        if not isinstance(part, (str, Attachment)):
            where = f"question[{place}]" if parts is question else "the question"
            raise UsageError(
                f"{where} is a {type(part).__name__} ({part!r}); give a text, an Image, an Audio or a File"
            )
    text = "\n".join(part if isinstance(part, str) else part.mark for part in parts)
    return _asked(hidden(text), question), tuple(part for part in parts if isinstance(part, Attachment))


def _asked(text: str, question: Any) -> str:
    if not text.strip():
        raise UsageError(f"the question is empty ({question!r}); give a text")
    return text
