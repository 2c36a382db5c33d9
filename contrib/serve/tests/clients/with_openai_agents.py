"""The Agents SDK of OpenAI, on both APIs."""

from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI
from pydantic import BaseModel
from trials import ASK, SCHEMA_ASK, run, same, trial

set_tracing_disabled(True)


class Price(BaseModel):
    usd: int


def agent(kind: Any, **options: Any) -> Any:
    return Agent(name="helper", model=kind(model="helper", openai_client=AsyncOpenAI()), **options)


async def streamed(kind: Any) -> str:
    result = Runner.run_streamed(agent(kind), ASK)
    return "".join([event.data.delta async for event in result.stream_events() if _is_text(event)])


def _is_text(event: Any) -> bool:
    return event.type == "raw_response_event" and event.data.type == "response.output_text.delta"


@trial
async def chat() -> None:
    same((await Runner.run(agent(OpenAIChatCompletionsModel), ASK)).final_output)


@trial
async def chat_stream() -> None:
    same(await streamed(OpenAIChatCompletionsModel))


@trial
async def chat_schema() -> None:
    helper = agent(OpenAIChatCompletionsModel, output_type=Price)
    same((await Runner.run(helper, SCHEMA_ASK)).final_output, Price(usd=4))


@trial
async def response() -> None:
    same((await Runner.run(agent(OpenAIResponsesModel), ASK)).final_output)


@trial
async def response_stream() -> None:
    same(await streamed(OpenAIResponsesModel))


@trial
async def response_schema() -> None:
    same((await Runner.run(agent(OpenAIResponsesModel, output_type=Price), SCHEMA_ASK)).final_output, Price(usd=4))


@trial
async def response_after_another() -> None:
    helper = agent(OpenAIResponsesModel)
    first = await Runner.run(helper, "I am Ada.")
    second = await Runner.run(helper, "Who am I?", previous_response_id=first.last_response_id)
    same(second.final_output, "You said: I am Ada.")


run()
