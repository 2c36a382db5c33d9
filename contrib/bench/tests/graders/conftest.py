"""Rows of the data samples, a sandbox behind a bench, and a bench whose judge speaks a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from concertino import ChatRequest, Observation, Reply
from concertino.testing import run_call

Rows = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def rows(shared_data: Path) -> Rows:
    """Reads a file of JSON Lines below the folder of data samples."""

    def read(name: str) -> list[dict[str, Any]]:
        file = shared_data / name
        if not file.is_file():
            pytest.skip(f"{file} is not there")
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]

    return read


class SandboxBench:
    """A bench with the real sandbox, through the real executor."""

    def __init__(self, tool: Any) -> None:
        self.tool = tool

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        assert name == "code/python"
        return await run_call(self.tool, dict(arguments))

    async def ask(self, role: str, request: ChatRequest) -> Reply:
        raise AssertionError("no model is needed to run programs")


@pytest.fixture(scope="session")
def sandbox_bench() -> Iterator[SandboxBench]:
    """The strongest sandbox that this machine grants; skips where there is none."""
    pytest.importorskip("concertino_code", reason="concertino-code is not installed")
    from concertino_code.sandbox import JailedSandbox
    from concertino_code.sandbox.levels import choose_level_now
    from concertino_code.tool import python_tool

    choice = choose_level_now(level="namespaces")
    if not choice.level:
        pytest.skip(f"no namespaces here: {choice.explain()}")
    sandbox = JailedSandbox()
    yield SandboxBench(python_tool(sandbox))
    sandbox.close_now()


class NoBench:
    """The bench of graders that need none."""

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        raise AssertionError(f"{name} was called")

    async def ask(self, role: str, request: ChatRequest) -> Reply:
        raise AssertionError(f"{role} was asked")


@pytest.fixture
def no_bench() -> NoBench:
    """A bench that fails if it is used."""
    return NoBench()


class JudgeBench(NoBench):
    """A bench whose judge gives the replies that it was made with, in turn; an exception among them is raised."""

    def __init__(self, *replies: Reply | Exception) -> None:
        self.replies = list(replies)
        self.asked: list[ChatRequest] = []

    async def ask(self, role: str, request: ChatRequest) -> Reply:
        self.asked.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


@pytest.fixture
def judge_bench() -> type[JudgeBench]:
    """Makes benches with a scripted judge."""
    return JudgeBench
