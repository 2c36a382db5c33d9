"""The back end where `jsonschema_rs` has no wheel: `jsonschema`, bounded from outside.

`jsonschema` walks the schema in Python and has no limits of its own, so the work is counted before every evaluation.
Its own keywords for patterns use `re`, which may backtrack for hours; here patterns run on the `regex` library under a
time limit for the whole value. `multipleOf` and `uniqueItems` are replaced as well: floats would be divided inexactly,
and objects would be compared pair by pair. `dependencies` is checked in every dialect, as Rust's library does.
"""

import ast
import re
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any

import jsonschema
import referencing
import regex

from .admission import WorkCounter
from .document import LATEST, Document, sub_schemas
from .equality import first_equal
from .errors import InstanceRefused, SchemaRefused
from .failures import Error, value_at
from .formats import FORMATS
from .shapes import pattern_refused, shape_refused

MAX_WORK = 100_000
MAX_PATTERN_SECONDS = 0.25
"""For all patterns and one value."""
_MAX_ERRORS = 100
_NEVER: dict[str, Any] = {"not": {}}
_TAKE_FALSE = ("additionalProperties", "items", "additionalItems", "unevaluatedProperties", "unevaluatedItems")
"""Keywords that are reported themselves where they are false."""
_CLASSES: dict[int, Any] = {
    4: jsonschema.Draft4Validator,
    6: jsonschema.Draft6Validator,
    7: jsonschema.Draft7Validator,
    2019: jsonschema.Draft201909Validator,
    2020: jsonschema.Draft202012Validator,
}
# Of the thread, because the library's keyword functions get no state, and validators are shared between threads.
_clock = threading.local()
"""`_clock.deadline`: when the patterns of the running evaluation must be through."""
_Found = Iterator[jsonschema.ValidationError]


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> Any:
    return regex.compile(pattern)


def _matches(pattern: str, text: str) -> bool:
    # CPU time of this thread: a busy machine must not make a cheap pattern look costly.
    left = _clock.deadline - time.thread_time()
    try:
        if left > 0:
            return _compiled(pattern).search(text, timeout=left) is not None
    except TimeoutError:
        pass
    hint = "text that its patterns take too long to match; send shorter text"
    raise InstanceRefused("too_costly", (), hint)


class _NamesRefused(jsonschema.ValidationError):
    """An error about some names of properties."""

    def __init__(self, message: str, names: tuple[str, ...] = (), **options: Any) -> None:
        super().__init__(message, **options)
        self.names = names


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> _Found:
    if type(instance) is str and not _matches(pattern, instance):
        yield jsonschema.ValidationError("pattern")


def _pattern_properties(validator: Any, patterns: dict[str, Any], instance: Any, schema: Any) -> _Found:
    if type(instance) is dict:
        for pattern, member in patterns.items():
            for name, value in instance.items():
                if _matches(pattern, name):
                    yield from validator.descend(value, member, path=name, schema_path=pattern)


def _additional_properties(validator: Any, member: Any, instance: Any, schema: Any) -> _Found:
    if type(instance) is not dict:
        return
    patterns, named = schema.get("patternProperties", ()), schema.get("properties", ())
    others = [name for name in instance if name not in named and not any(_matches(each, name) for each in patterns)]
    if member is False and others:
        yield _NamesRefused("additionalProperties", tuple(others))
    elif member is not False:
        for name in others:
            yield from validator.descend(instance[name], member, path=name)


def _property_names(validator: Any, member: Any, instance: Any, schema: Any) -> _Found:
    for name in instance if type(instance) is dict else ():
        # The first error is enough: one wrong name gets one line.
        inner = next(iter(validator.descend(name, member)), None)
        if inner is not None:
            yield _NamesRefused("propertyNames", (name,), context=(inner,))


def _multiple_of(validator: Any, factor: Any, instance: Any, schema: Any) -> _Found:
    # Through their digits: as floats, 0.3 is not three times 0.1.
    if type(instance) in (int, float) and (Fraction(str(instance)) / Fraction(str(factor))).denominator != 1:
        yield jsonschema.ValidationError("multipleOf")


def _unique_items(validator: Any, wanted: bool, instance: Any, schema: Any) -> _Found:
    if wanted and type(instance) is list and first_equal(instance) is not None:
        yield jsonschema.ValidationError("uniqueItems")


def _dependencies(validator: Any, dependencies: dict[str, Any], instance: Any, schema: Any) -> _Found:
    for name, needed in dependencies.items() if type(instance) is dict else ():
        if name in instance and type(needed) is list:
            if any(each not in instance for each in needed):
                yield jsonschema.ValidationError("dependencies")
        elif name in instance:
            yield from validator.descend(instance, needed, schema_path=name)


_KEYWORDS = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "propertyNames": _property_names,
    "multipleOf": _multiple_of,
    "uniqueItems": _unique_items,
    "dependencies": _dependencies,
}


@lru_cache
def _class_of(dialect: int) -> Any:
    known = _CLASSES[dialect].VALIDATORS
    ours = {word: check for word, check in _KEYWORDS.items() if word in known or word == "dependencies"}
    return jsonschema.validators.extend(_CLASSES[dialect], ours)  # type: ignore[no-untyped-call] # the stubs' gap


@lru_cache
def _metaschema(dialect: int) -> Any:
    original = _CLASSES[dialect]
    return original(original.META_SCHEMA)


@lru_cache
def _format_checker() -> jsonschema.FormatChecker:
    # Without `formats=()` it would check all that the library knows, and the back ends would differ.
    checker = jsonschema.FormatChecker(formats=())
    for name, check in FORMATS.items():
        checker.checks(name)(lambda value, check=check: type(value) is not str or check(value))
    return checker


def _listed(message: str) -> tuple[str, ...]:
    """The names in "... ('a', 'b' were unexpected)"."""
    listed = message[message.index(" (") + 2 :]
    for ending in (" was ", " were "):
        if ending in listed:
            return tuple(ast.literal_eval(f"({listed[: listed.rindex(ending)]},)"))
    return ()


class PythonBackend:
    """One admitted schema, evaluated by `jsonschema`."""

    name = "python"

    def __init__(self, document: Document) -> None:
        """Check the schema; raises `SchemaRefused` for a keyword of the wrong shape and for a bad pattern."""
        self._document = document
        self._work = WorkCounter(document)
        for path, part in [((), document.root), *document.strays]:
            error = next(_metaschema(document.dialect).iter_errors(part), None)
            if error is not None:
                where = (*path, *error.absolute_path)
                # The alternatives of a metaschema are long, and tell a provider little.
                operand = None if error.validator in ("anyOf", "oneOf") else error.validator_value
                raise shape_refused(document, where, error.validator, operand)
        self._check_patterns()
        self._spell_out_false()
        document.write_patterns({given: pattern.python for given, pattern in document.patterns.items()})
        # With an empty registry: the default one fetches references from the network.
        self._validator = _class_of(document.dialect)(
            document.root, registry=referencing.Registry(), format_checker=_format_checker()
        )

    def _check_patterns(self) -> None:
        document = self._document
        for given, pattern in document.patterns.items():
            try:
                _compiled(pattern.python)
            except regex.error:
                raise pattern_refused(document.places[given], given) from None
        if "unevaluatedProperties" not in document.words:
            return
        # `jsonschema` itself finds the names for `unevaluatedProperties`, with `re`: nothing may repeat there
        for given in {name for part in document.sub_schemas for name in part.get("patternProperties", ())}:
            try:
                re.compile(document.patterns[given].python)
                safe = set("*+{").isdisjoint(given)
            except re.error:
                safe = False
            if not safe:
                hint = (
                    "this pattern stands with `unevaluatedProperties`; install jsonschema-rs, or repeat nothing in it"
                )
                raise SchemaRefused("pattern_not_linear", document.places[given], hint)

    def _spell_out_false(self) -> None:
        """`jsonschema` reports the schema `false` without its place; a `not` is reported with it."""
        legacy = self._document.dialect < LATEST
        for schema in self._document.sub_schemas:
            for path, member in sub_schemas(schema, self._document.dialect):
                if member is False and len(path) == 2:
                    schema[str(path[0])][path[1]] = dict(_NEVER)
                elif member is False and (path[0] not in _TAKE_FALSE or (path[0] == "items" and legacy)):
                    schema[str(path[0])] = dict(_NEVER)

    def is_valid(self, instance: Any) -> bool:
        """Does the value match? Raises `InstanceRefused` where that costs too much."""
        return self._first(instance, 1) == []

    def errors(self, instance: Any) -> list[Error]:
        """What is wrong with a value that is not valid; the first hundred errors."""
        return [self._error(each, instance) for each in self._first(instance, _MAX_ERRORS)]

    def matches(self, pattern: str, text: str) -> bool:
        """Whether a text matches a pattern of the document."""
        _clock.deadline = time.thread_time() + MAX_PATTERN_SECONDS
        return _matches(pattern, text)

    def _first(self, instance: Any, count: int) -> list[jsonschema.ValidationError]:
        self._work.of(instance, MAX_WORK)
        _clock.deadline = time.thread_time() + MAX_PATTERN_SECONDS
        try:
            return list(islice(self._validator.iter_errors(instance), count))
        except RecursionError:
            raise InstanceRefused("too_deep", (), "nested too deeply for this schema; flatten the value") from None

    def _error(self, error: jsonschema.ValidationError, root: Any) -> Error:
        path, keyword = tuple(error.absolute_path), error.validator
        if keyword is None or error.schema == _NEVER:
            if path and type(path[-1]) is int and list(error.absolute_schema_path)[-2:] == ["items", "not"]:
                return Error(path[:-1], "items", {"items": False}, value_at(root, path[:-1]))
            return Error(path, "false", False, error.instance)
        names = error.names if isinstance(error, _NamesRefused) else ()
        alternatives: tuple[tuple[Error, ...], ...] = ()
        if keyword == "unevaluatedProperties":  # its message alone names them
            names = _listed(error.message)
        if keyword in ("anyOf", "oneOf", "propertyNames"):
            tried: dict[Any, list[Error]] = {}
            for each in error.context:
                tried.setdefault(each.schema_path[0] if keyword != "propertyNames" else 0, []).append(
                    self._error(each, root)
                )
            alternatives = tuple(map(tuple, tried.values()))
        return Error(path, str(keyword), error.schema, error.instance, names, alternatives)
