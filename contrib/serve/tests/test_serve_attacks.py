"""What an attacker sends: each request is refused, nothing runs, nothing leaks, and the server continues."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from concertino.core.known_secrets import Secret
from concertino_serve import http_server
from concertino_serve.serve_settings import ClientKey

from .serving_here import Here, Scripted, calls_then, served, settings_of

KEY = Secret("ada-attacked-0123456789")
BODY = b'{"model":"helper","messages":[{"role":"user","content":"What does it cost?"}]}'
HIDDEN = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


async def sent(here: Here, *pieces: bytes, seconds: float = 20.0) -> bytes:
    """What comes back on a bare connection, until the server closes it or has answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(here.url.rpartition(":")[2]))
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        return await asyncio.wait_for(reader.read(), seconds)
    except ConnectionError:
        return b""
    finally:
        writer.close()


def post(*headers: bytes, body: bytes = BODY, path: bytes = b"/v1/chat/completions", key: bool = True) -> bytes:
    """A request that asks to be the last of its connection."""
    own = [b"host: 127.0.0.1", b"connection: close", b"content-type: application/json"]
    own += [b"authorization: Bearer " + KEY.encode()] if key else []
    if not any(header.lower().startswith((b"content-length", b"transfer-encoding")) for header in headers):
        own.append(b"content-length: %d" % len(body))
    return b"\r\n".join([b"POST " + path + b" HTTP/1.1", *own, *headers, b"", body])


def assert_refused(answer: bytes) -> None:
    """An error, with nothing in it; or the connection was closed at once, while more was sent."""
    statuses = [int(each[:3]) for each in answer.split(b"HTTP/1.1 ")[1:]]
    assert all(400 <= status < 500 for status in statuses), answer
    for leaked in (KEY.encode(), b"Traceback", b"/site-packages/", b"root:"):
        assert leaked not in answer


SMUGGLED = [
    post(b"content-length: 5", b"content-length: 50"),
    post(b"content-length: +5"),
    post(b"content-length: 0x10"),
    post(b"content-length: -1"),
    post(b"content-length: 9" + b"9" * 30),
    post(b"transfer-encoding: chunked", b"content-length: 5", body=b"0\r\n\r\n" + HIDDEN),
    post(b"transfer-encoding: chunked, identity", body=b"0\r\n\r\n" + HIDDEN),
    post(b"transfer-encoding: xchunked", body=b"0\r\n\r\n" + HIDDEN),
    post(b"transfer-encoding: chunked", b"transfer-encoding: chunked", body=b"0\r\n\r\n" + HIDDEN),
    post(b"transfer-encoding: \x0bchunked", body=b"0\r\n\r\n" + HIDDEN),
    post(b"transfer-encoding : chunked", body=b"0\r\n\r\n" + HIDDEN),
    post(b"transfer-encoding: chunked", body=b"xyz\r\n" + HIDDEN),
    post(b"transfer-encoding: chunked", body=b"-1\r\n" + HIDDEN),
    post(b"host: evil.example"),
    post(b"x: a\x00b"),
    post(b"x: a\rb"),
    post(b": empty"),
    post(b"x" * 70_000 + b": a"),
    post(b"x: " + b"a" * 70_000),
    post(*[b"x%d: a" % number for number in range(9000)]),
    post(path=b"http://evil.example/v1/chat/completions"),
    post(path=b"//v1/chat/completions"),
    post(path=b"/v1/../v1/chat/completions"),
    post(path=b"/v1/chat/completions\x00"),
    post(path=b"/v1/chat/completions HTTP/1.1\r\nx: y\r\n\r\nGET /"),
    post().replace(b"host: 127.0.0.1\r\n", b""),
    post().replace(b"POST", b"PO ST"),
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\r\n\r\n" * 3,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]


async def test_a_request_that_two_servers_would_read_differently_is_refused(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, Scripted(calls_then("$4")), keys=(ClientKey("ada", KEY),))
    async with served(settings) as here:
        for attack in SMUGGLED:
            assert_refused(await sent(here, attack))
        assert not here.app.serving.hub.runs.list()
        assert b" 200 " in await sent(here, b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")


WRONG_KEYS = [
    b"Bearer",
    b"Bearer ",
    b"bearer wrong",
    b"Basic " + KEY.encode(),
    KEY.encode(),
    b"Bearer " + KEY.encode()[:-1],
    b"Bearer " + KEY.encode() + b"0",
    b"Bearer " + KEY.upper().encode(),
    b"Bearer \xff\xfe",
    b"Bearer " + b"x" * 20_000,
    b"Bearer " + KEY.encode() + b" wrong",
    b"Bearer ada",
    b"Bearer null",
]


async def test_a_wrong_key_is_refused(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, Scripted(calls_then("$4")), keys=(ClientKey("ada", KEY),))
    async with served(settings) as here:
        for given in WRONG_KEYS:
            answer = await sent(here, post(b"authorization: " + given, key=False))
            assert_refused(answer)
            assert b" 401 " in answer, given
        assert not here.app.serving.hub.runs.list()


async def test_the_first_of_two_keys_does_not_hide_that_there_are_two(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, Scripted(calls_then("$4")), keys=(ClientKey("ada", KEY),))
    async with served(settings) as here:
        answer = await sent(here, post(b"authorization: Bearer wrong"))
        assert_refused(answer)


@pytest.mark.parametrize(
    "pieces",
    [
        (),
        (b"GET /hea",),
        (b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n", b"x: y\r\n"),
    ],
    ids=["silent", "half a line", "no end"],
)
async def test_who_does_not_finish_the_head_of_a_request_is_dropped(
    pieces: tuple[bytes, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 0.05)
    async with served(settings_of(tmp_path, Scripted(calls_then("$4")))) as here:
        assert await sent(here, *pieces) == b""


async def test_who_does_not_finish_a_second_head_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 0.4)
    async with served(settings_of(tmp_path, Scripted(calls_then("$4")))) as here:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(here.url.rpartition(":")[2]))
        writer.write(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert b" 200 " in await reader.readuntil(b"}")
        for _ in range(3):  # each piece puts off the end of a connection that is kept without requests
            writer.write(b"GET /health HTTP/1.1\r\n"[:4])
            await asyncio.sleep(0.01)
        assert await asyncio.wait_for(reader.read(), 4.0) == b""
        writer.close()


async def test_who_waits_long_for_an_answer_is_not_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 0.4)
    async with served(settings_of(tmp_path, Scripted(calls_then("$4"), pause=0.5))) as here:
        assert b" 200 " in await sent(here, post(key=False))


# -- addresses that a model's service would open -----------------------------------------------------------------------


def chat_with(part: dict[str, Any]) -> bytes:
    said = [{"role": "user", "content": [{"type": "text", "text": "What?"}, part]}]
    return json.dumps({"model": "helper", "messages": said}).encode()


def response_with(part: dict[str, Any]) -> bytes:
    said = [{"role": "user", "content": [{"type": "input_text", "text": "What?"}, part]}]
    return json.dumps({"model": "helper", "input": said}).encode()


INSIDE = [
    "http://example.org/a.png",
    "https://127.0.0.1/a.png",
    "https://localhost/a.png",
    "https://LOCALHOST:8080/a.png",
    "https://localhost./a.png",
    "https://[::1]/a.png",
    "https://[::ffff:169.254.169.254]/a.png",
    "https://169.254.169.254/latest/meta-data",
    "https://2130706433/a.png",
    "https://0x7f000001/a.png",
    "https://0x7f.0.0.1/a.png",
    "https://0177.0.0.01/a.png",
    "https://127.1/a.png",
    "https://127.0.0.1./a.png",
    "https://10.0.0.8/a.png",
    "https://metadata/a.png",
    "https://metadata.google.internal/a.png",
    "https://printer.local/a.png",
    "https://example.org@127.0.0.1/a.png",
    "https://example.org:443@localhost/a.png",
    "https://①②⑦.⓪.⓪.①/a.png",
    "https:///etc/passwd",
    "https://",
    "HTTPS://127.0.0.1/a.png",
    "file:///etc/passwd",
    "ftp://example.org/a.png",
    "//127.0.0.1/a.png",
    "/etc/passwd",
    "gopher://127.0.0.1:25/",
    "data.png",
]


async def test_an_image_names_no_file_and_no_server_of_this_network(tmp_path: Path) -> None:
    model = Scripted(calls_then("$4"))
    async with served(settings_of(tmp_path, model)) as here:
        for url in INSIDE:
            image: Any = {"type": "image_url", "image_url": {"url": url}}
            assert_refused(await sent(here, post(body=chat_with(image), key=False)))
            item: Any = {"type": "input_image", "image_url": url}
            assert_refused(await sent(here, post(body=response_with(item), path=b"/v1/responses", key=False)))
    assert not model.asked


async def test_an_image_may_name_a_server_outside(tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_then("$4")))) as here:
        for url in ("https://example.org/a.png", "https://a-b.example.co.uk:8443/x?y=127.0.0.1"):
            image: Any = {"type": "image_url", "image_url": {"url": url}}
            assert b" 200 " in await sent(here, post(body=chat_with(image), key=False))


async def test_a_file_comes_as_bytes_or_not_at_all(tmp_path: Path) -> None:
    parts: list[dict[str, Any]] = [
        {"type": "input_file", "file_url": "https://example.org/a.pdf"},
        {"type": "input_file", "file_id": "file-1"},
        {"type": "input_image", "file_id": "file-1"},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "input_file", "file_data": "/etc/passwd", "filename": "a.txt"},
        {"type": "input_file", "file_data": "file:///etc/passwd", "filename": "/etc/passwd"},
    ]
    async with served(settings_of(tmp_path, Scripted(calls_then("$4")))) as here:
        for part in parts:
            assert_refused(await sent(here, post(body=response_with(part), path=b"/v1/responses", key=False)))
        assert not here.app.serving.hub.runs.list()


# -- names of runs -----------------------------------------------------------------------------------------------------


async def test_a_name_cancels_deletes_and_shows_nothing_but_an_own_run(tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    for kind in ("secret.trace.jsonl", "secret.trace.jsonl.request"):
        (tmp_path / kind).write_text("canary")
        (folder / kind).write_text("canary")
    async with served(settings_of(folder, Scripted(calls_then("$4")))) as here:
        for name in ("..", "../secret", "%2e%2e%2fsecret", "secret", "..%5csecret", "%00", "*", ".", "a%0d%0ab"):
            for method, more in (("DELETE", ""), ("POST", "/cancel"), ("GET", "/trace")):
                head = f"{method} /v1/responses/{name}{more} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
                answer = await sent(here, head.encode())
                assert_refused(answer)
                assert b"canary" not in answer
            followed = json.dumps({"model": "helper", "input": "And?", "previous_response_id": name}).encode()
            assert_refused(await sent(here, post(body=followed, path=b"/v1/responses", key=False)))
    assert (tmp_path / "secret.trace.jsonl").read_text() == "canary"
