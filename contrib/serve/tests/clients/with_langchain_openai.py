"""LangChain's client, on both APIs."""

from typing import Any

from langchain_openai import ChatOpenAI
from pydantic import BaseModel
from trials import ASK, SCHEMA_ASK, run, same, trial


class Price(BaseModel):
    usd: int


def model(**options: Any) -> ChatOpenAI:
    return ChatOpenAI(model="helper", **options)


@trial
def chat() -> None:
    got = model().invoke(ASK)
    same(got.text)
    same(got.tool_calls, [])


@trial
async def chat_async() -> None:
    same((await model().ainvoke(ASK)).text)


@trial
def chat_stream() -> None:
    same("".join(chunk.text for chunk in model().stream(ASK)))


@trial
async def chat_stream_async() -> None:
    same("".join([chunk.text async for chunk in model().astream(ASK)]))


@trial
def chat_schema() -> None:
    same(model().with_structured_output(Price, method="json_schema").invoke(SCHEMA_ASK), Price(usd=4))


@trial
def batch() -> None:
    same([message.text for message in model().batch([ASK, ASK])], [model().invoke(ASK).text] * 2)


@trial
def response() -> None:
    same(model(use_responses_api=True).invoke(ASK).text)


@trial
def response_stream() -> None:
    same("".join(chunk.text for chunk in model(use_responses_api=True).stream(ASK)))


run()
