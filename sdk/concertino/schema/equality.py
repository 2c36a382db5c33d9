"""Equality as JSON has it: 1 and 1.0 are equal, 1 and true are not."""

from typing import Any


def identity(value: Any) -> Any:
    """A hashable key, equal exactly for values that are equal in JSON."""
    kind = type(value)
    # Python says that True equals 1, and hashes both alike.
    if kind is bool:
        return (bool, value)
    if kind is list:
        return (list, tuple(map(identity, value)))
    if kind is dict:
        return (dict, frozenset((key, identity(member)) for key, member in value.items()))
    return value


def first_equal(items: list[Any]) -> tuple[int, int] | None:
    """The places of the first two items that are equal; None if all differ."""
    first: dict[Any, int] = {}
    for index, item in enumerate(items):
        earlier = first.setdefault(identity(item), index)
        if earlier != index:
            return earlier, index
    return None
