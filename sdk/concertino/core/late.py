"""Values that are read when somebody looks at them, because they lie in a trace.

A run that is resumed takes up where thousands of results lie behind it. Most of them nobody looks at again, and all of
them together may be larger than the memory. So an observation of a large trace knows where its content is, and a
message that is made of such observations knows how it is made.

Invariant: they compare, print, copy and pickle as what they stand for. A content is read each time; a message is made
once, when somebody needs its text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from .model import Message, Role
from .observation import Observation


class LateValue:
    """A value that is read each time it is needed."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read

    def value(self) -> Any:
        """The value itself."""
        return self._read()


def present(value: Any) -> Any:
    """A value itself, whether it was there or has to be read."""
    return value.value() if isinstance(value, LateValue) else value


class LateObservation(Observation):
    """An observation whose content is a `LateValue`, and looks as if it were the content itself."""

    __slots__ = ("_held",)
    _held: Any

    @property
    def content(self) -> Any:
        """The result, as in any observation."""
        return present(self._held)

    @content.setter
    def content(self, value: Any) -> None:
        self._held = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Observation) and _values(self, Observation) == _values(other, Observation)

    def __hash__(self) -> int:
        raise TypeError("unhashable type: 'Observation'")

    def __reduce__(self) -> tuple[Any, ...]:
        return Observation, _values(self, Observation)


class LateMessage(Message):
    """A message whose text is made when it is asked for; `of_late` makes one."""

    __slots__ = ("_held",)
    _held: Any

    @classmethod
    def of_late(cls, role: Role, make: Callable[[], str]) -> LateMessage:
        """A message with the text that `make` gives."""
        message = cls(role, "")
        object.__setattr__(message, "_held", LateValue(make))
        return message

    @property
    def text(self) -> str:
        """The text, as in any message."""
        if isinstance(self._held, LateValue):
            object.__setattr__(self, "_held", self._held.value())
        return str(self._held)

    @text.setter
    def text(self, value: str) -> None:
        object.__setattr__(self, "_held", value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and _values(self, Message) == _values(other, Message)

    def __hash__(self) -> int:
        return hash(Message(*_values(self, Message)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Message, _values(self, Message)


def any_late(observations: Any) -> bool:
    """Whether the content of one of them would have to be read."""
    return any(type(seen) is LateObservation for seen in observations)


def _values(thing: Any, cls: Any) -> tuple[Any, ...]:
    return tuple(getattr(thing, field.name) for field in fields(cls))
