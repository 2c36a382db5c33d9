"""The tags of a text, found once: which opens or closes where, and what lies inside `<![CDATA[ … ]]>`.

Rule: tags inside a CDATA section are text. An unclosed `<![CDATA[` is text itself. The invariant: the index is made in
one pass, and each question about it costs a binary search, so that a reader stays linear however a text is built.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import NamedTuple

CDATA, CDATA_END = "<![CDATA[", "]]>"
MAX_TAGS = 50_000
# Possessive and bounded repeats: a text of nothing but `<a <a <a` must not make the search quadratic.
_TAG = re.compile(
    r"<(/?)([A-Za-z_][A-Za-z0-9_.\-]{0,63}+)([ \t\r\n][^<>]{0,256}+)?>|<([A-Za-z_][A-Za-z0-9_.\-]{0,63}+)[ \t]?/>"
    r"|<!\[CDATA\["
)


class Tag(NamedTuple):
    """One tag.

    Attributes:
        name: its name as written.
        start, end: where it stands in the text.
        closing: `</name>`.
        empty: `<name/>`.
        attributes: what follows the name.
    """

    name: str
    start: int
    end: int
    closing: bool
    empty: bool
    attributes: str


class TagIndex:
    """The tags of a text from `begin` on.

    Attributes:
        tags: all of them, in order.
        sections: CDATA sections as (start, end), marks included.
        overflow: there were more than `MAX_TAGS`; then there are none.
    """

    def __init__(self, text: str, begin: int = 0) -> None:
        self.text = text
        self.tags: list[Tag] = []
        self.sections: list[tuple[int, int]] = []
        self.overflow = False
        position, sections_end = begin, True
        while found := _TAG.search(text, position):
            position = found.end()
            if found.group() != CDATA:
                self._add(found)
            # Once no `]]>` follows, none follows later: without this, each `<![CDATA[` would search to the end again.
            elif sections_end:
                end = text.find(CDATA_END, position)
                sections_end = end >= 0
                if sections_end:
                    position = end + len(CDATA_END)
                    self.sections.append((found.start(), position))
            if len(self.tags) > MAX_TAGS:
                self.overflow = True
                self.tags = []
                break
        self._starts = [tag.start for tag in self.tags]
        self._section_starts = [start for start, _ in self.sections]
        self._by_name: dict[tuple[str, bool], tuple[list[int], list[Tag]]] = {}
        for tag in self.tags:
            starts, tags = self._by_name.setdefault((tag.name, tag.closing), ([], []))
            starts.append(tag.start)
            tags.append(tag)

    def _add(self, found: re.Match[str]) -> None:
        slash, name, attributes, empty = found.groups()
        more = (attributes or "").strip()
        # `<name a="b"/>` matches the first branch, with the slash among the attributes.
        closed = bool(empty) or more.endswith("/")
        self.tags.append(
            Tag(name or empty, found.start(), found.end(), bool(slash), closed, more.removesuffix("/").strip())
        )

    def next(self, position: int) -> Tag | None:
        """The first tag at or after a position."""
        place = bisect_left(self._starts, position)
        return self.tags[place] if place < len(self.tags) else None

    def first(self, name: str, position: int, *, closing: bool) -> Tag | None:
        """The first opening or closing tag of a name at or after a position."""
        starts, tags = self._by_name.get((name, closing), ([], []))
        place = bisect_left(starts, position)
        return tags[place] if place < len(tags) else None

    def leaf(self, start: int, end: int) -> Leaf:
        """The text between two positions: CDATA marks removed, outer white space dropped outside of CDATA."""
        pieces: list[tuple[int, str, bool]] = []
        position = start
        for place in range(bisect_left(self._section_starts, start), len(self.sections)):
            opened, closed = self.sections[place]
            if opened >= end:
                break
            pieces.append((position, self.text[position:opened], False))
            inner = opened + len(CDATA)
            pieces.append((inner, self.text[inner : closed - len(CDATA_END)], True))
            position = closed
        pieces.append((position, self.text[position:end], False))
        first = pieces[0]
        begun = first[1].lstrip()
        pieces[0] = (first[0] + len(first[1]) - len(begun), begun, False)
        pieces[-1] = (pieces[-1][0], pieces[-1][1].rstrip(), False)
        return _leaf([(at, text) for at, text, _ in pieces if text], start, end, len(pieces) > 1)


class Leaf(NamedTuple):
    """The text of one element.

    Attributes:
        text: what it says.
        start, end: where it stands.
        quoted: some of it stood in a CDATA section.
        origins: (index in `text`, index in the whole text) of each piece.
    """

    text: str
    start: int
    end: int
    quoted: bool = False
    origins: tuple[tuple[int, int], ...] = ()

    def at(self, index: int) -> int:
        """Where a character of `text` stands in the whole text."""
        if not self.origins:
            return self.start
        # `(index + 1,)` sorts before every pair that begins with it, so this finds the last piece at or before `index`.
        place = bisect_left(self.origins, (index + 1,)) - 1
        inner, outer = self.origins[max(place, 0)]
        return outer + index - inner


def _leaf(pieces: list[tuple[int, str]], start: int, end: int, quoted: bool) -> Leaf:
    origins, parts, length = [], [], 0
    for at, text in pieces:
        origins.append((length, at))
        parts.append(text)
        length += len(text)
    # Without CDATA the text is one stretch, so its place can leave out the white space that was dropped.
    if pieces and not quoted:
        start, end = pieces[0][0], pieces[0][0] + length
    return Leaf("".join(parts), start, end, quoted, tuple(origins))


def quote(text: str) -> str:
    """A text as the content of an element that reads back as the same text."""
    # Quoted also where the reader would take the text for a channel mark or for the empty input.
    plain = text == text.strip() and "<" not in text and "assistantfinal" not in text and text not in ('""', "“”")
    if plain:
        return text
    # `]]>` cannot stand inside a section, nor the channel mark anywhere: each is split over two sections.
    inner = text.replace(CDATA_END, "]]]]><![CDATA[>").replace("assistantfinal", "assistant]]><![CDATA[final")
    return f"{CDATA}{inner}{CDATA_END}"
