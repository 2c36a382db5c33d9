"""Secrets kept out of what is written for people: texts and data without keys, tokens and passwords.

A secret is hidden for one of three reasons: it is known (`known_secrets`), it looks like one (`sk-…`, `Bearer …`,
`https://user:password@…`), or it stands under a name that says so (`api_key=…`, `{"password": …}`).

Invariant: what is returned holds no secret of these kinds, not even the beginning of one that was cut. This is a net:
a secret that looks like a word, and that nobody named, cannot be known. It is for logs, displays and errors; what is
only likely to be a secret stays in a trace, which keeps what a run needs to be resumed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from concertino.core.known_secrets import HIDDEN, Finder, finder_with_words, generation

_ITEMS, _DEPTH = 20, 6
"""How much of a container `Redactor.data` keeps."""
_AHEAD = 64
"""How many times more of a text is searched for secrets than is shown."""

_UNSURE = 512
"""Characters before the end of what was looked through: a secret may begin there."""
_MOST_VALUES = 2_000
"""Values of one container that are looked through."""

_NAMED = r"(?:api|access|auth|secret|private|signing|encryption)[_-]?keys?|passw(?:or)?ds?|passphrase|authorization"
_NAMED += r"|(?:access|auth|refresh|id|session|bearer|api)[_-]?tokens?|secrets?|credentials?|cookies?"
_SECRET_NAME = re.compile(rf"(?:^|[^a-z])(?:{_NAMED}|token)$", re.IGNORECASE)
"""A name of an argument, header or field whose text is a secret."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PATTERNS = (
    # Keys of services, by how they begin.
    re.compile(r"\b(?:sk|pk|rk|gsk|hf|xai|tgp|csk|r8|nvapi|glpat|xox[abprs])[-_][-_A-Za-z0-9.*]{9,}"),
    re.compile(r"\b(?:AIza|github_pat_|gh[oprsu]_|AKIA|ASIA)[-_A-Za-z0-9]{12,}"),
    re.compile(r"\beyJ[-_A-Za-z0-9]{8,}\.[-_A-Za-z0-9]{4,}\.?[-_A-Za-z0-9]*"),
    re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?"),
    re.compile(r"(?<=://)[^\s/:@]*:[^\s/@]+(?=@)"),
    re.compile(r"""(?:(?<=[?&]key=)|(?<=[?&]sig=)|(?<=[?&]token=)|(?<=[?&]signature=))[^\s&"']{6,}"""),
    re.compile(r"(?<=\bBearer )[-_~+/.=A-Za-z0-9]{6,}|(?<=\bbearer )(?=\S*\d)[-_~+/.=A-Za-z0-9]{6,}"),
)
_SHORTEST = 12
"""Characters of the shortest text that one of the patterns hides, unless it has a `:` or `=`: a key `sk-123456789`."""
# A secret behind its name in a text, which may be JSON, in a text of JSON too, or a URL. The name stays.
_ASSIGNED = re.compile(
    rf"""(?i)(?P<name>(?:(?<![a-z])(?:{_NAMED})|(?<=["'])token(?=\\?["']))"""
    r"""(?:\\?["'])?\s{0,9}[:=]\s{0,9}(?!(?:(?:bearer|basic)\s+)?\\?["']?\[key\])(?:(?:bearer|basic)\s+)?)"""
    r"""(?:\\"(?:(?!\\").)*|"[^"]*|'[^']*|[^\s"'\\&,;)}\]]+)"""
)


class Redactor:
    """Hides secrets.

    Args:
        known: secrets by their text; by default those that the process knows.
    """

    def __init__(self, known: tuple[str, ...] | None = None) -> None:
        self._given = known is not None
        self._finder = Finder(known) if known else None
        self._generation = -1

    def text(self, text: str) -> str:
        """A text without secrets."""
        if not self._given and self._generation != (now := generation()):
            self._generation, self._finder = now, finder_with_words()
        if self._finder is not None:
            text = self._finder.hidden(text)
        if len(text) < _SHORTEST and ":" not in text and "=" not in text:
            return text  # most names and values, in displays of thousands of calls
        for pattern in _PATTERNS:
            text = pattern.sub(HIDDEN, text)
        return _ASSIGNED.sub(_without_value, text)

    def short(self, text: object, width: int) -> str:
        """A text without secrets, of at most so many characters and `…` where it was cut."""
        whole = text if isinstance(text, str) else str(text)
        if len(whole) <= _AHEAD * width:
            safe = self.text(whole)
            return safe if len(safe) <= width else f"{safe[: width - 1]}…"
        # The last word may be the beginning of a secret, which nothing tells by its half.
        head, _, rest = whole[: _AHEAD * width].rpartition(" ")
        safe = self.text(head or rest)
        # A single endless word is shown only if its end, which was cut, is far from what is shown.
        return f"{safe[: width - 1]}…" if head or len(safe) > 2 * width else f"{HIDDEN}…"

    def data(self, value: Any, width: int, depth: int = 0) -> Any:
        """Plain JSON data without secrets: texts of at most so many characters, containers of at most 20 items."""
        if isinstance(value, str):
            return self.short(value, width)
        if isinstance(value, Mapping):
            if depth >= _DEPTH:
                return "…"
            items = list(value.items())
            kept = {self.short(key, width): self._item(key, item, width, depth) for key, item in items[:_ITEMS]}
            return {**kept, "…": f"{len(items) - _ITEMS} more"} if len(items) > _ITEMS else kept
        if isinstance(value, (list, tuple)):
            if depth >= _DEPTH:
                return "…"
            listed = [self.data(item, width, depth + 1) for item in value[:_ITEMS]]
            return [*listed, f"… {len(value) - _ITEMS} more"] if len(value) > _ITEMS else listed
        return value if value is None or isinstance(value, (bool, int, float)) else self.short(value, width)

    def _item(self, key: Any, item: Any, width: int, depth: int) -> Any:
        return HIDDEN if _is_secret(key, item) else self.data(item, width, depth + 1)


class DisplayRedactor:
    """Hides secrets in one display, such as a notebook's.

    Unlike `Redactor.data`, it shortens nothing that a display shows. What is too long to be searched is not shown.

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
        head = self._redactor.text(whole[: self._most])[:-_UNSURE]
        return head + "…" * (len(whole) - len(head))

    def value(self, value: Any) -> Any:
        """Plain JSON data without secrets, those under names that say so too."""
        return self._walked(value, [_MOST_VALUES])

    def _walked(self, value: Any, left: list[int]) -> Any:
        left[0] -= 1
        if isinstance(value, str):
            return self.text(value) if left[0] >= 0 else "…"
        if value is None or isinstance(value, (bool, int, float)):
            return value  # before the slow question whether it is a mapping
        if isinstance(value, Mapping):
            return {self.text(key): self._item(key, item, left) for key, item in value.items() if left[0] >= 0}
        if isinstance(value, (list, tuple)):
            return [self._walked(item, left) for item in value if left[0] >= 0]
        return value

    def _item(self, key: Any, item: Any, left: list[int]) -> Any:
        return HIDDEN if _is_secret(key, item) else self._walked(item, left)


def _is_secret(key: Any, item: Any) -> bool:
    """Whether a value stands under a name that says that it is a secret."""
    # A number is not a secret: `max_token` and the like are amounts.
    return bool(item) and not isinstance(item, (bool, int, float)) and is_secret_name(str(key))


def _without_value(found: re.Match[str]) -> str:
    """The name of a secret, and the mark in the quotes that it stood in."""
    quote = re.match(r"""\\?["']|""", found[0][len(found["name"]) :])
    return f"{found['name']}{quote[0] if quote else ''}{HIDDEN}"


def is_secret_name(name: str) -> bool:
    """Whether an argument, header or field of this name holds a secret: `api_key`, `x-api-key`, `accessToken`."""
    return _SECRET_NAME.search(_CAMEL.sub("_", name[-80:])) is not None
