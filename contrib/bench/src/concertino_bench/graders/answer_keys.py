"""What equal answers share, read from whole replies, and whether an answer is among those that are accepted.

When two answers mean the same is what `concertino.text.answer_key` says.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from concertino.text import answer_key

from .answers import final_answer
from .exact_match import normalise
from .numeric import Number, plain_number, read_answer

Form = Literal["auto", "number", "text"]
FORMS = ("auto", "number", "text")
_SHORT = 200
"""Characters of a text without any mark that is an answer as a whole."""


def among(answer: str, accepted: Iterable[str]) -> bool:
    """Whether an answer equals one of several: as words, or as numbers."""
    words, value = normalise(answer), plain_number(answer)
    return any(words == normalise(text) or (value is not None and plain_number(text) == value) for text in accepted)


def reply_key(text: str, form: Form) -> str | None:
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
        return answer_key(found.text) or None
    return _number(read_answer(text))


def _number(read: Number | str) -> str | None:
    return str(read.value) if isinstance(read, Number) else None
