"""Options of a model: the one table that the code, the error messages and the README share.

Options are plain JSON data, because pool files and traces hold them. So a key is never an option, only its name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from concertino import SpecError
from concertino.schema import suggestion

from .keys import looks_like_a_key
from .presets import Preset, preset_of

BASE_URL = "https://api.anthropic.com"
BASE_URL_ENV = "ANTHROPIC_BASE_URL"
KEY_ENV = "ANTHROPIC_API_KEY"
THINKING = ("adaptive", "between_tools", "disabled")
LEAST_BUDGET = 1024
"""Tokens of the smallest budget for thinking that the API takes."""
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_DISPLAYS = ("summarized", "omitted")
_CACHES = ("5m", "1h", "")
_STYLES = ("json_schema", "instruction")
_KINDS = ("image", "file")
_OURS = ("max_tokens", "messages", "model", "output_config", "stop_sequences", "stream", "system", "thinking", "tools")
"""Fields of a request that the provider writes itself."""
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SECRET_HEADERS = ("authorization", "proxy-authorization", "cookie", "x-api-key", "api-key")
_SECRET_NAMES = ("api_key", "apikey", "key", "token", "auth_token", "secret", "password", "authorization")
_OVERRIDES = 'in a pool file it belongs in the table [overrides."anthropic/<name>"]'
_OF_THE_SPEC = {
    **dict.fromkeys(("timeout", "context", "concurrency", "max_tokens"), _OVERRIDES),
    **dict.fromkeys(("price", "prices"), 'in a pool file it belongs in the table [prices."anthropic/<name>"]'),
    "description": "in a pool file it belongs in the table [descriptions]",
    **dict.fromkeys(
        ("temperature", "top_p", "top_k"),
        "the API takes no sampling parameters; for another server, put it into extra_body",
    ),
}
"""What is no option here, and where it belongs."""


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
    right = isinstance(value, str) and bool(value) and value.strip() == value
    return "" if right else "a text that is not empty"


def _truth(value: Any) -> str:
    return "" if isinstance(value, bool) else "true or false"


def _seconds(value: Any) -> str:
    # `type` rather than `isinstance`, because a bool is an int.
    return "" if type(value) in (int, float) and 0 < value < float("inf") else "a number of seconds > 0"


def _tokens(value: Any) -> str:
    return "" if type(value) is int and value > 0 else "a whole number of tokens > 0"


def _thinking(value: Any) -> str:
    right = value in THINKING if isinstance(value, str) else type(value) is int and value >= LEAST_BUDGET
    return "" if right else f"one of {', '.join(THINKING)}, or a number of tokens >= {LEAST_BUDGET}"


def _one_of(*values: str) -> Callable[[Any], str]:
    return lambda value: "" if value in values else f"one of {', '.join(value or repr(value) for value in values)}"


def _kinds(value: Any) -> str:
    right = isinstance(value, (list, tuple)) and all(kind in _KINDS for kind in value)
    return "" if right else f"a list of {', '.join(_KINDS)}"


def _env_name(value: Any) -> str:
    if isinstance(value, str) and (value == "" or (_ENV_NAME.fullmatch(value) and not looks_like_a_key(value))):
        return ""
    return "the NAME of an environment variable, never the key itself"


def _url(value: Any) -> str:
    expected = f"an address such as {BASE_URL}"
    if not isinstance(value, str):
        return expected
    try:
        parts = urlsplit(value)
        right = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return expected
    if parts.username is not None or parts.password is not None:
        return f"{expected}, without user name and password"
    if parts.query or parts.fragment:
        return f"{expected}, without a query"
    if parts.path.rstrip("/").endswith("/v1"):
        return f"{expected}, without /v1, which the SDK puts behind it"
    return "" if right else expected


def _headers(value: Any) -> str:
    if not isinstance(value, dict):
        return "a table of header names and texts"
    for name, text in value.items():
        if not _HEADER.fullmatch(name) or not isinstance(text, str) or not text.isprintable():
            return "a table of header names and texts of one line"
        if name.lower() in _SECRET_HEADERS or looks_like_a_key(text):
            return f"no key in {name!r}; name its environment variable in key_env"
    return ""


def _body(value: Any) -> str:
    if not isinstance(value, dict):
        return "a table of fields"
    taken = sorted(set(value) & set(_OURS))
    return f"no {taken[0]!r}: that field is written by concertino" if taken else ""


_MODEL = "as the model's preset"
OPTIONS: Mapping[str, Option] = {
    "model": Option("text", "the model's short name", "name by which the API knows the model", _text),
    "base_url": Option("text", f"`${BASE_URL_ENV}`, else `{BASE_URL}`", "address of the server, without `/v1`", _url),
    "key_env": Option(
        "text", f"`{KEY_ENV}`", 'NAME of the environment variable with the key; `""` for no key', _env_name
    ),
    "thinking": Option(
        "text or tokens",
        "the model's own",
        "`adaptive`, `between_tools`, `disabled`, or a number of tokens for models that take one (Haiku 4.5)",
        _thinking,
    ),
    "display": Option(
        "text",
        "`summarized`",
        "what is told of thoughts: `summarized`, or `omitted`, with which the text begins sooner",
        _one_of(*_DISPLAYS),
    ),
    "effort": Option(
        "text",
        "the model's own",
        "how much work goes into a reply: " + ", ".join(f"`{e}`" for e in _EFFORTS),
        _one_of(*_EFFORTS),
    ),
    "cache": Option(
        "text", "`5m`", 'how long the API keeps what it has read: `5m`, `1h`, or `""` for not at all', _one_of(*_CACHES)
    ),
    "max_output": Option(
        "tokens", f"{_MODEL}, else 32000", "the most that a reply has where a request says nothing", _tokens
    ),
    "connect_timeout": Option("seconds", "5", "bounds connecting", _seconds),
    "idle_timeout": Option("seconds", "300", "bounds the silence before the first byte and between two", _seconds),
    "headers": Option(
        "table", "none", "further headers of every request, such as `anthropic-beta`; never a key", _headers
    ),
    "extra_body": Option("table", "none", "further fields of every request, such as `service_tier`", _body),
    "stream": Option("truth", "true", "stream on the wire, for single replies too", _truth),
    "schema_style": Option(
        "text", "`json_schema`", "how a schema is sent: " + ", ".join(f"`{s}`" for s in _STYLES), _one_of(*_STYLES)
    ),
    "accepts": Option("list", "`image`, `file`", "kinds of attachments that the model takes; `[]` for none", _kinds),
}
"""Every option, in the order of the README."""


@dataclass(frozen=True, slots=True)
class AnthropicSettings:
    """Checked options, with every default filled in.

    Attributes:
        own_address: the server is Anthropic's own: its prices and its key are of that place.
    """

    model: str
    preset: Preset
    base_url: str
    key_env: str
    own_address: bool
    thinking: str | int = ""
    display: str = "summarized"
    effort: str = ""
    cache: str = "5m"
    max_output: int = 32_000
    connect_timeout: float = 5.0
    idle_timeout: float = 300.0
    headers: Mapping[str, str] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = True
    schema_style: str = "json_schema"
    accepts: tuple[str, ...] = _KINDS

    @property
    def endpoint(self) -> str:
        """What opaque data belongs to: the server and the model."""
        return f"{self.base_url} {self.model}"

    @classmethod
    def of(cls, options: Mapping[str, Any], place: str, model: str = "") -> AnthropicSettings:
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
        name = given.pop("model", "") or model
        if not name:
            raise SpecError(f"{place}: the option 'model' is missing; give the name by which the API knows it")
        elsewhere = os.environ.get(BASE_URL_ENV, "").strip().rstrip("/")
        base_url = given.pop("base_url", "").rstrip("/") or elsewhere or BASE_URL
        if expected := _url(base_url):
            raise SpecError(f"{place}: the address in {BASE_URL_ENV}: expected {expected}")
        own = base_url == BASE_URL
        # The key is for Anthropic's server, or for one that the environment names together with it.
        together = base_url == elsewhere and bool(os.environ.get(KEY_ENV))
        key_env = given.pop("key_env", KEY_ENV if own or together else "")
        preset = preset_of(name)
        given.setdefault("max_output", preset.max_output)
        if "accepts" in given:
            given["accepts"] = tuple(given["accepts"])
        return cls(name, preset, base_url, key_env, own, **given)


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
        raise SpecError(f"{place}: unknown option {name!r}; {suggestion(name, OPTIONS)}")
    if expected := option.check(value):
        raise SpecError(f"{place}: {name} = {_shown(name, value)}; expected {expected}")


def _shown(name: str, value: Any) -> str:
    """The value as an error may show it: nothing that could be or hold a key."""
    text = repr(value)
    hidden = name in ("key_env", "headers") or (name == "base_url" and "@" in text) or looks_like_a_key(text)
    return "(not shown)" if hidden else text[:120]
