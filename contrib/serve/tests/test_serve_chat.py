"""Chat completions as the official client reads them: whole, as a stream, again, and when things go wrong."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import concertino as ct
import httpx2
import openai
import pytest
from concertino_serve import run_ledger
from concertino_serve.request_digests import Digests
from concertino_serve.run_ledger import RunLedger
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from waiting import wait_until

from .serving_here import Counter, Here, Scripted, calls_then, served, settings_of
from .serving_scripts import FIVE, Scripts, random_script

ASK: Any = [{"role": "user", "content": "What does a kilo of kiwis cost?"}]
ANSWER = "A kilo costs $4, and that is a lot."


async def raw(here: Here, body: dict[str, Any], **headers: str) -> tuple[int, bytes, Any]:
    """Status, body and headers of a request that no client has touched."""
    async with httpx2.AsyncClient(verify=False, timeout=30) as client:
        answer = await client.post(f"{here.url}/v1/chat/completions", json=body, headers=headers)
        return answer.status_code, answer.content, answer.headers


def frames_of(data: bytes) -> list[Any]:
    """The objects of a stream; every frame is one that the official client has a type for."""
    text = data.decode()
    assert text.endswith("\n\n")
    found = []
    for frame in text[:-2].split("\n\n"):
        assert frame.startswith("data: ")
        if frame != "data: [DONE]":
            chunk = json.loads(frame[6:])
            if "error" not in chunk:
                ChatCompletionChunk.model_validate(chunk, strict=True)
            found.append(chunk)
    return found


def folded(frames: list[Any]) -> dict[str, Any]:
    """What the deltas of a stream add up to."""
    message: dict[str, Any] = {"refusal": None}
    reason = usage = None
    for frame in frames:
        usage = frame.get("usage") or usage
        for choice in frame["choices"]:
            reason = choice["finish_reason"] or reason
            for name, text in choice["delta"].items():
                message[name] = message.get(name, "") + text
    first = frames[0]
    choice = {"index": 0, "finish_reason": reason, "message": message}
    return {
        "id": first["id"],
        "object": "chat.completion",
        "created": first["created"],
        "model": first["model"],
        "choices": [choice],
        "usage": usage,
    }


async def test_the_official_client_gets_models_and_an_answer(tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_then(ANSWER)))) as here, here.client() as client:
        assert [model.id async for model in await client.models.list()] == ["helper"]
        assert (await client.models.retrieve("helper")).owned_by == "concertino"
        got = await client.chat.completions.create(model="helper", messages=ASK)
    assert got.choices[0].message.content == ANSWER
    assert got.choices[0].message.tool_calls is None
    assert got.usage is not None
    assert got.usage.total_tokens == 220
    end = ct.Trace.load(tmp_path / f"{got.id}.trace.jsonl").end
    assert end is not None
    assert end["answer"] == ANSWER


async def test_a_stream_comes_in_pieces_and_ends_with_the_usage(tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_then(ANSWER)))) as here, here.client() as client:
        options: Any = {"include_usage": True}
        stream = await client.chat.completions.create(model="helper", messages=ASK, stream=True, stream_options=options)
        chunks = [chunk async for chunk in stream]
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert len(pieces) > 3
    assert "".join(pieces) == ANSWER
    assert chunks[-1].usage is not None
    assert not chunks[-1].choices


async def test_folding_a_stream_gives_the_plain_object_and_it_reads_the_same_again(tmp_path: Path) -> None:
    scripts = Scripts()
    await compare(tmp_path, scripts, range(20))


@pytest.mark.soak
async def test_folding_gives_the_plain_object_for_a_thousand_runs(tmp_path: Path) -> None:
    await compare(tmp_path, Scripts(), range(1000))


async def compare(folder: Path, scripts: Scripts, seeds: range) -> None:
    seen = set()
    presets = scripts.settings(folder)
    async with served(presets) as here:
        for seed in seeds:
            name = FIVE[seed % len(FIVE)]
            number = scripts.add(random_script(name, seed))
            body = {"model": name, "messages": [{"role": "user", "content": f"script-{number}"}]}
            streaming = {**body, "stream": True, "stream_options": {"include_usage": True}}
            key = {"idempotency-key": f"k{seed}"}
            status, data, _ = await raw(here, streaming, **key)
            assert status == 200
            first = frames_of(data)
            asked = scripts.asked
            _, again, _ = await raw(here, streaming, **key)
            assert again == data
            plain = await whole(here, first[0]["id"])
            assert scripts.asked == asked, "a repeated request asked a model"
            if "error" in first[-1]:
                assert plain == first[-1]
            else:
                ChatCompletion.model_validate(plain, strict=True)
                assert folded(first) == plain
            seen.add((name, "error" in first[-1], any("reasoning_content" in str(frame) for frame in first)))
    assert {name for name, *_ in seen} == set(FIVE)
    assert any(has_calls for *_, has_calls in seen)


async def whole(here: Here, run_id: str) -> dict[str, Any]:
    """The plain object of a run, or its error."""
    from concertino_serve.api_error import ApiError
    from concertino_serve.chat_wire import completion

    run = here.app.serving.hub.get(run_id, "")
    try:
        return completion(run.id, run.request, await run.moments())
    except ApiError as error:
        return error.to_json()


async def test_a_retry_of_the_official_client_joins_the_run_and_costs_nothing_twice(tmp_path: Path) -> None:
    model, counter = Scripted(calls_then(ANSWER)), Counter()
    async with served(settings_of(tmp_path, model, counter=counter, pause=0.2)) as here:
        body = {"model": "helper", "messages": ASK}
        first, second = await asyncio.gather(raw(here, body), after(0.05, raw(here, body, **{RETRY: "1"})))
        third = await raw(here, body, **{RETRY: "2"})
    assert first[:2] == second[:2] == third[:2]
    assert (model.asked, counter.calls) == (2, 1)


RETRY = "x-stainless-retry-count"


async def after(seconds: float, work: Any) -> Any:
    await asyncio.sleep(seconds)
    return await work


async def test_the_same_request_without_a_sign_of_a_retry_is_another_run(tmp_path: Path) -> None:
    counter = Counter()
    async with served(settings_of(tmp_path, Scripted(calls_then(ANSWER)), counter=counter)) as here:
        for _ in range(2):
            await raw(here, {"model": "helper", "messages": ASK}, **{RETRY: "0"})
    assert counter.calls == 2


async def test_an_idempotency_key_with_another_body_is_refused(tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_then(ANSWER)))) as here:
        key = {"idempotency-key": "k1"}
        await raw(here, {"model": "helper", "messages": ASK}, **key)
        status, data, headers = await raw(here, {"model": "helper", "messages": [*ASK, *ASK]}, **key)
    assert status == 409
    assert json.loads(data)["error"]["code"] == "conflict"
    assert headers["x-should-retry"] == "false"


@pytest.mark.parametrize("set_to", ["cancel", "continue"])
async def test_who_leaves_cancels_the_run_or_not_as_set(set_to: str, tmp_path: Path) -> None:
    settings = settings_of(tmp_path, Scripted(calls_then(ANSWER)), pause=0.3, preset={"on_disconnect": set_to})
    async with served(settings) as here:
        async with here.client(max_retries=0) as client:
            with pytest.raises(openai.APITimeoutError):
                await client.chat.completions.create(model="helper", messages=ASK, timeout=0.1)
        hub = here.app.serving.hub
        await wait_until(lambda: not hub.active)
        [run] = hub.runs.list()
    assert run.stop == ("cancelled" if set_to == "cancel" else "answered")


def test_a_run_that_memory_has_dropped_is_found_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_ledger, "_MOST_KNOWN", 2)
    digests = Digests(RunLedger(), tmp_path)
    ids = [f"20260101-00000{number}-abcdef-{number:016x}" for number in range(4)]
    for run_id in ids:
        (tmp_path / f"{run_id}.trace.jsonl").touch()
        digests.add(run_id)
    assert [digests.find(f"{number:016x}rest") for number in range(4)] == ids
    assert digests.find("f" * 64) is None


async def test_nothing_is_left_of_a_run_whose_trace_is_deleted(tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_then(ANSWER)))) as here:
        _, data, _ = await raw(here, {"model": "helper", "messages": ASK, "stream": True})
    assert len(list(tmp_path.iterdir())) == 3  # noqa: ASYNC240
    ct.TraceStore(tmp_path).delete(frames_of(data)[0]["id"])
    assert not list(tmp_path.iterdir())  # noqa: ASYNC240


@pytest.mark.slow
async def test_a_retry_after_a_broken_connection_goes_on_with_the_same_run(tmp_path: Path) -> None:
    class HangsOnce(Scripted):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            if self.asked == 1:
                self.asked += 1
                await asyncio.sleep(60)
            return await super().chat(request)

    model, counter = HangsOnce(calls_then(ANSWER)), Counter()
    async with served(settings_of(tmp_path, model, counter=counter)) as here:
        # The first attempt hangs in its second request; the client repeats it by itself.
        async with here.client(max_retries=1, timeout=1.5) as client:
            got = await client.chat.completions.create(model="helper", messages=ASK)
        assert got.choices[0].message.content == ANSWER
        assert len(here.app.serving.hub.runs.list()) == 1
    assert (model.asked, counter.calls) == (3, 1)


# -- what is sent ------------------------------------------------------------------------------------------------------


async def test_earlier_turns_and_system_messages_reach_the_model(tmp_path: Path) -> None:
    heard: list[str] = []

    def say(messages: list[ct.Message]) -> str:
        heard.append("\n".join(f"{message.role}: {message.text}" for message in messages))
        return "".join(ct.ParallelRounds().write_answer("hello"))

    talk: Any = [
        {"role": "system", "content": "Speak like a gardener."},
        {"role": "user", "content": "I am Ada."},
        {"role": "assistant", "content": "Hello Ada."},
        {"role": "user", "content": [{"type": "text", "text": "Who am I?"}]},
    ]
    async with served(settings_of(tmp_path, Scripted(say))) as here, here.client() as client:
        await client.chat.completions.create(model="helper", messages=talk)
    for text in ("Speak like a gardener.", "I am Ada.", "Hello Ada.", "Who am I?"):
        assert text in heard[0]


async def test_the_last_of_nothing_but_instructions_is_the_question(tmp_path: Path) -> None:
    said: Any = [{"role": "system", "content": "Be brief."}, {"role": "developer", "content": "What does it cost?"}]
    async with served(settings_of(tmp_path, Scripted(calls_then(ANSWER)))) as here, here.client() as client:
        got = await client.chat.completions.create(model="helper", messages=said)
    assert ct.Trace.load(tmp_path / f"{got.id}.trace.jsonl").question == "What does it cost?"


async def test_an_answer_with_a_schema_is_read_by_the_client(tmp_path: Path) -> None:
    from pydantic import BaseModel

    class Price(BaseModel):
        usd: float

    model = Scripted(calls_then('{"usd": 4}'))
    async with served(settings_of(tmp_path, model)) as here, here.client() as client:
        got = await client.chat.completions.parse(model="helper", messages=ASK, response_format=Price)
    assert got.choices[0].message.parsed == Price(usd=4)


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def image(url: str) -> Any:
    return [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": url}}]


def file(data: str) -> Any:
    return [{"type": "text", "text": "What?"}, {"type": "file", "file": {"file_data": data, "filename": "a.pdf"}}]


@pytest.mark.parametrize(
    "content",
    [
        image("/etc/passwd"),
        image("file:///etc/passwd"),
        image("http://169.254.169.254/latest/meta-data"),
        image("http://127.0.0.1:22/"),
        file("/etc/passwd"),
        file("https://example.org/a.pdf"),
        file("../../secret"),
    ],
)
async def test_no_part_of_a_message_names_a_file_or_an_address_of_this_network(content: Any, tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_then(ANSWER)))) as here:
        status, data, _ = await raw(here, {"model": "helper", "messages": [{"role": "user", "content": content}]})
        assert not here.app.serving.hub.runs.list()
    assert status == 400
    assert "data:" in json.loads(data)["error"]["message"]
    assert b"root" not in data


async def test_an_image_comes_as_bytes(tmp_path: Path) -> None:
    asked: Any = [{"role": "user", "content": image(f"data:image/png;base64,{PIXEL}")}]
    async with served(settings_of(tmp_path, Scripted(calls_then(ANSWER)))) as here, here.client() as client:
        got = await client.chat.completions.create(model="helper", messages=asked)
    assert "[image" in ct.Trace.load(tmp_path / f"{got.id}.trace.jsonl").question


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"model": "none", "messages": ASK}, 404, None),
        ({"messages": ASK}, 404, None),
        ({"model": "helper"}, 400, "messages"),
        ({"model": "helper", "messages": []}, 400, "messages"),
        ({"model": "helper", "messages": [{"role": "king", "content": "x"}]}, 400, "messages[0].role"),
        ({"model": "helper", "messages": [{"role": "user", "content": " "}]}, 400, "messages"),
        ({"model": "helper", "messages": [{"role": "assistant", "content": "x"}]}, 400, "messages"),
        ({"model": "helper", "messages": ASK, "n": 2}, 400, "n"),
        ({"model": "helper", "messages": ASK, "stream": "yes"}, 400, "stream"),
        ({"model": "helper", "messages": ASK, "tools": [{"type": "function"}]}, 400, "tools[0].name"),
        ({"model": "helper", "messages": ASK, "response_format": {"type": "xml"}}, 400, "response_format"),
    ],
)
async def test_a_wrong_request_is_told_what_is_wrong(body: Any, status: int, param: str | None, tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_then(ANSWER)))) as here:
        got, data, headers = await raw(here, body)
    assert got == status
    assert json.loads(data)["error"]["param"] == param
    assert headers["x-should-retry"] == "false"


async def test_a_run_without_an_answer_is_an_error_that_is_not_repeated(tmp_path: Path) -> None:
    def fails(messages: list[ct.Message]) -> str:
        raise ValueError("sk-verysecret-0123456789")

    model = Scripted(fails)
    async with served(settings_of(tmp_path, model)) as here, here.client(max_retries=2) as client:
        with pytest.raises(openai.InternalServerError) as plain:
            await client.chat.completions.create(model="helper", messages=ASK)
        asked = model.asked
        stream = await client.chat.completions.create(model="helper", messages=ASK, stream=True)
        with pytest.raises(openai.APIError) as streamed:
            [chunk async for chunk in stream]
    assert plain.value.code == streamed.value.code == "model"
    assert "verysecret" not in str(plain.value) + str(streamed.value)
    assert model.asked == 2 * asked


async def test_a_failed_call_is_a_line_of_the_reasoning_and_no_function_call(tmp_path: Path) -> None:
    plan = ct.ParallelRounds().write_turn([ct.Call("price", {"fruit": "plum"}, "a")], "look")

    def say(messages: list[ct.Message]) -> str:
        return "".join(ct.ParallelRounds().write_answer("none")) if len(messages) > 2 else plan

    async with served(settings_of(tmp_path, Scripted(say))) as here:
        _, data, _ = await raw(here, {"model": "helper", "messages": ASK})
    message = json.loads(data)["choices"][0]["message"]
    assert re.fullmatch(
        r'1\.1 price \{"fruit":"plum"\}\n1\.1 price: failed, raised: .*\n', message["reasoning_content"]
    )
    assert "tool_calls" not in message
