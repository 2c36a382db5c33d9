"""Admission: the gate every schema passes at registration, before any validator sees it.

A schema comes from a plugin, an MCP server or a model, so it may be hostile: it may ask for the network,
recurse without consuming input, unfold to 2^24 branches or carry a million enum values. Admission refuses all
of that with a reason, a place and a direction, in bounded time and without recursion over untrusted depth,
and never asks the network for anything. Its verdict does not depend on which validator is installed.

*Expansion* counts the sub-schemas that can apply to one and the same value. A schema that *multiplies* is
recursive, or unfolds to more than `MAX_EXPANSION` sub-schemas over all depths: such a schema is fine, but
only an evaluator that remembers what it has already decided can promise a bounded time for it.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from ._faults import Path, SchemaRefused
from ._guard import MAX_DIGITS
from ._keywords import DIALECTS, LATEST, sub_schemas
from ._normal import NormalSchema, normalise, survey

MAX_SCHEMA_BYTES = 64 * 1024
MAX_SCHEMA_DEPTH = 32
MAX_SCHEMA_NODES = 4000
MAX_ENUM = 1000
MAX_EXPANSION = 10_000
MAX_CHAIN = 64

_IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")


@dataclass(frozen=True, slots=True)
class Admission:
    """An admitted schema: as given, in normal form, and whether it multiplies."""

    schema: dict[str, Any]
    normal: NormalSchema
    multiplies: bool


def admit(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a deep copy of a schema in plain JSON types; raise `SchemaRefused` if it is unfit."""
    return admission_of(schema).schema


def admission_of(schema: Mapping[str, Any]) -> Admission:
    """Admit a schema and keep what was learnt on the way; raises `SchemaRefused`."""
    if not isinstance(schema, Mapping):
        raise SchemaRefused("not_an_object", (), f"a schema of type {type(schema).__name__}; give a JSON object")
    plain, most = _plain_copy(schema)
    if most > MAX_SCHEMA_BYTES:  # it may be too large: measure
        size = len(json.dumps(plain, ensure_ascii=False).encode())
        if size > MAX_SCHEMA_BYTES:
            raise _too_large(size)
    normal = normalise(survey(plain, _dialect_of(plain)))
    _refuse_expansion(normal)
    return Admission(plain, normal, _multiplies(normal))


def _too_large(size: int) -> SchemaRefused:
    return SchemaRefused(
        "too_large",
        (),
        f"{size} bytes or more, the limit is {MAX_SCHEMA_BYTES}; shorten descriptions or split the tool",
    )


def _dialect_of(schema: dict[str, Any]) -> int:
    declared = schema.get("$schema")
    if declared is None and "$schema" not in schema:
        return LATEST
    known = str(declared).removesuffix("#").removeprefix("https://").removeprefix("http://")
    if type(declared) is not str or known not in DIALECTS:
        text = f"unknown dialect {str(declared)[:80]!r}; declare draft 4, 6, 7, 2019-09 or 2020-12, or leave it out"
        raise SchemaRefused("unknown_dialect", ("$schema",), text)
    return DIALECTS[known]


def _plain_copy(schema: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """A deep copy in dict, list, str, int, float, bool and None, within the size limits; iterative.

    Returns:
        The copy, and the most bytes that it can take as JSON: six for a character, and some around each value.
    """
    root: dict[str, Any] = {}
    pending: list[tuple[Any, dict[str, Any] | list[Any], Path]] = [(schema, root, ())]
    nodes = chars = 0
    while pending:
        source, copy, path = pending.pop()
        _refuse_container(source, path)
        for key, value in _entries(source, path):
            nodes += 1
            chars += len(key) if type(key) is str else 1
            made: Any
            if value is None or type(value) is bool:
                made = value
            elif isinstance(value, str):
                made = _plain_scalar(value, (*path, key))
                chars += len(made)
            elif isinstance(value, (dict, list, tuple, Mapping)):
                made = {} if isinstance(value, Mapping) else []
                pending.append((value, made, (*path, key)))
            else:
                made = _plain_scalar(value, (*path, key))
            if type(copy) is dict:
                copy[key] = made
            else:
                copy.append(made)  # type: ignore[union-attr]
            if nodes > MAX_SCHEMA_NODES:
                raise SchemaRefused(
                    "too_many_nodes",
                    path,
                    f"more than {MAX_SCHEMA_NODES} values; split the tool or drop detail",
                )
            if chars > MAX_SCHEMA_BYTES:
                raise _too_large(chars)
    return root, 6 * chars + 64 * nodes


def _refuse_container(source: Any, path: Path) -> None:
    if len(path) > MAX_SCHEMA_DEPTH:
        raise SchemaRefused("too_deep", path, f"nesting goes beyond {MAX_SCHEMA_DEPTH} levels; move parts into `$defs`")
    if path[-1:] == ("enum",) and path[-2:-1] != ("properties",) and len(source) > MAX_ENUM:
        raise SchemaRefused(
            "enum_too_long",
            path,
            f"{len(source)} values, the limit is {MAX_ENUM}; describe the form with `pattern` instead",
        )


def _entries(source: Any, path: Path) -> Iterator[tuple[Any, Any]]:
    if not isinstance(source, Mapping):
        yield from enumerate(source)
        return
    for key, value in source.items():
        if not isinstance(key, str):
            raise SchemaRefused("key_not_text", path, f"a key of type {type(key).__name__}; JSON keys are text")
        yield key if type(key) is str and key.isascii() else _plain_scalar(key, path), value


def _plain_scalar(value: Any, path: Path) -> Any:
    if value is None or type(value) is bool:
        return value
    if type(value) is str and value.isascii():
        return value
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise SchemaRefused(
                "lone_surrogate", path, "text with half a character; use complete Unicode characters"
            ) from None
        return str.__str__(value)  # the text itself, also of an enum member
    if isinstance(value, int):
        if abs(value) >= 10**MAX_DIGITS:
            raise SchemaRefused(
                "too_many_digits", path, f"an integer of more than {MAX_DIGITS} digits; use a smaller bound"
            )
        return int(value)
    if isinstance(value, float):
        if not isfinite(value):
            raise SchemaRefused("not_finite", path, f"the number {value}; JSON numbers are finite, leave the bound out")
        return float(value)
    raise SchemaRefused("not_json", path, f"a value of type {type(value).__name__}; use plain JSON values")


def _in_place(schema: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    for path, member in sub_schemas(schema, LATEST):
        if path[0] in _IN_PLACE:
            yield path, member


def _everywhere(schema: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    yield from sub_schemas(schema, LATEST)


class _Cycle(Exception):
    """A schema was met again while it was being unfolded."""


def _refuse_expansion(normal: NormalSchema) -> None:
    if "$ref" not in normal.words:  # a tree within the limits on nodes and depth cannot unfold to more than it is
        return
    sizes: dict[int, tuple[int, int]] = {}
    pending: list[Any] = [normal.root, *normal.defs.values()]
    while pending:
        part = pending.pop()
        if type(part) is not dict:
            continue
        pending += [member for _, member in sub_schemas(part, LATEST)]
        try:
            size, height = _unfolded(part, normal, _in_place, sizes)
        except _Cycle:
            text = "a `$ref` cycle that never reaches into the value; put `properties` or `items` in between"
            raise SchemaRefused("ref_cycle", (), text) from None
        if size > MAX_EXPANSION or height > MAX_CHAIN:
            text = f"unfolds to {min(size, 10**9)} sub-schemas for one value, {height} of them in a row"
            limits = f"the limits are {MAX_EXPANSION} and {MAX_CHAIN}; use fewer alternatives"
            raise SchemaRefused("expansion", (), f"{text}; {limits}")


def _multiplies(normal: NormalSchema) -> bool:
    if not normal.defs:
        return False
    try:
        return _unfolded(normal.root, normal, _everywhere, {})[0] > MAX_EXPANSION
    except _Cycle:
        return True


def _unfolded(
    start: dict[str, Any],
    normal: NormalSchema,
    edges: Callable[[dict[str, Any]], Iterator[tuple[Path, Any]]],
    known: dict[int, tuple[int, int]],
) -> tuple[int, int]:
    """How many schemas `start` unfolds to along `edges` and `$ref`, how many in a row; raises `_Cycle`."""
    open_parts: set[int] = set()
    stack: list[tuple[dict[str, Any], list[Any] | None]] = [(start, None)]
    while stack:
        part, members = stack.pop()
        if members is None:
            if id(part) in known:
                continue
            if id(part) in open_parts:
                raise _Cycle
            open_parts.add(id(part))
            members = [member for _, member in edges(part) if type(member) is dict]
            if "$ref" in part:
                target = normal.target(part["$ref"])
                members += [target] if type(target) is dict else []
            stack.append((part, members))
            stack.extend((member, None) for member in members)
        else:
            open_parts.discard(id(part))
            sizes = [known[id(member)] for member in members]
            known[id(part)] = (
                1 + sum(size for size, _ in sizes),
                1 + max((high for _, high in sizes), default=0),
            )
    return known[id(start)]
