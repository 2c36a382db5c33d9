"""From what a plugin returned to what a model reads: plain JSON data of bounded size, or a refusal.

Checked inside the call, so that a strange result is this call's EXEC_ERR and nobody else's problem: generators,
cycles, NaN, sets, gigabytes. A result that is fine but long is cut in the middle; its length stays on record.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Sequence
from types import CoroutineType
from typing import Any

from concertino.core.attachment import Attachment, attachments_in
from concertino.core.result import Result

MOST_VALUES = 200_000
"""Values of a result, containers included."""
_ESCAPED, _FRAME = 6, 40
"""The most JSON characters for one character of text (`\\u0000`), and for one value besides its text."""
_MANY, _LONG = 200, 20_000
"""Values in one container, and characters in one text, from which on a result is large."""
_SLOW = 400_000
"""The most JSON characters that data may have, from which on writing it out takes longer than a way to a thread."""
_SIZED = (str, dict, list, tuple)
MARKS = "attachments"
"""The key of the marks that data does not hold itself."""
_LEAVES = frozenset({str, bool, type(None)})
_PLAIN = (bool, int, float, type(None))


class _Unusual(Exception):
    """Not JSON data by exact type; it may still be a near relative."""


class BadResult(Exception):
    """The result cannot be shown to a model. The text says what was returned and what is expected."""


def to_content(value: Any, limit: int, shown: int) -> tuple[Any, str]:
    """Plain JSON data equal to `value`, independent of it.

    Args:
        limit: bytes that are taken at most.
        shown: characters that a model may be shown; what certainly fits is not written out as JSON.

    Returns:
        The data, and the text that a model reads: a text itself, a list or dict as JSON, empty for what surely fits.

    Raises:
        BadResult: not JSON data, not finite, cyclic, deeper than Python can encode, or too large.
    """
    if isinstance(value, str):
        if len(value) > limit:
            raise BadResult(f"returned a text of {len(value)} characters; at most {limit} bytes are taken")
        # A subclass of str may override anything, so its plain text is taken.
        text = value if type(value) is str else str.__str__(value)
        return text, text
    if value is None or value is True or value is False:
        return value, ""
    value = _unwrap(value)
    content = None
    if isinstance(value, (dict, list, tuple)):
        content, fits = _copy_of(value, limit, shown)
        if fits:
            return content, ""
    elif not isinstance(value, (*_PLAIN, str)):
        if isinstance(value, CoroutineType):
            raise BadResult(f"returned what {value.__name__!r} will give, not what it gave; write `await` before it")
        raise BadResult(f"returned {_kind(value)}; expected JSON data: text, number, bool, null, list or dict")
    return _through_json(value, content)


def _through_json(value: Any, content: Any) -> tuple[Any, str]:
    """The data and its text; `content` is a copy of it that was made already, or None."""
    try:
        if content is None:
            value = _by_real_types(value)
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        if content is None:
            content = json.loads(text)
    except RecursionError:
        raise BadResult("returned data nested too deeply to encode") from None
    except (TypeError, ValueError) as error:
        raise BadResult(f"returned {_kind(value)} that is not JSON data: {str(error)[:80]}") from None
    return content, text if isinstance(content, (dict, list)) else ""


def _copy_of(value: Any, limit: int, shown: int) -> tuple[Any, bool]:
    """A copy of a container, None where it is unusual; and whether it surely fits into what is shown."""
    # This walk also refuses cycles and giants, before anything is encoded.
    fits = _most_chars(value, limit) <= shown
    # What is unusual goes through `json`, which has the last word.
    with contextlib.suppress(_Unusual, RecursionError):
        return _copied(value), fits
    return None, False


def with_marks(content: Any, text: str, attachments: Sequence[Attachment]) -> tuple[Any, str]:
    """Data and the text that a model reads, with the marks of attachments that the data does not hold.

    A dict gets them under `attachments`; of anything else but a text, which holds its marks, one is made around it. It
    comes after the check against the schema, which says nothing of them.
    """
    if not attachments or isinstance(content, str):
        return content, text
    known = {each.mark: each for each in attachments}
    held = attachments_in(content, known)
    missing = [mark for mark, each in known.items() if each not in held]
    if not missing:
        return content, text
    fits = isinstance(content, dict) and MARKS not in content
    content = {**(content if fits else {"result": content}), MARKS: "\n\n".join(missing)}
    return content, json.dumps(content, ensure_ascii=False)


def takes_long(value: Any) -> bool:
    """Whether `to_content` may need milliseconds for a result; a guess from its first two levels, made quickly."""
    if type(value) is Result:
        value = value.content
    if isinstance(value, dict):
        parts: Iterable[Any] = value.values()
    elif isinstance(value, (list, tuple)):
        parts = value
    else:
        return False
    if len(value) > _MANY:
        return True
    return any(isinstance(part, _SIZED) and len(part) > (_LONG if isinstance(part, str) else _MANY) for part in parts)


def large_data(value: Any, limit: int, shown: int) -> Any:
    """An independent copy of a list or dict that is slow to write out, and is cut or nearly so; None for any other."""
    with contextlib.suppress(BadResult, _Unusual, RecursionError):
        if type(value) in (dict, list) and _most_chars(value, limit) > max(shown, _SLOW):
            return _copied(value)
    return None


def dumped(value: Any, dump: Callable[[Any], Any]) -> Any:
    """A result of a declared type as JSON data.

    Raises:
        BadResult: it holds what has no JSON form.
    """
    try:
        return dump(value)
    except Exception as error:
        reason = " ".join(str(error).split())[:80]
        raise BadResult(f"returned {_kind(value)} that is not JSON data: {reason}") from None


def _unwrap(value: Any) -> Any:
    """Pydantic models and dataclasses become dicts."""
    # Looked up on the type, since proxies and mocks claim to have every attribute.
    dump = getattr(type(value), "model_dump", None)
    if dump is not None:
        return dump(value, mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value


def _copied(value: Any) -> Any:
    """A copy of what is JSON data by exact type: several times quicker than writing and reading it.

    Raises:
        _Unusual: it is something else.
    """
    kind = type(value)
    if kind is dict:
        if not all(type(key) is str for key in value):
            raise _Unusual
        return {key: item if type(item) in _LEAVES else _copied(item) for key, item in value.items()}
    if kind is list:
        return [item if type(item) in _LEAVES else _copied(item) for item in value]
    if kind is int or (kind is float and math.isfinite(value)):
        return value
    raise _Unusual


def _by_real_types(value: Any) -> Any:
    """The same with plain containers: `json` would ask a subclass for its items, and it may give some without end."""
    if isinstance(value, dict):
        return {key: _by_real_types(item) for key, item in dict.items(value)}
    if isinstance(value, (list, tuple)):
        items = list.__iter__(value) if isinstance(value, list) else tuple.__iter__(value)
        return [_by_real_types(item) for item in items]
    return value


def _most_chars(value: Any, limit: int) -> int:
    """Characters that a container takes as JSON, at most.

    It walks without recursion, and stops early: a cycle or a giant ends at the limit of nodes.
    """
    stack = [value]
    nodes = size = 0
    while stack:
        item = stack.pop()
        nodes += 1
        # With the methods of the real types: those of a subclass may give values without end.
        if isinstance(item, dict):
            stack.extend(dict.values(item))
            size += sum(len(key) if isinstance(key, str) else 8 for key in dict.__iter__(item))
        elif isinstance(item, (list, tuple)):
            stack.extend(list.__iter__(item) if isinstance(item, list) else tuple.__iter__(item))
        elif isinstance(item, str):
            size += len(item)
        elif isinstance(item, int):
            # An integer has fewer digits than bits, and counting digits takes quadratic time.
            size += item.bit_length()
        if nodes + len(stack) > MOST_VALUES or size > limit:
            raise BadResult(f"returned more than {MOST_VALUES} values or {limit} bytes, or contains itself")
    return _ESCAPED * size + _FRAME * nodes


def _kind(value: Any) -> str:
    return f"a value of type {type(value).__name__}"


def truncate(content: Any, text: str, limit: int) -> tuple[Any, int]:
    """Cut content that is longer than `limit` characters in the middle.

    Args:
        content: the data that `to_content` gave.
        text: the text that it gave.
        limit: characters that are shown.

    Returns:
        The content, and how many characters are missing. Cut data becomes text.
    """
    if len(text) <= limit:
        return content, 0
    head = limit * 2 // 3
    tail = limit - head
    missing = len(text) - head - tail
    return f"{text[:head]}\n[... {missing} characters cut ...]\n{text[-tail:]}", missing
