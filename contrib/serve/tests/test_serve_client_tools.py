"""Tools that clients supply, and calls that wait for a decision: a run stops for them, and continues with a request."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import concertino as ct
import httpx2
import openai
import pytest
from concertino.core.known_secrets import Secret
from concertino.traces import TraceTail
from concertino_serve.chat_wire import completion
from concertino_serve.request_record import RequestRecord
from concertino_serve.serve_settings import ClientKey, Preset, ServeSettings
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from waiting import wait_until

from .serving_here import Counter, Here, Scripted, served, settings_of
from .serving_scripts import strategy_of
from .test_serve_chat import folded as folded_chat
from .test_serve_chat import frames_of
from .test_serve_responses import events_of, folded

EXAMPLE = Path(__file__).parents[3] / "docs/examples/serve/client_tool.py"
ASK: Any = [{"role": "user", "content": "Shall I buy kiwis?"}]
FUNCTION = {
    "name": "weather",
    "description": "Weather at the client's place.",
    "parameters": {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]},
}
TOOLS: Any = [{"type": "function", "function": FUNCTION}]
FLAT: Any = [{"type": "function", "strict": None, **FUNCTION}]
ANSWER = "Buy them, the sun shines."


def calls_both(messages: list[ct.Message]) -> str:
    """Calls the pool's tool and the client's, then answers with what it was told."""
    strategy = ct.ParallelRounds()
    if "tool_response" not in messages[-1].text:
        calls = [ct.Call("price", {"fruit": "kiwi"}, "a"), ct.Call("weather", {"day": "today"}, "b")]
        return str(strategy.write_turn(calls, "look"))
    return "".join(strategy.write_answer(ANSWER if "sunny" in messages[-1].text else "Do not."))


async def post(here: Here, path: str, body: Any, key: str = "", **headers: str) -> tuple[int, bytes]:
    given = {**headers, **({"authorization": f"Bearer {key}"} if key else {})}
    async with httpx2.AsyncClient(verify=False, timeout=30) as client:
        answer = await client.post(f"{here.url}/v1/{path}", json=body, headers=given)
        return answer.status_code, answer.content


async def chat(here: Here, messages: Any, **more: Any) -> Any:
    status, data = await post(
        here, "chat/completions", {"model": "helper", "messages": messages, "tools": TOOLS, **more}
    )
    assert status == 200, data
    got = json.loads(data)
    ChatCompletion.model_validate(got, strict=True)
    return got


def with_result(got: Any, result: str = "sunny") -> Any:
    """The conversation as a client sends it on: with the call that it was given, and what that returned."""
    message = got["choices"][0]["message"]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": result} for call in message["tool_calls"]]
    return [*ASK, message, *results]


async def test_a_chat_stops_for_the_tool_of_its_client_and_goes_on_with_the_result(tmp_path: Path) -> None:
    model, counter = Scripted(calls_both), Counter()
    async with served(settings_of(tmp_path, model, counter=counter)) as here, here.client() as client:
        first = await client.chat.completions.create(model="helper", messages=ASK, tools=TOOLS)
        [choice] = first.choices
        assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
        assert choice.message.tool_calls is not None
        [call] = choice.message.tool_calls
        assert call.type == "function"
        assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"day": "today"})
        talk: Any = [*ASK, choice.message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        second = await client.chat.completions.create(model="helper", messages=talk, tools=TOOLS)
        assert second.choices[0].message.content == ANSWER
        [run] = here.app.serving.hub.runs.list()
    assert (model.asked, counter.calls) == (2, 1)
    assert run.stop == "answered"
    assert first.usage is not None
    assert second.usage is not None
    used = [first.usage.prompt_tokens, second.usage.prompt_tokens]
    assert used == [100, 100], "each request has what it used itself"
    usd = [usage.to_dict()["usd"] for usage in (first.usage, second.usage)]
    assert sum(usd) == pytest.approx(run.usage["usd"])
    assert all(usd)


async def test_the_streams_of_both_requests_add_up_to_the_plain_objects_and_read_the_same_again(tmp_path: Path) -> None:
    options = {"stream": True, "stream_options": {"include_usage": True}, "model": "helper", "tools": TOOLS}
    async with served(settings_of(tmp_path, Scripted(calls_both))) as here:
        _, data = await post(here, "chat/completions", {**options, "messages": ASK}, **{"idempotency-key": "k"})
        frames = frames_of(data)
        deltas = [frame["choices"][0]["delta"] for frame in frames if frame["choices"]]
        [call] = [one for delta in deltas for one in delta.pop("tool_calls", ())]
        assert call.pop("index") == 0
        plain = await plain_chat(here, frames[0]["id"])
        assert plain["choices"][0]["message"].pop("tool_calls") == [call]
        assert {**folded_chat(frames)["choices"][0]["message"], "content": None} == plain["choices"][0]["message"]
        talk = [*ASK, {"role": "assistant", "tool_calls": [call]}]
        talk += [{"role": "tool", "tool_call_id": call["id"], "content": "sunny"}]
        _, more = await post(here, "chat/completions", {**options, "messages": talk})
        assert folded_chat(frames_of(more)) == await plain_chat(here, frames_of(more)[0]["id"])
        assert (await post(here, "chat/completions", {**options, "messages": talk}))[1] == more
        again = await post(here, "chat/completions", {**options, "messages": ASK}, **{"idempotency-key": "k"})
    assert again[1] == data


async def plain_chat(here: Here, answer_id: str) -> Any:
    run = here.app.serving.hub.get(answer_id, "")
    return completion(run.answer_id, run.request, await run.moments())


@pytest.mark.parametrize("name", ["parallel-rounds", "serial-calls", "dependency-plan"])
async def test_runs_of_several_strategies_stop_for_their_client_twice(name: str, tmp_path: Path) -> None:
    strategy: Any = strategy_of(name)
    turns = [
        strategy.write_turn([ct.Call("weather", {"day": "today"}, "a")], "look"),
        strategy.write_turn([ct.Call("weather", {"day": "tomorrow"}, "b")], "look"),
        "".join(strategy.write_answer(ANSWER)),
    ]
    model = Scripted(lambda _: turns[min(model.asked, 3) - 1])
    settings = settings_of(tmp_path, model, preset={"strategy": strategy})
    async with served(settings) as here:
        talk, days = list(ASK), []
        got = await chat(here, talk)
        while calls := got["choices"][0]["message"].get("tool_calls"):
            days += [json.loads(call["function"]["arguments"])["day"] for call in calls]
            results = [{"role": "tool", "tool_call_id": call["id"], "content": "sunny"} for call in calls]
            talk += [got["choices"][0]["message"], *results]
            got = await chat(here, talk)
        assert len(here.app.serving.hub.runs.list()) == 1
    assert got["choices"][0]["message"]["content"] == ANSWER
    assert (days, model.asked) == (["today", "tomorrow"], 3)


@pytest.mark.slow
async def test_the_example_of_the_page_makes_the_call_that_it_is_given(tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_both))) as here:
        environment = {**os.environ, "OPENAI_BASE_URL": f"{here.url}/v1", "OPENAI_API_KEY": "none"}
        asked = await asyncio.create_subprocess_exec(
            sys.executable, EXAMPLE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        said, wrong = await asked.communicate()
    assert said.decode().splitlines() == ["call: weather today: sunny", f"answer: {ANSWER}"], wrong


@pytest.mark.parametrize("stateless", [False, True])
async def test_a_response_stops_for_the_tool_of_its_client_and_goes_on(stateless: bool, tmp_path: Path) -> None:
    model, counter = Scripted(calls_both), Counter()
    async with served(settings_of(tmp_path, model, counter=counter)) as here, here.client() as client:
        first = await client.responses.create(model="helper", input="Shall I?", tools=FLAT)
        assert first.status == "completed"
        assert [item.type for item in first.output] == ["mcp_call", "function_call"]
        call = first.output[1]
        assert call.type == "function_call"
        assert (call.name, call.status) == ("weather", "completed")
        results: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
        if stateless:
            sent: Any = [{"role": "user", "content": "Shall I?"}, *[item.to_dict() for item in first.output], *results]
            second = await client.responses.create(model="helper", input=sent, tools=FLAT)
        else:
            second = await client.responses.create(
                model="helper", input=results, tools=FLAT, previous_response_id=first.id
            )
        assert second.output_text == ANSWER
        assert [item.type for item in second.output] == ["message"], "what was told before is not told again"
        assert (await client.responses.retrieve(first.id)).to_dict() == first.to_dict()
        assert (await client.responses.retrieve(second.id)).to_dict() == second.to_dict()
        items = (await client.responses.input_items.list(second.id)).data
        assert items[0].type == "function_call_output"
        third = await client.responses.create(model="helper", input="And?", previous_response_id=second.id)
        assert third.id.partition(".")[0] != first.id
    assert counter.calls == 2
    assert first.usage is not None
    assert second.usage is not None
    assert first.usage.total_tokens == second.usage.total_tokens == 110


async def test_the_events_of_both_responses_add_up_to_their_objects(tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_both))) as here:
        _, data = await post(here, "responses", {"model": "helper", "input": "?", "tools": FLAT, "stream": True})
        events = events_of(data)
        first = folded(events)
        assert first == events[-1]["response"]
        results = [{"type": "function_call_output", "call_id": first["output"][-1]["call_id"], "output": "sunny"}]
        body = {"model": "helper", "input": results, "previous_response_id": first["id"], "stream": True}
        _, more = await post(here, "responses", body)
        second = folded(events_of(more))
        assert second == events_of(more)[-1]["response"]
        Response.model_validate(second)
        assert (await post(here, "responses", body))[1] == more
    assert second["tools"] == FLAT


async def test_the_same_results_again_join_and_others_are_refused(tmp_path: Path) -> None:
    model, counter = Scripted(calls_both), Counter()
    async with served(settings_of(tmp_path, model, counter=counter, pause=0.0)) as here:
        first = await chat(here, ASK)
        both = await asyncio.gather(*(chat(here, with_result(first)) for _ in range(3)))
        assert both[0] == both[1] == both[2]
        body = {"model": "helper", "messages": with_result(first, "rain"), "tools": TOOLS}
        status, data = await post(here, "chat/completions", body)
    assert (status, json.loads(data)["error"]["code"]) == (409, "conflict")
    assert (model.asked, counter.calls) == (2, 1)


async def test_a_suspended_run_goes_on_in_another_server(tmp_path: Path) -> None:
    model, counter = Scripted(calls_both), Counter()
    settings = settings_of(tmp_path, model, counter=counter)
    async with served(settings) as here:
        first = await chat(here, ASK)
    async with served(settings) as here:
        assert here.app.serving.hub.active == 0
        second = await chat(here, with_result(first))
    async with served(settings) as here:
        assert await chat(here, with_result(first)) == second
    assert second["choices"][0]["message"]["content"] == ANSWER
    assert (model.asked, counter.calls) == (2, 1)


async def test_a_server_that_was_killed_after_the_results_came_goes_on_at_its_next_start(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, Scripted(calls_both))
    async with served(settings) as here:
        first = await chat(here, ASK)
    # What is on disk when it is killed between the request and the first record of the run.
    trace = tmp_path / f"{first['id']}.trace.jsonl"
    known = RequestRecord.read(trace)
    after = [record["n"] for record in TraceTail(trace).news()][-1]
    replace(known, parts=(replace(known, given={"1.2": "sunny"}, after=after),)).write(trace)
    async with served(settings) as here:
        await wait_until(lambda: here.app.serving.hub.runs.list()[0].stop == "answered")
        got = await chat(here, with_result(first))
    assert got["choices"][0]["message"]["content"] == ANSWER


# -- what cannot be ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "param"),
    [
        ({**FUNCTION, "name": "price"}, "tools"),
        ({**FUNCTION, "name": "no name"}, "tools[0].name"),
        ({**FUNCTION, "parameters": 3}, "tools[0].parameters"),
        ({**FUNCTION, "parameters": {"type": "nothing"}}, "tools"),
    ],
)
async def test_a_tool_that_cannot_be_one_is_refused(tool: Any, param: str, tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_both))) as here:
        body = {"model": "helper", "messages": ASK, "tools": [{"type": "function", "function": tool}]}
        status, data = await post(here, "chat/completions", body)
        assert not here.app.serving.hub.runs.list()
    assert (status, json.loads(data)["error"]["param"]) == (400, param)


async def test_a_call_with_wrong_arguments_is_not_for_the_client(tmp_path: Path) -> None:
    def say(messages: list[ct.Message]) -> str:
        strategy = ct.ParallelRounds()
        if "tool_response" in messages[-1].text:
            return "".join(strategy.write_answer("none"))
        return str(strategy.write_turn([ct.Call("weather", {"hour": 3}, "a")], "look"))

    async with served(settings_of(tmp_path, Scripted(say))) as here:
        got = await chat(here, ASK)
    assert (got["choices"][0]["finish_reason"], "tool_calls" in got["choices"][0]["message"]) == ("stop", False)


async def test_results_that_belong_to_no_waiting_call_are_refused(tmp_path: Path) -> None:
    def say(messages: list[ct.Message]) -> str:
        calls = [ct.Call("weather", {"day": day}, day) for day in ("today", "tomorrow")]
        return str(ct.ParallelRounds().write_turn(calls, "look"))

    async with served(settings_of(tmp_path, Scripted(say))) as here:
        first = await chat(here, ASK)
        today, tomorrow = [call["id"] for call in first["choices"][0]["message"]["tool_calls"]]
        run = here.app.serving.hub.runs.list()[0].id
        for keys, expected in (
            (["call_of_another_server"], 404),
            (["x"], 400),
            ([today], 400),
            ([today, tomorrow, f"{run}_1.c"], 400),
            ([today, f"{run}x_1.tomorrow"], 400),
            (["../../etc/passwd_1"], 404),
        ):
            talk = [*ASK, *({"role": "tool", "tool_call_id": key, "content": "sunny"} for key in keys)]
            status, data = await post(here, "chat/completions", {"model": "helper", "messages": talk, "tools": TOOLS})
            assert status == expected, (keys, data)
        assert here.app.serving.hub.runs.list()[0].stop == "suspended"


async def test_a_new_question_before_the_results_is_told_which_calls_wait(tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_both))) as here, here.client() as client:
        first = await client.responses.create(model="helper", input="?", tools=FLAT)
        with pytest.raises(openai.BadRequestError, match=r"waits for .*_1\.2"):
            await client.responses.create(model="helper", input="And?", previous_response_id=first.id)


# -- keys and budgets --------------------------------------------------------------------------------------------------

ADA, BOB = Secret("ada-tools-0123456789"), Secret("bob-tools-0123456789")


async def test_only_who_began_a_run_lets_it_go_on_and_both_requests_are_charged_once(tmp_path: Path) -> None:
    keys = (ClientKey("ada", ADA, usd_per_day=0.05), ClientKey("bob", BOB))
    settings = settings_of(tmp_path, Scripted(calls_both), keys=keys, preset={"budget": ct.Budget(usd=0.03)})
    async with served(settings) as here:
        body: Any = {"model": "helper", "messages": ASK, "tools": TOOLS}
        _, data = await post(here, "chat/completions", body, ADA)
        body = {**body, "messages": with_result(json.loads(data))}
        assert (await post(here, "chat/completions", body, BOB))[0] == 404
        account = here.app.serving.ring.account("ada")
        assert (account.reserved, account.running) == (0, 0), "a run that waits holds nothing"
        assert (await post(here, "chat/completions", body, ADA))[0] == 200
        [run] = here.app.serving.hub.runs.list()
        account = here.app.serving.ring.account("ada")
        assert account.used == pytest.approx(run.usage["usd"])
        assert (account.reserved, account.running) == (0, 0)
    async with served(settings) as here:
        account = here.app.serving.ring.account("ada")
        assert account.used == pytest.approx(run.usage["usd"]), "also after another start"


async def test_a_run_goes_on_only_if_the_rest_of_its_budget_is_left(tmp_path: Path) -> None:
    keys = (ClientKey("ada", ADA, usd_per_day=0.05),)
    settings = settings_of(tmp_path, Scripted(calls_both), keys=keys, preset={"budget": ct.Budget(usd=0.03)})
    async with served(settings) as here:
        body: Any = {"model": "helper", "messages": ASK, "tools": TOOLS}
        _, data = await post(here, "chat/completions", body, ADA)
        body = {**body, "messages": with_result(json.loads(data))}
        ring = here.app.serving.ring
        other = ring.take_back("ada", ct.Budget(usd=0.03))  # another run is under way
        status, refused = await post(here, "chat/completions", body, ADA)
        assert (status, json.loads(refused)["error"]["code"]) == (429, "insufficient_quota")
        ring.settle(other, 0.0)
        assert (await post(here, "chat/completions", body, ADA))[0] == 200


# -- decisions ---------------------------------------------------------------------------------------------------------


def careful(folder: Path, counter: Counter) -> ServeSettings:
    """A pool of which one tool needs approval."""

    @ct.tool(approval=True)
    async def pay(usd: float) -> str:
        """Pay."""
        counter.calls += 1
        return "sunny"

    def say(messages: list[ct.Message]) -> str:
        strategy = ct.ParallelRounds()
        if "tool_response" in messages[-1].text:
            return "".join(strategy.write_answer("paid" if "sunny" in messages[-1].text else "not paid"))
        return str(strategy.write_turn([ct.Call("pay", {"usd": 3.0}, "a")], "look"))

    model = Scripted(say)
    pool = ct.Pool.of(pay, ct.ModelSpec("m/lead", lambda: model)).bind(orchestrator="m/lead")
    return ServeSettings({"helper": Preset("helper", pool, strategy=ct.ParallelRounds())}, traces=folder)


@pytest.mark.parametrize(("approve", "said", "calls"), [(True, "paid", 1), (False, "not paid", 0)])
async def test_a_call_waits_for_the_decision_of_the_client(
    approve: bool, said: str, calls: int, tmp_path: Path
) -> None:
    counter = Counter()
    async with served(careful(tmp_path, counter)) as here, here.client() as client:
        first = await client.responses.create(model="helper", input="Pay.")
        [asked] = first.output
        assert (first.status, asked.type) == ("completed", "mcp_approval_request")
        assert asked.type == "mcp_approval_request"
        assert (asked.name, json.loads(asked.arguments)) == ("pay", {"usd": 3.0})
        assert counter.calls == 0
        decision: Any = [{"type": "mcp_approval_response", "approval_request_id": asked.id, "approve": approve}]
        second = await client.responses.create(model="helper", input=decision, previous_response_id=first.id)
        assert second.output_text == said
        call = second.output[0]
        assert call.type == "mcp_call"
        assert call.status == ("completed" if approve else "failed")
    assert counter.calls == calls


async def test_a_chat_whose_call_waits_for_a_decision_is_an_error_that_says_so(tmp_path: Path) -> None:
    counter = Counter()
    async with served(careful(tmp_path, counter)) as here:
        status, data = await post(here, "chat/completions", {"model": "helper", "messages": ASK})
        assert (status, json.loads(data)["error"]["code"]) == (409, "suspended")
        run = here.app.serving.hub.runs.list()[0].id
        decision = [{"type": "mcp_approval_response", "approval_request_id": f"{run}_1.1", "approve": True}]
        status, data = await post(here, "responses", {"model": "helper", "input": decision})
    assert json.loads(data)["output"][-1]["content"][0]["text"] == "paid"
    assert counter.calls == 1
