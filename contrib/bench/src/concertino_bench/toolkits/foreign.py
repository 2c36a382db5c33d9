"""Toolkits that others wrote: an object with a database and methods that are marked as tools, taken as a `Toolkit`.

The marks are those of tau2-bench, read by name, so nothing of it is imported: `__tool__` is true, `__tool_type__` is
"read", "write", "think" or "generic", `__mutates_state__` overrides what the type says, `__discoverable__` tools are
left out. The database is the object's attribute `db`: a pydantic model, or plain data.

The invariants of `Toolkit` hold here too: the object that was given is never called, only copies of it are; a call that
fails, or a reading one, leaves nothing behind. Each call works on a copy, so it costs time with the size of the data.
Which records were looked up is not seen from outside: those that the arguments name count.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from concertino import tool

from .drafts import Entry, changed_entries, plain, records
from .toolkit import CallOutcome, Database, Function, Toolkit, _as_json

_WRITE = "write"


class ForeignToolkit(Toolkit):
    """A toolkit around an object of others. Made by `from_object`."""

    def __init__(self, thing: Any, instructions: str = "") -> None:
        if not hasattr(thing, "db"):
            raise ValueError(f"{type(thing).__name__} has no attribute db; expected an object with its database there")
        super().__init__(Database(_data(thing.db)))
        self.instructions = instructions
        self._thing = thing
        self._live = copy.deepcopy(thing.db)
        self._functions = {function.name: function for function in _functions(thing)}
        if not self._functions:
            raise ValueError(f"{type(thing).__name__} has no method that is marked as a tool (`__tool__`)")

    def functions(self) -> Mapping[str, Function]:
        """The marked methods."""
        return self._functions

    def _perform(self, function: Function, arguments: dict[str, Any]) -> CallOutcome:
        # The object is shared by all runs, so each call works on a shallow copy with a database of its own.
        worker = copy.copy(self._thing)
        worker.db = copy.deepcopy(self._live)
        try:
            content = _as_json(_data(getattr(worker, function.method.__name__)(**arguments)))
        except Exception as error:  # their functions refuse by any exception
            return CallOutcome(error=str(error) or type(error).__name__)
        # Before the state is replaced: a record that the call removes was looked up in the old one.
        read = _named(self._state, arguments)
        if not function.writes:
            return CallOutcome(content, read=read)
        # The plain form is what is digested and compared; `_live` keeps the form that their functions expect.
        state = _data(worker.db)
        outcome = CallOutcome(content, read=read, written=changed_entries(self._state, state))
        self._state, self._live = state, worker.db
        return outcome

    def snapshot(self) -> Any:
        """The state, to go back to."""
        return SimpleNamespace(state=self._state, ended=self._ended, live=self._live)

    def restore(self, snapshot: Any) -> None:
        """Go back to a snapshot of this toolkit."""
        self._state, self._ended, self._live = snapshot.state, snapshot.ended, snapshot.live

    def fresh(self) -> ForeignToolkit:
        """Another one of the same object, in its first state."""
        other = super().fresh()
        other._live = copy.deepcopy(self._thing.db)
        return other


def from_object(thing: Any, *, instructions: str = "") -> ForeignToolkit:
    """Take an object with marked methods as a toolkit.

    Args:
        thing: has its database as attribute `db`; it is not changed.
        instructions: the policy.

    Raises:
        ValueError: it has no database, or no marked method.
        SpecError: a method cannot be a tool; says why.
    """
    return ForeignToolkit(thing, instructions)


def _functions(thing: Any) -> list[Function]:
    found = []
    for name, method in inspect.getmembers(type(thing), callable):
        if not getattr(method, "__tool__", False) or getattr(method, "__discoverable__", False):
            continue
        kind = getattr(method, "__tool_type__", "read")
        writes = getattr(method, "__mutates_state__", None)
        writes = str(getattr(kind, "value", kind)).lower() == _WRITE if writes is None else bool(writes)
        bound: Callable[..., Any] = getattr(thing, name)
        options: dict[str, Any] = {} if (bound.__doc__ or "").strip() else {"description": name.replace("_", " ")}
        found.append(Function(tool(name=name, writes=writes, **options)(bound), writes, False, method))
    return found


def _data(value: Any) -> Any:
    """Plain data of a pydantic model, or of containers with some inside."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if isinstance(value, dict):
        return {str(key): _data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_data(item) for item in value]
    return plain(value)


def _named(state: Mapping[str, Any], arguments: Mapping[str, Any]) -> frozenset[Entry]:
    """The records whose key is the value of an argument."""
    values = {value for value in arguments.values() if isinstance(value, str)}
    return frozenset((table, key) for table in state for key in records(state[table]) if key in values)
