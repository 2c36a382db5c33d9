"""How values are written: numbers for people, and texts of others made harmless for Markdown and HTML."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from concertino_bench.metrics.metric import Metric, Value

UNKNOWN = "unknown"
# Also marks that turn the direction of writing: with them a name could be shown as another one.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


def number(value: float | None, unit: str = "") -> str:
    """A number with three significant digits; shares as per cent, money with a $."""
    if value is None:
        return "–"
    if math.isinf(value):
        return "∞"
    if unit.startswith("share"):
        return f"{100 * value:.1f} %"
    if unit.startswith("$"):
        return f"${_digits(value)}"
    if unit.startswith("s ") or unit == "s":
        return f"{_digits(value)} s"
    return _digits(value)


def _digits(value: float) -> str:
    size = abs(value)
    if value == 0:
        return "0"
    if size >= 100:
        return f"{value:,.0f}"
    if size < 1e-6:
        return f"{value:.2g}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(size)))}f}"


def of(value: Value, metric: Metric) -> str:
    """A value without its interval."""
    if value.value is None:
        return UNKNOWN if metric.strict and value.unknown else "–"
    return number(value.value, metric.unit)


def interval(value: Value, metric: Metric) -> str:
    """The interval of a value, "61.0–69.5 %"; empty without one."""
    if value.low is None or value.high is None:
        return ""
    low, high = number(value.low, metric.unit), number(value.high, metric.unit)
    for tail in (" %", " s"):
        if low.endswith(tail) and high.endswith(tail):
            low = low.removesuffix(tail)
    return f"{low}–{high.removeprefix('$')}"


def tick(value: float, unit: str) -> str:
    """A round number, for an axis: as `number`, without zeros at the end."""
    found = re.fullmatch(r"(\D*)([\d,]+\.\d*?)0*(\D*)", number(value, unit))
    return found[1] + found[2].rstrip(".") + found[3] if found else number(value, unit)


def p_value(p: float) -> str:
    """A probability, with as many digits as say something."""
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def clean(text: Any) -> str:
    """A text without control characters, those that turn the direction of writing included."""
    return _CONTROLS.sub("\ufffd", str(text))


def short(text: Any, length: int = 200) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(clean(text).split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def escaped(text: Any) -> str:
    """A text for HTML, in elements and in attributes with quotes."""
    return html.escape(clean(text), quote=True)


def cell(text: Any) -> str:
    """A text for a cell of a Markdown table: no HTML, no mark-up, no new line."""
    line = html.escape(" ".join(clean(text).split()), quote=False)
    # Renderers make links of bare addresses, and a text of others must not place one in the report.
    return re.sub(r"([\\`*_\[\]|~#$!])", r"\\\1", line).replace("://", ":&#47;&#47;")


def plain(value: Any) -> str:
    """What a header says, in words: "rounds 8, usd 0.5"."""
    if isinstance(value, Mapping):
        parts = [f"{name} {plain(each)}" for name, each in value.items() if each not in (None, "", [], {}, False)]
        return ", ".join(parts)
    if isinstance(value, list | tuple):
        return ", ".join(plain(each) for each in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
