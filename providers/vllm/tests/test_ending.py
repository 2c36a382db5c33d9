"""Whatever ends the owner of a server, nothing of the server is left: no process, no port, no memory, no folder."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.alone  # how soon nothing is left
Run = Callable[..., Any]


def gone(owner: Any, system: Any) -> float:
    """Wait until nothing of the server is left, and the port is closed; seconds that it took."""
    took: float = system.settle()
    assert system.left() == set()
    if "url" in owner.said:
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", int(owner.said["url"].rpartition(":")[2]))) != 0
    return took


@pytest.mark.slow
@pytest.mark.parametrize("way", ["forget", "raise_error", "leave", "leave_at_once"])
def test_nothing_is_left_when_the_owner_ends_by_itself(run_owner: Run, system: Any, way: str) -> None:
    owner = run_owner(way)
    owner.process.wait(60)
    assert gone(owner, system) < 10


@pytest.mark.parametrize("way", ["forget", "raise_error", "leave"])
def test_an_orderly_end_waits_until_nothing_is_left(run_owner: Run, system: Any, way: str) -> None:
    owner = run_owner(way)
    owner.process.wait(60)
    assert gone(owner, system) < 2


def test_nothing_is_left_after_close_while_the_owner_goes_on(run_owner: Run, system: Any) -> None:
    owner = run_owner("close")
    assert owner.next() == {"closed": True}
    assert gone(owner, system) < 2
    assert owner.process.poll() is None


def test_nothing_is_left_after_the_event_loop_while_the_owner_goes_on(run_owner: Run, system: Any) -> None:
    owner = run_owner("loop_end")
    assert owner.next() == {"loop": "ended"}
    assert gone(owner, system) < 2
    assert owner.process.poll() is None


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL])
def test_nothing_is_left_after_a_signal_to_the_owner(run_owner: Run, system: Any, number: signal.Signals) -> None:
    owner = run_owner("wait")
    owner.process.send_signal(number)
    owner.process.wait(60)
    assert gone(owner, system) < 10


def test_a_ctrl_c_reaches_the_owner_alone(run_owner: Run, system: Any) -> None:
    owner = run_owner("wait")
    os.killpg(owner.process.pid, signal.SIGINT)  # as a terminal sends it
    assert owner.process.wait(60) != 0
    assert owner.process.communicate()[1].decode().rstrip().endswith("KeyboardInterrupt")
    assert gone(owner, system) < 1


def test_nothing_is_left_when_the_owner_is_killed_during_the_start(run_owner: Run, system: Any) -> None:
    owner = run_owner("starting", {"delay": 60})
    owner.process.kill()
    owner.process.wait(60)
    assert gone(owner, system) < 10


@pytest.mark.slow
def test_a_server_outlives_the_thread_that_started_it(run_owner: Run, system: Any) -> None:
    owner = run_owner("thread")
    assert owner.next() == {"ok": True}
    owner.process.kill()
    owner.process.wait(60)
    assert gone(owner, system) < 10


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_weights_that_were_written_for_the_server_go_with_it(
    run_owner: Run, system: Any, number: signal.Signals
) -> None:
    owner = run_owner("state")
    folder = Path(owner.next()["state"])
    assert folder.is_dir()
    owner.process.send_signal(number)
    owner.process.wait(60)
    assert gone(owner, system) < 10
    assert not folder.exists()


def test_a_forked_child_of_the_owner_keeps_nothing_alive(run_owner: Run, system: Any) -> None:
    owner = run_owner("fork", child_seconds="200")
    child = owner.next()["child"]
    owner.process.kill()
    owner.process.wait(60)
    gone(owner, system)
    assert system.alive(child)  # so nothing waited for it
    os.kill(child, signal.SIGKILL)


def test_a_forked_child_that_ends_leaves_the_server_to_the_owner(run_owner: Run, system: Any) -> None:
    owner = run_owner("fork", child_seconds="0.1")
    child = owner.next()["child"]
    while system.alive(child):
        time.sleep(0.02)
    time.sleep(0.5)  # in which nothing is to happen
    assert system.alive(owner.pid)


def test_nothing_is_left_when_the_owner_becomes_another_program(run_owner: Run, system: Any) -> None:
    owner = run_owner("replace")
    assert gone(owner, system) < 10
    assert owner.process.poll() is None


def test_a_server_that_ignores_sigterm_is_killed_after_the_grace_with_its_children(run_owner: Run, system: Any) -> None:
    owner = run_owner("wait", {"deaf": True, "stray": True}, grace_seconds=1.0)
    owner.process.kill()
    owner.process.wait(60)
    assert 0.8 < gone(owner, system) < 5


def test_a_child_in_a_session_of_its_own_is_found(run_owner: Run, system: Any) -> None:
    owner = run_owner("close", {"stray": True}, grace_seconds=1.0)
    assert owner.next() == {"closed": True}
    assert gone(owner, system) < 2


def test_nothing_is_left_when_the_guard_is_killed(run_owner: Run, system: Any) -> None:
    owner = run_owner("wait")
    os.kill(owner.guard(), signal.SIGKILL)
    owner.leaves = ["server.log"]
    assert gone(owner, system) < 10
    while (Path(owner.said["log"]).parent / "tmp").exists():  # the owner removes it, in the guard's place
        time.sleep(0.02)


def test_nothing_is_left_when_guard_and_owner_are_killed_together(run_owner: Run, system: Any) -> None:
    owner = run_owner("wait")
    guard = owner.guard()
    owner.process.kill()
    os.kill(guard, signal.SIGKILL)
    owner.leaves = None  # there is nobody to remove them
    owner.process.wait(60)
    assert gone(owner, system) < 10


def test_nothing_is_left_when_all_of_the_server_is_killed_at_once(run_owner: Run, system: Any) -> None:
    owner = run_owner("wait")
    os.killpg(owner.pid, signal.SIGKILL)
    owner.leaves = ["server.log"]
    assert gone(owner, system) < 10


def test_nothing_is_left_when_the_server_ends_before_its_child(run_owner: Run, system: Any) -> None:
    owner = run_owner("wait")
    [child] = [pid for pid in owner.children() if "time.sleep" in Path(f"/proc/{pid}/cmdline").read_text()]
    os.kill(owner.pid, signal.SIGKILL)
    owner.leaves = ["server.log"]
    assert gone(owner, system) < 10
    assert not system.alive(child)
