"""Where a text states its answer. When two answers mean the same is what `concertino.text.answer_key` says."""

from __future__ import annotations

import re
from typing import NamedTuple

from concertino.text import boxed

_LINE = re.compile(
    r"^[ \t>*_#-]*(?:(?:so|thus|therefore|hence),? )?(?:the )?(?:final )?answer"
    r"(?:[*_ ]*:[*_ ]*| is:? )(?P<said>\S[^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)
_GSM = re.compile(r"^####[ \t]*(?P<said>\S[^\n]*)$", re.MULTILINE)
_SHORT = 200
"""Characters of a text that is a whole answer, if it has one line."""


class Found(NamedTuple):
    """An answer that a text states.

    Attributes:
        answer: the answer alone, without box and frame; several boxed values are joined by commas.
        written: what stands inside the answer block, or the answer where there is no block.
    """

    answer: str
    written: str


def without_thoughts(text: str) -> str:
    """The text without `<think>` parts; one that is not closed reaches to the end, one not opened to the start."""
    kept, _, rest = text.partition("<think>")
    kept = kept.rpartition("</think>")[2]
    while rest:
        _, closed, after = rest.partition("</think>")
        if not closed:
            break
        more, _, rest = after.partition("<think>")
        kept += more
    return kept.strip()


def find_answer(text: str, *, complete: bool = True, bare: bool = True) -> Found | None:
    """The answer that a text states, by the first rule that finds one.

    1. the last `<answer>` block: its boxed values, or its text;
    2. the last `\\boxed{…}`;
    3. the last line `Answer: …`, `The final answer is …` or `#### …`;
    4. the whole text, if it is one line of at most 200 characters.

    Args:
        complete: whether the text is complete. Of one that was cut off, only what is closed counts (1 and 2).

        bare: whether a text that marks no answer can be one (4).

    Returns:
        None where no rule applies, or the answer is empty.
    """
    text = without_thoughts(text)
    written = find_block(text, complete=complete)
    if written is not None:
        # The prompt asks for a box for each value.
        return _found(", ".join(boxed(written)) or written, written)
    if boxes := boxed(text):
        # What is boxed before the last one is a step on the way.
        return _found(boxes[-1], f"\\boxed{{{boxes[-1]}}}")
    if not complete:
        return None
    lines = [*_LINE.finditer(text), *_GSM.finditer(text)]
    if lines:
        said = max(lines, key=lambda match: match.start())["said"].strip().strip("*_ ")
        return _found(said, said)
    if bare and "\n" not in text and len(text) <= _SHORT:
        return _found(text, text)
    return None


def find_block(text: str, *, complete: bool = True) -> str | None:
    """The text of the last closed answer block; of an open one at the end, where a stop text may have been."""
    end = text.rfind("</answer>")
    start = text.rfind("<answer>", 0, end) if end >= 0 else -1
    if start < 0 and complete:
        start, end = text.rfind("<answer>"), len(text)
    return text[start + len("<answer>") : end].strip() if start >= 0 else None


def _found(answer: str, written: str) -> Found | None:
    return Found(answer.strip(), written) if answer.strip() else None
