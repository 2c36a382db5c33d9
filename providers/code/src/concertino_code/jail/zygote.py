"""The zygote: one warm interpreter that forks a supervisor per execution, and does nothing else.

It is started with an empty environment, loads the libraries once, prepares its level of isolation, then waits on one
socket. Each datagram brings the connection of one execution. It has no thread, opens no file of the caller's, and ends
when its socket closes or the process that started it dies.
"""

from __future__ import annotations

import array
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from typing import Any

from . import bare, bubblewrap, namespaces, rootfs
from . import syscalls as sc
from .launch import Setting
from .memory import address_space
from .supervisor import Launch, serve
from .wire import pack

LEVELS = {"namespaces": namespaces, "bubblewrap": bubblewrap, "landlock": bare, "limits": bare}
_STANDARD = """
argparse array asyncio atexit base64 bisect calendar cmath collections concurrent.futures contextlib copy csv ctypes
dataclasses datetime decimal enum fractions functools glob hashlib heapq html inspect io itertools json math
multiprocessing numbers operator pathlib pickle pprint queue random re secrets shutil socket statistics string struct
subprocess tempfile textwrap threading traceback typing unittest urllib.parse uuid
"""
# Libraries load parts of themselves at first use: numpy.random alone cost every fork 10 ms.
_WARM_UP = {
    "numpy": "import numpy as n; n.linalg.inv(n.random.rand(3, 3)); n.random.default_rng(0).normal(); str(n.arange(3))",
    "sympy": (
        "import sympy as s; x = s.symbols('x'); s.solve(x**2 - 1, x); s.integrate(s.exp(-x), (x, 0, s.oo)); "
        "s.simplify(s.sin(x)**2 + s.cos(x)**2); s.Matrix([[1, 2], [3, 4]]).det(); s.sympify('x+1'); str(s.pi.evalf())"
    ),
}


def main(descriptor: str, configuration: str) -> None:
    """Serve until the caller is gone.

    Args:
        descriptor: of the socket to the caller.
        configuration: JSON with `level`, `preload`, `network`, `user`, and the level's options.
    """
    connection = socket.socket(fileno=int(descriptor))
    try:
        config = json.loads(configuration)
        caller = os.pidfd_open(os.getppid())
        loaded = _preload(config["preload"])
        setting, launch = _prepare(config)
    except BaseException as error:
        connection.send(json.dumps({"fault": f"{type(error).__name__}: {error}"[:500]}).encode())
        return
    os.chdir("/")
    _only_readable_paths(config["network"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors are reaped by the kernel
    # Frozen objects are left alone by later collections, so forks go on sharing their pages.
    gc.collect()
    gc.freeze()
    connection.send(json.dumps({"ready": config["level"], "loaded": loaded}).encode())
    _serve(connection, caller, setting, launch)


def _preload(names: list[str]) -> list[str]:
    """Load the common modules and these libraries, with what they load at first use; returns those installed."""
    loaded = []
    # A self-test names no libraries, and is not to wait for the imports.
    for name in (*_STANDARD.split(), *names) if names else ():
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        if name in names:
            exec(_WARM_UP.get(name, ""), {"__name__": "warm_up"})
            loaded.append(name)
    return loaded


def _prepare(config: dict[str, Any]) -> tuple[Setting, Launch]:
    setting = Setting(
        processes=os.open("/proc", os.O_RDONLY | os.O_DIRECTORY),
        zygote=os.getpid(),
        user=config["user"] if os.geteuid() == 0 else None,
        network=config["network"],
        address_space=address_space(),
        options=config,
    )
    level = LEVELS[config["level"]]
    level.prepare(setting)
    # Forks inherit it: a script that could write to a supervisor's memory would forge its own result.
    sc.prctl(sc.PR_SET_DUMPABLE, 0)
    return setting, level.launch


def _only_readable_paths(network: bool) -> None:
    """Remove the paths of editable installs and the like, which no script can read."""
    allowed = rootfs.readable(network)
    sys.path[:] = [path for path in sys.path if any(os.path.realpath(path).startswith(top + "/") for top in allowed)]


def _serve(connection: socket.socket, caller: int, setting: Setting, launch: Launch) -> None:
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    poll.register(caller, select.POLLIN)
    while True:
        for handle, _ in poll.poll():
            if handle == caller:
                return
            handles = _receive(connection)
            if handles is None:
                return
            for given in handles:
                _fork(connection, given, setting, launch)


def _receive(connection: socket.socket) -> list[int] | None:
    """The connection of an execution; None when the caller has gone."""
    received = array.array("i")
    try:
        data, ancillary, _, _ = connection.recvmsg(16, socket.CMSG_SPACE(8 * received.itemsize))
    except InterruptedError:
        return []
    except OSError:
        return None
    for _, _, content in ancillary:
        received.frombytes(content[: len(content) - len(content) % received.itemsize])
    return list(received) if data else None


def _fork(connection: socket.socket, given: int, setting: Setting, launch: Launch) -> None:
    execution = socket.socket(fileno=given)
    try:
        child = os.fork()
    except OSError as error:
        with contextlib.suppress(OSError):
            execution.send(pack({"fault": f"fork: {error}"}), socket.MSG_DONTWAIT)
        execution.close()
        return
    if child == 0:
        try:
            connection.close()
            # `waitpid` finds no child that the kernel reaps by itself.
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            serve(execution, setting, launch)
        finally:
            os._exit(0)
    execution.close()
