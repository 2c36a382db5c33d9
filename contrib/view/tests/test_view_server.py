"""The server of `concertino view`: who gets in, what a name can reach, and what is told of a run that goes on."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from concertino_view.run_fold import RunFold
from concertino_view.view_server import ViewServer
from hostile_traces import write_trace
from made_traces import records_of
from page_attacks import PAGE_ATTACKS

Headers = dict[str, str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two runs, a file that is no trace, and a secret beside the folder."""
    made = tmp_path / "traces"
    made.mkdir()
    (tmp_path / "secret.trace.jsonl").write_text("secret")
    write_trace(made / "one.trace.jsonl", records_of(rounds=2))
    write_trace(made / "two.trace.jsonl", records_of(rounds=3))
    (made / "broken.trace.jsonl").write_text("hello\n")
    return made


@pytest.fixture
def server(folder: Path) -> Iterator[ViewServer]:
    made = ViewServer(folder)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def get(server: ViewServer, path: str, headers: Headers | None = None, key: bool = True) -> tuple[int, Headers, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    given = {"Cookie": f"concertino-view-{server.server_port}={server.key}"} if key else {}
    connection.putrequest("GET", path, skip_host="Host" in (headers or {}))
    for name, value in {**given, **(headers or {})}.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), body


def data(server: ViewServer, path: str) -> Any:
    status, _, body = get(server, path)
    assert status == 200, body
    return json.loads(body)


# -- who gets in -------------------------------------------------------------------------------------------------------


def test_it_listens_on_this_machine_alone(server: ViewServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1:{port}.evil.example",
        "[::1]:{port}",
        "",
    ],
)
def test_a_foreign_name_that_leads_here_is_refused(server: ViewServer, host: str) -> None:
    status, _, body = get(server, "/api/runs", {"Host": host.format(port=server.server_port)})
    assert status == 403
    assert b"one" not in body


def test_two_host_headers_are_refused(server: ViewServer) -> None:
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as connection:
        host = f"Host: 127.0.0.1:{server.server_port}\r\n"
        cookie = f"Cookie: concertino-view-{server.server_port}={server.key}\r\n"
        connection.sendall(f"GET /api/runs HTTP/1.1\r\n{host}Host: evil\r\n{cookie}Connection: close\r\n\r\n".encode())
        assert b" 403 " in connection.recv(1000)


@pytest.mark.parametrize("path", ["/", "/api/runs", "/run/one", "/static/page.css", "/api/runs/one/data"])
def test_nobody_gets_in_without_the_key(server: ViewServer, path: str) -> None:
    assert get(server, path, key=False)[0] == 403
    assert get(server, f"{path}?key=wrong", key=False)[0] == 403
    assert get(server, path, {"Cookie": f"concertino-view-{server.server_port}=wrong"}, key=False)[0] == 403


def test_the_printed_address_gives_a_cookie_that_scripts_and_other_pages_do_not_get(server: ViewServer) -> None:
    status, headers, _ = get(server, server.address.partition(str(server.server_port))[2], key=False)
    assert (status, headers["Location"]) == (303, "/")
    assert "HttpOnly" in headers["Set-Cookie"]
    assert "SameSite=Strict" in headers["Set-Cookie"]


def test_a_request_of_another_page_is_refused(server: ViewServer) -> None:
    assert get(server, "/api/runs", {"Sec-Fetch-Site": "cross-site"})[0] == 403


def test_other_methods_are_refused(server: ViewServer) -> None:
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
        connection.request(method, "/api/runs")
        assert connection.getresponse().status == 501
        connection.close()


# -- what a name can reach ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "../secret",
        "..%2fsecret",
        "..%2Fsecret",
        "%2e%2e/secret",
        "%2e%2e%2fsecret",
        "....//secret",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "one%00",
        "one/../../secret",
        "..\\secret",
        "..%5csecret",
        "%252e%252e%252fsecret",
        "",
        "one.trace.jsonl",
        "*",
        "o",
        "one%0a",
        "ONE",
        "%c0%ae%c0%ae%2fsecret",
        "%ff",
        "nul",
        "~",
        "last",
    ],
)
def test_a_name_reaches_no_file_but_the_traces_of_the_folder(server: ViewServer, name: str) -> None:
    for what in ("data", "page", "events", "bodies"):
        status, _, body = get(server, f"/api/runs/{name}/{what}")
        assert status == 404, name
        assert b"secret" not in body
    assert get(server, f"/static/{name}")[0] == 404


def test_a_file_that_is_no_trace_is_a_row_and_an_error_that_says_so(server: ViewServer) -> None:
    rows = {row["id"]: row for row in data(server, "/api/runs")["runs"]}
    assert rows.keys() == {"one", "two", "broken"}
    assert "not a trace" in rows["broken"]["error"]
    status, _, body = get(server, "/api/runs/broken/data")
    assert status == 422
    assert b"not a trace" in body


@pytest.mark.parametrize("number", ["-1", "x", "1e9", "99999999999999", "%31%00", "١"])
def test_a_number_that_is_none_is_refused(server: ViewServer, number: str) -> None:
    path = f"/api/runs/one/bodies?from={number if number.isascii() else '%D9%A1'}"
    assert get(server, path)[0] == 400


def test_every_answer_forbids_what_the_page_does_not_need(server: ViewServer) -> None:
    for path in ("/", "/run/one", "/api/runs", "/static/page.css", "/nowhere", "/api/runs/nobody/data"):
        _, headers, _ = get(server, path)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'; script-src 'self'" in policy, path
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("attack", PAGE_ATTACKS[::6])
def test_texts_of_a_run_come_as_data_and_never_as_a_page(server: ViewServer, folder: Path, attack: str) -> None:
    write_trace(folder / "attack.trace.jsonl", records_of(rounds=1, text=attack))
    for path in (
        "/api/runs",
        "/api/runs/attack/data",
        "/api/runs/attack/bodies?from=0&to=9",
        "/api/compare?a=one&b=attack",
    ):
        status, headers, body = get(server, path)
        assert (status, headers["Content-Type"]) == (200, "application/json")
        json.loads(body)


# -- what it tells -----------------------------------------------------------------------------------------------------


def test_a_row_says_what_the_list_of_traces_says(server: ViewServer) -> None:
    row = next(row for row in data(server, "/api/runs")["runs"] if row["id"] == "two")
    assert (row["stop"], row["question"], row["rounds"], row["failed"]) == ("answered", "How many?", 3, 3)


def test_bodies_come_by_index_and_at_most_200_at_once(server: ViewServer, folder: Path) -> None:
    assert ["new message: user", "what is known after 1", []] in data(server, "/api/runs/one/bodies?from=0&to=1")[0]
    write_trace(folder / "long.trace.jsonl", records_of(rounds=60, width=5))
    assert len(data(server, "/api/runs/long/bodies?from=0&to=9999")) == 200
    assert data(server, "/api/runs/long/bodies?from=99999&to=100000") == []


def test_two_runs_are_compared(server: ViewServer) -> None:
    found = data(server, "/api/compare?a=one&b=two")
    assert found["differences"][0]["where"] == "round 3"
    assert get(server, "/api/compare?a=one&b=nobody")[0] == 404


class Follower:
    """Reads events of a run."""

    def __init__(self, server: ViewServer, run: str, last: str = "") -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
        headers = {"Cookie": f"concertino-view-{server.server_port}={server.key}"}
        more = {"Last-Event-ID": last} if last else {}
        self.connection.request("GET", f"/api/runs/{run}/events", headers=headers | more)
        self.answer = self.connection.getresponse()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.answer.close()
        self.connection.close()

    def event(self) -> tuple[str, Any] | None:
        """Its id and data; None at the end."""
        lines: list[str] = []
        while True:
            line = self.answer.readline().decode()
            if not line:
                return None
            if line == "\n" and any(each.startswith("data: ") for each in lines):
                return lines[0].removeprefix("id: ").strip(), json.loads(lines[1].removeprefix("data: "))
            lines = [] if line == "\n" else [*lines, line]


def test_what_is_wrong_with_a_trace_is_told_without_its_folder(server: ViewServer, folder: Path) -> None:
    (folder / "short.trace.jsonl").write_bytes((folder / "one.trace.jsonl").read_bytes()[:-9])
    answers = [get(server, path) for path in ("/api/runs", "/api/runs/broken/data", "/api/runs/short/data")]
    assert [status for status, _, _ in answers] == [200, 422, 200]
    assert all(b"broken.trace.jsonl: not a trace" in body for _, _, body in answers[:2])
    assert all(str(folder).encode() not in body for _, _, body in answers)


def test_a_page_that_follows_is_told_every_record_and_then_the_end(server: ViewServer, folder: Path) -> None:
    records = records_of(rounds=1, width=2)
    path = write_trace(folder / "live.trace.jsonl", records)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5]))
    whole: dict[int, Any] = {}
    with Follower(server, "live") as follower:
        for place in range(5, len(lines) + 1):
            event = follower.event()
            assert event is not None
            number, patch = event
            assert number == str(patch["version"]) == str(place - 1)
            whole |= {row[0]: row for row in patch["items"]}
            if place < len(lines):
                with path.open("ab") as file:
                    file.write(lines[place])
        assert follower.event() is None
    fold = RunFold()
    for record in records:
        fold.apply(record)
    assert [whole[index] for index in sorted(whole)] == fold.patch()["items"]


def test_a_page_of_a_long_run_gets_its_begin_first_and_then_the_rest(
    server: ViewServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_FIRST", "_THEN"):
        monkeypatch.setattr(f"concertino_view.view_pages.{name}", 0.0)
    records = records_of(rounds=40, width=4)
    write_trace(folder / "long.trace.jsonl", records)
    first = data(server, "/api/runs/long/data")
    assert not first["head"]["over"]
    assert 0 < first["version"] < len(records)
    versions = []
    with Follower(server, "long", last=str(first["version"])) as follower:
        while (event := follower.event()) is not None:
            versions.append(event[1]["version"])
    assert len(versions) > 2
    assert versions == sorted(versions)
    assert versions[-1] == len(records)


def test_a_page_that_was_away_goes_on_where_it_was(server: ViewServer) -> None:
    with Follower(server, "one") as first:
        everything = first.event()
    assert everything is not None
    with Follower(server, "one", last=str(int(everything[0]) - 2)) as later:
        event = later.event()
    assert event is not None
    assert event[0] == everything[0]
    assert len(event[1]["items"]) < len(everything[1]["items"])


def test_a_trace_that_was_replaced_is_read_anew(server: ViewServer, folder: Path) -> None:
    before = data(server, "/api/runs/one/data")
    (folder / "one.trace.jsonl").unlink()
    write_trace(folder / "one.trace.jsonl", records_of(rounds=1, text="other"))
    after = data(server, "/api/runs/one/data")
    assert (before["head"]["question"], after["head"]["question"]) == ("How many?", "other")


def test_following_pages_are_bounded_and_their_places_come_back(server: ViewServer, folder: Path) -> None:
    write_trace(folder / "open.trace.jsonl", records_of(rounds=2)[:-1])
    server.pages.followers = threading.BoundedSemaphore(2)
    with Follower(server, "open") as one, Follower(server, "open") as other:
        assert (one.answer.status, other.answer.status) == (200, 200)
        with Follower(server, "open") as third:
            assert third.answer.status == 503
        server.closing.set()
        for each in (one, other):
            while each.event() is not None:
                pass
    assert server.pages.followers.acquire(timeout=20)
    server.pages.followers.release()
