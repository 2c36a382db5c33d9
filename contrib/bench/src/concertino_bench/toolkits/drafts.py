"""A draft: JSON data that can be changed freely while what it was made from stays as it was.

A draft is a dict that takes over the parts of its source one by one, at the moment they are looked at. So a run on a
database of megabytes copies the few records that it touches, and to give a change up is to forget the draft.

The invariant: nothing that a draft hands out belongs to its source. What it holds but has not handed out may, which is
why everything that reads a dict behind its back (`dict(draft)`, `{**draft}`, `draft | other`) goes through it too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, TypeAlias, cast

Entry: TypeAlias = tuple[str, str]
"""A record of a database: its table and its key."""

_MISSING = object()
_CONTAINERS = (dict, list, tuple)


class Draft(dict[str, Any]):
    """A dict over a source that it never changes.

    Attributes:
        seen: keys that were looked up one by one; walking through all of them does not count.
    """

    __slots__ = ("_own", "seen")

    def __init__(self, source: Mapping[str, Any]) -> None:
        # A draft's own `items` would copy everything, and an exact dict is taken over fastest as it is.
        dict.update(self, dict.items(source) if isinstance(source, Draft) else source)
        self._own: set[str] = set()
        self.seen: set[str] = set()

    # -- looking -------------------------------------------------------------------------------------------------------

    def _take(self, key: str) -> Any:
        value = dict.__getitem__(self, key)
        # Only a container can be changed in place, so only a container is copied before it is handed out.
        if isinstance(value, _CONTAINERS) and key not in self._own:
            value = Draft(value) if isinstance(value, dict) else plain(value)
            dict.__setitem__(self, key, value)
            self._own.add(key)
        return value

    def _take_all(self) -> None:
        for key in dict.keys(self):
            self._take(key)

    def __getitem__(self, key: str) -> Any:
        value = self._take(key)
        self.seen.add(key)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default  # noqa: SIM401 - that is what this is

    def __iter__(self) -> Iterator[str]:  # its mere presence makes C code go through `__getitem__`
        return dict.__iter__(self)

    def values(self) -> Any:
        self._take_all()
        return dict.values(self)

    def items(self) -> Any:
        self._take_all()
        return dict.items(self)

    # -- changing ------------------------------------------------------------------------------------------------------

    def __setitem__(self, key: str, value: Any) -> None:
        dict.__setitem__(self, key, value)
        self._own.add(key)

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *others: Any, **more: Any) -> None:
        for key, value in dict(*others, **more).items():
            self[key] = value

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __or__(self, other: Any) -> Any:
        return {**self, **other}

    def __ror__(self, other: Any) -> Any:
        return {**other, **self}

    def pop(self, key: str, default: Any = _MISSING) -> Any:
        if default is not _MISSING and key not in self:
            return default
        self._take(key)
        self.seen.add(key)
        return dict.pop(self, key)

    def popitem(self) -> tuple[str, Any]:
        self._take_all()
        return dict.popitem(self)

    # -- copies are plain ----------------------------------------------------------------------------------------------

    def copy(self) -> dict[str, Any]:
        return dict(self.items())

    def __copy__(self) -> dict[str, Any]:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return plain(self)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a draft is not pickled; take plain(draft)")


def plain(value: Any) -> Any:
    """The same JSON data in dicts and lists of its own; a tuple becomes a list."""
    if isinstance(value, dict):
        return {key: plain(item) if isinstance(item, _CONTAINERS) else item for key, item in dict.items(value)}
    if isinstance(value, (list, tuple)):
        return [plain(item) if isinstance(item, _CONTAINERS) else item for item in value]
    return value


def changed_entries(before: Mapping[str, Any], after: Mapping[str, Any]) -> frozenset[Entry]:
    """The records that differ between two states of a database, those that came or went included.

    What the two share is not compared, so the time goes with what was touched.
    """
    tables = {*before.keys(), *after.keys()}
    found: set[Entry] = set()
    for table in tables:
        # Raw: looking through the draft's own methods would copy, and count as looked up.
        old, new = _raw(before, table), _raw(after, table)
        # Identical parts were never taken over, hence never changed; this is what keeps the time with what was touched.
        if old is not new:
            old_records, new_records = records(old), records(new)
            found |= {
                (table, key)
                for key in {*old_records, *new_records}
                if not _same(old_records.get(key, _MISSING), new_records.get(key, _MISSING))
            }
    return frozenset(found)


def seen_entries(state: Draft) -> frozenset[Entry]:
    """The records that were looked up by their key, in tables that have keys."""
    found: set[Entry] = set()
    for table, value in dict.items(state):
        # A table that was never looked at is still the source's own dict.
        if isinstance(value, Draft) and table in state._own:
            found |= {(table, key) for key in value.seen if key in value}
    return frozenset(found)


def records(table: Any) -> dict[str, Any]:
    """The records of a table by key: of a list by the records' own id, else by position."""
    if isinstance(table, dict):
        return dict(dict.items(table))
    if not isinstance(table, list):
        return {} if table is _MISSING else {"": table}
    name = _id_field(table)
    return {str(record[name]) if name else str(place): record for place, record in enumerate(table)}


def _id_field(table: list[Any]) -> str:
    """The first field of all records that ends with "id" and tells them apart."""
    if not table or not all(isinstance(record, dict) for record in table):
        return ""
    for name in table[0]:
        if str(name).lower().endswith("id") and all(name in record for record in table):
            return name if len({str(record[name]) for record in table}) == len(table) else ""
    return ""


def _raw(state: Mapping[str, Any], key: str) -> Any:
    return dict.get(cast("dict[str, Any]", state), key, _MISSING)


def _same(old: Any, new: Any) -> bool:
    """Equality of JSON data as it is written: True is not 1, and 1 is not 1.0."""
    if old is new:
        return True
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(
            _same(value, dict.__getitem__(new, key)) for key, value in dict.items(old)
        )
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_same, old, new))
    # `==` alone would take true for 1 and 1 for 1.0, which the digest tells apart.
    return type(old) is type(new) and bool(old == new)
