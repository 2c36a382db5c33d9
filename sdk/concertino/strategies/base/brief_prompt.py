"""What the brief prompts of all strategies have in common: the setting, and the list of members in short lines.

    search(queries[], top_k?): Searches the web.
    solve(subtask, model=small|large?): Solves a subtask. $0.1/$0.4 per M

A model that was trained under a strategy knows its rules and its format; what it must read is who is there. `?` marks
what may be left out, `[]` a list, `{}` an object. Invariant: a member takes one line, whatever its description says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from concertino.core.errors import UsageError
from concertino.text.foreign_text import FOREIGN, Quoting

from .members import Offer, types_of

PromptForm = Literal["full", "brief"]
"""`full` explains rules and format; `brief` is for a model that was trained on them."""

_MARKS = {frozenset(["array"]): "[]", frozenset(["object"]): "{}"}
_LONGEST = 120
"""Characters of the choices of one argument; further ones are left out."""
# A sentence ends where no small letter follows; `e.g.` and `i.e.` never end one, and 。 needs no blank behind it.
_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)[.!?](?=\s+[^\sa-z])|。")
_PRICE = re.compile(r"^Price: (\$\S+) / (\$\S+) per million", re.MULTILINE)


def check_prompt(strategy: str, given: str) -> None:
    """Refuse an unknown form of the prompt.

    Raises:
        UsageError: it is neither `full` nor `brief`.
    """
    if given not in ("full", "brief"):
        raise UsageError(f"{strategy}(prompt={given!r}): expected 'full' or 'brief'")


def listed_choices(schema: Any) -> Sequence[str]:
    """The values that a schema, or that of its items, lists."""
    if not isinstance(schema, Mapping):
        return ()
    # A `const` is a choice of one: pydantic writes it for a `Literal` with a single value.
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list):
        return [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]
    return listed_choices(schema.get("items"))


def member_list(
    offers: Iterable[Offer],
    names: Mapping[str, str] | None = None,
    arguments: Callable[[Offer], Mapping[str, str]] | None = None,
    choices: Callable[[Any], Sequence[str]] = listed_choices,
    quoting: Quoting = FOREIGN,
) -> str:
    """The members, one per line.

    Args:
        names: what to call a member, where that is not its visible name.
        arguments: for a member, those of its arguments that take a text under another name, with that name.
        choices: the values of an argument by its schema.
        quoting: of the prompt; a tag that calls a member is none of a card's own.
    """
    called = names or {}
    return "\n".join(
        called.get(offer.name, offer.name) + quoting.text(_line(offer, arguments(offer) if arguments else {}, choices))
        for offer in offers
    )


def _line(offer: Offer, called: Mapping[str, str], choices: Callable[[Any], Sequence[str]]) -> str:
    arguments = ", ".join(
        (
            called[key]
            if key in called
            else " ".join(key.split()) + _MARKS.get(types_of(schema), "") + _shown(choices(schema))
        )
        + ("" if key in offer.required else "?")
        for key, schema in offer.properties.items()
    )
    price = _PRICE.search(offer.description)
    told = [_first_sentence(offer.description), f"{price[1]}/{price[2]} per M" if price else ""]
    about = " ".join(filter(None, told))
    return f"({arguments})" + (f": {about}" if about else "")


def _shown(values: Sequence[str]) -> str:
    """`=a|b|c`, as far as it is short."""
    lines = [" ".join(value.split()) for value in values]
    kept, used = 0, 0
    for line in lines:
        # 1 for the `|`.
        used += len(line) + 1
        if used > _LONGEST:
            break
        kept += 1
    if not kept:
        return ""
    return "=" + "|".join([*lines[:kept], *(["…"] if kept < len(lines) else [])])


def _first_sentence(description: str) -> str:
    """The first sentence, on one line; of a price alone, nothing."""
    text = " ".join(_PRICE.split(description, 1)[0].split())
    end = _END.search(text)
    return text[: end.end()] if end else text
