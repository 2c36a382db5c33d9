"""LaTeX that JSON turns silently into control characters.

`"\\theta"` is legal JSON for a tab and `heta`, and so are `\\nabla` and `\\rho`. Nothing shows whether a tab
or a command was meant, except that the rest of a command's name follows. In code and prose a tab before a
word is common, so the rule holds only for the fields a caller marks as mathematics, and for a string that
needs a backslash repaired anyway: its writer does not double backslashes. (`\\b` and `\\f` are refused
everywhere: no tool wants a backspace.)
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from .problems import latex_escape

_NAMES_BEHIND = {
    "t": "an anh ag au binom ext extbf extit extrm extsf extstyle exttt frac heta herefore hickapprox "
    "hicksim ilde imes o op riangle riangledown riangleleft riangleq riangleright wo woheadrightarrow",
    "n": "abla atural cong e earrow eg eq eqq ewline exists geq geqslant gtr i leftarrow leq leqslant less "
    "mid onumber ot otag otin parallel prec rightarrow sim subset subseteq succ supset supseteq u vdash "
    "warrow",
    "r": "angle brace brack ceil floor hd ho ight ightarrow ightharpoonup ightleftharpoons m rangle ule vert Vert",
}
_CONTROL = {"t": "\t", "n": "\n", "r": "\r"}


def _commands(written: dict[str, str]) -> str:
    by_letter = (f"{re.escape(written[key])}(?:{'|'.join(names.split())})" for key, names in _NAMES_BEHIND.items())
    return f"(?:{'|'.join(by_letter)})(?![A-Za-z])"


_COMMAND_IN_VALUE = re.compile(_commands(_CONTROL))
COMMAND_IN_SOURCE = re.compile(_commands({letter: "\\" + letter for letter in _CONTROL}))
"""A backslash that JSON reads as tab, newline or carriage return, and the rest of a command; as written."""


def refuse_hidden_commands(value: Any, maths_fields: Collection[str], text: str) -> None:
    """Raise `ReadingError` ("latex-escape") where a string under one of the names hides a command."""
    pending: list[tuple[Any, bool]] = [(value, False)]
    while pending:
        item, maths = pending.pop()
        if isinstance(item, dict):
            pending += [(inner, maths or key in maths_fields) for key, inner in item.items()]
        elif isinstance(item, list):
            pending += [(inner, maths) for inner in item]
        elif maths and isinstance(item, str) and (hidden := _COMMAND_IN_VALUE.search(item)):
            letter = next(name for name, control in _CONTROL.items() if hidden.group()[0] == control)
            position = text.find("\\" + letter + hidden.group()[1:])
            # A raw control character is not an escape, so it hides nothing.
            if position >= 0:
                raise latex_escape(text, position, letter)
