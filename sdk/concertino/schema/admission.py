"""Admission: the gate every schema passes at registration, before any library sees it.

A schema comes from a plugin, an MCP server or a model, so it may be hostile: it may ask for the network, recurse
without consuming input, unfold to 2^24 branches or carry a million enum values. Admission refuses all of that with a
reason, a place and a direction, in bounded time, without recursion over untrusted depth and without the network. The
shape of the keywords is left to the library that compiles the schema (see `rust` and `python`).

Two numbers bound what a library may do. *Expansion*, known at admission, counts the sub-schemas that can apply to one
and the same value. *Work*, known with the value, counts how often a sub-schema meets a part of it: a recursive schema
may have exponentially many ways to reach one place, and a library follows them all.
"""

import json
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, NamedTuple

from .document import IN_PLACE, Document, sub_schemas
from .errors import InstanceRefused, Path, SchemaRefused
from .guard import MAX_DIGITS

MAX_SCHEMA_BYTES = 64 * 1024
MAX_SCHEMA_DEPTH = 32
MAX_SCHEMA_NODES = 4000
MAX_ENUM = 1000
MAX_EXPANSION = 10_000
# Sub-schemas in a row for one value: the libraries recurse once for each.
MAX_CHAIN = 64
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")


def admitted(schema: Mapping[str, Any]) -> tuple[dict[str, Any], Document]:
    """A plain copy of the schema, and its document for a back end; raises `SchemaRefused`."""
    if not isinstance(schema, Mapping):
        raise SchemaRefused("not_an_object", (), f"a schema of type {type(schema).__name__}; give a JSON object")
    plain, most = _plain_copy(schema)
    if most > MAX_SCHEMA_BYTES:  # it may be too large: measure
        size = len(json.dumps(plain, ensure_ascii=False).encode())
        if size > MAX_SCHEMA_BYTES:
            raise _too_large(size)
    # The document rewrites patterns and drops keywords; `plain` stays as it was given, to be shown to models.
    document = Document(_twin(plain))
    _refuse_expansion(document)
    return plain, document


def _twin(plain: Any) -> Any:
    """A deep copy of plain data, which is at most as deep as admission allows."""
    if type(plain) is dict:
        return {key: _twin(value) for key, value in plain.items()}
    return [_twin(value) for value in plain] if type(plain) is list else plain


def _too_large(size: int) -> SchemaRefused:
    return SchemaRefused(
        "too_large",
        (),
        f"{size} bytes or more, the limit is {MAX_SCHEMA_BYTES}; shorten descriptions or split the tool",
    )


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
            if isinstance(copy, dict):
                copy[key] = made
            else:
                copy.append(made)
            if nodes > MAX_SCHEMA_NODES:
                raise SchemaRefused(
                    "too_many_nodes",
                    path,
                    f"more than {MAX_SCHEMA_NODES} values; split the tool or drop detail",
                )
            if chars > MAX_SCHEMA_BYTES:
                raise _too_large(chars)
    # 6: JSON may write any character as `\u1234`.
    return root, 6 * chars + 64 * nodes


def _refuse_container(source: Any, path: Path) -> None:
    if len(path) > MAX_SCHEMA_DEPTH:
        raise SchemaRefused("too_deep", path, f"nesting goes beyond {MAX_SCHEMA_DEPTH} levels; move parts into `$defs`")
    # A property may be called `enum`; then what stands there is a schema.
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
        # Exact types and ASCII take the short way: `isascii` is a flag of the string, and no surrogate is ASCII.
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
        # Compared, not printed: turning a huge integer into digits takes quadratic time.
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


def _in_place(document: Document, schema: dict[str, Any]) -> Iterator[Any]:
    """The sub-schemas that apply to the same value: combinators and references."""
    yield from document.targets(schema)
    for path, member in sub_schemas(schema, document.dialect):
        if path[0] in IN_PLACE:
            yield member


class _Cycle(Exception):
    """A schema was met again while it was being unfolded."""


def _refuse_expansion(document: Document) -> None:
    if not document.has_references:  # a tree within the limits on nodes and depth cannot unfold to more than it is
        return
    sizes: dict[int, tuple[int, int]] = {}
    for part in document.sub_schemas:
        try:
            size, height = _unfolded(document, part, sizes)
        except _Cycle:
            text = "a `$ref` cycle that never reaches into the value; put `properties` or `items` in between"
            raise SchemaRefused("ref_cycle", (), text) from None
        if size > MAX_EXPANSION or height > MAX_CHAIN:
            text = f"unfolds to {min(size, 10**9)} sub-schemas for one value, {height} of them in a row"
            limits = f"the limits are {MAX_EXPANSION} and {MAX_CHAIN}; use fewer alternatives"
            raise SchemaRefused("expansion", (), f"{text}; {limits}")


def _unfolded(document: Document, start: dict[str, Any], sizes: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """How many schemas `start` unfolds to for one value, and how many in a row; raises `_Cycle`."""
    # By identity: dicts cannot be hashed, and the document keeps them alive, so no id is used twice.
    open_parts: set[int] = set()
    stack: list[tuple[dict[str, Any], list[Any] | None]] = [(start, None)]
    while stack:
        part, members = stack.pop()
        if members is not None:
            open_parts.discard(id(part))
            inner = [sizes[id(member)] for member in members]
            sizes[id(part)] = (1 + sum(size for size, _ in inner), 1 + max((high for _, high in inner), default=0))
        elif id(part) in open_parts:
            raise _Cycle
        elif id(part) not in sizes:
            open_parts.add(id(part))
            members = [member for member in _in_place(document, part) if type(member) is dict]
            stack.append((part, members))
            stack.extend((member, None) for member in members)
    return sizes[id(start)]


def unfolds_far(document: Document) -> bool:
    """Whether there are more than `MAX_EXPANSION` ways through the schema that meet no sub-schema twice."""
    if not document.has_references:
        return False
    ways = 0
    for start in document.starts:
        open_parts = {id(start)}
        stack = [(start, _everywhere(document, start))]
        while stack:
            part, members = stack[-1]
            member = next(members, None)
            if member is None:
                stack.pop()
                open_parts.discard(id(part))
            elif id(member) not in open_parts:
                ways += 1
                if ways > MAX_EXPANSION:
                    return True
                open_parts.add(id(member))
                stack.append((member, _everywhere(document, member)))
    return False


def _everywhere(document: Document, schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All sub-schemas that a value or a part of it meets after this one."""
    for member in document.targets(schema):
        if type(member) is dict:
            yield member
    for path, member in sub_schemas(schema, document.dialect):
        if type(member) is dict and path[0] not in ("$defs", "definitions"):
            yield member


class _Applied(NamedTuple):
    """The schemas that one place of a value meets, each with how often, and how often in all."""

    schemas: list[tuple[dict[str, Any], int]]
    times: int


class WorkCounter:
    """Counts how often a library will apply a sub-schema of one document to a part of a value."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._in_place: dict[int, list[tuple[dict[str, Any], int]]] = {}

    def of(self, value: Any, limit: int) -> int:
        """The work for a value; raises `InstanceRefused` as soon as it exceeds the limit."""
        start = self._together([(self._document.root, 1)])
        work = start.times
        pending: list[tuple[Any, _Applied]] = [(value, start)]
        # Places that meet the same schemas share one entry, so a value of a million items is counted quickly.
        known: dict[tuple[int, str | int], _Applied] = {}
        while pending:
            container, applied = pending.pop()
            kind = type(container)
            for key in container if kind is dict else range(len(container)) if kind is list else ():
                # all items behind the listed ones meet the same schemas
                place = (id(applied), key if kind is dict else min(key, MAX_SCHEMA_NODES))
                inner = known.get(place)
                if inner is None:
                    found = [(each, times) for schema, times in applied.schemas for each in _members(schema, place[1])]
                    inner = known[place] = self._together(found)
                work += inner.times
                if work > limit:
                    text = f"more than {limit} steps to check it against this schema; send less at once"
                    raise InstanceRefused("too_costly", (), text)
                if inner.times and type(container[key]) in (dict, list):
                    pending.append((container[key], inner))
        return work

    def _together(self, schemas: list[tuple[dict[str, Any], int]]) -> _Applied:
        """Some schemas and all that applies in place with them, each once with how often it is applied."""
        found: dict[int, tuple[dict[str, Any], int]] = {}
        for schema, times in schemas:
            for each, weight in self._applying(schema):
                _, before = found.get(id(each), (each, 0))
                found[id(each)] = (each, before + times * weight)
        return _Applied(list(found.values()), sum(times for _, times in found.values()))

    def _applying(self, schema: dict[str, Any]) -> list[tuple[dict[str, Any], int]]:
        """A schema and all that applies in place with it, each with how often.

        Where `unevaluatedProperties` or `unevaluatedItems` stands, the libraries ask everything below it once more to
        learn what it evaluated.
        """
        found = self._in_place.get(id(schema))
        if found is None:
            again = 2 if any(word in schema for word in _UNEVALUATED) else 1
            found = [(schema, 1)]
            for member in _in_place(self._document, schema):
                if type(member) is dict:
                    found += [(each, again * times) for each, times in self._applying(member)]
            self._in_place[id(schema)] = found
        return found


def _members(schema: dict[str, Any], key: str | int) -> Iterator[dict[str, Any]]:
    """The sub-schemas that may apply to one member of an array or object."""
    found: list[Any] = []
    if type(key) is int:
        for word in ("prefixItems", "items"):
            listed = schema.get(word)
            found += listed[key : key + 1] if type(listed) is list else [listed]
        found += [schema.get(word) for word in ("additionalItems", "contains", "unevaluatedItems")]
    else:
        found += [schema.get("propertyNames"), *schema.get("patternProperties", {}).values()]
        if key in schema.get("properties", ()):
            found.append(schema["properties"][key])
        else:
            found += [schema.get("additionalProperties"), schema.get("unevaluatedProperties")]
    yield from (member for member in found if type(member) is dict)
