"""Responses as the official client reads them: created, streamed, read on, cancelled, deleted, followed by others."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import concertino as ct
import httpx2
import openai
import pytest
from concertino_serve.response_wire import response_now
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter
from waiting import wait_until

from .serving_here import Counter, Here, Scripted, calls_then, served, settings_of
from .serving_scripts import FIVE, Scripts, random_script

EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
ANSWER = "A kilo costs $4, and that is a lot."


async def raw(here: Here, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
    async with httpx2.AsyncClient(verify=False, timeout=30) as client:
        url = f"{here.url}/v1/responses{path}"
        answer = await (client.get(url) if body is None else client.post(url, json=body, headers=headers))
        return answer.status_code, answer.content


def events_of(data: bytes) -> list[dict[str, Any]]:
    """The events of a stream; each is one that the official client has a type for."""
    found = []
    for frame in data.decode().removesuffix("\n\n").split("\n\n"):
        first, _, second = frame.partition("\n")
        event = json.loads(second.removeprefix("data: "))
        assert first == f"event: {event['type']}"
        EVENT.validate_python(event)
        found.append(event)
    return found


def folded(events: list[dict[str, Any]]) -> dict[str, Any]:
    """What the events add up to, read as a strict client reads them."""
    items: dict[int, dict[str, Any]] = {}
    texts: dict[str, str] = {}
    done: set[int] = set()
    for event in events[:-1]:
        place = event.get("output_index")
        match event["type"]:
            case "response.output_item.added":
                assert place == len(items)
                items[place] = event["item"]
            case "response.output_text.delta":
                texts[event["item_id"]] = texts.get(event["item_id"], "") + event["delta"]
            case "response.output_text.done":
                assert texts[event["item_id"]] == event["text"]
            case "response.output_item.done":
                assert place not in done
                assert items[place]["id"] == event["item"]["id"]
                items[place] = event["item"]
                done.add(place)
    assert done == set(items)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return {**events[-1]["response"], "output": [items[place] for place in sorted(items)]}


async def test_the_official_client_gets_an_answer_and_the_calls_that_were_made(tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_then(ANSWER)))) as here, here.client() as client:
        got = await client.responses.create(model="helper", input="What?", metadata={"a": "b"})
        again = await client.responses.retrieve(got.id)
    assert got.output_text == ANSWER
    assert (got.status, got.metadata, got.error) == ("completed", {"a": "b"}, None)
    assert got.output[0].type == "mcp_call"
    assert (got.output[0].name, got.output[0].output) == ("price", "$4")
    assert again.to_dict() == got.to_dict()


async def test_the_accumulator_of_the_official_client_takes_the_stream(tmp_path: Path) -> None:
    async with (
        served(settings_of(tmp_path, Scripted(calls_then(ANSWER)))) as here,
        here.client() as client,
        client.responses.stream(model="helper", input="What?") as stream,
    ):
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()
    assert final.output_text == ANSWER
    assert kinds.count("response.output_text.delta") > 3
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")


async def test_folding_the_events_gives_the_object_and_they_read_the_same_again(tmp_path: Path) -> None:
    await compare(tmp_path, range(15))


@pytest.mark.soak
async def test_folding_the_events_gives_the_object_for_a_thousand_runs(tmp_path: Path) -> None:
    await compare(tmp_path, range(1000))


async def compare(folder: Path, seeds: range) -> None:
    scripts, statuses = Scripts(), set()
    async with served(scripts.settings(folder)) as here:
        for seed in seeds:
            name = FIVE[seed % len(FIVE)]
            number = scripts.add(random_script(name, seed))
            _, data = await raw(here, "", {"model": name, "input": f"script-{number}", "stream": True})
            events, asked = events_of(data), scripts.asked
            run_id = events[0]["response"]["id"]
            _, again = await raw(here, f"/{run_id}?stream=true")
            assert again == data
            middle = len(events) // 2
            _, rest = await raw(here, f"/{run_id}?stream=true&starting_after={middle - 1}")
            assert events_of(rest) == events[middle:]
            plain = json.loads((await raw(here, f"/{run_id}"))[1])
            Response.model_validate(plain)
            assert folded(events) == plain
            assert scripts.asked == asked
            statuses.add(plain["status"])
    assert "completed" in statuses


async def test_a_response_in_the_background_goes_on_without_a_client(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, Scripted(calls_then(ANSWER)), pause=0.1)
    async with served(settings) as here, here.client() as client:
        got = await client.responses.create(model="helper", input="What?", background=True)
        assert got.status == "in_progress"
        while got.status == "in_progress":
            await asyncio.sleep(0.02)
            got = await client.responses.retrieve(got.id)
    assert got.output_text == ANSWER


async def test_who_leaves_a_stream_in_the_background_reads_on_from_where_it_was(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, Scripted(calls_then(ANSWER), pause=0.02))
    async with served(settings) as here, here.client() as client:
        begun = await client.responses.create(model="helper", input="What?", background=True, stream=True)
        seen = []
        async for event in begun:
            seen.append(event)
            if event.type == "response.output_text.delta":
                break
        await begun.close()
        created: Any = seen[0]
        rest = await client.responses.retrieve(
            created.response.id, stream=True, starting_after=seen[-1].sequence_number
        )
        seen += [event async for event in rest]
    assert [event.sequence_number for event in seen] == list(range(len(seen)))
    assert "".join(event.delta for event in seen if event.type == "response.output_text.delta") == ANSWER


async def test_a_cancelled_response_stops_and_stays_cancelled_over_a_restart(tmp_path: Path) -> None:
    counter = Counter()
    settings = settings_of(tmp_path, Scripted(calls_then(ANSWER)), counter=counter, pause=30)
    async with served(settings) as here, here.client() as client:
        got = await client.responses.create(model="helper", input="What?", background=True)
        await wait_until(lambda: counter.calls)
        cancelled = await client.responses.cancel(got.id)
        assert not here.app.serving.hub.active
        _, data = await raw(here, f"/{got.id}?stream=true")
    assert cancelled.status == "cancelled"
    assert folded(events_of(data)) == cancelled.to_dict(mode="json")
    async with served(settings) as here, here.client() as client:
        assert not here.app.serving.hub.active
        assert (await client.responses.retrieve(got.id)).status == "cancelled"


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_a_deleted_response_is_gone_with_its_files(tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_then(ANSWER)))) as here, here.client() as client:
        got = await client.responses.create(model="helper", input="What?")
        await client.responses.delete(got.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(got.id)
    assert not files_in(tmp_path)


async def test_a_response_follows_another(tmp_path: Path) -> None:
    heard: list[str] = []

    def say(messages: list[ct.Message]) -> str:
        heard.append("\n".join(message.text for message in messages))
        return "".join(ct.ParallelRounds().write_answer(f"answer {len(heard)}"))

    async with served(settings_of(tmp_path, Scripted(say))) as here, here.client() as client:
        first = await client.responses.create(model="helper", input="I am Ada.", instructions="Be brief.")
        second = await client.responses.create(model="helper", input="And now?", previous_response_id=first.id)
        await client.responses.create(model="helper", input="Who am I?", previous_response_id=second.id)
    for text in ("I am Ada.", "answer 1", "And now?", "answer 2", "Who am I?"):
        assert text in heard[2]
    assert "Be brief." not in heard[2]


async def test_what_was_sent_is_listed_the_last_first(tmp_path: Path) -> None:
    items: Any = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    async with served(settings_of(tmp_path, Scripted(calls_then(ANSWER)))) as here, here.client() as client:
        got = await client.responses.create(model="helper", input=items)
        listed: list[Any] = [item async for item in client.responses.input_items.list(got.id, limit=2)]
    assert [item.content[0].text for item in listed] == ["three", "two", "one"]


@pytest.mark.parametrize(
    "name", ["..", "../secret", "%2e%2e%2fsecret", "x" * 5000, "a/b", "%00", "C:", ".hidden", "*", "secret"]
)
async def test_a_name_reaches_no_file_but_that_of_an_own_run(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    (tmp_path / "secret.trace.jsonl").write_text("canary")
    (tmp_path / "secret.trace.jsonl.request").write_text("canary")
    async with served(settings_of(folder, Scripted(calls_then(ANSWER)))) as here:
        for path in (f"/{name}", f"/{name}?stream=true", f"/{name}/input_items"):
            status, data = await raw(here, path)
            assert status in (400, 404, 405)
            assert b"canary" not in data
    assert (tmp_path / "secret.trace.jsonl").exists()


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": 3}, "input"),
        ({"input": [{"type": "function_call_output", "call_id": "x", "output": "y"}]}, "input[0]"),
        ({"input": "x", "tools": [{"type": "web_search"}]}, "tools[0]"),
        ({"input": "x", "metadata": {"a": 3}}, "metadata"),
        ({"input": "x", "text": {"format": {"type": "xml"}}}, "text.format"),
        ({"input": "x", "instructions": 3}, "instructions"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "/etc/passwd"}]}]}, None),
    ],
)
async def test_a_wrong_response_request_is_told_what_is_wrong(body: Any, param: str | None, tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_then(ANSWER)))) as here:
        status, data = await raw(here, "", {"model": "helper", **body})
    assert status == 400
    assert param is None or json.loads(data)["error"]["param"] == param


def test_an_answer_that_was_written_again_is_a_second_message() -> None:
    from concertino_serve.request_record import RequestRecord

    record = RequestRecord("", "helper", "responses", "d", "d", 0)
    end = {"t": "end", "n": 9, "answer": "Sunny", "stop": "answered", "usage": {}}
    found = response_now("r1", record, ["Rai", end], over=True)
    assert [(item["status"], item["content"][0]["text"]) for item in found["output"]] == [
        ("incomplete", "Rai"),
        ("completed", "Sunny"),
    ]
