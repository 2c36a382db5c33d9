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

from concertino.core.errors import UsageError
from concertino.core.model import Message
from concertino.core.observation import ErrorInfo
from concertino.executor.error_messages import LIMIT, bad_reply
from concertino.schema import SchemaRefused, compile_schema, explain
from concertino.text.json import ReadingError, read_json

_CORRECT = (
    "You bring an answer into the form that a program needs. Write one JSON value that satisfies the JSON schema, and "
    "nothing else: no sentence before or after it. Keep what the answer says; add nothing that it does not say, unless "
    "the schema requires it.\n\nJSON schema:\n"
)


class AnswerType:
    """What an answer must be.

    Args:
        kind: a type that pydantic can validate, or a JSON schema as a dict.

    Raises:
        UsageError: no schema can be made of it, or it is refused.
    """

    def __init__(self, kind: Any) -> None:
        self._adapter: Any = None
        if isinstance(kind, Mapping):
            schema = dict(kind)
        else:
            schema = self._adapted(kind)
        try:
            self._validator = compile_schema(schema)
        except SchemaRefused as error:
            raise UsageError(f"answer_type={kind!r}: its schema was refused: {error}") from error
        self.schema: dict[str, Any] = schema

    def _adapted(self, kind: Any) -> dict[str, Any]:
        import pydantic

        from concertino.members.signature import without_titles

        try:
            self._adapter = pydantic.TypeAdapter(kind)
            schema: dict[str, Any] = without_titles(self._adapter.json_schema())
        except Exception as error:
            raise UsageError(
                f"answer_type={kind!r}: expected a pydantic model, a dataclass, a TypedDict, a union or list of such, "
                f"or a JSON schema as a dict ({type(error).__name__}: {str(error).splitlines()[0]})"
            ) from error
        return schema

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
        if self._adapter is None:
            return value, None
        import pydantic

        try:
            return self._adapter.validate_json(json.dumps(value)), None
        except pydantic.ValidationError as error:
            # What no schema says: a validator of the type's own.
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            return None, bad_reply(f"{place}: {first['msg']}" if place else first["msg"])
        except Exception as error:
            return None, bad_reply(f"the type refused it: {type(error).__name__}: {error}")


def correction(schema: Mapping[str, Any], question: str, text: str, wrong: str) -> list[Message]:
    """The request for an answer of its type, after one that was not.

    Args:
        text: the answer as it was written.
        wrong: what is wrong with it.
    """
    asked = f"Question:\n{question}\n\nAnswer:\n{text}\n\nWhat is wrong with it: {wrong}\n\nWrite the JSON value now."
    return [Message("system", _CORRECT + json.dumps(schema, ensure_ascii=False)), Message("user", asked)]
