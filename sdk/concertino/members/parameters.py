"""From the JSON schema of arguments to the parameters of a Python function: the way back of `signature`.

It serves functions that stand for members, so that an editor, `help()` and other frameworks see what a call takes. What
Python cannot say (a pattern, a range, a name with a dash) is left to validation, which every call passes anyway.

Invariant: a call that binds to the parameters gives the arguments that were passed, and no others.
"""

from __future__ import annotations

import functools
import inspect
import keyword
import operator
import typing
from collections.abc import Mapping
from types import GenericAlias
from typing import Any, Literal, NamedTuple

_KINDS: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": type(None),
    "array": list[Any],
    "object": dict[str, Any],
}
_DEPTH = 8
"""Levels of a schema that annotations show."""
MORE = "more"
"""Name of the parameter that takes arguments whose names are none in Python."""


class Parameters(NamedTuple):
    """What a function that takes the arguments of a schema shows.

    Attributes:
        signature: required parameters first, then those with a default.
        optional: parameters that are left out where they are None, since their schema does not take null.
        documented: lines of a docstring about them, empty if nothing is said.
    """

    signature: inspect.Signature
    optional: frozenset[str]
    documented: str

    def arguments(self, positional: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call.

        Raises:
            TypeError: more positional ones than there are parameters, or one given twice, as for any function.
        """
        names = [name for name, each in self.signature.parameters.items() if each.kind is not each.VAR_KEYWORD]
        if len(positional) > len(names):
            raise TypeError(f"takes {len(names)} positional arguments but {len(positional)} were given")
        by_place = dict(zip(names, positional, strict=False))
        if twice := by_place.keys() & named.keys():
            raise TypeError(f"got multiple values for argument {sorted(twice)[0]!r}")
        # Unknown names stay, because validation says what was meant.
        given = {**by_place, **named}
        return {name: value for name, value in given.items() if value is not None or name not in self.optional}


def read_parameters(schema: Mapping[str, Any], result: Mapping[str, Any] | None) -> Parameters:
    """The parameters of a schema of arguments.

    Args:
        result: the schema of what is returned, None if it is not known.
    """
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = set(schema.get("required", ()))
    fitting = {name: each for name, each in properties.items() if name.isidentifier() and not keyword.iskeyword(name)}
    first: list[inspect.Parameter] = []
    last: list[inspect.Parameter] = []
    optional: set[str] = set()
    for name, each in fitting.items():
        kind = annotation_of(each, schema)
        if name in required:
            first.append(inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind))
            continue
        if not (isinstance(each, Mapping) and "default" in each) and not _takes_none(kind):
            optional.add(name)
            kind = kind | None
        default = each.get("default") if isinstance(each, Mapping) else None
        last.append(inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind))
    parameters = [*first, *last]
    if len(fitting) < len(properties):
        parameters.append(inspect.Parameter(MORE, inspect.Parameter.VAR_KEYWORD, annotation=Any))
    returns = Any if result is None else annotation_of(result, result)
    signature = inspect.Signature(parameters, return_annotation=returns)
    return Parameters(signature, frozenset(optional), _documented(properties))


def annotation_of(schema: Any, root: Mapping[str, Any], depth: int = _DEPTH) -> Any:
    """The Python type that comes nearest to a schema; Any where none does.

    Args:
        root: the schema that local references point into.
    """
    if not isinstance(schema, Mapping) or depth == 0:
        return Any
    if "$ref" in schema:
        return annotation_of(_referred(schema["$ref"], root), root, depth - 1)
    if "const" in schema:
        return _literal([schema["const"]])
    if "enum" in schema:
        return _literal(schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return _union([annotation_of(each, root, depth - 1) for each in schema[key]])
    kind = schema.get("type")
    if isinstance(kind, list):
        return _union([annotation_of({**schema, "type": each}, root, depth - 1) for each in kind])
    if kind == "array" and "items" in schema:
        return GenericAlias(list, (annotation_of(schema["items"], root, depth - 1),))
    return _KINDS.get(kind, Any) if isinstance(kind, str) else Any


def _referred(reference: Any, root: Mapping[str, Any]) -> Any:
    """What a local reference stands for; None for any other."""
    found: Any = root
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    for part in reference[2:].split("/"):
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found


def _literal(values: Any) -> Any:
    plain = isinstance(values, list) and values and all(isinstance(each, (str, int, type(None))) for each in values)
    return Literal[tuple(values)] if plain else Any


def _union(kinds: list[Any]) -> Any:
    return Any if Any in kinds or not kinds else functools.reduce(operator.or_, kinds)


def _takes_none(kind: Any) -> bool:
    return kind is Any or kind is type(None) or type(None) in typing.get_args(kind) or None in typing.get_args(kind)


def _documented(properties: Mapping[str, Any]) -> str:
    texts = {name: each.get("description") for name, each in properties.items() if isinstance(each, Mapping)}
    lines = [f"    {name}: {' '.join(text.split())}" for name, text in texts.items() if isinstance(text, str) and text]
    return "\n".join(["Args:", *lines]) if lines else ""
