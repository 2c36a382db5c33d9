"""No two members look alike: names that hold what nobody sees are refused, left out or told apart."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from concertino import Model, ModelSpec, Pool, PoolError, SpecError, ToolSpec
from concertino.cli.leaders import _names_in
from concertino.core.display_text import is_plain_name
from concertino.plugins import PluginManager
from terminal_attacks import ATTACKS, INNOCENT, harm

pytest.importorskip("concertino_mcp")
pytest.importorskip("concertino_openai")

from concertino_mcp.catalogue.names import ToolNames
from concertino_openai.client.listing import fetch_models

HIDDEN = {name: text for name, text in ATTACKS.items() if name != "markup"} | {
    "line_break": "a\nb",
    "line_break_at_the_end": "admin\n",
    "blank_at_the_end": "admin ",
}
ATTACK = pytest.mark.parametrize("attack", HIDDEN.values(), ids=HIDDEN.keys())


def tool(name: str, description: str = "Does it.") -> ToolSpec:
    return ToolSpec.from_schema(name, description, {"type": "object", "properties": {}}, lambda given: "")


class Silent(Model):
    async def chat(self, request: Any) -> Any:
        raise AssertionError("not asked")


@ATTACK
def test_a_name_that_hides_something_is_seen_to(attack: str) -> None:
    assert not is_plain_name(attack)


@pytest.mark.parametrize("text", INNOCENT)
def test_a_name_in_any_language_is_plain(text: str) -> None:
    assert is_plain_name(text)


@ATTACK
def test_a_tool_cannot_have_such_a_name(attack: str) -> None:
    with pytest.raises(SpecError) as refused:
        tool(attack)
    assert harm(str(refused.value)) == []


@ATTACK
def test_a_model_cannot_have_such_a_name(attack: str) -> None:
    with pytest.raises(SpecError):
        ModelSpec(f"openai/{attack}", Silent)


@ATTACK
def test_an_alias_cannot_be_such_a_name(attack: str) -> None:
    with pytest.raises(PoolError) as refused:
        Pool([tool("admin"), tool("other")], aliases={"other": attack})
    assert harm(str(refused.value)) == []
    assert "holds characters that nobody sees" in str(refused.value)


@ATTACK
def test_a_role_cannot_have_such_a_name(attack: str) -> None:
    with pytest.raises(PoolError, match="holds characters that nobody sees"):
        Pool([ModelSpec("lead", Silent)], roles={attack: "lead"})


@ATTACK
def test_a_description_keeps_nothing_that_nobody_sees(attack: str) -> None:
    assert harm(tool("admin", attack).description) == []
    assert harm(ModelSpec("lead", Silent, attack).description) == []


@ATTACK
def test_a_provider_with_such_a_name_is_left_out(attack: str) -> None:
    manager = PluginManager()
    row = manager.register(object(), attack)
    assert row.state == "failed"
    assert harm(row.reason) == []


@ATTACK
def test_a_tool_of_an_mcp_server_gets_a_name_of_plain_letters(attack: str) -> None:
    names = ToolNames()
    plain, hidden = names.give("evil.", "admin"), names.give("evil.", attack)
    assert plain == "evil.admin"
    assert hidden is not None
    assert hidden != plain
    assert hidden.isascii()
    assert hidden.isprintable()


@ATTACK
def test_a_model_that_a_server_lists_under_such_a_name_is_left_out(attack: str) -> None:
    listed = {"data": [{"id": "admin"}, {"id": attack}]}

    class Server:
        base_url = "http://127.0.0.1/v1"

        async def request_json(self, *_: object) -> object:
            return listed

    server: Any = Server()
    assert [model.id for model in asyncio.run(fetch_models(server))] == ["admin"]
    assert _names_in(json.dumps(listed).encode()) == ["admin"]
