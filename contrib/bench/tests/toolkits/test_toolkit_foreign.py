"""Toolkits of others, marked as tau2-bench marks them, without importing it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import pytest
from concertino.testing import run_call
from concertino_bench.toolkits import from_object, replay
from pydantic import BaseModel


class ToolType(StrEnum):
    READ = "read"
    WRITE = "write"
    GENERIC = "generic"


def is_tool(kind: ToolType, mutates: bool | None = None, discoverable: bool = False) -> Callable[[Any], Any]:
    def mark(function: Any) -> Any:
        function.__tool__ = True
        function.__tool_type__ = kind
        if mutates is not None:
            function.__mutates_state__ = mutates
        if discoverable:
            function.__discoverable__ = True
        return function

    return mark


class Room(BaseModel):
    room_id: str
    guest: str | None = None


class Hotel(BaseModel):
    rooms: dict[str, Room]


class HotelTools:
    def __init__(self, db: Hotel) -> None:
        self.db = db

    @is_tool(ToolType.READ)
    def get_room(self, room_id: str) -> Room:
        """Look up a room.

        Args:
            room_id: such as 'r1'

        Returns:
            The room
        """
        return self.db.rooms[room_id]

    @is_tool(ToolType.WRITE)
    def book(self, room_id: str, guest: str) -> Room:
        """Book a room."""
        room = self.db.rooms[room_id]
        before, room.guest = room.guest, guest
        if before:
            raise ValueError(f"Room {room_id} is taken")
        return room

    @is_tool(ToolType.GENERIC, mutates=True)
    def clean_up(self) -> str:
        self.db.rooms.clear()
        return "clean"

    @is_tool(ToolType.READ)
    def peek(self, room_id: str) -> str:
        """A reading tool that writes."""
        self.db.rooms[room_id].guest = "spy"
        return "nothing seen"

    @is_tool(ToolType.WRITE, discoverable=True)
    def secret(self) -> str:
        """Not offered at first."""
        return "s"

    def helper(self) -> str:
        return "no tool"


def hotel() -> HotelTools:
    return HotelTools(Hotel(rooms={"r1": Room(room_id="r1"), "r2": Room(room_id="r2", guest="Ada")}))


def test_marked_methods_become_functions_with_their_flags() -> None:
    functions = from_object(hotel(), instructions="Be kind.").functions()
    assert {name: function.writes for name, function in functions.items()} == {
        "book": True,
        "clean_up": True,
        "get_room": False,
        "peek": False,
    }
    assert functions["get_room"].spec.input_schema["properties"]["room_id"]["description"] == "such as 'r1'"
    assert functions["clean_up"].spec.description == "clean up"


def test_the_object_that_was_given_is_never_changed() -> None:
    tools = hotel()
    before = tools.db.model_dump()
    toolkit = from_object(tools)
    assert toolkit.call("book", {"room_id": "r1", "guest": "Ben"}).content == {"room_id": "r1", "guest": "Ben"}
    assert toolkit.call("clean_up", {}).ok
    assert toolkit.state() == {"rooms": {}}
    assert tools.db.model_dump() == before


def test_a_failing_call_and_a_reading_one_leave_nothing_behind() -> None:
    toolkit = from_object(hotel())
    before = toolkit.digest()
    refused = toolkit.call("book", {"room_id": "r2", "guest": "Ben"})
    assert refused.error == "Room r2 is taken"
    assert toolkit.call("peek", {"room_id": "r1"}).ok
    assert toolkit.call("get_room", {"room_id": "none"}).error == "'none'"
    assert toolkit.digest() == before
    assert toolkit.call("get_room", {"room_id": "r2"}).content["guest"] == "Ada"


def test_a_replay_names_what_was_written_and_what_the_arguments_name() -> None:
    done = replay(
        from_object(hotel()),
        [
            {"name": "get_room", "arguments": {"room_id": "r2"}},
            {"name": "book", "arguments": {"room_id": "r1", "guest": "Ben"}},
        ],
    )
    assert done.operated.written == {("rooms", "r1")}
    assert done.operated.read == {("rooms", "r1"), ("rooms", "r2")}
    assert done.faults == ()


def test_snapshots_and_fresh_ones_work_as_for_our_own() -> None:
    toolkit = from_object(hotel())
    then = toolkit.snapshot()
    toolkit.call("book", {"room_id": "r1", "guest": "Ben"})
    changed = toolkit.digest()
    other = toolkit.fresh()
    assert other.call("book", {"room_id": "r1", "guest": "Ben"}).ok
    assert other.digest() == changed
    toolkit.restore(then)
    assert toolkit.call("book", {"room_id": "r1", "guest": "Cy"}).ok


async def test_they_are_tools_of_a_pool() -> None:
    toolkit = from_object(hotel())
    (book,) = [tool for tool in toolkit.tools() if tool.name == "book"]
    assert (await run_call(book, {"room_id": "r1", "guest": "Ben"})).content == {"room_id": "r1", "guest": "Ben"}
    assert (await run_call(book, {"room_id": "r1", "guest": "Cy"})).content == "Error: Room r1 is taken"


@pytest.mark.parametrize(("thing", "lacks"), [(object(), "db"), (type("T", (), {"db": {}})(), "marked")])
def test_an_object_without_a_database_or_tools_is_refused(thing: Any, lacks: str) -> None:
    with pytest.raises(ValueError, match=lacks):
        from_object(thing)
