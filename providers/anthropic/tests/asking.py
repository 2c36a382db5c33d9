"""Ways to ask: a model of the stand-in, and one question."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from concertino import ChatRequest, Message, Reply, Sampling, Thought
from concertino_anthropic.client import AnthropicModel

from .stand_in import StandIn

OPUS = "claude-opus-5-5"
HAIKU = "claude-haiku-4-5"
ADD: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two integers.",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
    },
}


@asynccontextmanager
async def asked(server: StandIn, model: str = OPUS, **options: Any) -> AsyncIterator[AnthropicModel]:
    """A model at the stand-in, closed at the end."""
    made = AnthropicModel(model=model, base_url=server.address, key_env="ANTHROPIC_API_KEY", **options)
    try:
        yield made
    finally:
        await made.close()


def request(*messages: Message | str, **options: Any) -> ChatRequest:
    """A request; a text is a message of the user's."""
    return ChatRequest([Message("user", each) if isinstance(each, str) else each for each in messages], **options)


async def listen(model: AnthropicModel, asked: ChatRequest) -> tuple[str, str, Reply]:
    """What a stream gives: its thoughts, its text, and the reply."""
    thoughts, said, reply = [], [], None
    async for piece in model.stream(asked):
        if isinstance(piece, Reply):
            reply = piece
        elif isinstance(piece, Thought):
            thoughts.append(piece)
        else:
            said.append(piece)
    assert reply is not None
    return "".join(thoughts), "".join(said), reply


FEW = Sampling(max_tokens=2000)
