"""The instance guard: is this value plain JSON of a sane size?

Our JSON reader enforces the same limits while it reads; every other value (Python callers, MCP results,
replayed traces) passes here before it meets a validator, because validators crash, hang or disagree beyond
these limits. The walk is iterative, so no depth can overflow the stack, and scalars are checked inside their
container's loop, so a flat object costs about a microsecond. Paths are linked upwards and only written out
when something is refused.
"""

from collections.abc import Iterator
from math import isfinite
from typing import Any

from .errors import InstanceRefused

# The limits of `concertino.text.json`: a value is judged alike, whichever way it comes.
MAX_DEPTH = 64
MAX_NODES = 1_000_000
MAX_CHARS = 4 * 1024 * 1024
MAX_DIGITS = 40
MAX_SCANNED_ITEMS = 10_000

# A bound to compare with: counting the digits of a huge integer takes quadratic time.
_HUGE = 10**MAX_DIGITS
_Link = tuple[Any, Any, int]  # (parent link or None, key, depth of the container)


def guard_instance(value: Any, *, max_items: int | None = None) -> None:
    """Raise `InstanceRefused` unless `value` is plain JSON within the limits.

    Limits: depth 64, finite numbers, integers of at most 40 digits, no lone surrogates, string keys, 4 Mi
    characters of text and a million values in all, and `max_items` per array (pass `Validator.max_items`: 10,000
    where the schema uses `uniqueItems` or `contains`).
    """
    if type(value) is not dict and type(value) is not list:
        _refuse_scalar(value, None)
        if type(value) is str and len(value) > MAX_CHARS:
            raise _too_large(None)
        return
    pending: list[tuple[Any, _Link | None]] = [(value, None)]
    nodes = chars = 0
    while pending:
        container, link = pending.pop()
        nodes += len(container)
        chars += _inspect(_entries(container, link, max_items), link, pending)
        if nodes > MAX_NODES or chars > MAX_CHARS:
            raise _too_large(link)


def _inspect(entries: Any, link: _Link | None, pending: list[tuple[Any, _Link | None]]) -> int:
    """Check the scalars of a container and queue its containers; returns the characters of its texts."""
    chars = 0
    for key, item in entries:
        kind = type(item)
        if kind is str:
            chars += len(item)
            # `isascii` is a flag of the string; only other texts can hold a surrogate, and are worth encoding.
            if not item.isascii():
                _refuse_scalar(item, (link, key, 0))
        elif kind is dict or kind is list:
            depth = link[2] + 1 if link else 1
            if depth >= MAX_DEPTH:
                text = f"nesting goes beyond {MAX_DEPTH} levels; flatten the value"
                raise InstanceRefused("too_deep", _path(link), text)
            pending.append((item, (link, key, depth)))
        elif not ((kind is int and -_HUGE < item < _HUGE) or kind is bool or item is None):
            _refuse_scalar(item, (link, key, 0))
    return chars


def _entries(container: Any, link: _Link | None, max_items: int | None) -> Any:
    if type(container) is list:
        if max_items is not None and len(container) > max_items:
            found = f"an array of {len(container)} items; send at most {max_items} in one call"
            raise InstanceRefused("too_many_items", _path(link), found)
        return enumerate(container)
    for key in container:
        if type(key) is not str:
            raise InstanceRefused(
                "key_not_text", _path(link), f"a key of type {type(key).__name__}; JSON keys are text"
            )
        if not key.isascii():
            _refuse_scalar(key, link)
    return container.items()


def _refuse_scalar(value: Any, link: _Link | None) -> None:
    kind = type(value)
    if kind is str:
        try:
            value.encode()
        except UnicodeEncodeError:
            text = "text with a lone surrogate (half a character); send complete Unicode characters"
            raise InstanceRefused("lone_surrogate", _path(link), text) from None
    elif kind is float:
        if not isfinite(value):
            raise InstanceRefused("not_finite", _path(link), f"the number {value}; JSON numbers are finite")
    elif kind is int:
        if not -_HUGE < value < _HUGE:
            raise InstanceRefused(
                "too_many_digits",
                _path(link),
                f"an integer of more than {MAX_DIGITS} digits; send it as text",
            )
    elif kind is not bool and value is not None:
        text = f"a value of type {kind.__name__}; use dict, list, str, int, float, bool or None"
        raise InstanceRefused("not_json", _path(link), text)


def _too_large(link: _Link | None) -> InstanceRefused:
    text = f"more than {MAX_NODES} values or {MAX_CHARS} characters; send less, or a reference to the data"
    return InstanceRefused("too_large", _path(link), text)


def _path(link: _Link | None) -> list[str | int]:
    return list(_steps(link))[::-1]


def _steps(link: _Link | None) -> Iterator[str | int]:
    while link is not None:
        yield link[1]
        link = link[0]
