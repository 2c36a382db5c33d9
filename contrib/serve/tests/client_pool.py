"""A plugin whose model follows the questions of `clients/`, for a server that the tests start by the command."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import concertino as ct

STRATEGY = ct.ParallelRounds()


class Shop(ct.Model):
    """Calls `price` once and answers; says who was asking; takes long where it is asked to."""

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        return self._reply(await self._said(request))

    async def stream(self, request: ct.ChatRequest) -> AsyncIterator[str | ct.Reply]:
        text = await self._said(request)
        for place in range(0, len(text), 6):
            await asyncio.sleep(0.001)
            yield text[place : place + 6]
        yield self._reply(text)

    async def _said(self, request: ct.ChatRequest) -> str:
        told = "\n".join(message.text for message in request.messages)
        if "Take long." in told:
            await asyncio.sleep(600)
        if "Who am I?" in told:
            return self._answer("You said: I am Ada." if "I am Ada." in told else "I do not know.")
        if "as an object" in told:
            return self._answer('{"usd": 4}')
        if "tool_response" in request.messages[-1].text or "I am Ada." in told:
            return self._answer("A kilo costs $4, says the shop.")
        return str(STRATEGY.write_turn([ct.Call("price", {"fruit": "kiwi"}, "a")], "look"))

    def _answer(self, text: str) -> str:
        return "".join(STRATEGY.write_answer(text))

    def _reply(self, text: str) -> ct.Reply:
        return ct.Reply(text, usage=ct.Usage(input_tokens=100, output_tokens=10))


@ct.tool(name="shop/price")
async def price(fruit: str) -> str:
    """What a kilo costs."""
    return "$4"


@ct.hookimpl
def concertino_tools() -> list[ct.ToolSpec]:
    return [price]


@ct.hookimpl
def concertino_models() -> list[ct.ModelSpec]:
    return [ct.ModelSpec("shop/lead", Shop)]
