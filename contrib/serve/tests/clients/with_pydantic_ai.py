"""Pydantic AI, on both APIs."""

from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from trials import ASK, KEY, SCHEMA_ASK, URL, run, same, trial


class Price(BaseModel):
    usd: int


def agent(kind: Any, **options: Any) -> Any:
    return Agent(kind("helper", provider=OpenAIProvider(base_url=URL, api_key=KEY)), **options)


async def streamed(kind: Any) -> str:
    async with agent(kind).run_stream(ASK) as result:
        return "".join([piece async for piece in result.stream_text(delta=True, debounce_by=None)])


@trial
async def chat() -> None:
    same((await agent(OpenAIChatModel).run(ASK)).output)


@trial
async def chat_stream() -> None:
    same(await streamed(OpenAIChatModel))


@trial
async def chat_schema() -> None:
    same((await agent(OpenAIChatModel, output_type=NativeOutput(Price)).run(SCHEMA_ASK)).output, Price(usd=4))


@trial
async def chat_history() -> None:
    helper = agent(OpenAIChatModel)
    first = await helper.run("I am Ada.")
    second = await helper.run("Who am I?", message_history=first.all_messages())
    same(second.output, "You said: I am Ada.")


@trial
async def response() -> None:
    same((await agent(OpenAIResponsesModel).run(ASK)).output)


@trial
async def response_stream() -> None:
    same(await streamed(OpenAIResponsesModel))


@trial
async def response_schema() -> None:
    same((await agent(OpenAIResponsesModel, output_type=NativeOutput(Price)).run(SCHEMA_ASK)).output, Price(usd=4))


run()
