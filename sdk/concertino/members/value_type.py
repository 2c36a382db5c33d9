"""Types of values that a program declares instead of a JSON schema: of results, of replies, of answers.

    @ct.agent
    async def look_up(city: str, *, ctx: ct.Context) -> Weather: ...     # a pydantic model, dataclass, TypedDict …

A type gives its JSON schema; values of it become plain JSON data, and plain JSON data become values of it. Annotations
that the signature reader can write down itself (`list[str]`, `str | None`) need no pydantic.

Invariant: what `dump` gives for a value of the type satisfies `result_schema`; what does not is refused by whoever
checks it against that schema, in the words of every schema.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from functools import cached_property
from typing import Any, Union

from concertino.core.errors import SpecError

EXPECTED = "a pydantic model, a dataclass, a TypedDict, a union or list of such, or a JSON schema as a dict"


class ValueType:
    """A type that pydantic can validate.

    Args:
        kind: the type.
        place: where it was declared, for the message.

    Raises:
        SpecError: no JSON schema can be made of it.
    """

    def __init__(self, kind: Any, place: str) -> None:
        import pydantic

        from .signature import without_titles

        try:
            self._adapter: Any = pydantic.TypeAdapter(kind)
            self.schema: dict[str, Any] = without_titles(self._adapter.json_schema())
        except Exception as error:
            reason = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
            raise SpecError(f"{place}={kind!r}: expected {EXPECTED} ({reason})") from error

    @cached_property
    def result_schema(self) -> dict[str, Any]:
        """The schema of what `dump` gives; it differs from `schema`, which is that of what `read` takes, in computed
        fields and aliases.
        """
        from .signature import without_titles

        found: dict[str, Any] = without_titles(self._adapter.json_schema(mode="serialization"))
        return found

    def dump(self, value: Any) -> Any:
        """A value of the type as JSON data. Something else stays as near as possible to what it was.

        Raises:
            ValueError: it holds what has no JSON form; says what.
        """
        # Without warnings: what is not of the type is found by the schema.
        return self._adapter.dump_python(value, mode="json", by_alias=True, warnings=False)

    def read(self, data: Any) -> tuple[Any, str]:
        """JSON data as a value of the type, and what is wrong with it; empty for nothing."""
        import pydantic

        try:
            return self._adapter.validate_json(json.dumps(data)), ""
        except pydantic.ValidationError as error:
            # What no schema says: a validator of the type's own.
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            return None, f"{place}: {first['msg']}" if place else first["msg"]
        except Exception as error:
            return None, f"the type refused it: {type(error).__name__}: {error}"


def is_structured(annotation: Any) -> bool:
    """Whether an annotation says how a result is built: a model, dataclass, TypedDict, list or union, or what holds
    one. Texts, numbers and plain dicts say nothing that is worth checking; what concertino itself takes apart, such as
    an `Image` or a `Result`, is nobody's schema.
    """
    return not _is_ours(annotation) and _has_structure(annotation)


def _has_structure(annotation: Any) -> bool:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (list, Union, types.UnionType):
        return True
    if origin is not None:
        return any(_has_structure(argument) for argument in arguments)
    return is_record(annotation)


def is_record(annotation: Any) -> bool:
    """Whether it is a class with named fields: a pydantic model, a dataclass or a TypedDict."""
    if not isinstance(annotation, type):
        return False
    typed_dict = issubclass(annotation, dict) and hasattr(annotation, "__required_keys__")
    return typed_dict or dataclasses.is_dataclass(annotation) or hasattr(annotation, "__pydantic_validator__")


def _is_ours(annotation: Any) -> bool:
    if isinstance(annotation, type) and annotation.__module__.partition(".")[0] == "concertino":
        return True
    return any(_is_ours(argument) for argument in typing.get_args(annotation))
