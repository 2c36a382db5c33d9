"""The type of an answer: its JSON schema, and how the text of an answer becomes a value.

    leader = Orchestrator("openai/gpt-5.4-mini", answer_type=Weather)      # a model, dataclass, TypedDict, union, list
    run.output                                                             # a Weather; run.answer is its text

The schema stands in the prompt. A text that does not satisfy it goes back to the model with the reason, in the words in
which wrong arguments of calls are explained. That request asks for nothing but JSON, so it carries the schema for the
server as well, which may hold the model to it.

Invariant: a value is given out only if the schema and the type both took it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from concertino.core.errors import SpecError, UsageError
from concertino.core.model import Message
from concertino.members.value_type import ValueType
from concertino.schema import InstanceRefused, SchemaRefused, compile_schema, explain, guard_instance
from concertino.text.foreign_text import quoting
from concertino.text.json import JsonReading, ReadingError, read_json

_EXPLAINED = 1000
_QUOTING = quoting((), (r"question\s*:", r"answer\s*:", r"why it cannot be given\s*:", r"what is wrong with it\s*:"))
"""Characters that a model is told at most about what is wrong: five places, and an example where it fits."""
_CORRECT = (
    "You bring an answer into the form that a program needs. Write one JSON value that satisfies the JSON schema, and "
    "nothing else: no sentence before or after it. Keep what the answer says; add nothing that it does not say, unless "
    "the schema requires it.\n\nJSON schema:\n"
)
_WRITE_AGAIN = (
    "You correct an answer that cannot be given as it is. Write the corrected answer alone: no sentence about it, and "
    "nothing that the first answer does not say."
)


class AnswerType:
    """What an answer must be.

    Args:
        kind: a type that pydantic can validate, or a JSON schema as a dict.

    Raises:
        UsageError: no schema can be made of it, or it is refused.
    """

    def __init__(self, kind: Any) -> None:
        try:
            self._type = None if isinstance(kind, Mapping) else ValueType(kind, "answer_type")
        except SpecError as error:
            raise UsageError(str(error)) from error
        self.schema: dict[str, Any] = dict(kind) if self._type is None else self._type.schema
        try:
            self._validator = compile_schema(self.schema)
        except SchemaRefused as error:
            raise UsageError(f"answer_type={kind!r}: its schema was refused: {error}") from error
        self._only_objects = _takes_only_objects(self.schema, self.schema)

    @property
    def held(self) -> dict[str, Any] | None:
        """The schema for a server that can hold it; None where its root is no object, which servers refuse."""
        return self.schema if self.schema.get("type") == "object" else None

    def read(self, text: str) -> tuple[Any, str]:
        """The value of a text, and what is wrong with it, for the model; empty for nothing."""
        try:
            reading = self._reading(text)
            if "prose" in reading.repairs and not self._only_objects:
                # The object in a sentence need not be what was meant, where a list or a number may be.
                return None, "text stands around the JSON value; write the value and nothing else"
            if self._validator.max_items is not None:
                guard_instance(reading.value, max_items=self._validator.max_items)
            violations = self._validator.check(reading.value)
        except (ReadingError, InstanceRefused) as error:
            return None, str(error)
        if violations:
            return None, explain(violations, self._validator, limit=_EXPLAINED)
        return (reading.value, "") if self._type is None else self._type.read(reading.value)

    def _reading(self, text: str) -> JsonReading:
        if self._only_objects:
            try:
                return read_json(text)
            except ReadingError as error:
                if error.code != "not-an-object":
                    raise
        # Where it is JSON, the schema says best what belongs in its place.
        return read_json(text, expect="any")


def _takes_only_objects(schema: Any, root: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether a schema says of itself that nothing but objects satisfies it."""
    if not isinstance(schema, Mapping) or depth > 4:
        return False
    reference = str(schema.get("$ref", ""))
    if reference.startswith("#/$defs/"):
        return _takes_only_objects(root.get("$defs", {}).get(reference[8:]), root, depth + 1)
    for word in ("anyOf", "oneOf"):
        if word in schema and all(_takes_only_objects(each, root, depth + 1) for each in schema[word]):
            return True
    return schema.get("type") == "object"


def correction(schema: Mapping[str, Any] | None, question: str, text: str, wrong: str) -> list[Message]:
    """The request for another answer, after one that was not of its type, or that a guard denied.

    Args:
        schema: of the type; None for a text.
        text: the answer as it was written.
        wrong: what is wrong with it.
    """
    question, text, wrong = map(_QUOTING.text, (question, text, wrong))
    if schema is None:
        asked = f"Question:\n{question}\n\nAnswer:\n{text}\n\nWhy it cannot be given: {wrong}\n\nWrite the answer now."
        return [Message("system", _WRITE_AGAIN), Message("user", asked)]
    asked = f"Question:\n{question}\n\nAnswer:\n{text}\n\nWhat is wrong with it:\n{wrong}\n\nWrite the JSON value now."
    return [Message("system", _CORRECT + json.dumps(schema, ensure_ascii=False)), Message("user", asked)]
