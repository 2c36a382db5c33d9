"""Options of an export: from the table `[providers.otel]` of `concertino.toml`, and the variables of OpenTelemetry.

The variables are those that other OpenTelemetry programs read too; the table wins over them.

Invariant: headers, which hold keys, come from the environment alone, and no error shows them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, get_args
from urllib.parse import unquote, urlsplit

from concertino import ProviderSettings, UsageError, keep_headers

from .conventions import DEFAULT_DIALECT, DIALECTS, Dialect

Content = Literal["none", "spans", "events", "both"]
Signal = Literal["traces", "metrics", "logs"]
CONTENTS: tuple[Content, ...] = get_args(Content)
SIGNALS: tuple[Signal, ...] = get_args(Signal)
KEYS = ("url", "semconv", "content", "signals", "service", "exit_seconds")
_CAPTURE: dict[str, Content] = {
    "NO_CONTENT": "none",
    "SPAN_ONLY": "spans",
    "EVENT_ONLY": "events",
    "SPAN_AND_EVENT": "both",
}
_NEWEST = "gen_ai_latest_experimental"


@dataclass(frozen=True)
class Options:
    """What is sent where.

    Attributes:
        url: of the receiver, `http://127.0.0.1:4318`; `/v1/traces` and the like are added.
        semconv: the dialect of names.
        content: where prompts, answers, arguments and results go: `none`, `spans`, `events` (log records), `both`.
        signals: what is sent.
        resource: what the process says of itself.
        headers: sent with every request.
        exit_seconds: how long the end of the process waits for spans to be sent. What is left then is sent later.
    """

    url: str = ""
    semconv: Dialect = DEFAULT_DIALECT
    content: Content = "none"
    signals: tuple[Signal, ...] = ("traces",)
    resource: Mapping[str, str] = field(default_factory=lambda: {"service.name": "concertino"})
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    exit_seconds: float = 5.0

    @classmethod
    def of(cls, settings: ProviderSettings | Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Self:
        """The options of a table and the environment.

        Raises:
            UsageError: a key or a value is wrong; says which, and what was expected.
        """
        environ = os.environ if environ is None else environ
        given = settings if isinstance(settings, ProviderSettings) else ProviderSettings(settings)
        given.check(KEYS)
        newest = _NEWEST in environ.get("OTEL_SEMCONV_STABILITY_OPT_IN", "").split(",")
        captured = environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").upper()
        content = _one_of(given, "content", CONTENTS, _CAPTURE.get(captured, "none"))
        signals: tuple[Signal, ...] = ("traces", "logs") if content in ("events", "both") else ("traces",)
        service = _text(given, "service", environ.get("OTEL_SERVICE_NAME", "concertino"))
        headers = _pairs(environ.get("OTEL_EXPORTER_OTLP_HEADERS", ""))
        keep_headers(headers)
        return cls(
            url=_text(given, "url", environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")),
            semconv=_one_of(given, "semconv", DIALECTS, "genai-0.1" if newest else DEFAULT_DIALECT),
            content=content,
            signals=_signals(given, signals),
            resource={**_pairs(environ.get("OTEL_RESOURCE_ATTRIBUTES", "")), "service.name": service},
            headers=headers,
            exit_seconds=_seconds(given, "exit_seconds", 5.0),
        ).checked(given.where if "url" in given else "OTEL_EXPORTER_OTLP_ENDPOINT")

    def to(self, url: str) -> Self:
        """The same, to another receiver.

        Raises:
            UsageError: it is no http address.
        """
        return replace(self, url=url).checked("--otlp")

    def checked(self, where: str) -> Self:
        """Itself, if its address can be one; an empty one is none."""
        try:
            parts = urlsplit(self.url)
            fits = not self.url or (parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0)
        except ValueError:
            fits = False
        if not fits:
            raise UsageError(f"{where}: {self.url!r} is no http address; expected such as http://127.0.0.1:4318")
        return self

    def address(self, signal: Signal) -> str:
        """Where a signal is sent."""
        base = self.url.rstrip("/")
        for each in SIGNALS:
            base = base.removesuffix(f"/v1/{each}")
        return f"{base}/v1/{signal}"

    @property
    def receiver(self) -> str:
        """The receiver as positions and messages name it: without user and password."""
        parts = urlsplit(self.url.rstrip("/"))
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def _text(given: ProviderSettings, key: str, default: str) -> str:
    value = given.get(key, default)
    if not isinstance(value, str):
        raise UsageError(f"{given.where}: {key} = {value!r}; expected a text")
    return value.strip()


def _one_of(given: ProviderSettings, key: str, known: tuple[Any, ...], default: Any) -> Any:
    value = given.get(key, default)
    if value not in known:
        raise UsageError(f"{given.where}: {key} = {value!r}; expected one of {', '.join(known)}")
    return value


def _signals(given: ProviderSettings, default: tuple[Signal, ...]) -> tuple[Signal, ...]:
    value = given.get("signals", list(default))
    if not isinstance(value, list) or not value or not all(each in SIGNALS for each in value):
        raise UsageError(f"{given.where}: signals = {value!r}; expected a list of {', '.join(SIGNALS)}")
    return tuple(each for each in SIGNALS if each in value)


def _seconds(given: ProviderSettings, key: str, default: float) -> float:
    value = given.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 600:
        raise UsageError(f"{given.where}: {key} = {value!r}; expected seconds from 0 to 600")
    return float(value)


def _pairs(text: str) -> dict[str, str]:
    """`a=1,b=2` as the variables of OpenTelemetry write it; what is no pair is left out."""
    pairs = (each.partition("=") for each in text.split(","))
    return {key.strip(): unquote(value.strip()) for key, equals, value in pairs if equals and key.strip()}
