"""Prompt templates of roles: text with `{question}`, `{coder.value}` and the like in it.

A template is parsed once, when a workflow is made, so a misspelt name is found before a run. Values are inserted by
position and not searched for slots: braces inside a value stay text. `{{` and `}}`
write a brace.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import NamedTuple

from concertino.schema import near_names
from concertino.text.foreign_text import FOREIGN, Quoting, break_control_tokens

COMMON = ("question", "turn", "turns", "history", "observation", "tools")
"""Slots that every template may have."""

_QUOTED = frozenset(("history", "tools"))

FIELDS = ("text", "value", "result")
"""What may be asked of a role: what it wrote, what was read from it, and what its tools returned."""

_MOST = 16
_BRACE = re.compile(r"\{\{|\}\}|\{|\}")
_END = re.compile(r"[{}]")


class Slot(NamedTuple):
    """A place that a value fills."""

    name: str


class TemplateFault(NamedTuple):
    """What is wrong with a template, and at which character; `code` is one of the document's."""

    code: str
    message: str
    start: int


# A role's template is filled in every turn of every rollout, and is the same text each time.
@lru_cache(maxsize=256)
def parse_template(text: str) -> tuple[tuple[str | Slot, ...], tuple[tuple[str, int], ...], TemplateFault | None]:
    """The parts of a template, its slots with their places, and the first brace that is wrong."""
    parts: list[str | Slot] = []
    slots: list[tuple[str, int]] = []
    position = 0
    while brace := _BRACE.search(text, position):
        sign, start = brace.group(), brace.start()
        parts.append(text[position:start])
        if sign == "}":
            return (), (), TemplateFault("bad_template", "'}' closes nothing; write }} for a brace", start)
        if sign == "{":
            end = _END.search(text, start + 1)
            if end is None or end.group() == "{":
                return (
                    (),
                    (),
                    TemplateFault("bad_template", "'{' is not closed; write {question}, or {{ for a brace", start),
                )
            name = text[start + 1 : end.start()].strip()
            slots.append((name, start))
            parts.append(Slot(name))
            position = end.end()
        else:
            parts.append(sign[0])
            position = brace.end()
    parts.append(text[position:])
    return tuple(part for part in parts if part), tuple(slots), None


def check_template(text: str, roles: Collection[str]) -> list[TemplateFault]:
    """What is wrong with a template in a workflow of these roles."""
    _, slots, fault = parse_template(text)
    if fault is not None:
        return [fault]
    known = [*COMMON, *(f"{role}.{field}" for role in roles for field in FIELDS)]
    faults: list[TemplateFault] = []
    for name, start in slots:
        if name in known or len(faults) == _MOST:
            continue
        near = near_names(name, known, limit=1)
        hint = f"did you mean {{{near[0]}}}?" if near else f"there are {', '.join(known[:16])}"
        faults.append(TemplateFault("unknown_slot", f"unknown value {{{name[:60]}}}; {hint}", start))
    return faults


def fill_template(text: str, values: Mapping[str, str], quoted: Quoting = FOREIGN) -> str:
    """The template with its values, those of others quoted.

    Args:
        quoted: how; the history and the tools are quoted where they are written.
    """
    filled: list[str] = []
    foreign: list[str] = []
    for part in parse_template(text)[0]:
        # Values with nothing between them are one text: two halves of a mark must not meet.
        if isinstance(part, Slot) and part.name not in _QUOTED:
            foreign.append(values[part.name])
            continue
        filled += [quoted.text("".join(foreign)), part if isinstance(part, str) else values[part.name]]
        foreign.clear()
    return break_control_tokens("".join([*filled, quoted.text("".join(foreign))]))
