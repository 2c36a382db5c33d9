"""Calls that a server has parsed: whole, or as fragments of a stream, they become `ToolCall`s.

A fragment belongs to the call of its `index`; without one to the call of its `id`; without both to the last call, or
to a new one if it has a name. Some servers number every call of a turn 0: another id, or another name, or a name after
arguments that are complete, begins a new call all the same.

Invariant: a fragment costs the same however many came before it, and their numbers are bounded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from concertino import ToolCall
from concertino.text import NAMELESS, written_arguments

from .json_end import JsonEnd

CALLS = 5_000
"""Calls of one reply at most."""
PIECES = 1_000_000
"""Fragments of one reply at most; their bytes are bounded with the reply's."""


class TooManyCalls(Exception):
    """A reply has more calls, or fragments of calls, than are taken; says how many are."""


class _Call:
    def __init__(self, place: int) -> None:
        self.place = place
        self.id = ""
        self.name = ""
        self.parts: list[str] = []
        self.data: Any = None  # arguments that came as data
        self.extra: Any = None
        self._end = JsonEnd()
        self._seen = 0  # parts that `_end` has been told

    @property
    def arguments(self) -> str:
        return written_arguments("".join(self.parts) if self.data is None else self.data)

    def continued_by(self, id_: str, name: str) -> bool:
        """Whether a fragment with this id and name continues this call."""
        if not name or not self.name:
            return True
        if name != self.name or (id_ and self.id and id_ != self.id):
            return False
        # One name twice without an id: after complete arguments it is a second call of the same tool.
        return bool(id_) or not self._complete()

    def _complete(self) -> bool:
        """Whether it has arguments, and nothing can follow on them."""
        if self.data is not None:
            return True
        # Each part is looked at once: a server may send the name with every one of a million.
        for part in self.parts[self._seen :]:
            self._end.feed(part)
        self._seen = len(self.parts)
        return self._end.complete


class CallFragments:
    """Gathers the calls of one reply, in time that grows with their number.

    Args:
        endpoint: what the calls' opaque data belongs to.
    """

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._calls: list[_Call] = []
        self._pieces = 0
        # The newest of each: some servers give every call the index 0, and a fragment continues the last of them.
        self._by_index: dict[Any, _Call] = {}
        self._by_id: dict[str, _Call] = {}

    def feed(self, fragments: Sequence[Mapping[str, Any]]) -> None:
        """Take the `tool_calls` of a chunk or an answer.

        Raises:
            TooManyCalls: there are too many.
        """
        self._pieces += len(fragments)
        if self._pieces > PIECES:
            raise TooManyCalls(f"calls in more than {PIECES:,} fragments")
        for fragment in fragments:
            function = fragment.get("function") or fragment
            name = function.get("name") or ""
            call = self._call_of(fragment.get("index"), fragment.get("id") or "", name)
            call.name = call.name or name
            call.extra = fragment.get("extra_content") or call.extra
            arguments = function.get("arguments")
            if isinstance(arguments, str):
                call.parts.append(arguments)
            elif arguments is not None:
                call.data = arguments

    def calls(self, *, cut_off: bool = False) -> list[ToolCall]:
        """The calls so far, in the order in which they began.

        Args:
            cut_off: the length ended the reply; a last call without arguments had no time for them, and to run it
                without any would be a guess.
        """
        calls = [
            ToolCall(
                call.name or NAMELESS,
                call.arguments,
                call.id,
                {"endpoint": self._endpoint, "extra_content": call.extra} if call.extra else {},
            )
            for call in self._calls
        ]
        if cut_off and calls and self._calls[-1].data is None and not "".join(self._calls[-1].parts).strip():
            unfinished = f'{{"name": {json.dumps(calls[-1].name)}, "arguments":'
            calls[-1] = replace(calls[-1], arguments=unfinished)
        return calls

    def _call_of(self, index: Any, id_: str, name: str) -> _Call:
        """The call that a fragment belongs to; a new one if it belongs to none."""
        call = self._known(index, id_)
        if call is None or not call.continued_by(id_, name):
            if len(self._calls) == CALLS:
                raise TooManyCalls(f"more than {CALLS:,} calls")
            call = _Call(len(self._calls))
            self._calls.append(call)
            self._by_index[index] = call
        if id_ and not call.id:
            call.id = id_
            known = self._by_id.get(id_)
            if known is None or known.place < call.place:
                self._by_id[id_] = call
        return call

    def _known(self, index: Any, id_: str) -> _Call | None:
        """The last call of that index, else of that id, else at all."""
        if index is not None:
            return self._by_index.get(index)
        if id_:
            return self._by_id.get(id_)
        return self._calls[-1] if self._calls else None
