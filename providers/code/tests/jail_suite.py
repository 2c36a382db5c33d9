"""The harness of the attack scripts: a victim with secrets around it, a runner, and a judge that looks at effects."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import os
import re
import secrets
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from attacks import ATTACKS, Attack
from concertino_code.sandbox.base import Sandbox
from concertino_code.sandbox.limits import ScriptLimits
from concertino_code.sandbox.outcome import Artefact, Ending, ScriptOutcome

LIMITS = ScriptLimits(wall=20.0, cpu=20.0)
"""For scripts that end by themselves, however busy the machine is."""
SHORT = LIMITS.with_(wall=1.0, cpu=2.0)
"""For scripts that must be ended."""
ENDLESS = ("timeout", "partial", "bounded")
LATE = {"docker": 20.0}
"""Seconds after its limit from which an execution came back too late, on a machine that is busy with others: 4, but
more where it takes seconds to make a container."""
_MARKED = (b"cncSURV", b"cncBOMB")


def read_attacks(folder: Path) -> list[Attack]:
    """Scripts of a folder: the header of each says what is expected."""
    found = []
    for path in sorted(folder.glob("*.py")):
        lines, expect = path.read_text(encoding="utf-8").split("\n"), "noleak"
        while lines and re.match(r"# (id|class|expect|note): ", lines[0]):
            line = lines.pop(0)
            if line.startswith("# expect: "):
                expect = ast.literal_eval(line[10:])
        found.append(Attack(path.stem, expect, "\n".join(lines)))
    return found


def survivors() -> list[int]:
    """Processes anywhere on this machine that a script has marked.

    Of the test modules that ask, all but one are marked `alone`, so that none sees the scripts of another.
    """
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if path.read_bytes().strip() in _MARKED and ") Z " not in path.with_name("stat").read_text():
                found.append(int(path.parts[2]))
    return found


class Victim:
    """What an attack must not reach: an environment, files, an open descriptor, sockets, this process."""

    def __init__(self) -> None:
        self.canary = "CANARY-" + secrets.token_hex(8)
        self.folder = Path(tempfile.mkdtemp(prefix="concertino-victim-"))
        self.folder.chmod(0o755)
        (self.folder / ".aws").mkdir(mode=0o700)
        for name in ("secret.txt", ".aws/credentials"):
            (self.folder / name).write_text(self.canary)
        os.environ["SECRET_TOKEN"] = self.canary
        self._handle = os.open(self.folder / "secret.txt", os.O_RDONLY)
        os.set_inheritable(self._handle, True)
        self._sockets = [socket.create_server(("127.0.0.1", 0))]
        self.port = self._sockets[0].getsockname()[1]
        with contextlib.suppress(OSError):
            self._sockets.append(socket.create_server(("::1", self.port), family=socket.AF_INET6))
        self.abstract = f"cnc-{secrets.token_hex(4)}"
        self.unix = str(self.folder / "sock")
        for name in ("\0" + self.abstract, self.unix):
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(name)
            listener.listen(8)
            self._sockets.append(listener)
        Path(self.unix).chmod(0o777)
        for listener in self._sockets:
            threading.Thread(target=self._serve, args=(listener,), daemon=True).start()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(b"hello " + self.canary.encode())
            except OSError:
                return

    def aim(self, code: str) -> str:
        """The script with the addresses of this victim."""
        for name, value in (
            ("PPID", os.getpid()),
            ("TCP", self.port),
            ("ABS", self.abstract),
            ("UNIX", self.unix),
            ("HOST", self.folder),
        ):
            code = code.replace(f"@@{name}@@", str(value))
        return code

    def written(self) -> list[str]:
        """Files that an attack left on the host; removes them."""
        names = [
            self.folder / "pwn.txt",
            self.folder.parent / "pwn2.txt",
            Path("/var/tmp/cnc_left"),
            Path("/tmp/cnc_left"),
        ]
        found = [path for path in names if path.exists()]
        for path in found:
            path.unlink()
        return [str(path) for path in found]

    def close(self) -> None:
        """Take everything away."""
        os.environ.pop("SECRET_TOKEN", None)
        os.close(self._handle)
        for listener in self._sockets:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def victim() -> Iterator[Victim]:
    """A victim for as long as the block lasts; a sandbox must be started inside."""
    made = Victim()
    try:
        yield made
    finally:
        made.close()


async def attack(sandbox: Sandbox, target: Victim, script: Attack) -> list[str]:
    """Run one attack; gives what it achieved that it should not have."""
    began = time.monotonic()
    limits = SHORT if script.expect in ENDLESS else LIMITS
    done = await sandbox.run(target.aim(script.code), limits=limits, artefacts=["out.bin"])
    wrong = _reached(done, target)
    if (seconds := time.monotonic() - began) > limits.wall + LATE.get(sandbox.level, 4.0):
        wrong.append(f"returned after {seconds:.1f} s")
    return wrong + _unexpected(done, script)


def _reached(done: ScriptOutcome, target: Victim) -> list[str]:
    text = done.stdout.text + "\n" + done.stderr.text
    wrong = re.findall(r"(?m)^LEAK:[^\n]*", text)[:6]
    if target.canary in text:
        wrong.append("the canary is in its output")
    back = done.artefacts.get("out.bin", Artefact()).data
    if target.canary.encode() in back or len(back) > LIMITS.artefacts_mb << 20:
        wrong.append(f"gave {len(back)} bytes back: {back[:40]!r}")
    if files := target.written():
        wrong.append(f"wrote {files}")
    return wrong


def _unexpected(done: ScriptOutcome, script: Attack) -> list[str]:
    kind, _, wanted = script.expect.partition(":")
    seen: dict[str, Any] = {
        "timeout": done.ending in (Ending.WALL, Ending.CPU),
        "bounded": all(len(s.head) + len(s.tail) <= LIMITS.output_kb * 1024 for s in (done.stdout, done.stderr)),
        "partial": done.ending is Ending.WALL and "partial line 2" in done.stdout.text,
        "prompt": True,  # that it came back in time is judged for all
        "nospoof": done.exit_code == 9 and "SPOOFED" not in done.stdout.text,
        "rc": str(done.exit_code) == wanted,
        "out": done.ending is Ending.OK and done.stdout.text == wanted,
        "err": wanted in done.stderr.text,
        "memory": done.ending is Ending.MEMORY or "MemoryError" in done.stderr.text,
    }
    if seen.get(kind, True):
        return []
    return [f"expected {script.expect[:80]!r}, got {done.ending} {done.exit_code} {done.stderr.text[-200:]!r}"]


async def assault(
    sandbox: Sandbox, scripts: Sequence[Attack], *, repetitions: int = 1, at_once: int = 4, seed: int = 0
) -> dict[str, list[str]]:
    """Run attacks in random order, several at once; gives what each achieved, by name. Empty is as it should be."""
    with victim() as target:
        order = list(scripts) * repetitions
        Random(seed).shuffle(order)
        queue = iter(order)
        found: dict[str, list[str]] = {}

        async def runner() -> None:
            for script in queue:
                if wrong := await attack(sandbox, target, script):
                    found.setdefault(script.name, []).extend(wrong)

        await asyncio.gather(*(runner() for _ in range(at_once)))
        await asyncio.sleep(0.2)
        if left := survivors():
            found["survivors"] = [f"process {pid}" for pid in left]
        return found


__all__ = ["ATTACKS", "LIMITS", "Attack", "assault", "attack", "read_attacks", "survivors", "victim"]
