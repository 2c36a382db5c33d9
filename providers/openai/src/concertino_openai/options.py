"""Options of a model: the one table that the code, the error messages and the README share.

Options are plain JSON data, because pool files and traces hold them. So a key is never an option, only its name.
`OpenAISettings.of` checks everything that can be checked without asking a server.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from concertino import SpecError
from concertino.schema import near_names, suggestion

from .dialects import DIALECT_OPTIONS, PRESETS, SCHEMA_STYLES, THINK_STYLES, ServerDialect
from .keys import looks_like_a_key

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SECRET_HEADERS = ("authorization", "proxy-authorization", "cookie", "api-key", "x-api-key", "x-goog-api-key")
_SECRET_NAMES = ("api_key", "apikey", "key", "token", "api_token", "secret", "password", "bearer", "authorization")
PLACEHOLDER = re.compile(r"\{([A-Z_]+)\}")
"""An environment variable in the address of a preset."""
_OURS = ("messages", "model", "n", "response_format", "stream", "stream_options", "tools")
"""Fields of a request that the provider writes itself."""


_OVERRIDES = 'in a pool file it belongs in the table [overrides."openai/<name>"]'
_OF_THE_SPEC = {
    **dict.fromkeys(("timeout", "context", "concurrency", "max_tokens"), _OVERRIDES),
    **dict.fromkeys(("price", "prices"), 'in a pool file it belongs in the table [prices."openai/<name>"]'),
    "description": "in a pool file it belongs in the table [descriptions]",
}
"""What every model has, whatever its provider, and where it is set."""


class Option(NamedTuple):
    """One option.

    Attributes:
        type: what it is, in words.
        default: what holds without it, in words.
        about: what it does or bounds.
        check: gives what is expected for an invalid value, `""` if it can.
    """

    type: str
    default: str
    about: str
    check: Callable[[Any], str]


def _text(value: Any) -> str:
    return "" if isinstance(value, str) and value.strip() == value else "a text"


def _some_text(value: Any) -> str:
    return "" if not _text(value) and value else "a text that is not empty"


def _truth(value: Any) -> str:
    return "" if isinstance(value, bool) else "true or false"


def _seconds(value: Any) -> str:
    # `type` rather than `isinstance`, because a bool is an int.
    right = type(value) in (int, float) and 0 < value < float("inf")
    return "" if right else "a number of seconds > 0"


def _bytes(value: Any) -> str:
    return "" if type(value) is int and value >= 1024 else "a whole number of bytes >= 1024"


def _one_of(*values: str) -> Callable[[Any], str]:
    return lambda value: "" if value in values else f"one of {', '.join(values)}"


def _field_name(value: Any) -> str:
    return "" if isinstance(value, str) and (value == "" or value.isidentifier()) else "the name of a field, or ''"


def _url(value: Any) -> str:
    expected = "an address such as http://127.0.0.1:8000/v1"
    if not isinstance(value, str):
        return expected
    try:
        parts = urlsplit(value)
        right = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return expected
    if parts.username is not None or parts.password is not None:
        return f"{expected}, without user name and password"
    # The paths of requests are put behind it.
    if parts.query or parts.fragment:
        return f"{expected}, without a query"
    return "" if right else expected


def _kinds(value: Any) -> str:
    right = isinstance(value, (list, tuple)) and all(kind in ("image", "audio", "file") for kind in value)
    return "" if right else "a list of image, audio, file"


def _env_name(value: Any) -> str:
    if isinstance(value, str) and (value == "" or (_ENV_NAME.fullmatch(value) and not looks_like_a_key(value))):
        return ""
    return "the NAME of an environment variable, never the key itself"


def _headers(value: Any) -> str:
    if not isinstance(value, dict):
        return "a table of header names and texts"
    for name, text in value.items():
        if not _HEADER.fullmatch(name) or not isinstance(text, str) or not text.isprintable():
            return "a table of header names and texts of one line"
        if name.lower() in _SECRET_HEADERS or looks_like_a_key(text):
            return f"no key in {name!r}; name its environment variable in key_env (and its header in key_header)"
    return ""


def _body(value: Any) -> str:
    if not isinstance(value, dict):
        return "a table of fields"
    taken = sorted(set(value) & set(_OURS))
    return f"no {taken[0]!r}: that field is written by concertino" if taken else ""


_DIALECT = "as the server's preset"
OPTIONS: Mapping[str, Option] = {
    "server": Option(
        "text", "`openai`", "which preset: " + ", ".join(f"`{name}`" for name in PRESETS), _one_of(*PRESETS)
    ),
    "model": Option("text", "the model's short name", "name by which the server knows the model", _some_text),
    "base_url": Option(
        "text", "`$OPENAI_BASE_URL`, else as the preset", "address of the server up to and including `/v1`", _url
    ),
    "key_env": Option("text", _DIALECT, 'NAME of the environment variable with the key; `""` for no key', _env_name),
    "connect_timeout": Option("seconds", "5", "bounds connecting (not the waiting for a free place)", _seconds),
    "idle_timeout": Option("seconds", "300", "bounds the silence before the first byte and between two", _seconds),
    "max_event_bytes": Option("bytes", "8388608", "bounds one event of a stream", _bytes),
    "max_reply_bytes": Option("bytes", "67108864", "bounds a whole reply, after decompression", _bytes),
    "headers": Option("table", "none", "further headers of every request; never a key", _headers),
    "extra_body": Option(
        "table",
        "none",
        "further fields of every request; `tool_choice` and `parallel_tool_calls` are sent with tools only",
        _body,
    ),
    "proxy": Option("text", "none", "address of an HTTP proxy, without password", _url),
    "verify_model": Option(
        "truth", "false", "ask the server once whether it serves this model, before the first request", _truth
    ),
    "price_file": Option(
        "text", "`$CONCERTINO_OPENAI_PRICES`", "a price table that takes precedence over the packaged one", _some_text
    ),
    "stream": Option("truth", _DIALECT, "stream on the wire, for single replies too", _truth),
    "stream_usage": Option("truth", _DIALECT, "ask for the usage at the end of a stream", _truth),
    "max_tokens_field": Option(
        "text", _DIALECT, "field that bounds the generated tokens", _one_of("max_tokens", "max_completion_tokens")
    ),
    "schema_style": Option(
        "text", _DIALECT, "how a schema is sent: " + ", ".join(f"`{s}`" for s in SCHEMA_STYLES), _one_of(*SCHEMA_STYLES)
    ),
    "think": Option(
        "text", _DIALECT, "thoughts in the text: `tags`, `open` (the prompt opened them), `off`", _one_of(*THINK_STYLES)
    ),
    "reasoning_field": Option(
        "text", _DIALECT, 'field in which thoughts are sent back, `""` for not at all', _field_name
    ),
    "logprobs": Option("truth", _DIALECT, "the server knows `logprobs`", _truth),
    "token_ids": Option("truth", _DIALECT, "the server knows `return_token_ids`", _truth),
    "seed": Option("truth", _DIALECT, "the server knows `seed`", _truth),
    "null_content": Option("truth", _DIALECT, 'a message that only calls has `content: null`, else `""`', _truth),
    "keeps_stop": Option("truth", _DIALECT, "the server leaves the text that stopped it in the reply", _truth),
    "call_errors": Option("truth", _DIALECT, "the server answers with an error to a call that it cannot read", _truth),
    "mute_errors": Option(
        "truth", _DIALECT, "the server ends a stream before its first event to refuse a request", _truth
    ),
    "accepts": Option(
        "list", _DIALECT, "kinds of attachments that the model takes: `image`, `audio`, `file`; `[]` for none", _kinds
    ),
    "key_header": Option(
        "text",
        _DIALECT,
        "header of the key; `Authorization` carries `Bearer KEY`",
        lambda value: "" if isinstance(value, str) and _HEADER.fullmatch(value) else "a header's name",
    ),
}
"""Every option, in the order of the README."""


@dataclass(frozen=True, slots=True)
class OpenAISettings:
    """Checked options, with every default filled in.

    Attributes:
        own_address: the server is the preset's own service: its prices and its key are of that place.
    """

    model: str
    dialect: ServerDialect
    base_url: str
    key_env: str
    own_address: bool = True
    connect_timeout: float = 5.0
    idle_timeout: float = 300.0
    max_event_bytes: int = 8 * 2**20
    max_reply_bytes: int = 64 * 2**20
    headers: Mapping[str, str] | None = None
    extra_body: Mapping[str, Any] | None = None
    proxy: str | None = None
    verify_model: bool = False
    price_file: str | None = None

    @property
    def endpoint(self) -> str:
        """What opaque data belongs to: the server and the model."""
        return f"{self.base_url} {self.model}"

    @classmethod
    def of(cls, options: Mapping[str, Any], place: str, model: str = "") -> OpenAISettings:
        """Check options.

        Args:
            options: by name; None counts as not given.
            place: what they belong to, for messages.
            model: the name of the model if no option says it.

        Raises:
            SpecError: names the option, what was given and what is expected.
        """
        given = {name: value for name, value in options.items() if value is not None}
        for name, value in given.items():
            _check(name, value, place)
        dialect = PRESETS[given.pop("server", "openai")]
        changes = {name: given.pop(name) for name in DIALECT_OPTIONS if name in given}
        if "accepts" in changes:
            changes["accepts"] = tuple(changes["accepts"])
        dialect = dialect.with_(**changes) if changes else dialect
        base_url, own_address = _address(given.pop("base_url", ""), dialect, place)
        # The key of a preset is for the preset's own server; another one gets a key only by name.
        own_key = dialect.key_env if own_address else ""
        if base_url == _from_environment(dialect) and os.environ.get(dialect.key_env):
            own_key = dialect.key_env  # both variables are set, so they belong together
        name = given.pop("model", "") or model
        if not name:
            raise SpecError(f"{place}: the option 'model' is missing; give the name by which the server knows it")
        key_env = given.pop("key_env", own_key)
        if "price_file" in given:
            given["price_file"] = str(Path(given["price_file"]).expanduser())
        return cls(name, dialect, base_url, key_env, own_address, **given)


def _from_environment(dialect: ServerDialect) -> str:
    return os.environ.get(dialect.base_url_env, "").strip().rstrip("/")


def _address(given: str, dialect: ServerDialect, place: str) -> tuple[str, bool]:
    """The server's address, and whether it is the preset's own: as given, else of the environment, else the preset's.

    Raises:
        SpecError: a variable that it needs is not set, or holds no address.
    """
    own = dialect.base_url
    for name in PLACEHOLDER.findall(own):
        own = own.replace(f"{{{name}}}", os.environ.get(name, "").strip().rstrip("/") or f"{{{name}}}")
    address = given.rstrip("/") or _from_environment(dialect)
    if not address:
        if missing := PLACEHOLDER.findall(own):
            raise SpecError(f"{place}: set the environment variable {missing[0]}, or give base_url")
        address = own
    if expected := _url(address):
        raise SpecError(f"{place}: the address in {dialect.base_url_env} or base_url: expected {expected}")
    return address, address == own


def _check(name: str, value: Any, place: str) -> None:
    option = OPTIONS.get(name)
    if option is None:
        if name.lower().replace("-", "_") in _SECRET_NAMES:
            raise SpecError(
                f"{place}: {name!r} is not an option: a key never stands among options; put it into an environment "
                "variable and give that variable's name as key_env"
            )
        if name in _OF_THE_SPEC:
            raise SpecError(f"{place}: {name!r} is not an option of the provider; {_OF_THE_SPEC[name]}")
        hint = suggestion(name, OPTIONS)
        raise SpecError(f"{place}: unknown option {name!r}; {hint}")
    if expected := option.check(value):
        near = near_names(value, PRESETS, limit=1) if name == "server" and isinstance(value, str) else []
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise SpecError(f"{place}: {name} = {_shown(name, value)}; expected {expected}{hint}")


def _shown(name: str, value: Any) -> str:
    """The value as an error may show it: nothing that could be or hold a key."""
    text = repr(value)
    hidden = name in ("key_env", "headers", "proxy") or (name == "base_url" and "@" in text) or looks_like_a_key(text)
    return "(not shown)" if hidden else text[:120]
