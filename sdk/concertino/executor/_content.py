"""From what a plugin returned to what a model reads: plain JSON data of bounded size, or a refusal.

Checked inside the call, so that a strange result is this call's EXEC_ERR and nobody else's problem: generators,
cycles, NaN, sets, gigabytes. A result that is fine but long is cut in the middle; its length stays on record.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

_MAX_NODES = 200_000
_PLAIN = (bool, int, float, type(None))


class BadResult(Exception):
    """The result cannot be shown to a model. The text says what was returned and what is expected."""


def to_content(value: Any, limit: int) -> Any:
    """Plain JSON data equal to `value`, independent of it.

    Args:
        limit: bytes that are taken at most.

    Raises:
        BadResult: not JSON data, not finite, cyclic, deeper than Python can encode, or too large.
    """
    if isinstance(value, str):
        if len(value) > limit:
            raise BadResult(f"returned a text of {len(value)} characters; at most {limit} bytes are taken")
        return value if type(value) is str else str.__str__(value)
    if value is None or value is True or value is False:
        return value
    value = _unwrap(value)
    if isinstance(value, (dict, list, tuple)):
        _check_size(value, limit)
    elif not isinstance(value, (*_PLAIN, str)):
        raise BadResult(f"returned {_kind(value)}; expected JSON data: text, number, bool, null, list or dict")
    try:
        return json.loads(json.dumps(value, allow_nan=False, ensure_ascii=False))
    except RecursionError:
        raise BadResult("returned data nested too deeply to encode") from None
    except (TypeError, ValueError) as error:
        raise BadResult(f"returned {_kind(value)} that is not JSON data: {str(error)[:80]}") from None


def _unwrap(value: Any) -> Any:
    """Pydantic models and dataclasses become dicts."""
    dump = getattr(type(value), "model_dump", None)
    if dump is not None:
        return dump(value, mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value


def _check_size(value: Any, limit: int) -> None:
    """Walk a container without recursion, and stop early: a cycle or a giant ends at the limit of nodes."""
    stack = [value]
    nodes = size = 0
    while stack:
        item = stack.pop()
        nodes += 1
        if isinstance(item, dict):
            stack.extend(item.values())
            size += sum(len(key) if isinstance(key, str) else 8 for key in item)
        elif isinstance(item, (list, tuple)):
            stack.extend(item)
        elif isinstance(item, str):
            size += len(item)
        if nodes + len(stack) > _MAX_NODES or size > limit:
            raise BadResult(f"returned more than {_MAX_NODES} values or {limit} bytes, or contains itself")


def _kind(value: Any) -> str:
    return f"a value of type {type(value).__name__}"


def truncate(content: Any, limit: int) -> tuple[Any, int]:
    """Cut content that is longer than `limit` characters in the middle.

    Returns:
        The content, and how many characters are missing. Cut data becomes text.
    """
    if isinstance(content, str):
        text = content
    elif isinstance(content, (dict, list)):
        text = json.dumps(content, ensure_ascii=False)
    else:
        return content, 0
    if len(text) <= limit:
        return content, 0
    head = limit * 2 // 3
    tail = limit - head
    missing = len(text) - head - tail
    return f"{text[:head]}\n[... {missing} characters cut ...]\n{text[-tail:]}", missing
