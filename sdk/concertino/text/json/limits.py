"""The sizes beyond which text is refused unread.

They bound time and memory, so that no model output can stall or crash an executor: strict reading runs in
C and may be long; repairing runs in Python and is kept short; depth stays far below the interpreter's
recursion limit; an integer longer than any real identifier is a degenerate repetition.
"""

from __future__ import annotations

MAX_STRICT_CHARS = 4 * 1024 * 1024
"""Longest text read at all, in characters."""

MAX_REPAIR_CHARS = 256 * 1024
"""Longest text repaired, in characters; longer text must be strict JSON."""

MAX_DEPTH = 64
"""Most objects and arrays inside one another; `{}` has depth 1."""

MAX_INTEGER_DIGITS = 40
"""Most digits of an integer, its sign not counted."""
