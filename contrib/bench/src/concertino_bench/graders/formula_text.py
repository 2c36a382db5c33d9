r"""The text of a mathematical answer with one spelling for what has many.

Signs of other alphabets, sizes of brackets, spaces, styles, currency, the marks of thousands, mixed fractions and words
behind a number are rewritten; nothing is evaluated. The invariants: what is dropped never changes a value; and repeats
in patterns are bounded, since a reply may be hostile.
"""

from __future__ import annotations

import re

from .numeric import continental

_SIGNS = {
    "−": "-",
    "–": "-",
    "—": "-",
    "×": "*",
    "÷": "/",
    "·": "*",
    "∙": "*",
    "⋅": "*",
    "∗": "*",
    "≤": "<=",
    "⩽": "<=",
    "≥": ">=",
    "⩾": ">=",
    "≠": "!=",
    "≈": r"\approx ",
    "≡": r"\equiv ",
    "√": r"\sqrt ",
    "∞": r"\infty ",
    "∪": r"\cup ",
    "∈": r"\in ",
    "∅": r"\emptyset ",
    "°": r"^\circ ",
    "∘": r"^\circ ",
    "±": r"\pm ",
    "∓": r"\mp ",
    "ℝ": r"\mathbb{R}",
    "½": r"\frac12 ",
    "¼": r"\frac14 ",
    "¾": r"\frac34 ",
    "⅓": r"\frac13 ",
    "⅔": r"\frac23 ",
    "、": ",",
    "。": ".",
    "′": "'",
    "’": "'",
    "⟨": "(",
    "⟩": ")",
    "\u00a0": " ",
    "\u2009": " ",
    "\u202f": " ",
    "π": r"\pi ",
    "θ": r"\theta ",
    "α": r"\alpha ",
    "β": r"\beta ",
    "γ": r"\gamma ",
    "λ": r"\lambda ",
}
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_FOREIGN = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]{1,20}|[^\x00-\x7f]")
_SIZES = re.compile(
    r"\\(?:left|right|[bB]igg?[lrm]?|displaystyle|textstyle|limits|nolimits|strut|rm|it|bf)(?![A-Za-z])\.?|\\!|&nbsp;"
)
_BLANKS = re.compile(r"(?<!\\)\\[,;:> ]|~|\\(?:quad|qquad)(?![A-Za-z])|\\(?:thin|med|thick)space(?![A-Za-z])")
_PARTED = re.compile(r"\\q?quad\s{0,8}(?=[A-Za-z](?:_\{?\w{1,8}\}?)?\s{0,8}=)")
_STYLED = re.compile(
    r"\\(?:text(?:bf|it|rm|normal|sf)?|math(?:rm|bf|it|sf)|mbox|operatorname\*?|boldsymbol|bm)\s{0,4}\{([^{}]{0,120})\}"
)
_TWICE = re.compile(r"\\\\(?=[A-Za-z])")
_BOX = re.compile(r"\\{1,2}f?boxed\s{0,4}(?=\{)")
_BRACKETS = {
    r"\langle": "(",
    r"\rangle": ")",
    r"\lbrace": r"\{",
    r"\rbrace": r"\}",
    r"\lbrack": "[",
    r"\rbrack": "]",
    r"\lvert": "|",
    r"\rvert": "|",
    r"\vert": "|",
    r"\land": " and ",
    r"\wedge": " and ",
    r"\lor": " or ",
    r"\vee": " or ",
    r"\mathopen": "",
    r"\mathclose": "",
    r"\dfrac": r"\frac",
    r"\tfrac": r"\frac",
    r"\cfrac": r"\frac",
}
_BRACKET = re.compile(r"\\[A-Za-z]{4,9}(?![A-Za-z])")
_CURRENCY = re.compile(r"\\?\$|[€£¥₹₽₩]|\b(?:USD|EUR|GBP)\b|\\(?:pounds|euro|yen)(?![A-Za-z])")
_DEGREES = re.compile(r"\\text\{\s{0,4}(?:degrees?|deg)\s{0,4}\}|(?<=[\d}) ])\s{0,4}\bdegrees?\b|\\degree(?![A-Za-z])")
_PERCENT = re.compile(r"\\text\{\s{0,4}(?:percent(?:age)?|pct|\\?%)\s{0,4}\}|\b(?:percent(?:age)?|pct)\b\.?|\\?%")
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3}){1,20}(?![\d,]?\d)")
_GROUPED = re.compile(r"(?<=\d)\s?(?:\{,\s?\}|,\s{0,2}\\!|\\,|\\!)\s{0,2}(?=\d{3}(?!\d))")
_SPACED = re.compile(r"\d{1,3}(?: \d{3}){1,6}(?:\.\d{1,40})?")
_DECIMAL_COMMA = re.compile(r"-?(?:\d{4,12},\d{1,6}|0,\d{1,12})")
_EXPONENT = re.compile(r"(?<=\d)[eE]([+-]?\d{1,3})(?![\w.])")
_REPEATING = re.compile(r"(\d{0,12})\.(\d{0,12})\\overline\s?\{(\d{1,12})\}")
_LARGE = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_LARGE_WORD = re.compile(
    r"(?<=\d)\s{0,4}(?:\\text\{\s{0,4})?\b(thousand|million|billion|trillion)\b(?=([^{}]{0,80}\})?)\s{0,4}"
)
_DISPLAY = re.compile(r"\\(?:begin|end)\{(?:align|aligned|equation|gather|gathered|split|multline)\*?\}")
_MIXED = re.compile(
    r"(?<![\d.^_A-Za-z}/*])(\d{1,12})(?:\s{0,4}(\\frac\s{0,2}(?:\{\d{1,12}\}\s{0,2}\{\d{1,12}\}|\d\s{0,2}\d))|\s{1,4}(\d{1,12}/\d{1,12}))(?![\d.])"
)
_FUNCTION_WORDS = (
    "and|or|sin|cos|tan|cot|sec|csc|log|ln|exp|sqrt|pi|if|for|when|where|in|to|mod|not|is|infinity|inf|otherwise|else"
)
# A word behind a number is its unit: with three letters or more any word, below that only one that is known.
_LETTER_UNIT = re.compile(r"(?<=\d)\s{1,4}([mgshLNJWVK])(?=\s{0,4}(?:\^?\s?\{?[23]\}?)?\s{0,4}$)")
_SHORT = (
    r"cm|mm|km|kg|mg|ml|mL|dm|nm|hr|hrs|min|sec|ft|in|lb|lbs|oz|yd|mi|mph|kph|sq|cu|cc|Hz|kHz|kW|MW|cents?|dollars?"
)
_UNIT = re.compile(
    rf"(?<=[\d}})])(?:\s{{0,4}}(?:{_SHORT})\b|\s{{1,4}}(?!(?:{_FUNCTION_WORDS})\b)[A-Za-z]{{3,24}}\b(?!\s{{0,4}}[(=]))"
    r"(?:\s{0,4}/\s{0,4}(?:[A-Za-z]{1,12})\b|\s{1,4}(?!(?:and|or|if|for)\b)[A-Za-z]{2,24}\b){0,6}\.?(?:\s{0,2}\^?\s{0,2}\{?[234]\}?(?!\d))?"
    r"(?=\s{0,8}(?:$|,|;|\\text|and\b|or\b))"
    # Words of other alphabets need no blank before them: `4000千克`, `24입니다`.
    r"|(?<=[\d})])\s{0,4}(?:(?![\d_])[^\W\x00-\x7f]){1,24}(?=\s{0,8}(?:$|,|;))"
)
_BEGIN = ' \t\r\n,;:*`"'
_END = ' \t\r\n.,;:*`"'


def tidy(text: str) -> str:
    """An answer with one spelling for what has many."""
    text = _FOREIGN.sub(_plain, _BOX.sub("", text))
    if r"\\begin" in text or r"\begin" not in text:  # every backslash is written twice; else `\\` ends a row
        text = _TWICE.sub(r"\\", text)
    text = _SIZES.sub(_size, _GROUPED.sub("", text))
    if r"\\" not in text:  # one line of a display: its signs only set it out
        text, displays = _DISPLAY.subn(" ", text)
        text = text.replace("&", "") if displays else text
    text = _REPEATING.sub(_repeated, text)
    text = _PARTED.sub(", ", text)
    text = _BRACKET.sub(lambda match: _BRACKETS.get(match[0], match[0]), text)
    text = _CURRENCY.sub(" ", text)
    text = _STYLED.sub(_style, text)
    text = _BLANKS.sub(" ", text)
    text = _PERCENT.sub("%", _DEGREES.sub(r"^\\circ ", text))
    text = _numbers(text.lstrip(_BEGIN).rstrip(_END).rstrip("\\").rstrip(_END))
    text = _LETTER_UNIT.sub(r" \\text{\1}", _LARGE_WORD.sub(_large, text))
    return " ".join(_UNIT.sub(lambda match: rf" \text{{{match[0].strip()}}}", text).split())


def words(text: str) -> str:
    """A text as words: small letters and digits, single blanks."""
    bare = re.sub(r"\\(?:text|unit|textbf|textit|mathrm|mathbf|textnormal|mbox)(?![A-Za-z])", " ", text)
    return " ".join(re.sub(r"[\W_]+", " ", bare).lower().split())


def _size(match: re.Match[str]) -> str:
    # TeX writes `\right.` where a bracket has no partner; a command is parted from the letters behind it.
    return "" if match[0] in (r"\!", "&nbsp;") else " "


def _plain(match: re.Match[str]) -> str:
    """A sign of another alphabet as it is written in ASCII; one that is unknown stays."""
    sign = match[0]
    if sign[0] in "⁰¹²³⁴⁵⁶⁷⁸⁹⁻":
        return f"^{{{sign.translate(_RAISED)}}}"
    if known := _SIGNS.get(sign):
        return known
    if 0xFF01 <= ord(sign) <= 0xFF5E:
        return chr(ord(sign) - 0xFEE0)
    return str(int(sign)) if sign.isdecimal() else sign


def _style(match: re.Match[str]) -> str:
    """Words as `\\text{}`, whatever their style; a single letter in mathematical type is a name."""
    inside = match[1].replace("~", " ")
    if inside.strip() in ("sin", "cos", "tan", "log", "ln", "exp", "sec", "csc", "cot"):
        return f"\\{inside.strip()} "
    behind = match.string[: match.start()].rstrip(" ~\\,;!")[-1:]
    if len(inside.strip()) == 1 and not (behind.isdigit() or behind == "}") and inside.strip().isalnum():
        return f" {inside.strip()} "
    return rf"\text{{{inside}}}"


def _repeated(match: re.Match[str]) -> str:
    """A decimal with a line over the digits that repeat, as a fraction."""
    whole, once, again = match.groups()
    below = 10 ** len(once) * (10 ** len(again) - 1)
    return rf"(\frac{{{int(whole + once + again) - int((whole + once) or '0')}}}{{{below}}})"


def _large(match: re.Match[str]) -> str:
    # Words of the unit behind it, in the same braces, stay.
    rest = r"\text{" if match[2] and match[0].lstrip().startswith("\\text") else " "
    return f" * 10^{{{_LARGE[match[1]]}}}{rest}"


def _numbers(text: str) -> str:
    text = _EXPONENT.sub(r" * 10^{\1}", continental(text))
    if _DECIMAL_COMMA.fullmatch(text):
        return text.replace(",", ".")
    if _SPACED.fullmatch(text):
        return text.replace(" ", "")
    # In brackets a comma parts the items, even where three digits follow.
    pieces, at = [], 0
    for match in _THOUSANDS.finditer(text):
        before = text[: match.start()]
        if before.count("(") + before.count("[") + before.count(r"\{") > before.count(")") + before.count(
            "]"
        ) + before.count(r"\}"):
            continue
        pieces += [text[at : match.start()], match[0].replace(",", "")]
        at = match.end()
    text = "".join([*pieces, text[at:]])
    return _MIXED.sub(lambda match: f"({match[1]}+{match[2] or match[3]})", text)
