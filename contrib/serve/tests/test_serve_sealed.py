"""Sealed traces are served: nothing beside them can be read without the key, and all else is as without one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.core.errors import TraceError
from concertino.traces.sealing import VARIABLE, new_key
from concertino_serve.request_digests import digest_of
from concertino_serve.sealed_file import SealedLines, read_document, read_lines, write_document

from .serving_here import Scripted, served, settings_of
from .test_serve_client_tools import FLAT, calls_both, post

pytest.importorskip("cryptography", reason="sealing needs the package cryptography")
CANARY = "canary-of-sealed-runs"
SUNNY = [{"type": "function_call_output", "call_id": "", "output": f"sunny, {CANARY}"}]


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    made = new_key()
    monkeypatch.setenv(VARIABLE, made)
    return made


def says(messages: list[ct.Message]) -> str:
    return calls_both(messages).replace("Buy them", f"Buy them, {CANARY}")


async def test_nothing_that_was_asked_or_said_can_be_read_and_streams_read_the_same_again(
    key: str, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path, Scripted(says))
    asked = {"model": "helper", "input": f"What? {CANARY}", "instructions": CANARY, "tools": FLAT, "stream": True}
    async with served(settings) as here, here.client() as client:
        begun: Any = [{"role": "user", "content": CANARY}]
        talk = await client.conversations.create(items=begun)
        _, first = await post(here, "responses", {**asked, "conversation": talk.id}, **{"idempotency-key": "a"})
        call = json.loads(first.decode().rsplit("data: ", 1)[1])["response"]["output"][-1]["call_id"]
        body = {"model": "helper", "input": [{**SUNNY[0], "call_id": call}], "stream": True}
        _, second = await post(here, "responses", body)
    assert CANARY in second.decode()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]  # noqa: ASYNC240
    assert {"".join(path.suffixes[-2:]) for path in files} >= {".jsonl.request", ".jsonl.told", ".json"}
    assert not [path for path in files if CANARY.encode() in path.read_bytes()]
    async with served(settings) as here:
        again = await post(here, "responses", {**asked, "conversation": talk.id}, **{"idempotency-key": "a"})
        assert again[1] == first
        assert (await post(here, "responses", body))[1] == second


async def test_without_the_key_a_run_is_not_given_and_not_lost(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(tmp_path, Scripted(says))
    async with served(settings) as here:
        _, data = await post(here, "responses", {"model": "helper", "input": "?", "tools": FLAT})
    for other in (None, new_key()):
        monkeypatch.delenv(VARIABLE) if other is None else monkeypatch.setenv(VARIABLE, other)
        async with served(settings) as here, here.client() as client:
            with pytest.raises(Exception, match="there is no run"):
                await client.responses.retrieve(json.loads(data)["id"])
    monkeypatch.setenv(VARIABLE, key)
    async with served(settings) as here, here.client() as client:
        assert (await client.responses.retrieve(json.loads(data)["id"])).status == "completed"


def test_the_name_of_a_sealed_run_does_not_tell_what_was_asked(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = digest_of("ada", "chat", b"body")
    assert sealed == digest_of("ada", "chat", b"body")
    monkeypatch.delenv(VARIABLE)
    assert sealed != digest_of("ada", "chat", b"body")


def test_lines_are_read_back_and_a_torn_one_is_taken_away(key: str, tmp_path: Path) -> None:
    path = tmp_path / "a.told"
    for text in (b"one", b"two"):
        lines = SealedLines(path)
        lines.add(text)
        lines.close()
        with path.open("ab") as file:
            file.write(b"torn")
    assert list(read_lines(path)) == [b"one", b"two"]


def test_what_was_changed_moved_or_renamed_is_not_believed(key: str, tmp_path: Path) -> None:
    path = tmp_path / "a.told"
    lines = SealedLines(path)
    for text in (b"one", b"two"):
        lines.add(text)
    lines.close()
    write_document(tmp_path / "b.request", b'{"a": 1}')
    assert read_document(tmp_path / "b.request") == b'{"a": 1}'
    whole = path.read_bytes()
    header, one, two = whole.splitlines(keepends=True)
    for changed in (header + two, header + two + one, header + one[:20] + b"x" + one[21:] + two):
        path.write_bytes(changed)
        with pytest.raises(TraceError, match="damaged"):
            list(read_lines(path))
    (tmp_path / "c.told").write_bytes(whole)
    with pytest.raises(TraceError, match="of another file"):
        list(read_lines(tmp_path / "c.told"))


def test_a_file_that_was_begun_without_a_key_stays_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.told"
    lines = SealedLines(path)
    lines.add(b'{"n":1}')
    lines.close()
    monkeypatch.setenv(VARIABLE, new_key())
    lines = SealedLines(path)
    lines.add(b'{"n":2}')
    lines.close()
    assert path.read_bytes() == b'{"n":1}\n{"n":2}\n'
    assert [json.loads(line)["n"] for line in read_lines(path)] == [1, 2]
