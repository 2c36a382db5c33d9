"""The secrets that this process knows. All enter by one door: `read_secret`, or `keep_secret`.

    key = read_secret("OPENAI_API_KEY")         # from the environment; known from now on
    keep_secret(password)                       # from anywhere else: a vault, a file, an answer with a token
    hidden(text)                                # the text, with `[key]` in the place of each

Known are also the values of environment variables whose names end in KEY, TOKEN, SECRET or PASSWORD, and passwords in
addresses (`https://user:password@…`). A secret is found as it is, and as base64, hexadecimal digits, quoted for an
address, or escaped in JSON show it.

Invariant: what `finder()` lets through holds no known secret that can be told from a word. One that cannot (fewer than
16 characters without a digit, or a path) is hidden in logs and errors alone (`without_secrets`), or it would destroy
results that only use the word.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any
from urllib.parse import quote, quote_plus

HIDDEN = "[key]"
"""What stands in the place of a secret."""

_LEAST = 8
"""Characters of a text that is worth hiding; local servers are given words such as `none`."""
_WORD = 16
"""Characters from which on a text without digits is no word."""
_GRAM = 4
_PLACES = 512
"""Places of a text that are looked at in one step."""
_MARKED = frozenset("'\"\\")
"""What `repr` writes otherwise than it is."""
_ENDINGS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS")
_PUBLIC_HEADERS = frozenset(
    [
        "accept",
        "accept-encoding",
        "accept-language",
        "anthropic-beta",
        "anthropic-version",
        "cache-control",
        "connection",
        "content-type",
        "http-referer",
        "idempotency-key",
        "openai-beta",
        "origin",
        "referer",
        "user-agent",
        "x-request-id",
        "x-title",
    ]
)
_PASSWORD = re.compile(r"://[^\s/:@]*:([^\s/@]+)@")


class Secret(str):
    """A secret text. It works as the text that it is, and its `repr` hides it: in tracebacks with locals, say.

    What is added before or behind it, with `+`, gives a secret text again; a format string does not.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(HIDDEN)

    def __add__(self, other: str) -> Secret:
        return Secret(str.__add__(self, other))

    def __radd__(self, other: str) -> Secret:
        return Secret(str.__add__(other, self))


class Finder:
    """Finds whether a text holds one of many others, in one pass over a fraction of its characters.

    An occurrence is at least as long as the shortest of them. So at every `step` characters, four are looked up in a
    set: some of these fours lie wholly in the occurrence.
    """

    __slots__ = ("_beginnings", "_block", "_fours", "_grams", "_longest", "_plain", "_shortest", "_step", "_texts")

    def __init__(self, texts: Iterable[str]) -> None:
        # The longest first, since one may be the beginning of another.
        self._texts = sorted(set(texts), key=len, reverse=True)
        self._longest, self._shortest = len(self._texts[0]), len(self._texts[-1])
        self._step = self._shortest - _GRAM + 1
        self._grams = frozenset(text[at : at + _GRAM] for text in self._texts for at in range(self._step))
        self._block = _PLACES * self._step
        self._fours: dict[int, Callable[[str], tuple[str, ...]]] = {}
        self._plain = all(text.isprintable() and _MARKED.isdisjoint(text) for text in self._texts)
        self._beginnings: frozenset[str] | None = None

    def may_be_in(self, text: str) -> bool:
        """Whether a text has to be looked through: False says for certain that it holds none."""
        size = len(text)
        if size < self._shortest:
            return False
        if size > self._block:
            # A four may reach over the end of a block, and no further.
            parts = range(0, size, self._block)
            return any(self._may_be_in_part(text[at : at + self._block + _GRAM]) for at in parts)
        return self._may_be_in_part(text)

    def _may_be_in_part(self, text: str) -> bool:
        count = (len(text) - 1) // self._step + 1
        fours = self._fours.get(count)
        if fours is None:
            # Made once for each number of places: it cuts all fours out of a text in one step. The last place is there
            # twice, since one alone would give no tuple.
            places = [slice(at * self._step, at * self._step + _GRAM) for at in (*range(count), count - 1)]
            fours = self._fours[count] = itemgetter(*places)
        return not self._grams.isdisjoint(fours(text))

    def may_be_in_data(self, data: Any) -> bool:
        """The same for JSON data."""
        # Faster than as JSON, and texts of plain letters stand in it as they are.
        return self.may_be_in(repr(data) if self._plain else json.dumps(data, ensure_ascii=False))

    def hidden(self, text: str) -> str:
        """The text with the mark in the place of each."""
        if not self.may_be_in(text):
            return text
        for secret in self._texts:
            if secret in text:
                text = text.replace(secret, HIDDEN)
        return text

    def begun(self, text: str) -> int:
        """How many characters at the end of a text may be the beginning of a secret."""
        if self._beginnings is None:
            self._beginnings = frozenset(secret[:size] for secret in self._texts for size in range(1, len(secret)))
        begin = max(0, len(text) - self._longest + 1)
        return next((len(text) - at for at in range(begin, len(text)) if text[at:] in self._beginnings), 0)


class HeldText:
    """A text that comes in pieces: a piece that may be the beginning of a secret is held until more has come.

    A key may be read for the very request whose reply this is, so the secrets are looked up for each piece.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """What may be shown of the text so far."""
        found = finder()
        if found is None:
            return piece
        text = found.hidden(self._held + piece)
        keep = found.begun(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        """The rest, when no more comes."""
        rest, self._held = self._held, ""
        return rest


class _Known:
    """What was kept, and what is made of it.

    Attributes:
        all: the secrets; `finder` finds them but for words, `with_words` all of them.
        generation: another number whenever there is something new to be found.
        variables: how many variables the environment had when it was read.
    """

    def __init__(self) -> None:
        self.kept: dict[str, None] = {}
        self.all: frozenset[str] = frozenset()
        self.finder: Finder | None = None
        self.with_words: Finder | None = None
        self.generation = 0
        self.variables = -1

    def renew(self) -> None:
        """Read the environment, and make the finders anew if anything is new."""
        self.variables = len(os.environ)
        secrets = frozenset((*self.kept, *_of_environment()))
        if secrets != self.all:
            self.all = secrets
            self.finder = _finder_of(secret for secret in secrets if not is_word_like(secret))
            self.with_words = _finder_of(secrets)
            self.generation += 1
            # Here, as `--help` needs no loggers; and they, in turn, need what is known.
            from .log_filter import watch_loggers

            watch_loggers()


_known = _Known()


def keep_secret(text: str) -> Secret:
    """Hide a text in everything that concertino shows, logs and records from now on.

    It is for keys that come from a vault or a file. Those that an environment variable such as `OPENAI_API_KEY` holds
    are hidden in any case; of an address, the password is. A text of fewer than eight characters is not worth hiding,
    and ignored. One that looks like a word (fewer than 16 characters, no digit) is hidden in logs and errors alone, not
    in results.

    Returns:
        The text without blanks around it, whose `repr` hides it.
    """
    text = str.__str__(text).strip()
    # Of an address, its password is the secret; the rest is told to say what could not be reached.
    parts = _PASSWORD.findall(text) if "://" in text else [text]
    new = [part for part in parts if len(part) >= _LEAST and part not in _known.kept]
    if new:
        _known.kept |= dict.fromkeys(new)
        _known.renew()
    return Secret(text)


def keep_headers(headers: Mapping[str, str]) -> None:
    """Hide the values of HTTP headers, as `keep_secret`; but not of those that everybody may see, such as `Accept`."""
    for name, value in headers.items():
        if name.lower() not in _PUBLIC_HEADERS:
            scheme, _, rest = value.partition(" ")
            keep_secret(rest if scheme.lower() in ("bearer", "basic", "token") else value)


def keep_variables(variables: Mapping[str, str]) -> None:
    """Hide those values of an environment for another program whose names say so: `…KEY`, `…TOKEN`, `…PASSWORD`."""
    for name, value in variables.items():
        if _is_secret_name(name):
            keep_secret(value)


def read_secret(name: str) -> Secret:
    """The value of an environment variable that holds a secret, without blanks around it; empty if it is not set."""
    return keep_secret(os.environ.get(name, ""))


def look_around() -> None:
    """Read the environment again if the number of its variables has changed; each run does so when it begins."""
    if _known.variables != len(os.environ):
        _known.renew()


def generation() -> int:
    """Another number whenever there are other secrets to be found."""
    look_around()
    return _known.generation


def finder() -> Finder | None:
    """What finds the secrets that can be told from words; None while there is none. Every result asks for it."""
    return _known.finder


def finder_with_words() -> Finder | None:
    """What finds all secrets, for logs and errors; None while there is none."""
    look_around()
    return _known.with_words


def hidden(text: str) -> str:
    """A text without secrets that can be told from words."""
    look_around()
    found = _known.finder
    return text if found is None else found.hidden(text)


def without_secrets(text: str) -> str:
    """A text for logs and errors, with `[key]` in the place of every secret that the process knows."""
    found = finder_with_words()
    return text if found is None else found.hidden(text)


def hidden_data(value: Any, found: Finder) -> Any:
    """JSON data without secrets, in keys as in values. Data without any is given back itself."""
    if isinstance(value, str):
        return found.hidden(value)
    if isinstance(value, dict):
        items = {found.hidden(key): hidden_data(item, found) for key, item in value.items()}
        return items if items != value else value
    if isinstance(value, (list, tuple)):
        listed = [hidden_data(item, found) for item in value]
        return listed if listed != list(value) else value
    return value


def is_word_like(secret: str) -> bool:
    """Whether a secret cannot be told from a word, or is a path to one."""
    if secret.startswith(("/", "~", "./")):
        return True
    return len(secret) < _WORD and not any(map(str.isdigit, secret))


def _finder_of(secrets: Iterable[str]) -> Finder | None:
    forms = [form for secret in secrets for form in _forms(secret)]
    return Finder(forms) if forms else None


def _of_environment() -> Iterator[str]:
    for name, value in os.environ.items():
        if len(value) < _LEAST:
            continue
        if _is_secret_name(name):
            if len(value.strip()) >= _LEAST:
                yield value.strip()
        elif "://" in value and "@" in value:
            yield from (password for password in _PASSWORD.findall(value) if len(password) >= _LEAST)


def _is_secret_name(name: str) -> bool:
    """Whether a variable's name says that it holds a secret: `KEY`, `ACME_TOKEN`, `acmeApiKey`, but not `MONKEY`."""
    name = name.upper()
    if not name.endswith(_ENDINGS):  # of nearly all; the environment is read in the first turn
        return False
    before = next(name.removesuffix(ending) for ending in _ENDINGS if name.endswith(ending))
    return not before or before.endswith(("_", "API"))


def _forms(secret: str) -> Iterator[str]:
    """A secret as it may be written."""
    data = secret.encode("utf-8", "surrogatepass")
    address = quote(data, safe="")
    escaped = re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), address)
    yield from (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    yield from (address, quote_plus(data), quote(data), escaped, data.hex())
    # In the base64 of a longer text it begins at one of three places. Letters that its neighbours change are left out.
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + data + b"\0\0")
        part = encoded[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6].decode()
        yield from (part, part.replace("+", "-").replace("/", "_"))
