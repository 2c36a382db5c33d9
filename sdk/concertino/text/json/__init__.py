"""Reading the JSON that a language model wrote.

A tool call's arguments arrive as model text: mostly strict JSON, sometimes JSON in a code fence, with
single quotes, or with LaTeX backslashes. `read_json` returns the value and the *repairs* it needed, or
raises `ReadingError` with a position and a direction the model can follow.

The invariant: a repair is made only where the text has one meaning. What could mean two things (an
unclosed object, a duplicate key, two objects, `\\b` that may be `\\beta`) is refused, because a wrong
object would be executed and paid for, while a refusal costs one more turn.
"""

from __future__ import annotations

from .errors import ReadingError
from .read import JsonReading, read_json

__all__ = ["JsonReading", "ReadingError", "read_json"]
