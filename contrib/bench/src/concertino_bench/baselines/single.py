"""One model alone: it is asked once and its text is the answer; or asked to find the faults of its own answer."""

from __future__ import annotations

from dataclasses import dataclass

from concertino.strategies import Done, Step
from concertino.text import quoting

from .procedure import Log, Procedure, ask, with_instruction

APPROVED = "NO FAULTS"
"""What a critic writes where it finds nothing to correct."""

_CRITIQUE = """Check the answer below. Name every error in it, and say what would be right; do not write a new answer.
If there is nothing to correct, write {approved} and nothing else.

Question:
{question}

Answer:
{draft}"""

_REVISION = """Correct the answer below as the review says, and write the whole corrected answer.

Question:
{question}

Answer:
{draft}

Review:
{critique}"""


_QUOTING = quoting((), (r"question\s*:", r"answer\s*:", r"review\s*:"))


@dataclass(frozen=True)
class SingleModel(Procedure):
    """One model, asked once.

    Args:
        instruction: put below the question.
    """

    instruction: str = ""

    name = "single-model"
    needs_members = False

    def decide(self, log: Log) -> Step:
        """Ask, then answer with what it wrote."""
        if not log.replies:
            return ask(with_instruction(log.question, self.instruction))
        text = log.replies[-1].strip()
        return Done(text, "answered") if text else Done(None, "format", "the model wrote nothing")


@dataclass(frozen=True)
class SelfRefine(Procedure):
    """A draft, then critique and revision in turn, until the critic approves or nothing changes.

    The draft and its revisions are asked of the orchestrator's model, critiques of the model of the role `critic`
    where the pool binds one.

    Args:
        revisions: at most so many.
        instruction: put below the question.
    """

    revisions: int = 2
    instruction: str = ""

    name = "self-refine"
    needs_members = False

    def __post_init__(self) -> None:
        self._at_least(revisions=1)

    def decide(self, log: Log) -> Step:
        """Replies come in turn: draft, critique, revision, critique, revision."""
        question = with_instruction(log.question, self.instruction)
        written, critiques = log.replies[::2], log.replies[1::2]
        if not written:
            return ask(question)
        draft = self.best(log)
        if draft is None:
            return Done(None, "format", "the model wrote nothing")
        if len(critiques) < len(written):
            if len(critiques) == self.revisions:
                return Done(draft, "answered", f"after {self.revisions} revisions, the last one not reviewed")
            # A revision that changes nothing would get the same critique again.
            if critiques and written[-1].strip() in ("", written[-2].strip()):
                return Done(draft, "answered", f"revision {len(critiques)} changed nothing")
            return ask(_CRITIQUE.format(approved=APPROVED, **_parts(question, draft)), role="critic")
        if approves(critiques[-1]):
            return Done(draft, "answered", f"the critic approved after {len(critiques) - 1} revisions")
        return ask(_REVISION.format(**_parts(question, draft), critique=_QUOTING.text(critiques[-1].strip())))

    def best(self, log: Log) -> str | None:
        """The last draft that holds something."""
        return next((text.strip() for text in reversed(log.replies[::2]) if text.strip()), None)


def _parts(question: str, draft: str) -> dict[str, str]:
    """A question and a draft as they stand in a prompt: no line of one begins another part."""
    return {"question": _QUOTING.text(question), "draft": _QUOTING.text(draft)}


def approves(critique: str) -> bool:
    """Whether a critic found nothing: it says so and little more, or it says nothing at all."""
    text = critique.strip()
    # A length limit: a critique such as "no faults but one: ..." holds the words too.
    return not text or (APPROVED in text.upper() and len(text) <= 2 * len(APPROVED))
