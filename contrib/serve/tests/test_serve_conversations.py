"""Conversations as the official client reads them: made, continued by responses, read, shortened, removed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import concertino as ct
import openai
import pytest
from concertino.core.known_secrets import Secret
from concertino_serve.serve_settings import ClientKey
from openai.types.conversations import ConversationItemList
from waiting import wait_until

from .serving_here import Scripted, calls_then, served, settings_of
from .test_serve_client_tools import FLAT, calls_both, post

ANSWER = "A kilo costs $4."


def hearing(heard: list[str]) -> Scripted:
    """Answers at once, and notes what it was told."""

    def say(messages: list[ct.Message]) -> str:
        heard.append("\n".join(message.text for message in messages))
        return "".join(ct.ParallelRounds().write_answer(f"answer {len(heard)}"))

    return Scripted(say)


async def test_responses_of_a_conversation_follow_each_other(tmp_path: Path) -> None:
    heard: list[str] = []
    async with served(settings_of(tmp_path, hearing(heard))) as here, here.client() as client:
        begun: Any = [{"type": "message", "role": "user", "content": "I am Ada."}]
        talk = await client.conversations.create(items=begun, metadata={"topic": "fruit"})
        assert (await client.conversations.retrieve(talk.id)).metadata == {"topic": "fruit"}
        first = await client.responses.create(model="helper", input="Who am I?", conversation=talk.id)
        assert first.conversation is not None
        assert first.conversation.id == talk.id
        await client.responses.create(model="helper", input="And now?", conversation={"id": talk.id})
        assert "I am Ada." in heard[0]
        for text in ("I am Ada.", "Who am I?", "answer 1", "And now?"):
            assert text in heard[1]
        page = await client.conversations.items.list(talk.id, order="asc")
        said = [item.content[0].text for item in page.data if item.type == "message"]  # one part each
        assert said == ["I am Ada.", "Who am I?", "answer 1", "And now?", "answer 2"]
        newest = await client.conversations.items.list(talk.id, limit=2)
        assert [item.id for item in newest.data] == [item.id for item in page.data[:-3:-1]]
        assert newest.has_more


async def test_items_are_added_read_and_removed(tmp_path: Path) -> None:
    heard: list[str] = []
    async with served(settings_of(tmp_path, hearing(heard))) as here, here.client() as client:
        talk = await client.conversations.create()
        more: Any = [{"role": "user", "content": "I am Bob."}, {"role": "assistant", "content": "Hello Bob."}]
        added = await client.conversations.items.create(talk.id, items=more)
        ConversationItemList.model_validate(added.to_dict())
        first, second = [item.id for item in added.data]
        assert first is not None
        assert second is not None
        assert (await client.conversations.items.retrieve(first, conversation_id=talk.id)).id == first
        assert (await client.conversations.items.delete(second, conversation_id=talk.id)).id == talk.id
        with pytest.raises(openai.NotFoundError):
            await client.conversations.items.retrieve(second, conversation_id=talk.id)
        await client.responses.create(model="helper", input="Who?", conversation=talk.id)
        assert "I am Bob." in heard[0]
        assert "Hello Bob." not in heard[0]
        assert (await client.conversations.update(talk.id, metadata={"a": "b"})).metadata == {"a": "b"}
        assert (await client.conversations.delete(talk.id)).deleted
        for gone in (client.conversations.retrieve(talk.id), client.conversations.items.list(talk.id)):
            with pytest.raises(openai.NotFoundError):
                await gone


async def test_a_conversation_outlives_the_server_and_a_deleted_response_leaves_it(tmp_path: Path) -> None:
    heard: list[str] = []
    settings = settings_of(tmp_path, hearing(heard))
    async with served(settings) as here, here.client() as client:
        talk = await client.conversations.create()
        first = await client.responses.create(model="helper", input="One?", conversation=talk.id)
        await client.responses.create(model="helper", input="Two?", conversation=talk.id)
    async with served(settings) as here, here.client() as client:
        await client.responses.delete(first.id)
        await client.responses.create(model="helper", input="Three?", conversation=talk.id)
    assert "Two?" in heard[-1]
    assert "One?" not in heard[-1]


async def test_only_one_response_of_a_conversation_is_under_way_and_a_retry_joins_it(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, Scripted(calls_then(ANSWER)), pause=0.3)
    async with served(settings) as here, here.client(max_retries=0) as client:
        talk = await client.conversations.create()
        body = {"model": "helper", "input": "What?", "conversation": talk.id}
        first = asyncio.create_task(post(here, "responses", body))
        await wait_until(lambda: here.app.serving.hub.active)
        again = asyncio.create_task(post(here, "responses", body, **{"x-stainless-retry-count": "1"}))
        with pytest.raises(openai.ConflictError, match="under way"):
            await client.responses.create(model="helper", input="Other?", conversation=talk.id)
        assert await first == await again
        items = (await client.conversations.items.list(talk.id)).data
    assert [item.type for item in items] == ["message", "mcp_call", "message"]


async def test_a_call_of_the_clients_tool_goes_on_in_its_conversation(tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_both))) as here, here.client() as client:
        talk = await client.conversations.create()
        first = await client.responses.create(model="helper", input="?", tools=FLAT, conversation=talk.id)
        call = first.output[-1]
        assert call.type == "function_call"
        with pytest.raises(openai.BadRequestError, match="waits for"):
            await client.responses.create(model="helper", input="And?", conversation=talk.id)
        results: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
        await client.responses.create(model="helper", input=results, conversation=talk.id)
        page = await client.conversations.items.list(talk.id, order="asc")
        await client.responses.create(model="helper", input="And?", conversation=talk.id)
    kinds = [item.type for item in page.data]
    assert kinds == ["message", "mcp_call", "function_call", "function_call_output", "message"]


async def test_a_conversation_belongs_to_its_key_and_its_id_names_no_other_file(tmp_path: Path) -> None:
    ada, bob = Secret("ada-talks-0123456789"), Secret("bob-talks-0123456789")
    settings = settings_of(tmp_path, hearing([]), keys=(ClientKey("ada", ada), ClientKey("bob", bob)))
    async with served(settings) as here, here.client(ada) as first, here.client(bob) as second:
        talk = await first.conversations.create(metadata={"a": "b"})
        other = {"id": "other", "owner": "bob", "created": 1, "entries": [], "dropped": []}
        (tmp_path / "conversations" / "other.json").write_text(json.dumps(other))
        for name in (talk.id, "other", "..%2Fx", "conv_" + "0" * 24):
            with pytest.raises(openai.NotFoundError):
                await second.conversations.retrieve(name)
        with pytest.raises(openai.NotFoundError):
            await second.responses.create(model="helper", input="?", conversation=talk.id)
        assert (await first.conversations.retrieve(talk.id)).id == talk.id


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("conversations", {"items": 3}, "items"),
        ("conversations", {"items": [{"type": "nothing"}]}, "items[0]"),
        ("conversations", {"metadata": 3}, "metadata"),
        ("responses", {"model": "helper", "input": "?", "conversation": 3}, "conversation"),
        (
            "responses",
            {"model": "helper", "input": "?", "conversation": "TALK", "previous_response_id": "x"},
            "conversation",
        ),
    ],
)
async def test_a_wrong_conversation_is_told_what_is_wrong(path: str, body: Any, param: str, tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, hearing([]))) as here, here.client() as client:
        talk = await client.conversations.create()
        given = {**body, "conversation": talk.id} if body.get("conversation") == "TALK" else body
        status, data = await post(here, path, given)
    assert (status, json.loads(data)["error"]["param"]) == (400, param)
