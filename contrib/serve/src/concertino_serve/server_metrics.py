"""`GET /metrics`: counts of this process in the text format that Prometheus reads. Names of presets alone come from
elsewhere, and they stand in the settings file."""

from __future__ import annotations

from collections.abc import Mapping

from .serving import Serving


def metrics_text(serving: Serving) -> str:
    """The counts so far."""
    hub = serving.hub
    begun = {name: count for (what, name), count in hub.counts.items() if what == "begun"}
    ended = {stop: count for (what, stop), count in hub.counts.items() if what == "ended"}
    statuses = {str(status): count for status, count in serving.statuses.items()}
    return "".join(
        [
            _family("requests_total", "counter", "Requests, by status.", "status", statuses),
            _family("runs_begun_total", "counter", "Runs that began, by preset.", "preset", begun),
            _family("runs_ended_total", "counter", "Runs that ended, by why.", "stop", ended),
            _single("runs_active", "gauge", "Runs under way.", hub.active),
            _single("usd_total", "counter", "Dollars that ended runs used.", hub.usd),
        ]
    )


def _family(name: str, kind: str, help_text: str, label: str, values: Mapping[str, int]) -> str:
    lines = [_head(name, kind, help_text)]
    lines += [f'concertino_{name}{{{label}="{_escaped(key)}"}} {count}\n' for key, count in sorted(values.items())]
    return "".join(lines)


def _single(name: str, kind: str, help_text: str, value: float) -> str:
    return f"{_head(name, kind, help_text)}concertino_{name} {value:g}\n"


def _head(name: str, kind: str, help_text: str) -> str:
    return f"# HELP concertino_{name} {help_text}\n# TYPE concertino_{name} {kind}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
