"""Workers that are killed, and the process that began them: the others go on with their runs, and nothing is left."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from concertino_serve.run_ledger import RunLedger
from concertino_serve.served_folder import ServedFolder
from concertino_serve.worker_group import ledger_file, new_ledger
from waiting import until, wait_until

from .killed_server import WORDS
from .serving_example import copy_example
from .test_serve_killed import Killed, Readers, text_of

KILLS = int(os.environ.get("CONCERTINO_SERVE_WORKER_KILLS", "20"))


class Pair:
    """Two workers in processes of their own. Who kills one tells the ledger, as the process that began them would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "traces").mkdir()
        new_ledger(folder / "traces").close()
        self.made = 0

    async def start(self) -> None:
        self.workers = list(await asyncio.gather(self._new(), self._new()))

    async def _new(self) -> Killed:
        self.made += 1
        worker = Killed(self.folder, str(self.made))
        await worker.start()
        return worker

    async def kill(self, place: int) -> None:
        worker = self.workers[place]
        worker.stop(signal.SIGKILL)
        with contextlib.closing(RunLedger(ledger_file(self.folder / "traces"), "test")) as ledger:
            ledger.abandon(worker.worker[0])

    def stop(self) -> None:
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.stop(signal.SIGTERM)


@pytest.mark.soak
async def test_a_run_of_a_worker_that_is_killed_goes_on_in_the_other_one(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    await pair.start()
    try:
        broken = await pair.workers[0].read("client-1", most=6)
        assert text_of(broken)
        await pair.kill(0)
        whole = await pair.workers[1].read("client-1")
    finally:
        pair.stop()
    assert whole.startswith(broken)
    assert text_of(whole) == f"client-1: {WORDS}"
    assert pair.workers[1].calls() == ["client-1 begins", "client-1 ends"]


async def killed_in_turn(folder: Path, clients: int, points: list[float]) -> None:
    """Kill one worker or the other, while clients come back to any of them."""
    pair, chance = Pair(folder), random.Random(1)
    await pair.start()
    readers = Readers(clients, lambda who: chance.choice(pair.workers).read(who))
    try:
        async with readers.coming_back() as all_have_theirs:
            for number, seconds in enumerate(points):
                await asyncio.sleep(seconds)
                await pair.kill(number % 2)
                readers.note(pair.workers[0])
                pair.workers[number % 2] = await pair._new()
            await all_have_theirs
        again = [await worker.read(who) for who in readers.names for worker in pair.workers]
        with contextlib.closing(RunLedger(ledger_file(folder / "traces"), "test")) as ledger:
            await wait_until(lambda: ledger.running() == 0)
    finally:
        pair.stop()
    assert again == [readers.seen[who] for who in readers.names for _ in pair.workers]
    assert len(list((folder / "traces").glob("*.trace.jsonl"))) == clients
    readers.check(pair.workers[0])


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_twenty_clients_end_with_their_text_whichever_worker_is_killed(tmp_path: Path) -> None:
    chance, rest, turn = random.Random(0), KILLS, 0
    while rest > 0:
        folder = tmp_path / str(turn)
        folder.mkdir()
        points = [chance.uniform(0.05, 0.8) for _ in range(min(5, rest))]
        await killed_in_turn(folder, 20, points)
        rest, turn = rest - len(points), turn + 1


# -- the command -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def group(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command with two workers, and its address."""
    copy_example(folder)
    command = [sys.executable, "-m", "concertino", "serve", "serve.toml", "--port", "0", "--json", "--workers", "2"]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        told = json.loads("".join(iter(server.stdout.readline, "}\n")) + "}")
        yield server, told["address"]
    finally:
        server.kill()
        server.communicate(timeout=60)


def workers_of(server: subprocess.Popen[str]) -> list[int]:
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
    return [int(pid) for pid in children.read_text().split()]


def is_gone(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    try:
        return "State:\tZ" in status.read_text()
    except OSError:
        return True


def ask(address: str, key: str) -> Any:
    body = {"model": "helper", "messages": [{"role": "user", "content": "What is 17 * 23?"}]}
    with httpx2.Client(verify=False, timeout=60) as web:
        answer = web.post(f"{address}/v1/chat/completions", json=body, headers={"idempotency-key": key})
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced_and_a_stop_ends_all(tmp_path: Path) -> None:
    with group(tmp_path) as (server, address):
        first = ask(address, "one")
        before = workers_of(server)
        assert len(before) == 2
        os.kill(before[0], signal.SIGKILL)
        until(lambda: len(workers_of(server)) == 2 and before[0] not in workers_of(server))
        assert ask(address, "one") == first
        after = workers_of(server)
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
        assert all(is_gone(pid) for pid in (*before, *after))
    assert not list((tmp_path / "runs").glob("serve.ledger*"))


@pytest.mark.soak
def test_workers_end_with_the_process_that_began_them_and_hold_the_folder_until_then(tmp_path: Path) -> None:
    with group(tmp_path) as (server, address):
        ask(address, "one")
        workers = workers_of(server)
        server.kill()
        os.kill(workers[0], signal.SIGSTOP)  # it takes a moment to end; stopped before, the kernel would wake it now
        server.wait(60)
        until(lambda: is_gone(workers[1]))
        with pytest.raises(Exception, match="serves the runs of this folder already"):
            ServedFolder(tmp_path / "runs")
        os.kill(workers[0], signal.SIGCONT)
        until(lambda: is_gone(workers[0]))
    ServedFolder(tmp_path / "runs").release()
    with group(tmp_path) as (server, address):
        assert ask(address, "one")
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0


@pytest.mark.soak
def test_workers_that_cannot_begin_are_given_up(tmp_path: Path) -> None:
    copy_example(tmp_path)
    (tmp_path / "runs").mkdir(mode=0o700)
    broken = {**os.environ, "PYTHONPATH": str(tmp_path)}
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nif '--worker' in sys.orig_argv: sys.exit('this worker cannot begin')\n"
    )
    command = [sys.executable, "-m", "concertino", "serve", "serve.toml", "--port", "0", "--workers", "2"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=broken,
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 2
    assert "no worker can begin" in done.stderr
    assert "this worker cannot begin" in done.stderr
