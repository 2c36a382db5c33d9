"""When two answers are the same: what equal answers share, so that graders, votes and metrics count alike.

Invariant: two answers have one key only if they are one number, or one text of words whose case, articles and
punctuation do not count. An expression, a program or a long text keeps every sign of it but blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from .answers import final_answer
from .exact_match import normalise
from .numeric import Number, plain_number, read_answer

Form = Literal["auto", "number", "text"]
FORMS = ("auto", "number", "text")
_SHORT = 200
"""Characters of a text without any mark that is an answer as a whole."""
_TEXT = re.compile(r"(?<!\\)\\(?:text|mathrm|textbf)\{([^{}\\]*)\}")
_EXPRESSION = re.compile(
    r"[+*/^=<>\\|{}\[\]]|[^\w\s$]\d|\d[^\w\s,.]\w|(?<![^\W\d_])-|-(?![^\W\d_])|\b[^\W\d_]-[^\W\d_]\b"
    r"|\d!|^[^a-zA-Z]*\d[^a-zA-Z]*$"
)
"""Signs that mean something: those of arithmetic, what stands before a digit, a hyphen that joins no two words; and
any sign between digits where there is no word."""


def among(answer: str, accepted: Iterable[str]) -> bool:
    """Whether an answer equals one of several: as words, or as numbers."""
    words, value = normalise(answer), plain_number(answer)
    return any(words == normalise(text) or (value is not None and plain_number(text) == value) for text in accepted)


def found_key(answer: str) -> str:
    """The key of an answer that was read already, with no other text around it; empty for an empty one."""
    value = plain_number(answer)
    if value is not None:
        return str(value)
    bare = _TEXT.sub(r"\1", answer).strip()
    squeezed = " ".join(bare.split())
    if len(bare) > _SHORT or "\n" in bare:
        return squeezed
    if _EXPRESSION.search(bare.rstrip(".")):
        return squeezed.replace(" ", "").rstrip(".")
    return normalise(bare)


def answer_key(text: str, form: Form) -> str | None:
    """What equal answers share, None where no answer can be read.

    Args:
        text: a whole reply.
        form: `number` reads the answer as a number, whose spelling does not count; `text` compares words without
            case, punctuation and articles; `auto` tells from the answer which of them it is, and lets an expression
            such as `x + 1` stand as it is.
    """
    if form == "number":
        return _number(read_answer(text))
    found = final_answer(text)
    if form == "text":
        return normalise(found.text) or None
    if found.marker or (len(found.text) <= _SHORT and "\n" not in found.text) or plain_number(found.text) is not None:
        return found_key(found.text) or None
    return _number(read_answer(text))


def _number(read: Number | str) -> str | None:
    return str(read.value) if isinstance(read, Number) else None
