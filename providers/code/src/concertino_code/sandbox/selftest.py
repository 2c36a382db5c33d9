"""The self-test: a sandbox is used only after a script inside it has tried to get out, and failed.

One script makes ten attempts on things that this process lays out for it: a readable file, a loopback port, an
abstract socket, a process to signal. A second one forks and never ends. A sandbox that passes is not a proof; one that
does not is refused, with the attempt that succeeded.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .base import Sandbox, SandboxFault
from .limits import DEFAULT
from .outcome import Ending

_ATTEMPTS = """
import ctypes, json, os, re, socket, subprocess, sys
given = json.loads(sys.stdin.read())
libc = ctypes.CDLL(None, use_errno=True)
reached = []
def attempt(name, work):
    try:
        if work(): reached.append(name)
    except BaseException: pass
def refused(call): return lambda: call() >= 0
allowed = {"PATH", "HOME", "TMPDIR", "LANG", "PWD", "LC_CTYPE"}
allowed |= {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MALLOC_ARENA_MAX"}
attempt("see the environment", lambda: set(os.environ) - allowed)
attempt("read a file of the host", lambda: open(given["file"]).read())
attempt("write on the host", lambda: open(given["file"] + ".new", "w"))
attempt("write beside the interpreter", lambda: open(os.path.join(sys.prefix, "concertino-self-test"), "w"))
attempt("signal a process of the host", lambda: os.kill(given["pid"], 0) is None)
attempt("make a namespace", refused(lambda: libc.unshare(0x10000000)))
attempt("mount", refused(lambda: libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None)))
attempt("trace a process", refused(lambda: libc.ptrace(16, os.getppid(), 0, 0)))
if not given["network"]:
    attempt("reach a port of the host", lambda: socket.create_connection(("127.0.0.1", given["port"]), 1))
def abstract():
    with socket.socket(socket.AF_UNIX) as s: return s.connect("\\0" + given["abstract"]) is None
if not given["network"]: attempt("reach a socket of the host", abstract)
attempt("open a VSOCK socket", lambda: socket.socket(40, 1))
status = open("/proc/self/status").read()
if int(re.search(r"CapEff:\\s*(\\w+)", status).group(1), 16): reached.append("keep a capability")
if not re.search(r"NoNewPrivs:\\s*1", status): reached.append("gain rights by starting a program")
if not re.search(r"Seccomp:\\s*2", status): reached.append("make any system call")
import concurrent.futures.thread, mmap
subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)
print(json.dumps(reached))
"""
_ENDLESS = "import os\nfor _ in range(3): os.fork()\nwhile True: pass"


@contextlib.contextmanager
def _targets() -> Iterator[dict[str, object]]:
    """What the script is to try itself on."""
    name = f"concertino-self-test-{os.getpid()}-{os.urandom(4).hex()}"
    with tempfile.TemporaryDirectory(prefix="concertino-self-test-") as folder, contextlib.ExitStack() as stack:
        # The script may have another user; the file must be out of reach because of the sandbox, not of its mode.
        Path(folder).chmod(0o755)
        file = Path(folder, "readable")
        file.write_text("of the host")
        port = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind("\0" + name)
        abstract.listen()
        yield {"file": str(file), "port": port.getsockname()[1], "abstract": name, "pid": os.getpid()}


async def self_test(sandbox: Sandbox, *, network: bool = False) -> str:
    """Let scripts try to get out; returns what they could do, empty if nothing."""
    limits = DEFAULT.with_(wall=5.0)
    try:
        with _targets() as given:
            tried = await sandbox.run(_ATTEMPTS, limits=limits, stdin=json.dumps({**given, "network": network}))
        if not tried.ok:
            return f"an ordinary script fails in it: {tried.explain()}"
        if reached := json.loads(tried.stdout.text):
            return f"a script in it could {', '.join(reached)}"
        endless = await sandbox.run(_ENDLESS, limits=limits.with_(wall=0.1))
        if endless.ending is not Ending.WALL:
            return f"a script that never ends was not ended by the clock: {endless.explain()}"
    except SandboxFault as error:
        return str(error)
    except (OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return ""
