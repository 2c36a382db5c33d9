"""A text cut at its tags: `<think> … </think>`, `<tool_call> … </tool_call>` and whatever else a format has.

One pass over the text, so the time is linear in its length whatever stands in it. Invariant: the blocks follow each
other without a gap, from the first character to the last.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple


class Block(NamedTuple):
    """A piece of the text; `text[begin:stop]` is what stands inside it.

    Attributes:
        tag: its name; `""` for text outside of all blocks, `/name` for a closing tag that nothing opened.
        start: where it begins, its opening tag included.
        begin: where its inside begins.
        stop: where its inside ends.
        end: where it ends, its closing tag included.
        closed: its closing tag is there.
    """

    tag: str
    start: int
    begin: int
    stop: int
    end: int
    closed: bool = True


@lru_cache(maxsize=32)
def _tags(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"<(/?)({'|'.join(map(re.escape, names))})>")


def cut_blocks(text: str, names: Sequence[str], *, repeating: str = "") -> list[Block]:
    """The blocks of a text, in order. Inside a block, the tags of others are text.

    Args:
        names: of the tags.
        repeating: a tag of which a new one ends the last, if that was not closed.
    """
    blocks: list[Block] = []
    opened: tuple[str, int, int] | None = None
    position = 0
    for match in _tags(tuple(names)).finditer(text):
        closing, name = match.groups()
        start, end = match.span()
        if opened is not None:
            tag, opened_at, begin = opened
            if closing and name == tag:
                blocks.append(Block(tag, opened_at, begin, start, end))
                opened, position = None, end
            elif not closing and name == tag == repeating:
                blocks.append(Block(tag, opened_at, begin, start, start, False))
                opened, position = (name, start, end), end
            continue
        if start > position:
            blocks.append(Block("", position, position, start, start))
        position = end
        if closing:
            blocks.append(Block(f"/{name}", start, end, end, end))
        else:
            opened = name, start, end
    if opened is not None:
        tag, opened_at, begin = opened
        blocks.append(Block(tag, opened_at, begin, len(text), len(text), False))
    elif position < len(text):
        blocks.append(Block("", position, position, len(text), len(text)))
    return blocks
