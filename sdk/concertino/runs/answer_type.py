"""The type of an answer: its JSON schema, and how the text of an answer becomes a value.

    leader = Orchestrator("openai/gpt-5.4-mini", answer_type=Weather)      # a model, dataclass, TypedDict, union, list
    run.output                                                             # a Weather; run.answer is the JSON text

The schema stands in the prompt. A text that does not satisfy it goes back to the model with the reason, in the words in
which wrong arguments of calls are explained.

Invariant: a value is given out only if the schema and the type both took it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from concertino.core.errors import SpecError, UsageError
from concertino.core.model import Message
from concertino.core.observation import ErrorInfo
from concertino.executor.error_messages import LIMIT, bad_reply
from concertino.members.value_type import ValueType
from concertino.schema import SchemaRefused, compile_schema, explain
from concertino.text.json import ReadingError, read_json

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

    def read(self, text: str) -> tuple[Any, ErrorInfo | None]:
        """The value of a text, and what is wrong with it; None for nothing."""
        try:
            value = json.loads(text)
        except ValueError:
            try:
                value = read_json(text).value
            except ReadingError as error:
                return None, bad_reply(str(error))
        if violations := self._validator.check(value):
            return None, bad_reply(explain(violations, self._validator, limit=LIMIT))
        if self._type is None:
            return value, None
        read, wrong = self._type.read(value)
        return (None, bad_reply(wrong)) if wrong else (read, None)


def correction(schema: Mapping[str, Any] | None, question: str, text: str, wrong: str) -> list[Message]:
    """The request for another answer, after one that was not of its type, or that a guard denied.

    Args:
        schema: of the type; None for a text.
        text: the answer as it was written.
        wrong: what is wrong with it.
    """
    if schema is None:
        asked = f"Question:\n{question}\n\nAnswer:\n{text}\n\nWhy it cannot be given: {wrong}\n\nWrite the answer now."
        return [Message("system", _WRITE_AGAIN), Message("user", asked)]
    asked = f"Question:\n{question}\n\nAnswer:\n{text}\n\nWhat is wrong with it: {wrong}\n\nWrite the JSON value now."
    return [Message("system", _CORRECT + json.dumps(schema, ensure_ascii=False)), Message("user", asked)]
