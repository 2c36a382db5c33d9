"""`GET /metrics`: counts of all workers in the text format that Prometheus reads. Names of presets alone come from
elsewhere, and they stand in the settings file.

Invariant: a count never falls while the server runs, also where a worker has died: of its last half second it may lack
some.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

from .serving import Serving


def metrics_text(serving: Serving) -> str:
    """The counts so far."""
    requests, begun, ended, usd = (Counter(each) for each in _counts(serving))
    for text in serving.hub.ledger.published():
        for mine, other in zip((requests, begun, ended, usd), json.loads(text), strict=True):
            mine.update(other)
    return "".join(
        [
            _family("requests_total", "counter", "Requests, by status.", "status", requests),
            _family("runs_begun_total", "counter", "Runs that began, by preset.", "preset", begun),
            _family("runs_ended_total", "counter", "Runs that ended, by why.", "stop", ended),
            _single("runs_active", "gauge", "Runs under way.", serving.ring.running),
            _single("usd_total", "counter", "Dollars that ended runs used.", usd["usd"]),
        ]
    )


def publish_counts(serving: Serving) -> None:
    """Let the other workers count what this one has counted."""
    serving.hub.ledger.publish(json.dumps(_counts(serving)))


def _counts(serving: Serving) -> list[dict[str, float]]:
    """What this process has counted."""
    hub = serving.hub
    return [
        {str(status): count for status, count in serving.statuses.items()},
        {name: count for (what, name), count in hub.counts.items() if what == "begun"},
        {stop: count for (what, stop), count in hub.counts.items() if what == "ended"},
        {"usd": hub.usd},
    ]


def _family(name: str, kind: str, help_text: str, label: str, values: Mapping[str, float]) -> str:
    lines = [_head(name, kind, help_text)]
    lines += [f'concertino_{name}{{{label}="{_escaped(key)}"}} {count}\n' for key, count in sorted(values.items())]
    return "".join(lines)


def _single(name: str, kind: str, help_text: str, value: float) -> str:
    return f"{_head(name, kind, help_text)}concertino_{name} {value:g}\n"


def _head(name: str, kind: str, help_text: str) -> str:
    return f"# HELP concertino_{name} {help_text}\n# TYPE concertino_{name} {kind}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
