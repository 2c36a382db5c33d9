"""Structured replies: the JSON value of a reply that was asked for with a schema, checked whatever the server promised.

Some servers enforce a schema, some ignore it, some take it for a hint. So the text is read tolerantly (a code fence, a
trailing comma), and the value is checked against the schema that the model was shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from concertino.core.model import Reply
from concertino.core.observation import ErrorInfo
from concertino.schema import SchemaRefused, Validator, compile_schema, explain
from concertino.text.json import ReadingError, read_json

from . import error_messages as causes


@lru_cache(maxsize=64)
def _validator(schema: str) -> Validator:
    return compile_schema(json.loads(schema))


def refused_schema(schema: Mapping[str, Any]) -> ErrorInfo | None:
    """Why a schema cannot be used, which is the caller's mistake; None if it can."""
    try:
        _validator(json.dumps(schema, sort_keys=True))
    except (SchemaRefused, TypeError, ValueError) as error:
        return ErrorInfo("rejected", causes.shorten(f"the schema of the request was refused: {error}"))
    return None


def read_structured(reply: Reply, schema: Mapping[str, Any]) -> tuple[Any, ErrorInfo | None]:
    """The value of a reply, and what is wrong with it, None for nothing. The schema is one that was not refused."""
    validator = _validator(json.dumps(schema, sort_keys=True))
    try:
        value = json.loads(reply.text)
    except ValueError:
        try:
            value = read_json(reply.text).value
        except ReadingError as error:
            return None, causes.bad_reply(str(error))
    violations = validator.check(value)
    if violations:
        return None, causes.bad_reply(explain(violations, validator, limit=causes.LIMIT))
    return value, None
