"""Reading the JSON that a language model wrote.

A tool call's arguments arrive as model text: mostly strict JSON, sometimes JSON in a code fence, with
single quotes, or with LaTeX backslashes. `read_json` returns the value and the *repairs* it needed, or
raises `ReadingError` with a position and a direction the model can follow.

The invariant: a repair is made only where the text has one meaning. What could mean two things (an
unclosed object, a duplicate key, two objects, `\\b` that may be `\\beta`) is refused, because a wrong
object would be executed and paid for, while a refusal costs one more turn.
"""

from __future__ import annotations

from .errors import ReadingCode, ReadingError
from .limits import MAX_DEPTH, MAX_INTEGER_DIGITS, MAX_REPAIR_CHARS, MAX_STRICT_CHARS
from .read import Reading, read_json
from .tokens import REPAIRS

__all__ = [
    "MAX_DEPTH",
    "MAX_INTEGER_DIGITS",
    "MAX_REPAIR_CHARS",
    "MAX_STRICT_CHARS",
    "REPAIRS",
    "Reading",
    "ReadingCode",
    "ReadingError",
    "read_json",
]
