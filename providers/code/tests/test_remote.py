"""Sandboxes elsewhere, against stand-ins of their services in this process that really run what they are sent."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import struct
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from concertino_code.execution import Ending
from concertino_code.limits import Limits
from concertino_code.remote.docker import DockerSandbox
from concertino_code.remote.e2b import E2BSandbox
from concertino_code.remote.sandboxfusion import SandboxFusion
from concertino_code.sandbox import Sandbox, SandboxFault, SandboxUnavailable

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def python(*arguments: str, stdin: bytes = b"", cwd: str | None = None) -> tuple[int, bytes, bytes]:
    """Run this interpreter to its end, or to the end of whoever waits for it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=cwd, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        out, err = await process.communicate(stdin)
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    return process.returncode or 0, out, err


def _write(folder: str, files: dict[str, str]) -> None:
    for name, data in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(data))


def _read(folder: str, names: list[str]) -> dict[str, str]:
    paths = {name: Path(folder, name) for name in names}
    return {name: base64.b64encode(path.read_bytes()).decode() for name, path in paths.items() if path.is_file()}


class StandIn:
    """One service on a loopback port or a UNIX socket. `broken` makes it answer so instead."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, Any]] = []
        self.alive: set[str] = set()
        self.specifications: dict[str, Any] = {}
        self.broken: Handler | None = None
        self.key = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        self.requests.append((request.method, request.path, body))
        self.key = request.headers.get("X-API-Key", self.key)
        if self.broken is not None:
            return await self.broken(request)
        parts = request.path.strip("/").split("/")
        if parts[0] == "run_code":
            return await self.fusion(body)
        if parts[0] in ("sandboxes", "execute"):
            return await self.e2b(request, parts, body)
        return await self.docker(request, parts[2:], body)

    async def fusion(self, body: Any) -> web.Response:
        """SandboxFusion's POST /run_code."""
        with tempfile.TemporaryDirectory() as folder:
            _write(folder, {**body["files"], "main.py": base64.b64encode(body["code"].encode()).decode()})
            try:
                async with asyncio.timeout(body["run_timeout"]):
                    code, out, err = await python("main.py", stdin=body["stdin"].encode(), cwd=folder)
                ran = {"status": "Finished", "execution_time": 0.1, "return_code": code}
                ran |= {"stdout": out.decode(), "stderr": err.decode()}
            except TimeoutError:
                ran = {"status": "TimeLimitExceeded", "execution_time": body["run_timeout"], "return_code": None}
            files = _read(folder, body["fetch_files"])
        status = "Success" if ran.get("return_code") == 0 else "Failed"
        return web.json_response({"status": status, "message": "", "run_result": ran, "files": files})

    async def e2b(self, request: web.Request, parts: list[str], body: Any) -> web.StreamResponse:
        """E2B's /sandboxes, and the code interpreter's /execute."""
        if request.method == "POST" and parts == ["sandboxes"]:
            self.alive.add("m1")
            return web.json_response({"sandboxID": "m1", "envdAccessToken": "t"}, status=201)
        if request.method == "DELETE":
            self.alive.discard(parts[1])
            return web.Response(status=204)
        assert request.headers["X-Access-Token"] == "t"
        _, out, err = await python("-I", "-c", body["code"])
        lines = [{"type": "stdout", "text": out.decode()}, {"type": "stderr", "text": err.decode()}]
        return web.Response(
            text="".join(json.dumps(line) + "\n" for line in [*lines, {"type": "number_of_executions"}])
        )

    async def docker(self, request: web.Request, parts: list[str], body: Any) -> web.StreamResponse:
        """The docker engine's containers: create, attach, start, look, remove."""
        if parts == ["create"]:
            self.specifications[request.query["name"]] = body
            self.alive.add(request.query["name"])
            return web.json_response({"Id": "x"}, status=201)
        name = parts[0]
        if request.method == "DELETE":
            self.alive.discard(name)
            return web.Response(status=204)
        if parts[1] == "start":
            return web.Response(status=204)
        if parts[1] == "json":
            return web.json_response({"State": {"OOMKilled": False}})
        response = web.StreamResponse(headers={"Content-Type": "application/vnd.docker.raw-stream"})
        await response.prepare(request)
        _, out, err = await python(*self.specifications[name]["Cmd"][1:])
        for kind, data in ((2, err), (1, out[:100]), (1, out[100:])):
            await response.write(struct.pack(">BxxxI", kind, len(data)) + data)
        return response


@contextlib.asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[StandIn, str, str]]:
    """The stand-in, its address, and its UNIX socket."""
    stand_in = StandIn()
    application = web.Application(client_max_size=1 << 26)
    application.router.add_route("*", "/{tail:.*}", stand_in.handle)
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    path = str(folder / "d.sock")
    await web.UnixSite(runner, path).start()
    port = runner.addresses[0][1]
    try:
        yield stand_in, f"http://127.0.0.1:{port}", path
    finally:
        await runner.cleanup()


def make(kind: str, url: str, path: str) -> Sandbox:
    if kind == "docker":
        return DockerSandbox(socket=path)
    if kind == "e2b":
        return E2BSandbox("a-key", api_url=url, sandbox_url=url)
    return SandboxFusion(url)


KINDS = ["docker", "e2b", "sandboxfusion"]
OWN_RUNNER = ["docker", "e2b"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_script_ends_there_as_it_does_here(kind: str, tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, url, path):
        sandbox = make(kind, url, path)
        good = await sandbox.run("print(input(), open('in.txt').read())", stdin="typed\n", files={"in.txt": "ä"})
        bad = await sandbox.run("print('before')\n1 / 0")
        dead = await sandbox.run("import os; os.kill(os.getpid(), 9)")
    assert (good.ending, good.stdout.text) == (Ending.OK, "typed ä\n")
    assert (bad.ending, bad.exit_code, bad.stdout.text) == (Ending.EXIT, 1, "before\n")
    assert bad.explain() == "ZeroDivisionError: division by zero"
    assert (dead.ending, dead.exit_code) == (Ending.SIGNAL, -9)


@pytest.mark.parametrize("kind", KINDS)
async def test_time_and_output_are_bounded_there(kind: str, tmp_path: Path) -> None:
    async with serving(tmp_path) as (stand_in, url, path):
        sandbox = make(kind, url, path)
        late = await sandbox.run("print('early', flush=True)\nimport time; time.sleep(60)", limits=Limits(wall=0.7))
        long = await sandbox.run("print('x' * 300_000)", limits=Limits(output_kb=1, wall=30))
    assert late.ending is Ending.WALL
    if kind in OWN_RUNNER:
        assert late.stdout.text == "early\n"
    assert long.stdout.total == 300_001
    assert len(long.stdout.head + long.stdout.tail) == 1024
    assert stand_in.alive == set()


@pytest.mark.parametrize("kind", KINDS)
async def test_files_come_back_from_there(kind: str, tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, url, path):
        done = await make(kind, url, path).run("open('a.bin', 'wb').write(b'\\xff')", artefacts=["a.bin", "none"])
    assert done.artefacts["a.bin"].data == b"\xff"
    assert done.artefacts["none"].error


@pytest.mark.parametrize("kind", OWN_RUNNER)
async def test_a_link_gives_nothing_back(kind: str, tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, url, path):
        done = await make(kind, url, path).run("import os; os.symlink('/etc/passwd', 'l')", artefacts=["l"])
    assert done.artefacts["l"].error
    assert done.artefacts["l"].data == b""


@pytest.mark.parametrize("kind", KINDS)
async def test_a_seed_makes_randomness_the_same_there(kind: str, tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, url, path):
        sandbox = make(kind, url, path)
        same = [await sandbox.run("import random; print(random.random())", seed=3) for _ in range(2)]
    assert same[0].stdout.text == same[1].stdout.text != ""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("status", "unavailable"), [(500, False), (429, False), (503, False), (401, True), (404, True), (302, True)]
)
async def test_a_service_that_refuses_is_no_fault_of_the_script(
    kind: str, status: int, unavailable: bool, tmp_path: Path
) -> None:
    async with serving(tmp_path) as (stand_in, url, path):

        async def refuse(request: web.Request) -> web.Response:
            return web.Response(status=status, text="not now", headers={"Location": "http://127.0.0.1:1/"})

        stand_in.broken = refuse
        with pytest.raises(SandboxFault, match=f"{status}: not now") as caught:
            await make(kind, url, path).run("print(1)")
    assert isinstance(caught.value, SandboxUnavailable) is unavailable
    assert "a-key" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_service_that_is_not_there_may_be_asked_again(kind: str, tmp_path: Path) -> None:
    with pytest.raises(SandboxFault, match="cannot be reached") as caught:
        await make(kind, "http://127.0.0.1:9", str(tmp_path / "none")).run("print(1)")
    assert not caught.value.executed
    assert not isinstance(caught.value, SandboxUnavailable)


@pytest.mark.parametrize(
    "text", ["nonsense", "[]", '{"status": "Success"}', '{"status": "SandboxError", "message": "x"}']
)
async def test_an_answer_in_an_unknown_form_is_a_fault(text: str, tmp_path: Path) -> None:
    async with serving(tmp_path) as (stand_in, url, _):

        async def strange(request: web.Request) -> web.Response:
            return web.Response(text=text)

        stand_in.broken = strange
        with pytest.raises(SandboxFault):
            await SandboxFusion(url).run("print(1)")


@pytest.mark.parametrize("kind", OWN_RUNNER)
@pytest.mark.parametrize("after", [0.0, 0.005, 0.3])
async def test_a_cancelled_execution_leaves_nothing_rented(kind: str, after: float, tmp_path: Path) -> None:
    async with serving(tmp_path) as (stand_in, url, path):
        running = asyncio.ensure_future(make(kind, url, path).run("import time; time.sleep(60)"))
        await asyncio.sleep(after)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert stand_in.alive == set()


async def test_a_container_has_no_network_and_no_rights(tmp_path: Path) -> None:
    async with serving(tmp_path) as (stand_in, _, path):
        await DockerSandbox(socket=path, limits=Limits(processes=5, tree_mb=100)).run("print(1)")
        (made,) = stand_in.specifications.values()
    host = made["HostConfig"]
    assert (host["NetworkMode"], host["ReadonlyRootfs"], host["CapDrop"]) == ("none", True, ["ALL"])
    assert (host["SecurityOpt"], host["PidsLimit"]) == (["no-new-privileges"], 13)
    assert made["User"] == "65534:65534"


async def test_the_key_is_sent_as_a_header_and_the_machine_has_a_limit_of_its_own(tmp_path: Path) -> None:
    async with serving(tmp_path) as (stand_in, url, _):
        await E2BSandbox("a-key", api_url=url, sandbox_url=url).run("print(1)")
    assert stand_in.key == "a-key"
    assert stand_in.requests[0][2] == {
        "templateID": "code-interpreter-v1", "timeout": 70, "allow_internet_access": False
    }  # fmt: skip


def test_what_is_missing_is_named() -> None:
    with pytest.raises(SandboxUnavailable, match="E2B_API_KEY"):
        E2BSandbox("")
    with pytest.raises(SandboxUnavailable, match="expected such as"):
        SandboxFusion("")
