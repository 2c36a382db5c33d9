# Where rights change from call to call, each call is one system call: no pathlib.
# ruff: noqa: PTH103, PTH118, PTH120, PTH123
"""The script's process: it takes every right away from itself, then becomes `python main.py`.

Invariant: when the first line of the script runs, the process has descriptors 0, 1 and 2 and no other, no capability,
no way to get one, its limits and its filter; and nothing of this module's frames shows in a traceback.
"""

from __future__ import annotations

import builtins
import contextlib
import os
import random
import resource
import signal
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from . import status
from . import syscalls as sc

MAIN = "main.py"
_PATH = "/usr/local/bin:/usr/bin:/bin"
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass
class JailJob:
    """What is to be run, and within what bounds; the wire form is `from_json`."""

    code: str
    limits: dict[str, float]
    stdin: bytes = b""
    files: dict[str, bytes] = field(default_factory=dict)
    artefacts: list[str] = field(default_factory=list)
    seed: int | None = None

    def bytes_of(self, limit: str) -> int:
        """A limit in bytes."""
        return int(self.limits[limit])


def start_script(
    job: JailJob,
    streams: tuple[int, int, int],
    box: str,
    temporary: str,
    spare: tuple[int, int],
    confine: Callable[[], object],
) -> NoReturn:
    """Turn this process into the script's: take its streams, drop its rights, then run the code.

    Args:
        job: what is to be run.
        streams: descriptors for stdout, stderr and the reports to the supervisor.
        box: the working folder.
        temporary: the folder for temporary files.
        spare: bytes of address space and processes that exist already, and do not count against the limits.
        confine: applies the level's file rules and filter, as the last step.
    """
    stdout, stderr, report = streams
    try:
        report = _take_standard_streams(job.stdin, stdout, stderr, report)
        os.chdir(box)
        _write_files(job.files)
        _set_environment(box, temporary)
        _reset_signals()
        _set_limits(job, *spare)
        _give_up_rights()
        confine()
        status.say(report, {"go": True})
        os.close(report)
    except BaseException as error:
        with contextlib.suppress(OSError):
            status.say_fault(report, error)
        os._exit(1)
    _run_script(job, box)


def _set_limits(job: JailJob, spare_address_space: int, spare_processes: int) -> None:
    """The kernel's limits of every process in the jail."""
    hard = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_RTPRIO: 0,
        resource.RLIMIT_SIGPENDING: 256,
        resource.RLIMIT_FSIZE: job.bytes_of("file_bytes"),
        resource.RLIMIT_NOFILE: job.bytes_of("descriptors"),
        resource.RLIMIT_AS: job.bytes_of("memory_bytes") + spare_address_space,
        # Counted per user: outside of a fresh user namespace, parallel executions took each other's places.
        resource.RLIMIT_NPROC: job.bytes_of("processes") + spare_processes,
    }
    seconds = max(1, round(job.limits["cpu"]))
    for kind, most in hard.items():
        existing = resource.getrlimit(kind)[1]
        # Without rights, a hard limit can only be lowered.
        allowed = most if existing == resource.RLIM_INFINITY else min(most, existing)
        resource.setrlimit(kind, (allowed, allowed))
    # SIGXCPU at the first, which tells the reason; SIGKILL a second later, if that was caught.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))


def _take_standard_streams(stdin: bytes, stdout: int, stderr: int, keep: int) -> int:
    """Put the three streams in place and close everything else but `keep`, which becomes descriptor 3."""
    if stdin:
        source = os.memfd_create("stdin", 0)
        view = memoryview(stdin)
        while view:
            view = view[os.write(source, view) :]
        os.lseek(source, 0, os.SEEK_SET)
    else:
        source = os.open("/dev/null", os.O_RDONLY)
    high = [os.dup(handle) for handle in (source, stdout, stderr, keep)]
    while min(high) < 4:  # none of them may lie where another goes
        high = [os.dup(handle) for handle in high]
    for place, handle in enumerate(high):
        os.dup2(handle, place)
    os.closerange(4, 1 << 20)
    os.set_inheritable(3, False)
    return 3


def _set_environment(home: str, temporary: str) -> None:
    """An environment that reveals nothing about the host."""
    os.environ.clear()
    os.environ.update(PATH=_PATH, HOME=home, TMPDIR=temporary, LANG="C.UTF-8", PWD=home, MALLOC_ARENA_MAX="2")
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    tempfile: Any = sys.modules.get("tempfile")
    if tempfile is not None:
        tempfile.tempdir = None  # it may have been found by the zygote


def _reset_signals() -> None:
    """As in a fresh interpreter."""
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())


def _write_files(files: dict[str, bytes]) -> None:
    """The files that the caller put into the working folder. Names were checked by the caller."""
    for name, data in files.items():
        folder = os.path.dirname(name)
        if folder:
            os.makedirs(folder, exist_ok=True)
        with open(name, "wb") as file:
            file.write(data)


def _give_up_rights() -> None:
    """Drop all capabilities, and the right to gain any by starting a program."""
    os.nice(5)
    with contextlib.suppress(OSError):
        sc.drop_capabilities()  # without namespaces there are none to drop, nor the right to
    sc.prctl(sc.PR_SET_NO_NEW_PRIVS, 1)
    # Undumpable, its own /proc/self would belong to root.
    sc.prctl(sc.PR_SET_DUMPABLE, 1)


def _run_script(job: JailJob, box: str) -> NoReturn:
    """Run the code as `python main.py` in the working folder would, and end the process."""
    _fresh_randomness(job.seed)
    path = os.path.join(box, MAIN)
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __file__=path, __cached__=None, __annotations__={})
    sys.modules["__main__"] = main
    sys.argv[:] = [path]
    sys.path.insert(0, box)
    _open_streams()
    sys.setrecursionlimit(1000 + _depth() + 2)  # of them: two calls up to the script's own frame
    code = _run(job.code, path, main)
    os._exit(code & 0xFF)


def _depth() -> int:
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    return depth


def _fresh_randomness(seed: int | None) -> None:
    random.seed(seed)
    numpy: Any = sys.modules.get("numpy")
    # `random` reseeds itself after a fork; numpy does not, so all scripts would draw the zygote's numbers.
    if numpy is not None:
        numpy.random.seed(int.from_bytes(os.urandom(4), "little") if seed is None else seed % 2**32)


def _open_streams() -> None:
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - open as long as the process
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    for name in ("stdin", "stdout", "stderr"):
        setattr(sys, f"__{name}__", getattr(sys, name))


def _run(source: str, path: str, main: types.ModuleType) -> int:
    """The exit status."""
    try:
        with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(source)
        exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)
        status = 0
    except BaseException as error:
        status = _report(error)
    return _end(main, status)


def _report(error: BaseException) -> int:
    """What the interpreter does about an uncaught exception; returns the exit status."""
    try:
        if isinstance(error, SystemExit):
            if error.code is None:
                return 0
            if isinstance(error.code, int):
                return error.code
            sys.stderr.write(f"{error.code}\n")
            return 1
        # The first frame of the traceback is this module's.
        own = error.__traceback__
        error.__traceback__ = own.tb_next if own is not None else None
        sys.excepthook(type(error), error, error.__traceback__)
    except BaseException:
        with contextlib.suppress(OSError):
            os.write(2, f"{type(error).__name__}\n".encode("utf-8", "replace"))
    return 1


def _end(main: types.ModuleType, status: int) -> int:
    """Threads, exit functions, the module's own objects, the streams: in the interpreter's order."""
    import atexit
    import threading

    interpreter: Any = threading  # whose `_shutdown` is what the interpreter itself calls
    for ending in (interpreter._shutdown, atexit._run_exitfuncs, lambda: _clear(main.__dict__)):
        try:
            ending()
        except BaseException as error:
            status = _report(error) if isinstance(error, SystemExit) else status
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except BaseException:
            # CPython's own exit status where the last flush fails.
            status = status or 120
    return status


def _clear(names: dict[str, Any]) -> None:
    """Release the script's objects, so that files are written and finalizers run."""
    # CPython clears a module in this order: names with an underscore first.
    for private in (True, False):
        for name in list(names):
            if name != "__builtins__" and (name.startswith("_") and not name.startswith("__")) is private:
                names[name] = None
