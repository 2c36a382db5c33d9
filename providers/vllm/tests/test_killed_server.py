"""A training whose server is killed, or that is killed itself: nothing is trained twice, nor paid twice.

And no token is trained of weights that the training did not give: the server may come back with others.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import PATIENCE, STAND_IN, System

pytest.importorskip("concertino_train.policies", reason="concertino-train is not installed")

PROGRAM = Path(__file__).with_name("served_training.py")
STEPS, GROUPS, SIZE, CALLS = 5, 2, 2, 2
POINTS = int(os.environ.get("CONCERTINO_KILLS", "30"))
"""Where the long tests kill; numbers of beats."""
APART = 150 // POINTS | 1
"""Beats between two points; odd, so that every second point is at the end of a request. A training has 186."""
DONE, FAILED, KILLED = 0, 3, -signal.SIGKILL


class Supervisor:
    """Somebody else's server: whatever ends it, it is started again at its port, with the weights of its start."""

    def __init__(self, wish: dict[str, Any], mark: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        self.wish, self.mark, self.starts = wish, mark, 0
        self._closing = threading.Event()
        self._process = self._start()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        # It leaves a socket there, whose path has to be short.
        self._folder = tempfile.mkdtemp(dir="/tmp", prefix="sv")
        env = {**os.environ, "STAND_IN": json.dumps(self.wish), "TMPDIR": self._folder}
        words = ["serve", "start", "--host", "127.0.0.1", "--port", self.url.rpartition(":")[2]]
        return subprocess.Popen(
            [sys.executable, str(STAND_IN), *words],
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _watch(self) -> None:
        while True:
            self._process.wait()
            self.kill()  # its engine
            Path(f"/dev/shm/{self.mark}-{self._process.pid}").unlink(missing_ok=True)
            shutil.rmtree(self._folder)
            if self._closing.is_set():
                return
            self._process = self._start()

    def ready(self) -> None:
        """Wait until it answers."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=5).close()
                return
            except OSError:
                assert time.monotonic() < until
                time.sleep(0.05)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        self._closing.set()
        while self._thread.is_alive():
            self.kill()
            self._thread.join(0.1)


Supervised = Callable[[dict[str, Any]], Supervisor]


@pytest.fixture
def supervised(system: System) -> Iterator[Supervised]:
    """Starts somebody else's server."""
    started: list[Supervisor] = []

    def start(wish: dict[str, Any]) -> Supervisor:
        started.append(Supervisor(wish, system.mark))
        return started[-1]

    yield start
    for each in started:
        each.close()


def trained(home: Path, options: dict[str, Any], beat: int = 0) -> tuple[int, str]:
    """Run the training until it ends, killed at a beat; how it ended, and what it said."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(home), str(beat)],
        env={**os.environ, "OPTIONS": json.dumps(options, default=str)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode in (DONE, FAILED, KILLED), done.stderr[-3000:]
    return done.returncode, done.stderr


def until_done(home: Path, options: dict[str, Any], ready: Callable[[], None] = lambda: None) -> list[str]:
    """Resume the training until it is done, whenever its server is ready; what it said when it failed.

    Then look at what it left.
    """
    said = []
    ready()
    while (ended := trained(home, options))[0] != DONE:
        said.append(ended[1])
        assert len(said) < 4, said
        ready()
    taken = json.loads((home / "checkpoint.json").read_text())["taken"]
    questions = [f"q{number}" for number in range(STEPS * GROUPS)]
    samples = Counter(sample for step in taken for sample in step)
    assert samples == Counter(f"{name} {sample}" for name in questions for sample in range(SIZE))
    paid = Counter((home / "paid").read_text().splitlines())
    # Each rollout of a group pays for itself; which of them it was, the line does not say.
    assert paid <= Counter({f"{name} {turn}": SIZE for name in questions for turn in range(1, CALLS + 1)})
    return said


def wish(home: Path, at: int) -> dict[str, Any]:
    home.mkdir()
    return {"talk": CALLS, "device": "cuda", "kill": {"at": at, "count": str(home / "requests")}}


def kill_own_server(home: Path, executable: Path, at: int) -> None:
    """The server that the training has started is killed at a beat."""
    env = {"STAND_IN": json.dumps(wish(home, at))}
    options = {"executable": executable, "training": True, "grace_seconds": 5, "log": str(home / "log")}
    # A request that was cut off is made again, and a change of weights that was cut off ends the training.
    assert len(until_done(home, {**options, "env": env})) <= 1
    assert int((home / "requests").read_text()) >= at


def kill_server_of_others(home: Path, supervised: Supervised, at: int) -> str:
    """A server that somebody else starts again is killed at a beat; what the training said."""
    server = supervised(wish(home, at))
    (said,) = until_done(home, {"attach": server.url}, server.ready)
    server.close()
    assert server.starts == 2
    return said


def kill_training(home: Path, supervised: Supervised, at: int) -> None:
    """The training is killed at a beat, and its server lives on."""
    server = supervised(wish(home, 0))
    server.ready()
    assert trained(home, {"attach": server.url}, at)[0] == KILLED
    assert until_done(home, {"attach": server.url}) == []
    server.close()
    assert server.starts == 1


# Of the requests of a training, these are in the first change of weights, and in the batches of the first step.
CHANGES, SAMPLES = 6, 40


@pytest.mark.slow
def test_a_server_of_others_that_comes_back_with_its_first_weights_is_noticed_and_nothing_is_trained_of_them(
    tmp_path: Path, supervised: Supervised
) -> None:
    said = kill_server_of_others(tmp_path / "home", supervised, SAMPLES)
    assert "and says that it has 'default'; it was restarted" in said


@pytest.mark.slow
def test_a_server_of_the_training_that_was_killed_comes_back_with_the_weights_that_it_had(
    tmp_path: Path, executable: Path, system: System
) -> None:
    kill_own_server(tmp_path / "home", executable, SAMPLES)


@pytest.mark.slow
def test_a_training_that_was_killed_while_it_changed_weights_goes_on_with_the_server_that_it_left_paused(
    tmp_path: Path, supervised: Supervised
) -> None:
    kill_training(tmp_path / "home", supervised, CHANGES)


POINT = pytest.mark.parametrize("point", range(1, POINTS + 1))


@pytest.mark.soak
@POINT
def test_a_server_of_others_is_killed_anywhere(tmp_path: Path, supervised: Supervised, point: int) -> None:
    kill_server_of_others(tmp_path / "home", supervised, APART * point)


@pytest.mark.soak
@POINT
def test_a_server_of_the_training_is_killed_anywhere(
    tmp_path: Path, executable: Path, system: System, point: int
) -> None:
    kill_own_server(tmp_path / "home", executable, APART * point)


@pytest.mark.soak
@POINT
def test_a_training_with_a_server_is_killed_anywhere(tmp_path: Path, supervised: Supervised, point: int) -> None:
    kill_training(tmp_path / "home", supervised, APART * point)
