"""The official client: synchronous and not, whole and streamed, typed, read again, cancelled, deleted."""

import time
from typing import Any

import openai
from pydantic import BaseModel
from trials import ANSWER, ASK, KEY, MESSAGES, SCHEMA_ASK, run, same, trial

client = openai.OpenAI()


class Price(BaseModel):
    usd: int


@trial
def models() -> None:
    same([model.id for model in client.models.list()], ["helper"])
    same(client.models.retrieve("helper").id, "helper")


@trial
def chat() -> None:
    got = client.chat.completions.create(model="helper", messages=MESSAGES)
    same(got.choices[0].message.content)
    same(got.choices[0].message.tool_calls, None)
    same(got.choices[0].finish_reason, "stop")


@trial
async def chat_async() -> None:
    async with openai.AsyncOpenAI() as other:
        got = await other.chat.completions.create(model="helper", messages=MESSAGES)
        same(got.choices[0].message.content)


@trial
def chat_stream() -> None:
    options: Any = {"include_usage": True}
    chunks = list(
        client.chat.completions.create(model="helper", messages=MESSAGES, stream=True, stream_options=options)
    )
    text = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    same("".join(text))
    same(sum(1 for piece in text if piece) > 1, True)
    same(chunks[-1].usage is not None and chunks[-1].usage.total_tokens > 0, True)


@trial
async def chat_stream_async() -> None:
    async with openai.AsyncOpenAI() as other:
        stream = await other.chat.completions.create(model="helper", messages=MESSAGES, stream=True)
        same("".join([chunk.choices[0].delta.content or "" async for chunk in stream]))


@trial
def chat_stream_helper() -> None:
    with client.chat.completions.stream(model="helper", messages=MESSAGES) as stream:
        for _ in stream:
            pass
        same(stream.get_final_completion().choices[0].message.content)


@trial
def chat_parse() -> None:
    asked: Any = [{"role": "user", "content": SCHEMA_ASK}]
    got = client.chat.completions.parse(model="helper", messages=asked, response_format=Price)
    same(got.choices[0].message.parsed, Price(usd=4))


@trial
def response() -> None:
    got = client.responses.create(model="helper", input=ASK)
    same(got.output_text)
    same([item.type for item in got.output], ["mcp_call", "message"])
    same(client.responses.retrieve(got.id).output_text)
    same(len(client.responses.input_items.list(got.id).data), 1)


@trial
def response_stream() -> None:
    with client.responses.stream(model="helper", input=ASK) as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        same("".join(deltas))
        same(stream.get_final_response().output_text)


@trial
async def response_stream_async() -> None:
    async with openai.AsyncOpenAI() as other, other.responses.stream(model="helper", input=ASK) as stream:
        async for _ in stream:
            pass
        same((await stream.get_final_response()).output_text)


@trial
def response_parse() -> None:
    got = client.responses.parse(model="helper", input=SCHEMA_ASK, text_format=Price)
    same(got.output_parsed, Price(usd=4))


@trial
def response_read_on() -> None:
    begun = client.responses.create(model="helper", input=ASK, background=True, stream=True)
    seen = [next(begun) for _ in range(3)]
    begun.close()
    number = seen[-1].sequence_number
    first: Any = seen[0]
    rest = list(client.responses.retrieve(first.response.id, stream=True, starting_after=number))
    same([event.sequence_number for event in rest], list(range(number + 1, number + 1 + len(rest))))
    last: Any = rest[-1]
    same(last.response.output_text)


@trial
def response_after_another() -> None:
    first = client.responses.create(model="helper", input="I am Ada.")
    second = client.responses.create(model="helper", input="Who am I?", previous_response_id=first.id)
    same(second.output_text, "You said: I am Ada.")


@trial
def cancel() -> None:
    begun = client.responses.create(model="helper", input="Take long.", background=True)
    same(begun.status, "in_progress")
    same(client.responses.cancel(begun.id).status, "cancelled")
    same(client.responses.retrieve(begun.id).status, "cancelled")


@trial
def delete() -> None:
    got = client.responses.create(model="helper", input=ASK)
    client.responses.delete(got.id)
    try:
        client.responses.retrieve(got.id)
    except openai.NotFoundError:
        return
    raise ValueError("a deleted response was found")


@trial
def timeout_and_leave() -> None:
    begun = time.monotonic()
    try:
        client.with_options(timeout=0.5, max_retries=0).responses.create(model="helper", input="Take long.")
    except openai.APITimeoutError:
        same(time.monotonic() - begun < 20, True)
        return
    raise ValueError("it did not take long")


@trial
def errors() -> None:
    for kind, ask in (
        (openai.NotFoundError, lambda: client.chat.completions.create(model="none", messages=MESSAGES)),
        (openai.BadRequestError, lambda: client.chat.completions.create(model="helper", messages=[])),
        (openai.AuthenticationError, lambda: client.with_options(api_key=f"{KEY}x").models.list()),
    ):
        try:
            ask()
        except kind:
            continue
        raise ValueError(f"no {kind.__name__}")


@trial
def image() -> None:
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    part: Any = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{pixel}"}}
    said: Any = [{"role": "user", "content": [{"type": "text", "text": ASK}, part]}]
    same(client.chat.completions.create(model="helper", messages=said).choices[0].message.content, ANSWER)


run()
