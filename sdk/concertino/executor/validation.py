"""Validation: everything that is checked against a schema while a plan runs.

Arguments are read from the model's text or taken as data, references to earlier results are put in, and what the schema
refuses is coerced where only one meaning is possible. Then the plugin's own types have their say. A result is checked
against the tool's output schema.

Structured replies of models are checked too, whatever the server promised: some servers enforce a schema, some ignore
it, some take it for a hint. So the text is read tolerantly (a code fence, a trailing comma), and the value is checked
against the schema that the model was shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from concertino.core.model import Reply
from concertino.core.observation import ErrorInfo
from concertino.core.plan import Call, substitute
from concertino.core.references import LookupFailed
from concertino.schema import (
    InstanceRefused,
    SchemaRefused,
    Validator,
    compile_schema,
    explain,
    guard_instance,
)
from concertino.text.json import ReadingError, read_json

from . import error_messages
from .bound import BoundTool


class ArgumentsRefused(Exception):
    """A call cannot be made with these arguments.

    Attributes:
        error: why, for the model that wrote them.
        repairs: what was repaired before they were refused.
    """

    def __init__(self, error: ErrorInfo, repairs: tuple[str, ...]) -> None:
        super().__init__(error.message)
        self.error = error
        self.repairs = repairs


def read_arguments(
    call: Call, bound: BoundTool, results: Mapping[str, Any] | None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The arguments of a call as data that the schema takes, the very schema that the model saw.

    Args:
        results: contents of the calls that the arguments refer to, None if they refer to none.

    Returns:
        The arguments, and what was repaired in them.

    Raises:
        ArgumentsRefused: they cannot be read, or break the schema.
    """
    arguments: Any = call.arguments
    repairs = call.repairs
    validator = bound.validator
    try:
        if isinstance(arguments, str):
            # Some servers send an empty text for a call without arguments.
            reading = read_json(arguments or "{}", maths_fields=bound.spec.maths_fields)
            arguments, repairs = reading.value, repairs + reading.repairs
        else:
            arguments = _data(call, results)
        # Coerced only where the schema refuses it: valid arguments stay as the model wrote them.
        if not validator.is_valid(arguments):
            arguments, coerced = validator.coerce(arguments)
            repairs += coerced
            violations = validator.check(arguments)
            if violations:
                raise ArgumentsRefused(error_messages.invalid_arguments(violations, validator), repairs)
        else:
            arguments = validator.with_integers(arguments)  # 3.0 is an integer to JSON, and no int to Python
    except ReadingError as error:
        raise ArgumentsRefused(error_messages.bad_json(error), repairs) from error
    except (InstanceRefused, LookupFailed) as error:
        raise ArgumentsRefused(error_messages.refused_arguments(str(error)), repairs) from error
    if bound.convert is not None:
        try:
            bound.convert(arguments)  # the plugin's own types (pydantic) may refuse what their schema takes
        except Exception as error:
            raise ArgumentsRefused(error_messages.refused_arguments(f"{error}"), repairs) from error
    return arguments, repairs


def _data(call: Call, results: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments of a call whose arguments are data already."""
    arguments: Any = call.arguments
    if results is not None:
        arguments = substitute(arguments, results)
    # Before validation, which hostile data can crash or stall; a result that was put in is a plugin's data.
    if results is not None or not call.guarded:
        guard_instance(arguments)
    if not isinstance(arguments, Mapping):
        text = f"expected an object, got {type(arguments).__name__}"
        raise ArgumentsRefused(error_messages.refused_arguments(text), call.repairs)
    return dict(arguments)


def check_result(content: Any, output: Validator) -> ErrorInfo | None:
    """What is wrong with a tool's result, None for nothing."""
    if output.is_valid(content):
        return None
    violations = output.check(content)
    problem = violations[0] if violations else "invalid"
    return error_messages.bad_result(f"its result breaks its own output schema: {problem}")


@lru_cache(maxsize=64)
def _validator(schema: str) -> Validator:
    return compile_schema(json.loads(schema))


def refused_schema(schema: Mapping[str, Any]) -> ErrorInfo | None:
    """Why a schema cannot be used, which is the caller's mistake; None if it can."""
    try:
        _validator(json.dumps(schema, sort_keys=True))
    except (SchemaRefused, TypeError, ValueError) as error:
        return ErrorInfo("rejected", error_messages.shorten(f"the schema of the request was refused: {error}"))
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
            return None, error_messages.bad_reply(str(error))
    violations = validator.check(value)
    if violations:
        return None, error_messages.bad_reply(explain(violations, validator, limit=error_messages.LIMIT))
    return value, None
