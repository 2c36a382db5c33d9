"""Keys: where a key comes from, and that it goes only into its header.

A key is named, never given: `key_env` names an environment variable. `set_key_source` makes the name be looked up in
another place first (a keyring, a vault). Names appear in pool files, traces and messages; keys appear in no object's
`repr`, and `redact` removes them from whatever a server sends.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from concertino import FailureClass, ProviderError, keep_secret, read_secret, without_secrets

KeySource = Callable[[str], str | None]
"""Gives the key of a name, or None if it has none."""

_HIDDEN = "[key]"
_LIKE_A_KEY = re.compile(
    r"\b(?:sk|pk|gsk|hf|xai|AIza|tgp|csk|r8|nvapi)[-_A-Za-z0-9][-_A-Za-z0-9.*]{9,}|(?<=Bearer )\S+"
)
_source: list[KeySource] = []


def set_key_source(source: KeySource | None) -> None:
    """Look keys up with a function before the environment.

        concertino_openai.set_key_source(lambda name: keyring.get_password("concertino", name))

    Args:
        source: is given a name such as `OPENAI_API_KEY`, and gives the key or None; None removes the last one set.
            It is called on the event loop, once per model and again when a key was refused, so it should be quick.
    """
    _source.clear()
    if source is not None:
        _source.append(source)


class ApiKey:
    """The key of one name, looked up at first use.

    Args:
        name: the name; `""` for a server without keys.
        header: the header that carries it.
    """

    def __init__(self, name: str, header: str) -> None:
        self._name = name
        self._header = header
        self._value: str | None = None

    def __repr__(self) -> str:
        return f"ApiKey({self._name!r})"

    def headers(self) -> dict[str, str]:
        """The header with the key.

        Raises:
            ProviderError: there is no key of that name.
        """
        if not self._name:
            return {}
        if self._value is None:
            self._value = self._look_up()
        prefix = "Bearer " if self._header.lower() == "authorization" else ""
        return {self._header: prefix + self._value}

    def forget(self) -> None:
        """Look it up again next time, because it was refused."""
        self._value = None

    def _look_up(self) -> str:
        value = keep_secret((_source[0](self._name) if _source else None) or read_secret(self._name))
        if not value or not value.isascii() or not value.isprintable():
            what = "holds characters that no header can carry" if value else "is not set"
            raise ProviderError(
                f"the key {self._name} {what}; set the environment variable {self._name}, or give it by a function "
                "with concertino_openai.set_key_source",
                failure=FailureClass.CALLER,  # this model's own matter: no server refused anything
            )
        return value


def lacking(name: str) -> str:
    """What is wrong with the key of a name, and the next step; empty if nothing is."""
    try:
        ApiKey(name, "Authorization").headers()
    except ProviderError as error:
        return str(error)
    return ""


def redact(text: str) -> str:
    """A text without keys: those that are known, and whatever looks like one."""
    return _LIKE_A_KEY.sub(_HIDDEN, without_secrets(text))


def looks_like_a_key(text: str) -> bool:
    """Whether a text is a key rather than the name of one."""
    return bool(_LIKE_A_KEY.search(text))
