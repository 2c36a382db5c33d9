"""Texts of models, tools and errors as people see them: in a terminal, a log, a notebook.

Such texts hold whatever a model or a stranger wrote. Invariant: what these functions return holds no character that a
terminal obeys and can be encoded as UTF-8; on one line where they say so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .usage import Cost, Prices

# Control characters, and marks that turn the direction of writing; line breaks and tabs stay.
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

_encode = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` would make an encoder for every value
_SHORT = 16
"""Characters of a value that are shown in any case."""


def clean(text: object) -> str:
    """A text without anything that a terminal obeys; line breaks and tabs stay."""
    # With a line feed, CR is a line end of Windows; alone it moves the cursor and is made visible below.
    safe = str(text).replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")
    return _UNSAFE.sub(lambda match: f"\\x{ord(match.group()):02x}", safe)


def one_line(text: object, width: int = 0) -> str:
    """A clean text on one line, cut with `…` to at most `width` characters if that is given."""
    flat = _flat_begin(text, width) if width and isinstance(text, str) and len(text) > 8 * width else _flat(text)
    return flat if not width or len(flat) <= width else f"{flat[: width - 1]}…"


def _flat(text: object) -> str:
    said = str(text)
    # Almost every text is plain, and these look at it faster than a pattern does.
    if said.isascii() and said.isprintable() and "  " not in said:
        return said.strip(" ")
    return " ".join(clean(said).split())


def _flat_begin(text: str, width: int) -> str:
    """More than the first `width` characters of a long text on one line, or all of it, if it has no more."""
    taken = 4 * width
    while taken < len(text):
        flat = _flat(text[:taken])
        # A few more, since the end of what was taken may be half of a line end.
        if len(flat) > width + 8:
            return flat
        taken *= 4  # blanks take no room on the line, and a text may begin with any number of them
    return _flat(text)


def show_arguments(arguments: Any, width: int = 200) -> str:
    """Arguments of a call on one line: `query="x", limit=3`; a raw text stays as the model wrote it.

    Long values lose their ends first, so that every argument is seen.
    """
    if not isinstance(arguments, Mapping):
        return one_line(arguments, width)
    # A request to a model: its last message says what was asked of it.
    asked = arguments["messages"] if set(arguments) == {"messages"} else None
    if isinstance(asked, list) and asked and isinstance(asked[-1], Mapping):
        return one_line(asked[-1].get("text", ""), width)
    texts = {one_line(key): one_line(_json(value)) for key, value in arguments.items()}
    long = [key for key, text in texts.items() if len(text) > _SHORT]
    if len(long) <= 1 and len(whole := ", ".join(map("=".join, texts.items()))) <= width:
        return whole
    taken = sum(len(key) + 3 + (0 if key in long else len(text)) for key, text in texts.items())
    room = max(_SHORT // 2, (width - taken) // max(1, len(long)))
    return one_line(", ".join(f"{key}={one_line(text, room)}" for key, text in texts.items()), width)


def _json(value: Any) -> str:
    return str(value) if type(value) is int else _encode(value)


def show_money(usd: float) -> str:
    """`$0.0158`; six digits for less than a hundredth of a cent."""
    return f"${usd:.4f}" if usd == 0 or usd >= 0.0001 else f"${usd:.6f}"


def show_cost(usage: Mapping[str, Any]) -> str:
    """Money and units of a usage; `-` if there is none."""
    parts = [show_money(usage["usd"])] if usage.get("usd") else []
    parts += [f"{usage['units']:g} u"] if usage.get("units") else []
    return " ".join(parts) or "-"


def show_call_cost(cost: Cost) -> str:
    """What one call of a tool or agent costs: `1 u + $0.0020`; `free`."""
    parts = [f"{cost.units:g} u"] if cost.units else []
    parts += [show_money(cost.usd)] if cost.usd else []
    parts += [f"{show_money(cost.usd_per_second)}/s"] if cost.usd_per_second else []
    parts += [f"at most {show_money(cost.max_usd)}"] if cost.max_usd is not None else []
    return " + ".join(parts) or "free"


def show_prices(prices: Prices | None) -> str:
    """$ per million tokens of a model, input and output: `0.25 / 2`; `unknown`."""
    return f"{prices.input:g} / {prices.output:g}" if prices else "unknown"


def counted(number: float, noun: str, plural: str = "") -> str:
    """A number and its noun: `1 call`, `2 calls`, `0.5 units`; thousands are set apart."""
    shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} {noun if number == 1 else plural or f'{noun}s'}"
