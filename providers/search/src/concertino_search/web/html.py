"""HTML to text: what a reader reads, in order, with headings as Markdown writes them.

`selectolax` (the Lexbor engine) parses as browsers do and takes any bytes. What is navigation, decoration or invisible
is taken out; where a page marks its main part and that part holds much of the text, the rest is left out.

Invariant: no text comes from a script, a style or an element that the page hides, and two blocks never run together.
The time is bounded: a parser's grows with the square of the depth, so a page that nests deeper than any page that
people write is not parsed; its tags are cut out instead, and its hidden parts are then shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, LexborNode

_UNREAD = (
    "script, style, noscript, template, svg, math, iframe, object, canvas, nav, aside, form, button, select, dialog, "
    "body > header, body > footer, body > div > header, body > div > footer, [hidden], [aria-hidden=true], "
    "[role=navigation], [role=banner], [role=contentinfo]"
)
_MAIN = "main, [role=main], article"
_MAIN_PART = 0.3
"""Part of the page's text that a marked main part must hold to stand for the page."""
_BLOCK_TAGS = """
address article blockquote body caption dd details div dl dt fieldset figcaption figure footer h1 h2 h3 h4 h5 h6 header
hr li main ol p pre section summary table tbody td tfoot th thead title tr ul
"""
_BLOCKS = frozenset(_BLOCK_TAGS.split())
_DEEPEST = 2_000
"""Open elements in one another, up to which a page is parsed; browsers stop at about 512."""
_LEFT_OPEN_TAGS = """
area base br col embed hr img input link meta source track wbr p li dt dd tr td th thead tbody tfoot option optgroup
"""
_LEFT_OPEN = frozenset(_LEFT_OPEN_TAGS.split())
"""Elements without content, or which the next one closes."""
_OPENING = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]{0,30})")
_ANY_TAG = re.compile(r"<[^<>]{0,2000}>")
_UNSEEN = re.compile(r"<(?:script|style)\b", re.IGNORECASE)
_UNSEEN_END = re.compile(r"</(?:script|style)\b[^<>]{0,100}>?", re.IGNORECASE)
_CLIMB = 64
"""Ancestors that are searched for the block of a text; people do not write pages that nest deeper."""
_BLANKS = re.compile(r"[ \t\r\n\f\v\u00a0\u200b]+")
_HIDING_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)


@dataclass(frozen=True, slots=True)
class HtmlText:
    """What a page says.

    Attributes:
        title: of the page; may be empty.
        text: paragraphs with a blank line between them; headings begin with `#`, list items with `- `.
    """

    title: str
    text: str


def read_html(html: str) -> HtmlText:
    """Title and text of a page; never raises for what the page holds."""
    # A parser's time grows with the square of the depth.
    if _depth(html) > _DEEPEST:
        return HtmlText("", _without_tags(html))
    tree = LexborHTMLParser(html)
    named = tree.css_first("head > title") or tree.css_first("h1")
    title = _BLANKS.sub(" ", named.text(deep=True)).strip() if named is not None else ""
    body = tree.body
    if body is None:
        return HtmlText(title, "")
    for node in body.css(_UNREAD):
        node.decompose()
    for node in body.css("[style]"):
        if _HIDING_STYLE.search(node.attributes.get("style") or ""):
            node.decompose()
    return HtmlText(title, _text(_main_part(body)))


def _depth(html: str) -> int:
    """How many elements are open in one another, at most; some that a parser would close count too."""
    open_now: dict[str, int] = {}
    depth = deepest = 0
    for match in _OPENING.finditer(html):
        name = match[2].lower()
        if name in _LEFT_OPEN:
            continue
        if not match[1]:
            open_now[name] = open_now.get(name, 0) + 1
            depth += 1
            deepest = max(deepest, depth)
        elif open_now.get(name, 0):
            open_now[name] -= 1
            depth -= 1
    return deepest


def _without_tags(html: str) -> str:
    """The text between tags, without scripts and styles."""
    kept, place = [], 0
    while begun := _UNSEEN.search(html, place):
        kept.append(html[place : begun.start()])
        closed = _UNSEEN_END.search(html, begun.end())
        place = closed.end() if closed else len(html)
    kept.append(html[place:])
    lines = (_BLANKS.sub(" ", line).strip() for line in _ANY_TAG.sub("\n", "".join(kept)).split("\n"))
    return "\n".join(filter(None, lines))


def _main_part(body: LexborNode) -> LexborNode:
    whole = len(body.text(deep=True))
    for node in sorted(body.css(_MAIN), key=lambda node: -len(node.text(deep=True))):
        if len(node.text(deep=True)) >= _MAIN_PART * whole:
            return node
        break
    return body


def _text(root: LexborNode) -> str:
    lines: list[str] = []
    held: list[str] = []
    last: tuple[int, str, int] | None = None
    for node in root.traverse(include_text=True):
        if node.tag == "br":
            held.append("\n")
        if node.tag != "-text":
            continue
        block, tag, row = _block(node)
        text = node.text(deep=False)
        if last is not None and block != last[0]:
            cells = tag in ("td", "th") and last[1] in ("td", "th") and row == last[2]
            if cells and "".join(held).strip():
                held.append(" | ")
            elif not cells:
                _close(lines, held, last[1])
        held.append(text if tag == "pre" else _BLANKS.sub(" ", text))
        last = block, tag, row
    _close(lines, held, last[1] if last else "")
    return "\n".join(_spaced(lines))


def _block(node: LexborNode) -> tuple[int, str, int]:
    """Identity and tag of the nearest block around a text, and the identity of what is around that."""
    above = node.parent
    for _ in range(_CLIMB):
        if above is None:
            break
        if above.tag in _BLOCKS:
            return above.mem_id, above.tag or "", above.parent.mem_id if above.parent is not None else 0
        above = above.parent
    return 0, "", 0


def _close(lines: list[str], held: list[str], tag: str) -> None:
    text = "".join(held)
    held.clear()
    if tag != "pre":
        text = "\n".join(line for part in text.split("\n") if (line := _BLANKS.sub(" ", part).strip(" |")))
    if not text.strip():
        return
    if re.fullmatch("h[1-6]", tag):
        text = f"{'#' * int(tag[1])} {text.replace(chr(10), ' ')}"
    elif tag in ("li", "dt"):
        text = f"- {text}"
    lines.append(text.strip("\n"))


def _spaced(lines: list[str]) -> Iterator[str]:
    """A blank line between blocks, none between the items of a list or the rows of a table."""
    before = ""
    for line in lines:
        together = (line.startswith("- ") and before.startswith("- ")) or (" | " in line and " | " in before)
        if before and not together:
            yield ""
        yield line
        before = line
