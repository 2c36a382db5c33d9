"""The wording of refusals that several readers make: what was found and what to write instead.

Both readers must say the same thing about the same fault, so each sentence stands here once. The place is
added by `ReadingError`; a sentence stays under about 140 characters so that place and snippet fit too.
"""

from __future__ import annotations

from .errors import ReadingError, quoted, refusal
from .limits import MAX_DEPTH, MAX_INTEGER_DIGITS


def duplicate_key(key: str) -> str:
    """A key that stands twice in one object."""
    return f"the key {quoted(key)} stands twice in one object; write each key once."


def not_finite(literal: str) -> str:
    """NaN or an infinite number."""
    return f"found {quoted(literal)}, but a JSON number is finite; write a finite number or null."


def too_many_digits(literal: str) -> str:
    """An integer of too many digits."""
    digits = len(literal.lstrip("-"))
    return f"found an integer of {digits} digits (at most {MAX_INTEGER_DIGITS}); write a string."


def too_deep(text: str, position: int) -> ReadingError:
    """Objects and arrays nested too deeply."""
    problem = f"more than {MAX_DEPTH} objects and arrays inside one another; write a flatter value."
    return refusal("too-deep", problem, text, position)


def lone_surrogate(text: str, position: int) -> ReadingError:
    """Half of a surrogate pair."""
    problem = "found half of a surrogate pair, which is not a character; write the character itself."
    return refusal("lone-surrogate", problem, text, position)


def nul(text: str, position: int) -> ReadingError:
    """The character U+0000."""
    return refusal("nul", "found the character U+0000; leave it out.", text, position)


def latex_escape(text: str, position: int, letter: str) -> ReadingError:
    """A control character that was probably meant as a LaTeX command."""
    problem = (
        f"\\{letter} is a control character in JSON, not a command such as \\{_COMMAND[letter]}; "
        f"double the backslash: \\\\{letter}."
    )
    return refusal("latex-escape", problem, text, position)


_COMMAND = {"b": "beta", "f": "frac", "n": "nabla", "r": "rho", "t": "theta"}
