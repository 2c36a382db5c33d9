"""Texts with which a stranger commands a terminal or deceives its reader, and what of them a terminal still obeys.

The check knows nothing of the code under test: it reads what was written like a terminal, and by Unicode's own data.
"""

from __future__ import annotations

import re
import unicodedata

ATTACKS = {
    "title": "\x1b]0;owned\x07",
    "title_ended_by_st": "\x1b]2;owned\x1b\\",
    "clipboard": "\x1b]52;c;cm0gLXJmIH4=\x07",
    "hyperlink": "\x1b]8;;http://127.0.0.1/\x1b\\here\x1b]8;;\x1b\\",
    "notification": "\x1b]777;notify;t;b\x07",
    "palette": "\x1b]4;1;#000000\x07",
    "screen_cleared": "\x1b[2J\x1b[H",
    "line_erased": "\x1b[2K\x1b[1A",
    "cursor_moved": "\x1b[10;10Hforged",
    "concealed": "\x1b[8mhidden\x1b[0m",
    "black_on_black": "\x1b[30;40mhidden",
    "colour": "\x1b[31mred",
    "cursor_asked_for": "\x1b[6n",
    "terminal_asked_for": "\x1b[c",
    "mouse_reported": "\x1b[?1000h",
    "paste_mode": "\x1b[?2004l",
    "other_screen": "\x1b[?1049h",
    "window_moved": "\x1b[3;0;0t",
    "reset": "\x1bc",
    "charset": "\x1b(0lqqk",
    "device_control": "\x1bPq#0;2;0;0;0\x1b\\",
    "program_command": "\x1b_Ga=T\x1b\\",
    "privacy_message": "\x1b^text\x1b\\",
    "start_of_string": "\x1bXtext\x1b\\",
    "escape_alone": "\x1b",
    "escape_at_the_end": "text\x1b[",
    "c1_sequence": "\x9b31mred",
    "c1_title": "\x9d0;owned\x9c",
    "c1_device_control": "\x90q\x9c",
    "c1_next_line": "a\x85b",
    "null": "a\x00b",
    "bell": "a\x07b",
    "backspace": "evil\b\b\b\bgood",
    "carriage_return": "evil\rgood",
    "vertical_tab": "a\x0bb",
    "form_feed": "a\x0cb",
    "shift_out": "a\x0eb\x0f",
    "cancel": "a\x18b\x1ac",
    "separators": "a\x1c\x1d\x1e\x1fb",
    "delete": "a\x7fb",
    "right_to_left_override": "gpj\u202eexe.",
    "embedding": "\u202ba\u202c",
    "isolate": "\u2067a\u2069",
    "right_to_left_mark": "a\u200fb\u200e",
    "arabic_mark": "a\u061cb",
    "zero_width_space": "ad\u200bmin",
    "zero_width_joiner": "ad\u200dmin",
    "zero_width_non_joiner": "ad\u200cmin",
    "joiners_in_a_row": "\u4f60\u200d\u200d\u200d\u597d",
    "word_joiner": "ad\u2060min",
    "invisible_operator": "a\u2063b",
    "byte_order_mark": "\ufeffadmin",
    "soft_hyphen": "ad\u00admin",
    "grapheme_joiner": "ad\u034fmin",
    "hangul_filler": "a\u3164b\uffa0c\u115f",
    "annotation": "a\ufff9b\ufffac\ufffb",
    "tags": "hi\U000e0068\U000e0069\U000e007f",
    "tags_behind_a_flag": "\U0001f3f4\U000e0061\U000e0061\U000e007f",
    "selectors": "a\ufe00\ufe01\U000e0100\U000e0101",
    "selectors_behind_an_emoji": "\U0001f600" + "\U000e0110" * 9,
    "line_separator": "a\u2028b",
    "paragraph_separator": "a\u2029b",
    "half_a_character": "a\ud800b",
    "marks": "z" + "\u0301\u0325" * 40,
    "thai_marks": "\u0e01" + "\u0e47" * 40,
    "marks_and_joiners": "z" + ("\u0301" * 5 + "\u200d") * 20,
    "hidden_behind_hidden": "a\ufeff\u200d\ufe0f\u200db",
    "markup": "[bold red on white]x[/][link=http://127.0.0.1]y[/link]",
}
"""By name."""

EVERYTHING = " ".join(f"{name}={text}" for name, text in ATTACKS.items())
"""All of them, one after the other."""

INNOCENT = (
    "grüße, žluťoučký kůň, tiếng Việt",
    "你好，世界 ありがとう 안녕하세요",
    "مرحبا بالعالم می\u200cخواهم",
    "שלום עולם שָׁלוֹם",
    "क्\u200dष हिन्दी বাংলা தமிழ்",
    "ภาษาไทย ก็ที่",
    "👨\u200d👩\u200d👧\u200d👦 ❤\ufe0f\u200d🔥 👩🏽\u200d🚀 🇩🇪 1\ufe0f\u20e3 ☺\ufe0e",
    "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "葛\U000e0100 ᠠ\u180b",
    "∑ → ✓ │ ├─ ░ ½ €",
    "[bold] is no markup, :smile: no emoji",
)
"""Texts that stay as they are."""

# What we write ourselves: colours, and in a live view moves of the cursor.
COLOURS = re.compile(r"\x1b\[(?:0|[123]|3[1-6]|;)+m")
MOVES = re.compile(r"\x1b\[(?:\?25[hl]|[0-9]*[AGK]|(?:9[0-7]|38;5;\d+)m)|\r")

_SELECTORS = {*map(chr, range(0xFE00, 0xFE10)), *map(chr, range(0xE0100, 0xE01F0)), *"\u180b\u180c\u180d\u180f"}
_FILLERS = set("\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5")
_FLAG = re.compile("\U0001f3f4\U000e0067\U000e0062[\U000e0061-\U000e007a]{3}\U000e007f")


def harm(written: str, *, live: bool = False) -> list[str]:
    """What a terminal obeys of a text, or a reader does not see, beside what we write ourselves.

    Args:
        live: whether the cursor may be moved.
    """
    text = COLOURS.sub("", written.replace(ATTACKS["colour"], "\0"))
    text = (MOVES.sub("\n", text) if live else text).replace("\r\n", "\n")
    text = _FLAG.sub("", text)
    found = []
    marks = 0
    for before, sign in zip(" " + text, text, strict=False):
        kind = unicodedata.category(sign)
        marks = marks + 1 if kind in ("Mn", "Me", "Cf") else 0
        if sign in "\n\t" or _belongs(before, sign):
            continue
        if kind in ("Cc", "Cf", "Cs", "Zl", "Zp") or sign in _SELECTORS or sign in _FILLERS or marks > 10:
            found.append(f"U+{ord(sign):04X}")
    return found


def _belongs(before: str, sign: str) -> bool:
    """Whether a joiner or a selector stands behind a sign that takes one."""
    if sign in "\u200c\u200d":
        return ord(before) >= 0x300 and unicodedata.category(before) not in ("Cf", "Cc", "Cs")
    return sign in _SELECTORS and before not in _SELECTORS and (ord(before) > 0x2000 or before in "0123456789#*©®ᠠ")
