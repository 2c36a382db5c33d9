"""The page of the reference about settings files of trainings, made from the sections."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from concertino_train.config import TrainConfig
from concertino_train.config.config import SCALE
from concertino_train.config.reading import SOURCES, WHOLE
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

_HEAD = """\
# Settings of trainings

The keys of a file for `concertino train --config FILE`; `concertino train COMMAND --dry-run` prints them all with the
values of one training. This page is generated from the sections of `concertino-train`.

`base` names a recipe (`gap`, `gap/toy`) or a file in the same folder that a file extends: tables are merged key by key,
lists are replaced. `KEY=VALUE` on the command line replaces a value, or a whole table. Replaced instead of merged are
{whole}, if they have another `name` or `preset`, and `pool`, if it has another source ({sources}). An unknown key is an
error that names similar ones.
"""
_TAIL = """\
## What may change when a training resumes

`--resume` refuses other settings, because they make it another training, except for these: {scale}.
"""
_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
_SEE = re.compile(r"[Ss]ee `(concertino[\w.]*\.[A-Z]\w*)`")
_TYPES = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "`true`, `false`",
    "null": "`null`",
}


def reference_page() -> str:
    """Every section with its keys, their types, defaults and meanings."""
    whole = ", ".join(f"`{'.'.join(keys)}`" for keys in WHOLE)
    sources = ", ".join(f"`{name}`" for name in SOURCES)
    scale = ", ".join(f"`{word}`" for word in SCALE)
    parts = [_filled(_HEAD.format(whole=whole, sources=sources)), *_sections(TrainConfig, "")]
    return "\n".join([*parts, _filled(_TAIL.format(scale=scale))])


def _filled(text: str) -> str:
    """Paragraphs of at most 120 columns; headings as they are."""
    parts = [
        part if part.startswith("#") else textwrap.fill(" ".join(part.split()), 120) for part in text.split("\n\n")
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _sections(model: type[BaseModel], path: str) -> Iterator[str]:
    """A section and those below it."""
    yield _section(model, path)
    for name, found in model.model_fields.items():
        inner, several = _model_in(found.annotation)
        if inner is not None and inner.model_fields:
            yield from _sections(inner, f"{path}.{name}{several}".lstrip("."))


def _section(model: type[BaseModel], path: str) -> str:
    told, meanings = _doc(model)
    properties = model.model_json_schema(by_alias=False)["properties"]
    empty = {name for name, schema in properties.items() if _takes_null(schema)}
    meanings |= {name: _with_null(meaning) for name, meaning in meanings.items() if name in empty}
    told = _with_null(told) if empty else told
    rows = [
        f"| `{name}` | {_type(properties[name])} | {_default(found.default, found.default_factory)} "
        f"| {meanings.get(name, '')} |"
        for name, found in model.model_fields.items()
    ]
    head = f"## `{path}`\n\n{textwrap.fill(told, 120)}\n" if path else "## The whole file\n"
    return "\n".join([head, "| Key | Value | Default | Meaning |", "|---|---|---|---|", *rows, ""])


def _doc(model: type[BaseModel]) -> tuple[str, dict[str, str]]:
    """What a class says of itself, and of each of its keys; keys that it leaves to another class are told as there."""
    told, meanings = _parsed(model)
    for base in model.__mro__[1:]:
        if issubclass(base, BaseModel) and base is not BaseModel:
            meanings = _parsed(base)[1] | meanings
    if found := _SEE.search(told):
        module, _, name = found[1].rpartition(".")
        meanings = _parsed(getattr(importlib.import_module(module), name))[1] | meanings
    return told, {name: _cell(meaning) for name, meaning in meanings.items()}


def _parsed(kind: type) -> tuple[str, dict[str, str]]:
    text = inspect.getdoc(kind) or ""
    told, _, listed = text.replace("Args:\n", "Attributes:\n").partition("Attributes:\n")
    meanings: dict[str, str] = {}
    names: list[str] = []
    for line in listed.splitlines():
        if found := re.match(r"    (\w+(?:, \w+)*): (.*)", line):
            names = found[1].split(", ")
            meanings |= dict.fromkeys(names, found[2])
        elif line.strip() and not line.startswith(" "):
            break
        elif names and line.strip():
            meanings |= {name: f"{meanings[name]} {line.strip()}" for name in names}
    return " ".join(told.split()), meanings


def _type(schema: Mapping[str, Any]) -> str:
    """A value in words."""
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{_yaml(value)}`" for value in schema.get("enum", [schema.get("const")]))
    if "$ref" in schema or "allOf" in schema or schema.get("type") == "object":
        return "table"
    if schema.get("type") == "array":
        items = schema.get("items")
        return f"list of {_type(items)}" if items else "list"
    return " ".join(filter(None, [_TYPES.get(str(schema.get("type")), "anything"), _bounds(schema)]))


def _bounds(schema: Mapping[str, Any]) -> str:
    if "minimum" in schema and "maximum" in schema:
        return f"from {schema['minimum']:g} to {schema['maximum']:g}"
    return " and ".join(f"{sign} {schema[name]:g}" for name, sign in _BOUNDS.items() if name in schema)


def _default(value: Any, factory: Any) -> str:
    if factory is not None:
        value = factory()
    if value is PydanticUndefined:
        return "needed"
    if isinstance(value, BaseModel):
        return "see below"
    if value == "":
        return ""
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _model_in(annotation: Any) -> tuple[type[BaseModel] | None, str]:
    """The section behind a key, and `[]` where it is a list of such."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ""
    for each in get_args(annotation):
        found, several = _model_in(each)
        if found is not None:
            return found, "[]" if getattr(annotation, "__origin__", None) is list else several
    return None, ""


def _yaml(value: Any) -> str:
    """A value as a file writes it; texts without quotes."""
    return value if isinstance(value, str) else json.dumps(value)


def _takes_null(schema: Mapping[str, Any]) -> bool:
    return {"type": "null"} in schema.get("anyOf", [])


def _with_null(text: str) -> str:
    """What code calls None, as a file writes it."""
    return re.sub(r"(?<![`\w])None(?![`\w])", "`null`", text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
