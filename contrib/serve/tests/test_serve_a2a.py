"""Presets as agents for clients of A2A: the card, messages, streams, tasks, and what is refused."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from pathlib import Path
from typing import Any

import concertino as ct
import httpx2
import pytest
import uvicorn
from click.testing import CliRunner
from concertino.cli import command_line
from concertino.core.known_secrets import Secret
from concertino_serve.serve_settings import ClientKey
from waiting import wait_until

from .serving_here import Counter, Scripted, calls_then, served, settings_of

ANSWER = "It costs $4."
ADA, BOB = "ada-canary-0123456789", "bob-canary-0123456789"


def of_a2a(folder: Path, **changes: Any) -> Any:
    return settings_of(folder, Scripted(calls_then(ANSWER)), a2a=True, **changes)


def message(text: str = "What does it cost?", name: str = "m1", **fields: Any) -> dict[str, Any]:
    return {"message": {"messageId": name, "role": "ROLE_USER", "parts": [{"text": text}], **fields}}


async def posted(url: str, method: str, params: Any, key: str = "", **headers: str) -> httpx2.Response:
    given = {"a2a-version": "1.0", "authorization": f"Bearer {key or 'none'}"} | headers
    body = {"jsonrpc": "2.0", "id": "r1", "method": method, "params": params}
    async with httpx2.AsyncClient(verify=False, timeout=30) as web:
        return await web.post(f"{url}/a2a", json=body, headers=given)


async def asked(url: str, method: str, params: Any, key: str = "") -> dict[str, Any]:
    found: dict[str, Any] = (await posted(url, method, params, key)).json()
    assert found["id"] == "r1"
    return found


async def test_the_card_names_each_preset_and_how_to_ask_it(tmp_path: Path) -> None:
    keys = (ClientKey("ada", Secret(ADA)),)
    async with served(of_a2a(tmp_path, keys=keys)) as here, httpx2.AsyncClient(verify=False) as web:
        card = (await web.get(f"{here.url}/.well-known/agent-card.json")).json()
    (way,) = card["supportedInterfaces"]
    assert way == {"url": f"{here.url}/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "helper"}
    assert [skill["id"] for skill in card["skills"]] == ["helper"]
    assert card["capabilities"]["streaming"] is True
    assert card["securitySchemes"]["key"]["httpAuthSecurityScheme"]["scheme"] == "Bearer"


async def test_a_message_is_answered_by_a_task_that_is_a_run(tmp_path: Path) -> None:
    async with served(of_a2a(tmp_path)) as here:
        task = (await asked(here.url, "SendMessage", message(contextId="c1")))["result"]["task"]
        got = (await asked(here.url, "GetTask", {"id": task["id"]}))["result"]
        run = here.app.serving.hub.runs.get(task["id"])
    assert (task["contextId"], task["status"]["state"]) == ("c1", "TASK_STATE_COMPLETED")
    assert task["artifacts"][0]["parts"] == [{"text": ANSWER, "mediaType": "text/plain"}]
    assert got["artifacts"] == task["artifacts"]
    assert (run.question, run.answer) == ("What does it cost?", ANSWER)


async def test_the_pieces_of_a_stream_add_up_to_the_artifact(tmp_path: Path) -> None:
    async with served(of_a2a(tmp_path)) as here:
        stream = await posted(here.url, "SendStreamingMessage", message())
        events = [json.loads(line[6:])["result"] for line in stream.text.splitlines() if line.startswith("data: ")]
        task = (await asked(here.url, "GetTask", {"id": events[0]["task"]["id"]}))["result"]
    assert events[0]["task"]["status"]["state"] == "TASK_STATE_WORKING"
    pieces = [event["artifactUpdate"] for event in events if "artifactUpdate" in event]
    assert len(pieces) > 1
    assert [piece["append"] for piece in pieces] == [False, *[True] * (len(pieces) - 1)]
    assert "".join(piece["artifact"]["parts"][0]["text"] for piece in pieces) == ANSWER
    said = [event["statusUpdate"]["status"] for event in events if "statusUpdate" in event]
    assert [each["message"]["parts"][0]["text"] for each in said[:-1]] == ["price began", "price done"]
    assert said[-1]["state"] == task["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_a_message_of_a_context_is_asked_with_what_was_said_in_it(tmp_path: Path) -> None:
    model = Scripted(lambda messages: "".join(ct.ParallelRounds().write_answer(said(messages))))

    def said(messages: list[ct.Message]) -> str:
        return f"{sum('Who am I' in message.text for message in messages)} times"

    async with served(settings_of(tmp_path, model, a2a=True)) as here:

        async def ask(name: str, **fields: Any) -> dict[str, Any]:
            found = await asked(here.url, "SendMessage", message("Who am I?", name, **fields))
            task: dict[str, Any] = found["result"]["task"]
            return task

        first = await ask("m1")
        second, third = [await ask(name, contextId=first["contextId"]) for name in ("m2", "m3")]
        own = [await ask(name, contextId="mine") for name in ("m4", "m5")]
        again = await ask("m5", contextId="mine")
        alone = await ask("m6")
        listed = await asked(here.url, "ListTasks", {"contextId": first["contextId"]})
        answers = [each["artifacts"][0]["parts"][0]["text"] for each in (first, second, third, *own, alone)]
    assert [answer[0] for answer in answers] == ["1", "2", "3", "1", "2", "1"]
    assert again["id"] == own[1]["id"]
    assert {task["id"] for task in listed["result"]["tasks"]} == {first["id"], second["id"], third["id"]}
    assert {task["contextId"] for task in listed["result"]["tasks"]} == {first["id"]}


async def test_tasks_are_listed_in_pages_the_last_updated_first(tmp_path: Path) -> None:
    keys = (ClientKey("ada", Secret(ADA)), ClientKey("bob", Secret(BOB)))
    async with served(of_a2a(tmp_path, keys=keys)) as here:
        made = [
            (await asked(here.url, "SendMessage", message(name=f"m{n}"), ADA))["result"]["task"]["id"] for n in range(5)
        ]
        store = here.app.serving.hub.runs.store
        for number, task in enumerate(made):
            os.utime(store.path_for(task), (1_800_000_000.5 + number, 1_800_000_000.5 + number))
        pages, token = list[Any](), ""
        while not pages or token:
            page = (await asked(here.url, "ListTasks", {"pageSize": 2, "pageToken": token}, ADA))["result"]
            pages, token = [*pages, page], page["nextPageToken"]
        late = {"statusTimestampAfter": "2027-01-15T08:00:03Z", "includeArtifacts": True, "historyLength": 3}
        since = (await asked(here.url, "ListTasks", late, ADA))["result"]
        failed = (await asked(here.url, "ListTasks", {"status": "TASK_STATE_FAILED"}, ADA))["result"]
        other = (await asked(here.url, "ListTasks", {}, BOB))["result"]
    assert [task["id"] for page in pages for task in page["tasks"]] == made[::-1]
    assert [(page["pageSize"], page["totalSize"]) for page in pages] == [(2, 5), (2, 5), (1, 5)]
    assert [task["history"][0]["messageId"] for task in since["tasks"]] == ["m4", "m3"]
    assert not any("artifacts" in task or "history" in task for page in pages for task in page["tasks"])
    assert [(task["id"], len(task["artifacts"])) for task in since["tasks"]] == [(made[4], 1), (made[3], 1)]
    assert since["tasks"][0]["status"]["timestamp"] == "2027-01-15T08:00:04.500Z"
    assert (failed["tasks"], other["tasks"], other["nextPageToken"]) == ([], [], "")


async def test_a_message_for_a_task_says_why_it_is_refused(tmp_path: Path) -> None:
    async with served(of_a2a(tmp_path)) as here:
        task = (await asked(here.url, "SendMessage", message()))["result"]["task"]
        codes = []
        for fields in ({}, {"contextId": task["contextId"]}, {"contextId": "other"}):
            told = await asked(here.url, "SendMessage", message(name="m2", taskId=task["id"], **fields))
            codes.append(told["error"]["code"])
    assert codes == [-32004, -32004, -32602]


async def test_a_task_goes_on_alone_and_is_cancelled_by_its_id(tmp_path: Path) -> None:
    async with served(of_a2a(tmp_path, pause=60.0)) as here:
        params = {**message(), "configuration": {"returnImmediately": True}}
        task = (await asked(here.url, "SendMessage", params))["result"]["task"]
        assert task["status"]["state"] == "TASK_STATE_WORKING"
        await wait_until(lambda: here.app.serving.hub.active)
        cancelled = (await asked(here.url, "CancelTask", {"id": task["id"]}))["result"]
        again = await asked(here.url, "CancelTask", {"id": task["id"]})
        got = (await asked(here.url, "GetTask", {"id": task["id"]}))["result"]
        assert here.app.serving.ring.running == 0
    assert cancelled["status"]["state"] == got["status"]["state"] == "TASK_STATE_CANCELED"
    assert again["error"]["code"] == -32002


async def test_a_client_that_goes_stops_its_task(tmp_path: Path) -> None:
    async with served(of_a2a(tmp_path, pause=60.0)) as here:
        call = asyncio.create_task(posted(here.url, "SendMessage", message()))
        await wait_until(lambda: here.app.serving.hub.active)
        call.cancel()
        await wait_until(lambda: not here.app.serving.hub.active)
        assert [run.stop for run in here.app.serving.hub.runs.list()] == ["cancelled"]


async def test_a_message_that_is_sent_again_joins_its_task(tmp_path: Path) -> None:
    counter = Counter()
    async with served(of_a2a(tmp_path, counter=counter)) as here:
        tasks = [(await asked(here.url, "SendMessage", message()))["result"]["task"]["id"] for _ in range(2)]
        other = await asked(here.url, "SendMessage", message("And plums?"))
    assert tasks[0] == tasks[1]
    assert counter.calls == 1
    assert other["error"]["code"] == -32602


async def test_a_task_is_there_for_its_own_key_alone(tmp_path: Path) -> None:
    keys = (ClientKey("ada", Secret(ADA)), ClientKey("bob", Secret(BOB)))
    async with served(of_a2a(tmp_path, keys=keys)) as here:
        task = (await asked(here.url, "SendMessage", message(), ADA))["result"]["task"]
        for method in ("GetTask", "CancelTask", "SubscribeToTask"):
            assert (await asked(here.url, method, {"id": task["id"]}, BOB))["error"]["code"] == -32001
        assert (await posted(here.url, "GetTask", {"id": task["id"]}, "wrong")).status_code == 401


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("message/send", message(), -32601),
        ("SendMessage", [], -32602),
        ("SendMessage", {}, -32602),
        ("SendMessage", message(parts=[]), -32602),
        ("SendMessage", message(role="ROLE_AGENT"), -32602),
        ("SendMessage", message(parts=[{"url": "file:///etc/passwd", "mediaType": "image/png"}]), -32602),
        ("SendMessage", message(parts=[{"text": "?"}, {"raw": "!", "mediaType": "image/png"}]), -32602),
        ("SendMessage", message(taskId="t1"), -32001),
        ("SendMessage", message(contextId=["c"]), -32602),
        ("ListTasks", {"pageSize": 0}, -32602),
        ("ListTasks", {"pageSize": 101}, -32602),
        ("ListTasks", {"pageToken": "x"}, -32602),
        ("ListTasks", {"status": "DONE"}, -32602),
        ("ListTasks", {"historyLength": -1}, -32602),
        ("ListTasks", {"statusTimestampAfter": "yesterday"}, -32602),
        ("SendMessage", {**message(), "tenant": "none"}, -32602),
        ("GetTask", {"id": "../../etc/passwd"}, -32001),
        ("GetTask", {}, -32001),
        ("SendMessage", {**message(), "configuration": {"historyLength": -1}}, -32602),
    ],
)
async def test_what_is_wrong_is_an_error_with_its_code(method: str, params: Any, code: int, tmp_path: Path) -> None:
    async with served(of_a2a(tmp_path)) as here:
        assert (await asked(here.url, method, params))["error"]["code"] == code
        assert not here.app.serving.hub.runs.list()


async def test_other_versions_and_what_is_no_request_are_refused(tmp_path: Path) -> None:
    async with served(of_a2a(tmp_path)) as here, httpx2.AsyncClient(verify=False) as web:
        old = await posted(here.url, "SendMessage", message(), **{"a2a-version": "0.3"})
        assert old.json()["error"]["code"] == -32009
        for body, code in ((b"{", -32700), (b"[]", -32600), (b'{"jsonrpc": "2.0", "method": "GetTask"}', -32600)):
            told = await web.post(f"{here.url}/a2a", content=body, headers={"content-type": "application/json"})
            assert (told.json()["error"]["code"], told.json()["id"]) == (code, None)
        named = await web.post(f"{here.url}/a2a", json={"jsonrpc": "1.0", "method": "GetTask", "id": "r7"})
        assert (named.json()["error"]["code"], named.json()["id"]) == (-32600, "r7")


async def test_without_the_option_there_is_no_agent(tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_then(ANSWER)))) as here:
        assert (await posted(here.url, "SendMessage", message())).status_code == 404


async def test_the_option_of_the_command_makes_an_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pool.toml").write_text('members = ["toy/solve"]\n\n[roles]\norchestrator = "toy/leader"\n')
    apps: list[Any] = []

    def run(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
        apps.append(server.config.app)
        for each in sockets:
            each.close()

    monkeypatch.setattr(uvicorn.Server, "run", run)
    for options in ([], ["--a2a"]):
        settings = tmp_path / f"serve{len(options)}.toml"  # a folder of traces has one server
        settings.write_text(f'traces = "runs{len(options)}"\n[presets.helper]\npool = "pool.toml"\n')
        command = ["serve", str(settings), "--port", "0", *options]
        done = await asyncio.to_thread(CliRunner().invoke, command_line, command)
        assert done.exit_code == 0, done.output
    sent: list[Any] = []

    async def send(told: Any) -> None:
        sent.append(told)

    scope = {"type": "http", "method": "GET", "path": "/.well-known/agent-card.json", "scheme": "http"}
    scope |= {"headers": [(b"host", b"127.0.0.1")], "query_string": b"", "server": ("127.0.0.1", 80)}
    for app in apps:
        await app(dict(scope), lambda: asyncio.sleep(60), send)
    assert [told["status"] for told in sent if "status" in told] == [404, 200]
