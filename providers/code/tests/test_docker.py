"""The docker sandbox, against a stand-in of the engine in this process that really runs what it is sent."""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from concertino_code.sandbox.base import SandboxFault, SandboxUnavailable
from concertino_code.sandbox.docker import DockerSandbox
from concertino_code.sandbox.limits import ScriptLimits
from concertino_code.sandbox.outcome import Ending

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def python(*arguments: str, temporary: Path) -> tuple[int, bytes, bytes]:
    """Run this interpreter to its end, or to the end of whoever waits for it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    return process.returncode or 0, out, err


class StandIn:
    """A docker engine on a UNIX socket. `broken` makes it answer so instead."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.alive: set[str] = set()
        self.specifications: dict[str, Any] = {}
        self.broken: Handler | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        if self.broken is not None:
            return await self.broken(request)
        return await self.docker(request, request.path.strip("/").split("/")[2:], body)

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
        _, out, err = await python(*self.specifications[name]["Cmd"][1:], temporary=self.folder)
        for kind, data in ((2, err), (1, out[:100]), (1, out[100:])):
            await response.write(struct.pack(">BxxxI", kind, len(data)) + data)
        return response


@contextlib.asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[StandIn, str]]:
    """The stand-in, and its UNIX socket."""
    stand_in = StandIn(folder)
    application = web.Application(client_max_size=1 << 26)
    application.router.add_route("*", "/{tail:.*}", stand_in.handle)
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    path = str(folder / "d.sock")
    await web.UnixSite(runner, path).start()
    try:
        yield stand_in, path
    finally:
        await runner.cleanup()


async def test_a_script_ends_there_as_it_does_here(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, path):
        sandbox = DockerSandbox(socket=path)
        good = await sandbox.run("print(input(), open('in.txt').read())", stdin="typed\n", files={"in.txt": "ä"})
        bad = await sandbox.run("print('before')\n1 / 0")
        dead = await sandbox.run("import os; os.kill(os.getpid(), 9)")
    assert (good.ending, good.stdout.text) == (Ending.OK, "typed ä\n")
    assert (bad.ending, bad.exit_code, bad.stdout.text) == (Ending.EXIT, 1, "before\n")
    assert bad.explain() == "ZeroDivisionError: division by zero"
    assert (dead.ending, dead.exit_code) == (Ending.SIGNAL, -9)


async def test_time_and_output_are_bounded_there(tmp_path: Path) -> None:
    async with serving(tmp_path) as (stand_in, path):
        sandbox = DockerSandbox(socket=path)
        late = await sandbox.run(
            "print('early', flush=True)\nimport time; time.sleep(60)", limits=ScriptLimits(wall=0.7)
        )
        long = await sandbox.run("print('x' * 300_000)", limits=ScriptLimits(output_kb=1, wall=30))
    assert late.ending is Ending.WALL
    assert late.stdout.text == "early\n"
    assert long.stdout.total == 300_001
    assert len(long.stdout.head + long.stdout.tail) == 1024
    assert stand_in.alive == set()


async def test_files_come_back_from_there(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, path):
        done = await DockerSandbox(socket=path).run("open('a.bin', 'wb').write(b'\\xff')", artefacts=["a.bin", "none"])
    assert done.artefacts["a.bin"].data == b"\xff"
    assert done.artefacts["none"].error


async def test_a_link_gives_nothing_back(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, path):
        done = await DockerSandbox(socket=path).run("import os; os.symlink('/etc/passwd', 'l')", artefacts=["l"])
    assert done.artefacts["l"].error
    assert done.artefacts["l"].data == b""


async def test_a_seed_makes_randomness_the_same_there(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, path):
        sandbox = DockerSandbox(socket=path)
        same = [await sandbox.run("import random; print(random.random())", seed=3) for _ in range(2)]
    assert same[0].stdout.text == same[1].stdout.text != ""


@pytest.mark.parametrize(
    ("status", "unavailable"), [(500, False), (429, False), (503, False), (401, True), (404, True), (302, True)]
)
async def test_a_service_that_refuses_is_no_fault_of_the_script(status: int, unavailable: bool, tmp_path: Path) -> None:
    async with serving(tmp_path) as (stand_in, path):

        async def refuse(request: web.Request) -> web.Response:
            return web.Response(status=status, text="not now", headers={"Location": "http://127.0.0.1:1/"})

        stand_in.broken = refuse
        with pytest.raises(SandboxFault, match=f"{status}: not now") as caught:
            await DockerSandbox(socket=path).run("print(1)")
    assert isinstance(caught.value, SandboxUnavailable) is unavailable
    assert "a-key" not in str(caught.value)


async def test_a_service_that_is_not_there_may_be_asked_again(tmp_path: Path) -> None:
    with pytest.raises(SandboxFault, match="cannot be reached") as caught:
        await DockerSandbox(socket=str(tmp_path / "none")).run("print(1)")
    assert not caught.value.executed
    assert not isinstance(caught.value, SandboxUnavailable)


@pytest.mark.parametrize("text", ["nonsense", "[]", '{"State": 3}'])
async def test_an_answer_in_an_unknown_form_is_a_fault(text: str, tmp_path: Path) -> None:
    async with serving(tmp_path) as (stand_in, path):

        async def strange(request: web.Request) -> web.Response:
            return web.Response(text=text)

        stand_in.broken = strange
        with pytest.raises(SandboxFault):
            await DockerSandbox(socket=path).run("print(1)")


@pytest.mark.parametrize("after", [0.0, 0.005, 0.3])
async def test_a_cancelled_execution_leaves_nothing_rented(after: float, tmp_path: Path) -> None:
    async with serving(tmp_path) as (stand_in, path):
        running = asyncio.ensure_future(DockerSandbox(socket=path).run("import time; time.sleep(60)"))
        await asyncio.sleep(after)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert stand_in.alive == set()


async def test_a_container_has_no_network_and_no_rights(tmp_path: Path) -> None:
    async with serving(tmp_path) as (stand_in, path):
        await DockerSandbox(socket=path, limits=ScriptLimits(processes=5, tree_mb=100)).run("print(1)")
        (made,) = stand_in.specifications.values()
    host = made["HostConfig"]
    assert (host["NetworkMode"], host["ReadonlyRootfs"], host["CapDrop"]) == ("none", True, ["ALL"])
    assert (host["SecurityOpt"], host["PidsLimit"]) == (["no-new-privileges"], 13)
    assert made["User"] == "65534:65534"
    # The runner has to be process 1, and what tells of the machine is covered.
    assert host["Init"] is False
    assert "/sys" in host["MaskedPaths"]
