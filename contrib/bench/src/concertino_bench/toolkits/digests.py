"""The digest of a state: the same for equal JSON data in any process, whatever the order of keys.

The canonical form is that of tau-bench: a dict becomes the tuple of its (key, value) pairs sorted by key, a list a
tuple, and the digest is the SHA-256 of that tuple as Python writes it. So digests recorded there can be compared with.
1 and 1.0 differ, as they do in the written form.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, cast


def canonical(value: Any) -> Any:
    """The canonical form: dicts as sorted tuples of pairs, lists as tuples.

    Raises:
        TypeError: the value is not JSON data, such as a dict whose keys are not texts.
        RecursionError: it is nested too deeply.
    """
    if isinstance(value, Mapping):
        return tuple((key, canonical(item)) for key, item in _pairs(value))
    if isinstance(value, (list, tuple)):
        return tuple(canonical(item) for item in value)
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise TypeError(f"a state holds {value!r}, of type {type(value).__name__}; expected JSON data")


def digest(value: Any) -> str:
    """The digest of a state: 64 hexadecimal digits.

    Raises:
        TypeError: the value is not JSON data.
        RecursionError: it is nested too deeply.
    """
    return _hash(str(canonical(value)))


class Digester:
    """Digests of states that share records with one database: the text of what is shared is made once.

    It keeps about twice as much text as the database has.
    """

    def __init__(self, database: Mapping[str, Any]) -> None:
        self._database = database  # keeps the records alive, so that an identity is never used twice
        self._shared = {
            id(record): ""
            for table in database.values()
            for record in (table, *(table.values() if isinstance(table, dict) else ()))
            if isinstance(record, (dict, list))
        }

    def digest(self, state: Mapping[str, Any]) -> str:
        """The same as `digest(state)`."""
        return _hash(self._dict(state, 2))

    def _dict(self, value: Mapping[str, Any], levels: int) -> str:
        return _tuple([f"({key!r}, {self._text(item, levels - 1)})" for key, item in _pairs(value)])

    def _text(self, value: Any, levels: int) -> str:
        known = self._shared.get(id(value))
        if known:
            return known
        # Only tables and records are shared between states, so below a record nothing is looked up.
        text = self._dict(value, levels) if levels and isinstance(value, dict) else repr(canonical(value))
        # Only what the database holds is kept; texts of records that a run made would pile up.
        if known is not None:
            self._shared[id(value)] = text
        return text


def _pairs(value: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The pairs of an object by name; those of a draft as they lie there, so that nothing is copied."""
    items = dict.items(cast("dict[str, Any]", value)) if isinstance(value, dict) else value.items()
    # Keys of different types cannot be sorted, and JSON has texts alone.
    wrong = next((key for key, _ in items if not isinstance(key, str)), None)
    if wrong is not None:
        raise TypeError(f"an object of a state has the key {wrong!r}; expected texts, as in JSON")
    return sorted(items, key=lambda pair: pair[0])


def _hash(text: str) -> str:
    # A model may write half a surrogate pair into a record; that state still has a digest.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _tuple(texts: list[str]) -> str:
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"
