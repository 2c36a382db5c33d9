"""Real backends, each in an environment of its own: the tree of a run comes back out of them through their own API.

`python scripts/servers.py backends` prepares the environments; these tests prepare them too.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino_otel.command import send_trace
from concertino_otel.fold import Span, SpanFold, spans_of
from concertino_otel.ids import span_id, trace_id
from concertino_otel.options import Options
from servers import MLFLOW, PHOENIX, Absent, Environment
from waiting import until

from .five_strategies import CANARY, NAMES, OUTCOMES, cut_in_a_call, leader_of, pool_of, run_of, trace_of, turns_of

pytestmark = pytest.mark.soak
QUIET = {"PHOENIX_TELEMETRY_ENABLED": "false", "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false"}
QUIET |= {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
STARTS = 240.0
"""Seconds in which a backend has to start: the first time it makes its tables."""


@dataclass(frozen=True)
class Found:
    """A span as a backend gives it back; `parent` is empty for the root."""

    id: str
    parent: str
    name: str
    failed: bool
    text: str


@dataclass(frozen=True)
class Backend:
    """A backend that runs.

    Attributes:
        spans: those of a trace, by the address and the id.
        tokens: what it says that a trace has read and written.
        headers: that it needs.
    """

    url: str
    spans: Callable[[str, str], list[Found]]
    tokens: Callable[[str, str], int]
    headers: dict[str, str] = field(default_factory=dict)

    def take(self, path: Path, **settings: Any) -> str:
        """Send a trace to it. Gives the trace's id."""
        options = Options.of(settings, {"OTEL_EXPORTER_OTLP_HEADERS": _pairs(self.headers)}).to(self.url)
        return send_trace(path, options, wait=STARTS).trace_id  # its first answer takes long

    def tree(self, trace: str, spans: int) -> list[Found]:
        """The spans of a trace, when it has as many."""
        until(lambda: len(self.spans(self.url, trace)) >= spans, f"{spans} spans of {trace}")
        return self.spans(self.url, trace)


def _pairs(headers: dict[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in headers.items())


def asked(url: str, body: Any = None) -> Any:
    """The JSON behind an address of this machine."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def of_phoenix(url: str, trace: str) -> list[Found]:
    found = asked(f"{url}/v1/projects/default/spans?limit=1000&trace_id={trace}")["data"]
    return [
        Found(
            each["context"]["span_id"],
            each["parent_id"] or "",
            each["name"],
            each["status_code"] == "ERROR",
            json.dumps(each),
        )
        for each in found
    ]


def tokens_of_phoenix(url: str, trace: str) -> int:
    fields = "trace { traceId } spanId parentId cumulativeTokenCountTotal"
    query = f"{{ projects {{ edges {{ node {{ spans(first: 1000) {{ edges {{ node {{ {fields} }} }} }} }} }} }} }}"
    projects = asked(f"{url}/graphql", {"query": query})["data"]["projects"]["edges"]
    spans = [each["node"] for project in projects for each in project["node"]["spans"]["edges"]]
    [root] = [each for each in spans if each["trace"]["traceId"] == trace and not each["parentId"]]
    return int(root["cumulativeTokenCountTotal"])


@contextmanager
def phoenix(python: Path, folder: Path) -> Iterator[Backend]:
    port, other = free_port(), free_port()
    given = {"PHOENIX_HOST": "127.0.0.1", "PHOENIX_PORT": str(port), "PHOENIX_GRPC_PORT": str(other)}
    given |= {"PHOENIX_WORKING_DIR": str(folder)}
    url = f"http://127.0.0.1:{port}"
    with running([str(python.with_name("phoenix")), "serve"], folder, given, f"{url}/healthz"):
        yield Backend(url, of_phoenix, tokens_of_phoenix)


def of_mlflow(url: str, trace: str) -> list[Found]:
    try:
        found = asked(f"{url}/api/3.0/mlflow/traces/get?trace_id=tr-{trace}")["trace"]["spans"]
    except urllib.error.HTTPError:
        return []
    return [
        Found(
            _hex(each["span_id"]),
            _hex(each.get("parent_span_id", "")),
            each["name"],
            each.get("status", {}).get("code") == "STATUS_CODE_ERROR",
            json.dumps(each),
        )
        for each in found
    ]


def _hex(text: str) -> str:
    return base64.b64decode(text).hex()


def tokens_of_mlflow(url: str, trace: str) -> int:
    about = asked(f"{url}/api/3.0/mlflow/traces/tr-{trace}")["trace"]["trace_info"]
    return int(json.loads(about["trace_metadata"].get("mlflow.trace.tokenUsage", "{}")).get("total_tokens", 0))


@contextmanager
def mlflow(python: Path, folder: Path) -> Iterator[Backend]:
    port = free_port()
    store = ["--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--workers", "1"]
    command = [str(python.with_name("mlflow")), "server", "--host", "127.0.0.1", "--port", str(port), *store]
    url = f"http://127.0.0.1:{port}"
    with running(command, folder, {"PATH": f"{python.parent}:{os.environ.get('PATH', '')}"}, f"{url}/health"):
        yield Backend(url, of_mlflow, tokens_of_mlflow, {"x-mlflow-experiment-id": "0"})


STARTED: dict[str, tuple[Environment, Any]] = {"phoenix": (PHOENIX, phoenix), "mlflow": (MLFLOW, mlflow)}


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def running(command: list[str], folder: Path, given: dict[str, str], ready: str) -> Iterator[None]:
    """A server that answers at an address, until the end."""
    environ = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), **QUIET, **given}
    log = folder / "log"
    with log.open("wb") as written:
        server = subprocess.Popen(command, cwd=folder, env=environ, stdout=written, stderr=written)

    def answers() -> bool:
        assert server.poll() is None, f"it has ended:\n{log.read_text(errors='replace')[-2000:]}"
        with suppress(OSError, urllib.error.HTTPError), urllib.request.urlopen(ready, timeout=5):
            return True
        return False

    try:
        until(answers, ready, STARTS)
        yield
    finally:
        server.terminate()
        server.wait(60)


@pytest.fixture(scope="module", params=list(STARTED))
def backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    environment, begin = STARTED[request.param]
    try:
        environment.prepare()
        python = environment.python()
    except Absent as absent:
        pytest.skip(str(absent))
    with begin(python, tmp_path_factory.mktemp(request.param)) as started:
        yield started


def expected(path: Path) -> tuple[str, list[Span]]:
    trace = ct.Trace.load(path)
    return trace.run_id, list(spans_of(iter(trace.records), SpanFold()))


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("name", NAMES)
async def test_the_tree_of_a_run_comes_back_as_it_was_sent_however_often_it_was_sent(
    name: str, outcome: str, backend: Backend, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    path = await trace_of(name, outcome, tmp_path)
    run_id, spans = expected(path)
    trace = await asyncio.to_thread(backend.take, path)
    assert trace == trace_id(run_id).hex()
    assert await asyncio.to_thread(backend.take, path) == trace
    found = await asyncio.to_thread(backend.tree, trace, len(spans))
    record_property("spans", len(found))
    assert {each.id: each.parent for each in found} == {
        span_id(run_id, span.key).hex(): span_id(run_id, span.parent).hex() if span.parent else "" for span in spans
    }
    assert len(found) == len(spans)
    assert {each.id for each in found if each.failed} == {
        span_id(run_id, span.key).hex() for span in spans if span.error
    }
    assert not any(CANARY in each.text for each in found)
    used = sum(
        span.fields.get("input_tokens", 0) + span.fields.get("output_tokens", 0)
        for span in spans
        if span.kind == "chat"
    )
    assert await asyncio.to_thread(backend.tokens, backend.url, trace) == used


async def test_prompts_and_answers_come_back_where_content_is_sent(backend: Backend, tmp_path: Path) -> None:
    path = await run_of("parallel-rounds", tmp_path)
    trace = await asyncio.to_thread(backend.take, path, content="spans")
    found = await asyncio.to_thread(backend.tree, trace, len(expected(path)[1]))
    with_content = {each.name for each in found if CANARY in each.text}
    assert {"invoke_agent concertino", "chat lead", "execute_tool work"} <= with_content


async def test_a_killed_run_is_one_tree_after_it_was_resumed(backend: Backend, tmp_path: Path) -> None:
    path = cut_in_a_call(await run_of("parallel-rounds", tmp_path))
    shown = await asyncio.to_thread(backend.take, path)
    replies = len(ct.Trace.load(path).replies())
    await leader_of("parallel-rounds", turns=turns_of("parallel-rounds")[replies:]).resume(path, pool=pool_of())
    assert await asyncio.to_thread(backend.take, path) == shown
    run_id, spans = expected(path)
    found = await asyncio.to_thread(backend.tree, shown, len(spans))
    assert {each.id for each in found} == {span_id(run_id, span.key).hex() for span in spans}
