"""Replay from the page: what it says, and who may ask for it."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from chromium import Browser
from concertino.core.errors import TraceError, UsageError
from concertino.testing import ScriptedModel
from concertino_view.replayed_end import known_strategies, replayed_end
from concertino_view.run_file import RunFile
from concertino_view.view_server import ViewServer
from hostile_traces import write_trace
from made_traces import records_of

Headers = dict[str, str | None]
ASKED = {"strategy": "", "settings": {"max_rounds": 1}}


@ct.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The trace of a run of two rounds."""
    leader = ScriptedModel([("add", {"a": 1, "b": 2})], [("add", {"a": 3, "b": 7})], "<answer>10</answer>")
    made = tmp_path / "traces"
    made.mkdir()
    ct.Orchestrator(leader).run_sync("1 + 2 + 7?", pool=ct.Pool.of(add), trace=made / "one.trace.jsonl")
    return made


@pytest.fixture
def run(folder: Path) -> RunFile:
    return RunFile(folder / "one.trace.jsonl")


@pytest.fixture(params=[True])
def server(folder: Path, request: pytest.FixtureRequest) -> Iterator[ViewServer]:
    """A server with the right to replay, unless a test says otherwise."""
    made = ViewServer(folder, replays=request.param)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def post(server: ViewServer, body: Any = ASKED, run: str = "one", **changed: Any) -> tuple[int, Any]:
    """Ask as the page does, with other headers where given; None leaves one out."""
    origin = f"http://127.0.0.1:{server.server_port}"
    headers: Headers = {
        "Cookie": f"concertino-view-{server.server_port}={server.key}",
        "Origin": origin,
        "Sec-Fetch-Site": "same-origin",
        "Content-Type": "application/json",
        **{name.replace("_", "-"): value for name, value in changed.items()},
    }
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    given = {name: value for name, value in headers.items() if value is not None}
    connection.request("POST", f"/api/runs/{run}/replay", body=data, headers=given)
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


# -- what it says ------------------------------------------------------------------------------------------------------


def test_a_run_that_is_replayed_as_it_was_ends_as_recorded(run: RunFile) -> None:
    found = replayed_end(run, "", {})
    assert (found["answer"], found["stop"], found["same"]) == ("10", "answered", True)


def test_another_limit_ends_it_elsewhere_and_the_file_stays_as_it_was(run: RunFile) -> None:
    before = run.path.read_bytes()
    found = replayed_end(run, "", {"max_rounds": 1})
    assert (found["answer"], found["stop"], found["same"]) == (None, "rounds", False)
    assert run.path.read_bytes() == before
    assert [each.name for each in run.path.parent.iterdir()] == [run.path.name]


def test_another_strategy_reads_the_same_texts(run: RunFile) -> None:
    found = replayed_end(run, "serial-calls", {})
    assert set(found) == {"answer", "stop", "meaning", "detail", "same"}
    assert "serial-calls" in known_strategies()


@pytest.mark.parametrize("name", ["nobody", "workflow.toml", "/etc/passwd", "../x.json", ""])
def test_a_name_is_one_of_an_installed_strategy_and_no_file(folder: Path, name: str) -> None:
    records = records_of(rounds=1)
    records[0]["setup"]["strategy"]["name"] = name or "nobody"
    with pytest.raises(UsageError):
        replayed_end(RunFile(write_trace(folder / "x.trace.jsonl", records)), name, {})


def test_a_setting_that_the_strategy_has_not_is_refused_and_names_those_that_it_has(run: RunFile) -> None:
    with pytest.raises(UsageError, match=r"no setting 'rounds'; it has .*max_rounds"):
        replayed_end(run, "", {"rounds": 1})
    with pytest.raises(UsageError, match="max_rounds='many'"):
        replayed_end(run, "", {"max_rounds": "many"})


def test_a_run_that_is_not_over_is_not_replayed(folder: Path) -> None:
    open_run = RunFile(write_trace(folder / "open.trace.jsonl", records_of(rounds=1)[:-1]))
    with pytest.raises(TraceError, match="not over"):
        replayed_end(open_run, "", {})


# -- who may ask -------------------------------------------------------------------------------------------------------


def test_the_page_of_a_server_with_the_right_replays(server: ViewServer) -> None:
    status, found = post(server)
    assert (status, found["stop"]) == (200, "rounds")


@pytest.mark.parametrize("server", [False], indirect=True)
def test_without_the_right_nothing_is_replayed_and_the_page_has_no_form(server: ViewServer) -> None:
    status, found = post(server)
    assert status == 403
    assert "concertino view --replay" in found["error"]


@pytest.mark.parametrize(
    "changed",
    [
        {"Origin": None},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://127.0.0.1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Cookie": None},
        {"Cookie": "concertino-view=wrong"},
        {"Host": "evil.example"},
    ],
)
def test_a_page_of_another_site_cannot_ask(server: ViewServer, changed: Headers) -> None:
    assert post(server, **changed)[0] == 403


def test_the_key_in_the_address_alone_does_not_let_a_request_in(server: ViewServer) -> None:
    assert post(server, run=f"one/replay?key={server.key}&x=", Cookie=None)[0] == 403


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_what_a_form_of_another_page_can_send_is_refused(server: ViewServer, kind: str | None) -> None:
    assert post(server, Content_Type=kind)[0] == 400


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"[" * 4000, b"\xff", {"strategy": 1, "settings": {}}, {"strategy": ""}, b" " * 5000],
)
def test_a_body_that_is_no_request_is_refused(server: ViewServer, body: Any) -> None:
    assert post(server, body)[0] == 400


@pytest.mark.parametrize("length", ["-1", "x", "99999999999999999999", "1 1"])
def test_a_length_that_is_none_is_refused(server: ViewServer, length: str) -> None:
    assert post(server, Content_Length=length)[0] in (400, 403)


def test_an_unknown_run_or_strategy_is_an_error_that_says_so(server: ViewServer) -> None:
    assert post(server, run="nobody")[0] == 404
    assert post(server, run="..%2fone")[0] == 404
    status, found = post(server, {"strategy": "nobody", "settings": {}})
    assert status == 422
    assert "nobody" in found["error"]


def test_one_run_is_replayed_at_a_time(server: ViewServer) -> None:
    with server.replaying:
        assert post(server)[0] == 503
    assert post(server)[0] == 200


@pytest.mark.slow
def test_the_form_on_the_page_says_how_the_run_would_have_ended(browser: Browser, server: ViewServer) -> None:
    browser.show()
    browser.open(server.address)
    browser.open(f"{server.address.partition('/?')[0]}/run/one")
    wait = "new Promise((done) => setTimeout(done, 300))"
    browser.value(wait)
    press = "document.querySelector('.replay button').click()"
    browser.value(f"document.querySelector('.replay input').value = 'max_rounds=1'; {press}")
    browser.value(wait)
    told = browser.value("document.querySelector('.replay').textContent")
    assert "It ends otherwise." in told
    assert "rounds: " in told
    browser.value(f"document.querySelector('.replay input').value = ''; {press}")
    browser.value(wait)
    assert "It ends as recorded." in browser.value("document.querySelector('.replay').textContent")
    browser.value(f"document.querySelector('.replay input').value = 'x=1'; {press}")
    browser.value(wait)
    assert "has no setting 'x'" in browser.value("document.querySelector('.replay .error').textContent")
