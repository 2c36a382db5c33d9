"""The validator: one admitted schema, compiled once, asked many times.

`is_valid` is the hot path and answers yes or no; `check` is asked after a no and says what is wrong; `coerce`
tries the one named repair; `example` shows a right value. A validator holds no state of a call and may be shared
between threads. The libraries are imported when the first schema is compiled.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, Protocol

from .admission import admitted
from .coercion import Change, coerced, integers
from .document import Document
from .errors import BackendMissing, InstanceRefused
from .examples import example_of
from .failures import Error, failures_of
from .guard import MAX_SCANNED_ITEMS
from .violations import Violation, violations_of


class CompiledSchema(Protocol):
    """A library with one compiled schema."""

    name: str

    def is_valid(self, instance: Any) -> bool:
        """The verdict."""

    def errors(self, instance: Any) -> list[Error]:
        """What is wrong with a value that is not valid."""

    def matches(self, pattern: str, text: str) -> bool:
        """Whether a text matches a pattern of the document."""


class Validator:
    """Answers questions about values for one schema. Made by `compile_schema`.

    `schema` is the admitted copy, `backend` the library that decides ("rust" or "python"), `max_items` what to pass
    to `guard_instance` (None, or 10,000 where the schema compares items). Values that did not come from our JSON
    reader must pass the guard first.
    """

    __slots__ = ("_backend", "_document", "_example", "_integers", "backend", "max_items", "schema")

    def __init__(self, schema: dict[str, Any], document: Document, backend: CompiledSchema) -> None:
        self.schema = schema
        self.backend = backend.name
        self.max_items = None if document.words.isdisjoint(("uniqueItems", "contains")) else MAX_SCANNED_ITEMS
        self._document = document
        self._backend = backend
        self._example: str | None = None
        # Made at first use: most members of a large pool are never called.
        self._integers: Change | Literal["unknown"] | None = "unknown"

    def __repr__(self) -> str:
        return f"<Validator {self.backend}, {len(self.schema)} keywords>"

    def is_valid(self, instance: Any) -> bool:
        """Does the value match? Raises `InstanceRefused` for a value that is not JSON or too costly to check."""
        try:
            return self._backend.is_valid(instance)
        except InstanceRefused:
            raise
        except Exception as error:  # a library met what the guard would have refused
            raise _not_json(error) from error

    def check(self, instance: Any) -> tuple[Violation, ...]:
        """What is wrong: () for a valid value, else up to five violations, sorted by pointer, then keyword.

        Raises `InstanceRefused` for a value that is not JSON or too costly to check.
        """
        if self.is_valid(instance):
            return ()
        try:
            return violations_of(failures_of(self._backend.errors(instance)), self._document)
        except InstanceRefused:
            raise
        except Exception as error:
            raise _not_json(error) from error

    def example(self) -> Any:
        """One minimal value made from the schema: deterministic, and valid wherever one can be found."""
        if self._example is None:
            # Kept as text: each caller gets a value of its own, which it may change.
            self._example = json.dumps(example_of(self._document, self._backend))
        return json.loads(self._example)

    def coerce(self, instance: Any) -> tuple[Any, tuple[str, ...]]:
        """The value with text read as a number or boolean where only that can be meant, and the repairs' names."""
        return coerced(self._document, self._backend.matches, instance)

    def with_integers(self, instance: Any) -> Any:
        """A valid value with whole floats made integers where the schema asks for an integer."""
        if self._integers == "unknown":
            self._integers = integers(self._document, self._backend.matches)
        return instance if self._integers is None else self._integers(instance)


def _not_json(error: Exception) -> InstanceRefused:
    return InstanceRefused("not_json", (), f"{str(error)[:120]}; pass it through guard_instance first")


def compile_schema(schema: Mapping[str, Any], *, backend: Literal["auto", "rust", "python"] = "auto") -> Validator:
    """Admit a schema and compile it once.

    Raises `SchemaRefused` where it is unfit, and `BackendMissing` where the back end is not installed.
    """
    plain, document = admitted(schema)
    return Validator(plain, document, _compiled(document, backend))


def admit(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a deep copy of a schema in plain JSON types; raise `SchemaRefused` if it is unfit."""
    return compile_schema(schema).schema


def _compiled(document: Document, backend: str) -> CompiledSchema:
    if backend != "python":
        try:
            from .rust import RustBackend

            return RustBackend(document)
        except ModuleNotFoundError:
            if backend == "rust":
                raise BackendMissing("jsonschema_rs is not installed; pip install jsonschema-rs") from None
    try:
        from .python import PythonBackend
    except ModuleNotFoundError as error:
        text = f"{error.name} is not installed; pip install jsonschema-rs, or jsonschema and regex"
        raise BackendMissing(text) from None
    return PythonBackend(document)
