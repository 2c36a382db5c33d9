"""Texts and data for a display, without secrets: a notebook is shared more easily than a trace.

Like `Redactor.data`, but for what a display cuts itself: nothing is shortened that it would show.

Invariant: secrets are hidden before anything is cut, so no half of one is left; what is not looked through for its
length is not shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .redaction import HIDDEN, Redactor, is_secret_name

_END = 512
"""Characters before the end of what was looked through: they may be the begin of a secret."""
_VALUES = 2_000
"""Values of one container that are looked through."""


class Hider:
    """Hides secrets in one display.

    Args:
        most: characters of a text that are looked through, several times as many as are shown.
    """

    def __init__(self, most: int = 16_000) -> None:
        self._redactor = Redactor()
        self._most = most

    def text(self, text: object) -> str:
        """A text without secrets; of a long one, dots stand in the place of the rest."""
        whole = text if isinstance(text, str) else str(text)
        if len(whole) <= self._most:
            return self._redactor.text(whole)
        head = self._redactor.text(whole[: self._most])[:-_END]
        return head + "…" * (len(whole) - len(head))

    def value(self, value: Any) -> Any:
        """Plain JSON data without secrets, those under names that say so too."""
        return self._walked(value, [_VALUES])

    def _walked(self, value: Any, left: list[int]) -> Any:
        left[0] -= 1
        if isinstance(value, str):
            return self.text(value) if left[0] >= 0 else "…"
        if isinstance(value, Mapping):
            return {self.text(key): self._item(key, item, left) for key, item in value.items() if left[0] >= 0}
        if isinstance(value, (list, tuple)):
            return [self._walked(item, left) for item in value if left[0] >= 0]
        return value

    def _item(self, key: Any, item: Any, left: list[int]) -> Any:
        # A number is none: `max_token` and the like are amounts.
        if item and not isinstance(item, (bool, int, float)) and is_secret_name(str(key)):
            return HIDDEN
        return self._walked(item, left)
