"""Texts of models, tools and errors as people see them: in a terminal, a log, a notebook.

Such texts hold whatever a model or a stranger wrote. Invariant: what these functions return holds no character that a
terminal obeys, that turns the direction of writing or that nobody sees, and can be encoded as UTF-8; on one line where
they say so. Such characters are made visible: `\\x1b`, `\\u202e`. Every language and every emoji stays as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .usage import Cost, Prices

# Control characters but line feed and tab; marks of direction; line ends of Unicode; letters without a shape; halves of
# a character; tags.
_NEVER = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
# What may hide something. A text without it, and almost every text is one, needs no closer look.
_SUSPECT = re.compile(f"[{_NEVER}\u180b-\u180f\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]")
# No letter, digit or blank: among such are the marks that stand above and below a letter.
_SIGNS = re.compile(r"[^\x00-\u02ff\w\s]{9,}")
_PLAIN = bytes(range(0x20, 0x7F)) + b"\n\t"
_MARKS = 8
"""Marks on one letter; more of them cover the lines around it."""

_encode = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` would make an encoder for every value
_SHORT = 16
"""Characters of a value that are shown in any case."""


def clean(text: object) -> str:
    """A text without anything that a terminal obeys or a reader does not see; line breaks and tabs stay."""
    said = str(text)
    if is_plain(said):
        return said
    # With a line feed, CR is a line end of Windows; alone it moves the cursor and is made visible below.
    return _without_hidden(said.replace("\r\n", "\n"), _shown)


def clean_json(text: str) -> str:
    """JSON text with the characters that `clean` shows as escapes of JSON: the same value, safe on a terminal."""
    return text if text.isascii() and "\x7f" not in text else _without_hidden(text, _escaped)


def is_plain_name(name: str) -> bool:
    """Whether a name shows all that it holds: two that look alike are then the same. Refuse another one."""
    return one_line(name) == name


def without_hidden(text: str) -> str:
    """A text without the characters that `clean` makes visible."""
    return text if is_plain(text) else _without_hidden(text, lambda _: "")


def is_plain(text: str, drawn: str = "") -> bool:
    """Whether a text is ASCII, and safe as it stands; signs of `drawn` may be in it."""
    # Almost every text is, and these look at it faster than a pattern does.
    if not drawn:
        return text.isascii() and not text.encode().translate(None, _PLAIN)
    return (
        not text.encode("utf-8", "surrogatepass").translate(None, _PLAIN).decode("utf-8", "surrogatepass").strip(drawn)
    )


def _without_hidden(text: str, instead: Callable[[str], str]) -> str:
    """A text in which something stands instead of each hidden character."""

    def replaced(found: re.Match[str]) -> str:
        return found[1] or instead(found[0])

    once = _unseen().sub(replaced, text) if _SUSPECT.search(text) else text
    if once.isascii():
        return once
    once = _SIGNS.sub(lambda found: _few_marks(found[0], instead), once)
    # A joiner that belonged to what has gone hides behind what stands there now.
    return once if once is text or once == text else _unseen().sub(replaced, once)


@cache
def _unseen() -> re.Pattern[str]:
    """A character that is made visible, or as its group a flag, which stays."""
    # Made at the first suspect text: it takes longer than everything else in this module.
    # Joiners make letters of Persian and of Indian scripts, and emoji: one of them behind a letter or a sign. Selectors
    # choose a shape: one of them behind a sign that has several. Behind anything else, or in a row, they only hide.
    joined = f"[^\x00-\u02ff\u2000-\u200f\u202f{_NEVER}]"
    ideograph = "[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
    shaped = (
        "[\u00a9\u00ae\u1000-\u109f\u2010-\u2027\u2030-\u205e\u2070-\u2bff\u3000-\u9fff\ua840-\ua87f\uff00-\uff9f"
        "\U0001f000-\U0001faff\U00020000-\U0003ffff]"
    )
    return re.compile(
        # The three flags that are written with tags: England, Scotland, Wales.
        "(\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|"
        "\U000e0077\U000e006c\U000e0073)\U000e007f)"
        f"|[{_NEVER}]"
        f"|(?<!{joined})[\u200c\u200d]"
        f"|(?<!{shaped})[\ufe00-\ufe0f](?!\u20e3)"
        f"|(?<!{ideograph})[\U000e0100-\U000e01ef]"
        "|(?<![\u1820-\u18aa])[\u180b-\u180d\u180f]"
    )


def _few_marks(signs: str, instead: Callable[[str], str]) -> str:
    from unicodedata import category

    kept: list[str] = []
    marks = 0
    for sign in signs:
        # A joiner (Cf) between marks begins no new letter.
        of_letter = category(sign) in ("Mn", "Mc", "Me", "Cf")
        marks = marks + 1 if of_letter else 0
        kept.append(sign if marks <= _MARKS else instead(sign))
    return "".join(kept)


def _shown(sign: str) -> str:
    code = ord(sign)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escaped(sign: str) -> str:
    # JSON has no raw control characters but the blanks between its parts.
    return sign if sign == "\r" else json.dumps(sign)[1:-1] if sign != "\x7f" else "\\u007f"


def one_line(text: object, width: int = 0) -> str:
    """A clean text on one line, cut with `…` to at most `width` characters if that is given."""
    flat = _flat_begin(text, width) if width and isinstance(text, str) and len(text) > 8 * width else _flat(text)
    return flat if not width or len(flat) <= width else f"{flat[: width - 1]}…"


def _flat(text: object) -> str:
    said = str(text)
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
