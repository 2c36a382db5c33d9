"""Solutions: what an agent of this package gives back, one form for all of them.

    <reasoning>
    how it was found
    </reasoning>
    <answer>
    \\boxed{42}
    </answer>
    <notes>
    - 4 of 5 samples voted: 42 (3), 17 (1)
    </notes>

Invariant: `str(solution)` is shorter than an observation may be, so its answer and notes are never cut out of the
middle; reasoning and notes are left out where there are none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from concertino import Reply
from concertino.text import boxed

from .answers import find_answer, find_block, without_thoughts

_TAGS = re.compile(r"</?(?:reasoning|answer|notes)>")
_SHORT = 200
# Together, with the tags, less than the 16,384 characters that an observation keeps uncut.
_MOST_REASONING = 8_000
_MOST_ANSWER = 5_000
_MOST_NOTES = 2_000


@dataclass(frozen=True)
class Solution:
    """An answer with the way to it.

    Attributes:
        answer: the answer alone, as it was written.
        written: the text of the answer block.
        reasoning: the way to it.
        marked: whether the reply said which part of it is the answer; otherwise the whole reply is taken for it.
        notes: what a reader must know: votes, ties, failed requests, a budget's end.
    """

    answer: str
    written: str
    reasoning: str = ""
    marked: bool = True
    notes: tuple[str, ...] = ()

    def noting(self, *notes: str) -> Solution:
        """With more notes."""
        return replace(self, notes=(*self.notes, *filter(None, notes)))

    @property
    def body(self) -> str:
        """Reasoning and answer, as another model is shown them."""
        return self._with_reasoning([_block("answer", shorten(self._shown(), _MOST_ANSWER))])

    def __str__(self) -> str:
        blocks = [_block("answer", shorten(self._shown(), _MOST_ANSWER))]
        if self.notes:
            notes = "\n".join(f"- {' '.join(note.split())}" for note in self.notes)
            blocks.append(_block("notes", shorten(notes, _MOST_NOTES)))
        return self._with_reasoning(blocks)

    def _with_reasoning(self, blocks: list[str]) -> str:
        reasoning = [_block("reasoning", shorten(self.reasoning, _MOST_REASONING))] if self.reasoning else []
        return "\n".join([*reasoning, *blocks])

    def _shown(self) -> str:
        """The answer block's text: a short answer goes into a box."""
        if boxed(self.written) or not self.marked or "\n" in self.written or len(self.written) > _SHORT:
            return self.written
        return f"\\boxed{{{self.written}}}" if self.written else ""


def read_solution(reply: Reply, *, free: bool = False) -> Solution | None:
    """The solution in a model's reply; None if the reply holds no answer: it is empty, or was cut off before one.

    Args:
        free: the answer is the text of the answer block, or the whole reply; no value is looked for in it.
    """
    complete = reply.finish_reason != "length"
    text = without_thoughts(reply.text)
    if free:
        return _free(text, complete)
    found = find_answer(text, complete=complete)
    if found is not None:
        reasoning = _reasoning(text, found.written)
        return Solution(found.answer, _TAGS.sub("", found.written), reasoning)
    # Tags that are left in a text could forge an answer block for its reader.
    plain = _TAGS.sub("", text).strip()
    return Solution(plain, plain, marked=False) if plain and complete else None


def _free(text: str, complete: bool) -> Solution | None:
    written = find_block(text, complete=complete)
    if written is None:
        written = text if complete else ""
    reasoning = _reasoning(text, written) if written != text else ""
    written = _TAGS.sub("", written).strip()
    return Solution(written, written, reasoning, marked=False) if written else None


def _reasoning(text: str, written: str) -> str:
    """What stands before the answer block, or the whole text where there is none."""
    before, block, _ = text.rpartition("<answer>")
    reasoning = _TAGS.sub("", before if block else text).strip()
    return "" if reasoning == written else reasoning


def shorten(text: str, most: int) -> str:
    """At most `most` characters, the rest cut out of the middle and counted."""
    if len(text) <= most:
        return text
    half = (most - 40) // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters left out]\n{text[-half:]}"


def _block(tag: str, text: str) -> str:
    return f"<{tag}>\n{text}\n</{tag}>"
