"""The key: where it comes from, and that it goes only into its header.

A key is named, never given: `key_env` names an environment variable, `ANTHROPIC_API_KEY` by default. `set_key_source`
makes the name be looked up in another place first (a keyring, a vault). `redact` removes keys from whatever is shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from concertino import FailureClass, ProviderError, keep_secret, read_secret, without_secrets

KeySource = Callable[[str], str | None]
"""Gives the key of a name, or None if it has none."""

_LIKE_A_KEY = re.compile(r"\bsk-[-_A-Za-z0-9.*]{10,}|(?<=Bearer )\S+")
_source: list[KeySource] = []


def set_key_source(source: KeySource | None) -> None:
    """Look keys up with a function before the environment.

        concertino_anthropic.set_key_source(lambda name: keyring.get_password("concertino", name))

    Args:
        source: is given a name such as `ANTHROPIC_API_KEY`, and gives the key or None; None removes the last one set.
            It is called on the event loop, once per model and again when a key was refused, so it should be quick.
    """
    _source.clear()
    if source is not None:
        _source.append(source)


def look_up(name: str) -> str:
    """The key of a name.

    Raises:
        ProviderError: there is no key of that name.
    """
    value = keep_secret((_source[0](name) if _source else None) or read_secret(name))
    if not value or not value.isascii() or not value.isprintable():
        what = "holds characters that no header can carry" if value else "is not set"
        raise ProviderError(
            f"the key {name} {what}; set the environment variable {name}, or give it by a function with "
            "concertino_anthropic.set_key_source",
            failure=FailureClass.CALLER,
        )
    return value


def lacking(name: str) -> str:
    """What is wrong with the key of a name, and the next step; empty if nothing is."""
    try:
        if name:
            look_up(name)
    except ProviderError as error:
        return str(error)
    return ""


def redact(text: str) -> str:
    """A text without keys: those that are known, and whatever looks like one."""
    return _LIKE_A_KEY.sub("[key]", without_secrets(text))


def looks_like_a_key(text: str) -> bool:
    """Whether a text is a key rather than the name of one."""
    return bool(_LIKE_A_KEY.search(text))
