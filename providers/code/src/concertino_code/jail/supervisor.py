"""One execution from its request to its result, in a process of its own outside the jail.

It holds the clock, the memory limit, both output streams and the connection to the caller. The execution ends when the
script does, when a limit is reached, when the caller closes the connection, or when the zygote dies; in every case
each process of the jail is gone before the result is sent.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import time
from collections.abc import Callable
from typing import Any

from . import status, wire
from .launch import Setting, Started, Streams
from .memory import Tree
from .output import BoundedOutput
from .worker import JailJob

SETUP_SECONDS = 20.0
# Seconds between two looks at the memory: a tree that grows as fast as it can was stopped at 653 MB of 640.
_TICK = 0.01
_PIPE_BYTES = 1 << 18
_DRAINING = 0.05

Launch = Callable[[JailJob, Setting, Streams], Started]


def serve(connection: socket.socket, setting: Setting, launch: Launch) -> None:
    """Receive what to run, run it, send the result."""
    received = wire.receive(connection, SETUP_SECONDS)
    if received is None:
        return
    try:
        result, blobs = _Execution(_job(*received), connection, setting, launch).run()
    except BaseException as error:
        result, blobs = {"fault": f"{type(error).__name__}: {error}"[:400]}, []
    connection.settimeout(SETUP_SECONDS)
    try:
        connection.sendall(wire.pack(result, blobs))
    except OSError:
        return  # the caller is gone


def _job(message: dict[str, Any], blobs: list[bytes]) -> JailJob:
    code, stdin, *files = blobs
    return JailJob(
        code.decode("utf-8", "surrogatepass"),
        message["limits"],
        stdin,
        dict(zip(message["files"], files, strict=True)),
        message["artefacts"],
        message["seed"],
    )


class _Execution:
    """One execution, from its launch to its result."""

    def __init__(self, job: JailJob, connection: socket.socket, setting: Setting, launch: Launch) -> None:
        self._job = job
        self._connection = connection
        self._setting = setting
        self._launch = launch
        self._tree = Tree(setting.processes)
        self._report = status.Reader()
        self._outputs = [BoundedOutput(job.bytes_of("output_bytes")) for _ in range(2)]
        self._peak = 0

    def run(self) -> tuple[dict[str, Any], list[bytes]]:
        """The result, and its blobs."""
        # Without namespaces, nothing else ends a script when the zygote is killed.
        zygote = os.pidfd_open(self._setting.zygote)
        ours: list[int] = []
        theirs: list[int] = []
        for _ in range(3):
            reading, writing = os.pipe()
            os.set_blocking(reading, False)
            ours.append(reading)
            theirs.append(writing)
        for reading in ours[:2]:
            try:
                fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            except OSError:
                break  # the user has its fill of pipes: the ordinary size will do
        stdout, stderr, said = ours
        started = self._launch(self._job, self._setting, Streams(*theirs))
        reason, seconds = self._watch(started, {stdout: 0, stderr: 1}, said, zygote)
        if reason:
            started.kill()
        ending = started.finish()
        for handle, kept in zip((stdout, stderr), self._outputs, strict=True):
            self._rest(handle, kept)
        self._rest(said, self._report)
        return self._result(reason, seconds, ending)

    def _watch(self, started: Started, outputs: dict[int, int], said: int, zygote: int) -> tuple[str, float]:
        """Wait for the end; gives why it was ended, empty if nothing ended it, and for how long the script ran."""
        poll = select.poll()
        for handle in (*outputs, said, zygote, self._connection.fileno()):
            poll.register(handle, select.POLLIN)
        begun = looked = time.monotonic()
        running = False
        while True:
            now = time.monotonic()
            if reason := self._time_is_up(now, begun, running):
                return reason, now - begun
            if running and now - looked >= _TICK:
                looked = now
                over, held = self._tree.exceeds(started.roots, self._job.bytes_of("tree_bytes"))
                self._peak = max(self._peak, held)
                if over:
                    return "memory", now - begun
            ready = [handle for handle, _ in poll.poll(_TICK * 1000)]
            for handle in self._read(outputs, ready):
                # A closed pipe is always ready, and would keep the loop spinning.
                poll.unregister(handle)
            if said in ready and not self._report.drain(said):
                return "", time.monotonic() - begun
            # The script's clock starts with its first line, not with the setting up.
            if self._report.go and not running:
                running, begun = True, time.monotonic()
            if zygote in ready or self._connection.fileno() in ready:
                return "cancelled", now - begun

    def _time_is_up(self, now: float, begun: float, running: bool) -> str:
        """Which clock has run out: the script's, or that of setting it up; empty if none has."""
        if now >= self._job.limits["until"] or (running and now - begun >= self._job.limits["wall"]):
            return "wall"
        return "setup" if not running and now - begun >= SETUP_SECONDS else ""

    def _read(self, outputs: dict[int, int], ready: list[int]) -> list[int]:
        """Take what the script wrote; returns the streams that have ended."""
        return [handle for handle in outputs.keys() & ready if not self._outputs[outputs[handle]].drain(handle)]

    @staticmethod
    def _rest(handle: int, sink: BoundedOutput | status.Reader) -> None:
        """What still lies in a pipe whose writers are gone; a writer that is not gone is not waited for."""
        end = time.monotonic() + _DRAINING
        while sink.drain(handle):
            if not select.select([handle], [], [], max(0.0, end - time.monotonic()))[0]:
                return

    def _early_end(self) -> str:
        """Why it ended before the script began."""
        said = (self._outputs[1].head + self._outputs[1].tail).decode("utf-8", "replace").strip()
        return f"it ended before the script began: {said.splitlines()[-1][:200] if said else 'it said nothing'}"

    def _result(self, reason: str, seconds: float, ending: dict[str, Any] | None) -> tuple[dict[str, Any], list[bytes]]:
        report = self._report
        fault = report.fault
        if not fault and not report.go:
            fault = "it was not set up in time" if reason == "setup" else "" if reason else self._early_end()
        done = report.done or ending
        result: dict[str, Any] = {
            "reason": reason,
            "seconds": seconds,
            "peak": self._peak,
            "totals": [kept.total for kept in self._outputs],
            "files": report.files,
        }
        if fault:
            result["fault"] = fault
        if done is not None:
            result.update(done)
        blobs = [part for kept in self._outputs for part in (kept.head, kept.tail)]
        return result, [*blobs, *(report.data.get(name, b"") for name in report.files)]
