"""Calls that a server has parsed: whole, or as fragments of a stream, they become `ToolCall`s.

A fragment belongs to the call of its `index`; without one to the call of its `id`; without both to the last call, or
to a new one if it has a name. Some servers number every call of a turn 0: another id, or another name, or a name after
arguments that are complete, begins a new call all the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from concertino import ToolCall
from concertino.text import NAMELESS, written_arguments


class _Call:
    def __init__(self, index: Any, id_: str) -> None:
        self.index = index
        self.id = id_
        self.name = ""
        self.parts: list[str] = []
        self.data: Any = None  # arguments that came as data
        self.extra: Any = None

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
        try:
            json.loads("".join(self.parts))
        except ValueError:
            return False
        return True


class CallFragments:
    """Gathers the calls of one reply.

    Args:
        endpoint: what the calls' opaque data belongs to.
    """

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._calls: list[_Call] = []

    def feed(self, fragments: Sequence[Mapping[str, Any]]) -> None:
        """Take the `tool_calls` of a chunk or an answer."""
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
            call = _Call(index, id_)
            self._calls.append(call)
        call.id = call.id or id_
        return call

    def _known(self, index: Any, id_: str) -> _Call | None:
        """The last call of that index, else of that id, else at all."""
        # Newest first: some servers give every call the index 0, and a fragment continues the last of them.
        for call in reversed(self._calls):
            if call.index == index if index is not None else not id_ or call.id == id_:
                return call
        return None
