"""LiteLLM's client."""

import json
from typing import Any

import litellm
from trials import ASK, KEY, MESSAGES, PRICE, SCHEMA_ANSWER, SCHEMA_ASK, URL, run, same, trial

WHERE: Any = {"model": "openai/helper", "api_base": URL, "api_key": KEY}


@trial
def chat() -> None:
    same(litellm.completion(messages=MESSAGES, **WHERE).choices[0].message.content)


@trial
async def chat_async() -> None:
    same((await litellm.acompletion(messages=MESSAGES, **WHERE)).choices[0].message.content)


@trial
def chat_stream() -> None:
    chunks = litellm.completion(messages=MESSAGES, stream=True, **WHERE)
    same("".join(chunk.choices[0].delta.content or "" for chunk in chunks))


@trial
async def chat_stream_async() -> None:
    chunks = await litellm.acompletion(messages=MESSAGES, stream=True, **WHERE)
    same("".join([chunk.choices[0].delta.content or "" async for chunk in chunks]))


@trial
def chat_schema() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "price", "schema": PRICE, "strict": True}}
    got = litellm.completion(messages=[{"role": "user", "content": SCHEMA_ASK}], response_format=form, **WHERE)
    same(json.loads(got.choices[0].message.content), SCHEMA_ANSWER)


@trial
def response() -> None:
    same(litellm.responses(input=ASK, **WHERE).output_text)


@trial
def response_stream() -> None:
    events = list(litellm.responses(input=ASK, stream=True, **WHERE))
    same("".join(event.delta for event in events if event.type == "response.output_text.delta"))


@trial
def error() -> None:
    try:
        litellm.completion(messages=MESSAGES, **{**WHERE, "model": "openai/none"})
    except litellm.NotFoundError:
        return
    raise ValueError("no NotFoundError")


run()
