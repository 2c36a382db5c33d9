"""Failures: what a library reports, brought into one form that does not depend on the library.

A library reports an *error*: where in the value, which keyword of which sub-schema, and for alternatives the errors of
each of them. `failures_of` makes failures of errors: one for each missing or unknown property, and for alternatives
those of the one that was evidently meant.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .errors import Path


class Error(NamedTuple):
    """What a library reports.

    Attributes:
        path: the place in the value.
        keyword: the keyword that does not hold, "false" for the schema `false`.
        schema: the sub-schema that has the keyword.
        instance: what stands at the place.
        names: the properties that are not allowed, where the keyword is about such.
        alternatives: for `anyOf` and `oneOf`, the errors of each alternative; for `propertyNames` those of the name.
    """

    path: Path
    keyword: str
    schema: Any
    instance: Any
    names: tuple[str, ...] = ()
    alternatives: tuple[tuple["Error", ...], ...] = ()


class KeywordFailure(NamedTuple):
    """A keyword that does not hold, ready for words: `detail` is what the wording needs in addition."""

    path: Path
    keyword: str
    schema: Any
    instance: Any
    detail: Any = None


def value_at(value: Any, path: Path) -> Any:
    """What stands at a path of a value."""
    for step in path:
        value = value[step]
    return value


def failures_of(errors: Iterable[Error]) -> Iterator[KeywordFailure]:
    """The failures that some errors stand for."""
    for error in errors:
        path, keyword, schema, instance, names, alternatives = error
        details: Iterable[Any] = (None,)
        match keyword:
            case "anyOf" | "oneOf":
                if meant := _meant(error):
                    yield from failures_of(meant)
                    continue
                details = (any(not each for each in alternatives) or (keyword == "oneOf" and not alternatives),)
            case "required" if type(schema["required"]) is list:
                details = [name for name in schema["required"] if name not in instance]
            case "dependentRequired" | "dependencies":
                keyword = "dependentRequired"
                needs = {**schema.get("dependencies", {}), **schema.get("dependentRequired", {})}
                needs = {name: needed for name, needed in needs.items() if name in instance and type(needed) is list}
                details = [(each, name) for name, needed in needs.items() for each in needed if each not in instance]
            case "additionalProperties" | "unevaluatedProperties":
                details = names
            case "propertyNames":
                inner = [found for tried in alternatives for found in failures_of(tried)]
                details = [(name, inner[0] if inner else None) for name in names]
            case "items" | "additionalItems":
                listed = schema.get("prefixItems", schema.get("items"))
                keyword, details = "items", (len(listed) if type(listed) is list else 0,)
            case "minimum" | "maximum" if schema.get("exclusive" + keyword.capitalize()) is True:
                keyword = "exclusive" + keyword.capitalize()
        yield from (KeywordFailure(path, keyword, schema, instance, detail) for detail in details)


def _meant(error: Error) -> tuple[Error, ...]:
    """The errors of the one alternative that was meant; () if that is not clear."""
    tried = error.alternatives
    if any(not each for each in tried):  # several match: none of them is wrong
        return ()
    meant = [each for each in tried if not any(_excludes(inner, error.path) for inner in each)]
    return meant[0] if len(meant) == 1 else ()


def _excludes(error: Error, path: Path) -> bool:
    """Does an error show that its alternative was not meant: another type, or another tag?"""
    distance = len(error.path) - len(path)
    if error.keyword in ("type", "false"):
        return distance == 0
    tags = [error.schema["const"]] if error.keyword == "const" else error.schema.get("enum", ())
    if error.keyword not in ("const", "enum"):
        return False
    # One level down, a single allowed value is a tag such as `kind`; several are an ordinary property.
    return (distance == 0 and bool(tags)) or (distance == 1 and len(tags) == 1)
