"""Runs a script inside a container, and prints one line about it.

This file is sent there as text: standard library only, no import of the package. The boundary to the machine is the
container's. The boundary between script and result is here: this is process 1 of the container, which the script cannot
kill, stop, trace or write to, although both have the same user. So the line is never the script's.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from typing import IO, Any

MARK = "concertino-result:"
_SEEDED = """\
import random, runpy, sys
seed = int(sys.argv.pop())
random.seed(seed)
try:
    import numpy
except ImportError:
    pass
else:
    numpy.random.seed(seed % 2**32)
runpy.run_path("main.py", run_name="__main__")
"""


class StreamEnds:
    """Both ends of a stream."""

    def __init__(self, source: IO[bytes], limit: int) -> None:
        self.total, self.head, self.tail = 0, bytearray(), bytearray()
        self._source, self._first, self._last = source, limit // 2, limit - limit // 2
        # Read while the script runs: a full pipe would turn a script that prints much into a timeout.
        self.thread = threading.Thread(target=self._drain, daemon=True)
        self.thread.start()

    def _drain(self) -> None:
        with self._source:
            while data := os.read(self._source.fileno(), 1 << 16):
                self.total += len(data)
                room = self._first - len(self.head)
                self.head += data[:room]
                self.tail += data[max(0, room) :]
                del self.tail[: -self._last]


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Run the job's script in a fresh folder."""
    # Not removed: it ends with the container, and a script may have made it so deep that removing it fails.
    limits, box = job["limits"], tempfile.mkdtemp(prefix="box-")
    for name, data in {**job["files"], "main.py": job["code"]}.items():
        path = os.path.join(box, name)  # noqa: PTH118 - where this runs, the fewer imports the better
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(base64.b64decode(data))
    return _execute(job, limits, box)


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def _confine(limits: dict[str, float], program: bytes) -> None:
    """In the script's process: its limits, then its filter of system calls."""
    _limit(limits)
    rules = _Filter(len(program) // 8, program)
    # PR_SET_NO_NEW_PRIVS, which a filter needs; then PR_SET_SECCOMP with a filter.
    if program and (_prctl(38, 1) or _prctl(22, 2, ctypes.addressof(rules))):
        raise OSError("prctl: the filter of system calls was refused")


def _prctl(*numbers: int) -> int:
    done: int = ctypes.CDLL(None).prctl(*(ctypes.c_ulong(number) for number in (*numbers, 0, 0, 0, 0)[:5]))
    return done


def _limit(limits: dict[str, float]) -> None:
    seconds = max(1, round(limits["cpu"]))
    for kind, most, hard in (
        # 256 MB for the interpreter itself, which `memory_mb` does not count.
        (resource.RLIMIT_AS, limits["memory_bytes"] + (256 << 20), 0),
        (resource.RLIMIT_CPU, seconds, 1),
        (resource.RLIMIT_FSIZE, limits["file_bytes"], 0),
        (resource.RLIMIT_NOFILE, limits["descriptors"], 0),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_MEMLOCK, 0, 0),
    ):
        resource.setrlimit(kind, (int(most), int(most) + hard))


def _execute(job: dict[str, Any], limits: dict[str, float], box: str) -> dict[str, Any]:
    stdin = tempfile.TemporaryFile()  # noqa: SIM115 - the script reads it
    stdin.write(base64.b64decode(job["stdin"]))
    stdin.seek(0)
    seeded = ["-c", _SEEDED, str(job["seed"])] if job["seed"] is not None else ["main.py"]
    _close_to_the_script()
    # Docker's own filter stays: of two, the stricter answer counts.
    program = base64.b64decode(job["filters"].get(platform.machine(), ""))
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, *seeded],
        cwd=box,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: _confine(limits, program),  # noqa: PLW1509 - no thread runs yet
        env={"PATH": os.environ.get("PATH", ""), "HOME": box, "LANG": "C.UTF-8", "TMPDIR": box},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    kept = [StreamEnds(stream, int(limits["output_bytes"])) for stream in (process.stdout, process.stderr)]
    done = _wait(process.pid, began + limits["wall"])
    seconds = time.monotonic() - began
    _kill_the_rest(process.pid)
    # Killed, so this wait is short.
    code, spent = done or _wait(process.pid, began + limits["wall"] + 5.0) or (-9, 0.0)
    for stream in kept:
        # A process that left the group may hold the pipe open for ever.
        stream.thread.join(1.0)
    stdin.close()
    return {
        "reason": "" if done else "wall",
        "seconds": seconds,
        "peak": 0,
        "code": code,
        "cpu": spent,
        "totals": [stream.total for stream in kept],
        "streams": [base64.b64encode(bytes(end)).decode() for s in kept for end in (s.head, s.tail)],
        "files": {name: _file(box, name, int(limits["artefact_bytes"])) for name in job["artefacts"]},
    }


def _close_to_the_script() -> None:
    """Let no process of the same user trace this one, read its memory, or open its streams."""
    if _prctl(4, 0):  # PR_SET_DUMPABLE
        raise OSError("prctl: PR_SET_DUMPABLE was refused")
    # Process 1 gets no signal that it has no handler for, and Python has one for this.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _wait(child: int, until: float) -> tuple[int, float] | None:
    """Reap processes until the child has ended; its exit code and CPU seconds, None if its time is up before."""
    pause = 0.001
    while True:
        ended, code, used = os.wait4(-1, os.WNOHANG)
        if ended == child:
            return os.waitstatus_to_exitcode(code), used.ru_utime + used.ru_stime
        if time.monotonic() >= until:
            return None
        if not ended:
            time.sleep(pause)
            pause = min(0.02, 2 * pause)


def _kill_the_rest(child: int) -> None:
    """Kill what the script left, so that nothing writes while its files are read."""
    with contextlib.suppress(ProcessLookupError):
        if os.getpid() == 1:
            os.kill(-1, signal.SIGKILL)  # every process of the container but this one
        else:  # in a test, outside of a container
            os.killpg(child, signal.SIGKILL)


def _file(box: str, name: str, most: int) -> dict[str, Any]:
    path = os.path.join(box, name)  # noqa: PTH118
    # A link may lead out of the folder.
    if os.path.realpath(path) != os.path.join(os.path.realpath(box), name) or not os.path.isfile(path):  # noqa: PTH113, PTH118
        return {"error": "regular file not found"}
    if os.path.getsize(path) > most:  # noqa: PTH202
        return {"error": f"{os.path.getsize(path)} bytes; at most {most} are given back"}  # noqa: PTH202
    with open(path, "rb") as file:  # noqa: PTH123
        return {"data": base64.b64encode(file.read(most)).decode()}


def main(payload: str) -> None:
    """Run what the payload says, and print the line."""
    result = run(json.loads(zlib.decompress(base64.b64decode(payload))))
    sys.stdout.write(f"\n{MARK}{base64.b64encode(zlib.compress(json.dumps(result).encode())).decode()}\n")
    sys.stdout.flush()
