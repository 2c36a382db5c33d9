"""Function objects made short: as much of a description and a schema as a number of tokens allows.

Three forms, each shorter than the one before; what is left out, the executor's errors and `find_tools` say. Invariant:
a short schema is a JSON schema that admits whatever the whole one admits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_BYTES_PER_TOKEN = 3
_DEEPEST = 3
_REFERENCES = ("#/$defs/", "#/definitions/")


class _Form(NamedTuple):
    """How much is kept.

    Attributes:
        description: characters of the description.
        argument: characters of an argument's description.
        choices: values of a list of choices; a longer list is left out.
        depth: levels of nested objects.
    """

    description: int
    argument: int
    choices: int
    depth: int


_FORMS = (_Form(400, 120, 20, _DEEPEST), _Form(200, 0, 12, 2), _Form(90, 0, 0, 0))


def tokens_of(function: Mapping[str, Any]) -> int:
    """An estimate: one token per 3 bytes of JSON."""
    return -(-len(json.dumps(function, ensure_ascii=False).encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)


def shortened(function: Mapping[str, Any], tokens: int) -> Mapping[str, Any] | None:
    """The longest form of a function object that takes at most so many tokens; None if none does."""
    if tokens_of(function) <= tokens:
        return function
    inner = function["function"]
    for form in _FORMS:
        short = {
            **function,
            "function": {
                "name": inner["name"],
                "description": _clipped(inner.get("description") or "", form.description),
                "parameters": _parameters(inner.get("parameters") or {}, form),
            },
        }
        if tokens_of(short) <= tokens:
            return short
    return None


def _clipped(text: str, most: int) -> str:
    """The beginning of a text on one line, cut between words."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rsplit(' ', 1)[0]}…"


def _parameters(schema: Mapping[str, Any], form: _Form) -> dict[str, Any]:
    definitions = {
        prefix + name: part
        for prefix, key in zip(_REFERENCES, ("$defs", "definitions"), strict=True)
        if isinstance(schema.get(key), Mapping)
        for name, part in schema[key].items()
    }
    return {"type": "object", **_short(schema, form, definitions, form.depth + 1)}


def _short(schema: Any, form: _Form, definitions: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """What is kept of a schema: types, names, what is required, short lists of choices."""
    if not isinstance(schema, Mapping):
        return {}
    if isinstance(reference := schema.get("$ref"), str):
        return _short(definitions.get(reference), form, definitions, depth - 1) if depth > 0 else {}
    kept: dict[str, Any] = {}
    if isinstance(schema.get("type"), (str, list)):
        kept["type"] = schema["type"]
    choices = schema.get("enum")
    if isinstance(choices, list) and len(choices) <= form.choices:
        kept["enum"] = choices
    if form.argument and isinstance(text := schema.get("description"), str) and depth <= form.depth:
        kept["description"] = _clipped(text, form.argument)
    if depth > 0:
        kept.update(_nested(schema, form, definitions, depth))
    return kept


def _nested(schema: Mapping[str, Any], form: _Form, definitions: Mapping[str, Any], depth: int) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        kept["properties"] = {name: _short(part, form, definitions, depth - 1) for name, part in properties.items()}
        if isinstance(required := schema.get("required"), list) and required:
            kept["required"] = required
    if isinstance(items := schema.get("items"), Mapping):
        kept["items"] = _short(items, form, definitions, depth - 1)
    for key in ("anyOf", "oneOf"):
        if isinstance(branches := schema.get(key), Sequence) and not isinstance(branches, str):
            # `anyOf` for both: parts that were told apart by what is left out would both match.
            kept["anyOf"] = [_short(branch, form, definitions, depth - 1) for branch in branches]
    return kept
