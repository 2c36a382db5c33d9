"""The back end that decides wherever it is installed: `jsonschema_rs`.

Its patterns run on an engine that is linear in the length of the text, and it never touches the network. For a verdict
it remembers what it decided at a reference that leads back to a sub-schema, so recursion costs little; between such
references it follows every way through the schema, so where there are too many of them the work for a value is
counted first. For errors it remembers nothing and lists all of them, some 10 microseconds each: a value with much work
gets the first error only, or one line about the whole.
"""

from collections.abc import Callable
from typing import Any

import jsonschema_rs

from .admission import WorkCounter, unfolds_far
from .document import Document
from .errors import InstanceRefused, Path, SchemaRefused
from .failures import Error, value_at
from .formats import FORMATS
from .shapes import pattern_refused, shape_refused

MAX_WORK = 1_000_000
# At some 10 microseconds for each error, half a second.
MAX_LISTED_WORK = 50_000
MAX_ERRORS = 100
_PATTERN_BYTES = 10 * 1024 * 1024
_PATTERNS = jsonschema_rs.RegexOptions(size_limit=_PATTERN_BYTES)
_Kind = jsonschema_rs.ValidationErrorKind
_OLD_FORMATS = {"uuid": FORMATS["uuid"]}
"""What the library does not check in draft 7 and before."""
_CLASSES = {
    4: jsonschema_rs.Draft4Validator,
    6: jsonschema_rs.Draft6Validator,
    7: jsonschema_rs.Draft7Validator,
    2019: jsonschema_rs.Draft201909Validator,
    2020: jsonschema_rs.Draft202012Validator,
}


class RustBackend:
    """One admitted schema, compiled by `jsonschema_rs`."""

    name = "rust"

    def __init__(self, document: Document) -> None:
        """Compile; raises `SchemaRefused` for a keyword of the wrong shape and for a pattern that is not one."""
        self._document = document
        self._work = WorkCounter(document) if unfolds_far(document) else None
        document.write_patterns({given: pattern.rust for given, pattern in document.patterns.items()})
        compiler = _CLASSES[document.dialect]
        try:
            for path, stray in document.strays:
                _check_shape(document, path, stray)
            self._compiled = compiler(
                document.root,
                offline=True,
                validate_formats=True,
                formats=_OLD_FORMATS if document.dialect <= 7 else None,
                pattern_options=_PATTERNS,
                # Else every error copies the whole value into a message that is never shown.
                mask="it",
            )
        except jsonschema_rs.ValidationError as error:
            raise _refusal(document, error, ()) from None
        except Exception as error:
            raise SchemaRefused("keyword_shape", (), f"it cannot be compiled: {str(error)[:200]}") from None
        self._engines: dict[str, Callable[[Any], bool]] = {}
        self.is_valid: Callable[[Any], bool] = self._compiled.is_valid if self._work is None else self._counted

    def matches(self, pattern: str, text: str) -> bool:
        """Whether a text matches a pattern of the document."""
        engine = self._engines.get(pattern)
        if engine is None:
            compiled = jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=_PATTERNS)
            engine = self._engines[pattern] = compiled.is_valid
        return engine(text)

    def _counted(self, instance: Any) -> bool:
        assert self._work is not None
        self._work.of(instance, MAX_WORK)
        return self._compiled.is_valid(instance)

    def errors(self, instance: Any) -> list[Error]:
        """What is wrong with a value that is not valid; for one with very much work the first error, or only that."""
        if _has_empty_key(instance):  # the library leaves empty keys out of its paths, which then lead elsewhere
            return [Error((), "schema", self._document.root, instance)]
        if self._costs_less(MAX_LISTED_WORK, instance):
            found = list(self._compiled.iter_errors(instance))
        elif self._document.words.isdisjoint(("anyOf", "oneOf")) and self._costs_less(MAX_WORK, instance):
            found = [_first(self._compiled, instance)]
        else:  # an error about alternatives would hold all errors of all of them
            return [Error((), "schema", self._document.root, instance)]
        return [self._error(each, instance) for each in found[:MAX_ERRORS]]

    def _costs_less(self, limit: int, instance: Any) -> bool:
        try:
            WorkCounter(self._document).of(instance, limit)
        except InstanceRefused:
            return False
        return True

    def _error(self, error: jsonschema_rs.ValidationError, root: Any) -> Error:
        kind, path, steps = error.kind, tuple(error.instance_path), list(error.schema_path)
        instance = value_at(root, path)
        names: tuple[str, ...] = ()
        alternatives: tuple[tuple[Error, ...], ...] = ()
        if isinstance(kind, _Kind.FalseSchema):
            if path and type(path[-1]) is int and steps[-1:] == ["items"]:  # the keyword of the array, not of the item
                path, instance = path[:-1], value_at(root, path[:-1])
            else:
                return Error(path, "false", False, instance)
        elif isinstance(kind, _Kind.PropertyNames):
            name = str(kind.error.instance)
            inner = Error((), str(steps[-1]), self._document.at(tuple(steps[:-1])), name)
            alternatives = () if isinstance(kind.error.kind, _Kind.FalseSchema) else ((inner,),)
            return Error(path, "propertyNames", {}, instance, (name,), alternatives)
        elif isinstance(kind, (_Kind.AnyOf, _Kind.OneOfNotValid, _Kind.OneOfMultipleValid)):
            alternatives = tuple(tuple(self._error(each, root) for each in tried) for tried in kind.context)
        elif isinstance(kind, (_Kind.AdditionalProperties, _Kind.UnevaluatedProperties)):
            names = tuple(kind.unexpected)
        return Error(path, str(steps[-1]), self._document.at(tuple(steps[:-1])), instance, names, alternatives)


def _has_empty_key(value: Any) -> bool:
    pending = [value]
    while pending:
        match pending.pop():
            case dict() as inner:
                if "" in inner:
                    return True
                pending.extend(inner.values())
            case list() as inner:
                pending.extend(inner)
    return False


def _first(compiled: jsonschema_rs.Validator, instance: Any) -> jsonschema_rs.ValidationError:
    try:
        compiled.validate(instance)
    except jsonschema_rs.ValidationError as error:
        return error
    raise AssertionError("asked for the error of a valid value")


def _check_shape(document: Document, path: Path, stray: dict[str, Any]) -> None:
    """Check a referenced place where the metaschema expects no schema."""
    try:
        jsonschema_rs.meta.validate({**stray, "$schema": document.dialect_uri})
    except jsonschema_rs.ValidationError as error:
        raise _refusal(document, error, path) from None


def _refusal(document: Document, error: jsonschema_rs.ValidationError, path: Path) -> SchemaRefused:
    path, kind = (*path, *error.instance_path), error.kind
    if isinstance(kind, _Kind.PropertyNames):  # of `patternProperties`, in draft 7 and before
        return pattern_refused(path, document.given(str(kind.error.instance)))
    if isinstance(kind, _Kind.Format):
        return pattern_refused(path, document.given(str(error.instance)))
    return shape_refused(document, path, kind.name, None if isinstance(kind, _Kind.AnyOf) else kind.value)
