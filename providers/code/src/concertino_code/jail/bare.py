# Where rights change from call to call, each call is one system call: no pathlib.
# ruff: noqa: PTH101, PTH106, PTH116, PTH208
"""The levels without namespaces: `landlock` (file rules, filter, limits), and `limits` (limits alone: no sandbox).

    supervisor (adopts orphans) ── keeper (waits, reports) ── worker (the script)

The working folder is an ordinary temporary one, so its size and its number of files have no bound; everything of the
execution is killed by the supervisor, which adopts every orphan of it. It ends when the zygote does, because it
watches the zygote, and not by a signal of its parent's death, which would leave the orphans.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import stat
import tempfile
import time
from collections.abc import Iterator
from typing import Any, NoReturn

from . import landlock, rootfs, seccomp, status
from . import syscalls as sc
from .launch import Setting, Streams, die_with_parent, wait_for, work_or_report
from .memory import Tree
from .worker import JailJob, start_script

_OWN_PROCESS = ("cmdline", "exe", "fd", "limits", "maps", "mem", "smaps", "stat", "statm", "status")
"""What a script may read in /proc/self: the rest tells of the host's network and mounts."""
_MOVED = f"concertino-removed-{os.urandom(8).hex()}-"
"""Of names that no script knows: it must not have one like it already."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def prepare(setting: Setting) -> None:
    """In the zygote, once.

    Raises:
        OSError: the kernel has no landlock, or one that cannot keep a script from signalling its owner's processes.
    """
    if setting.options["level"] == "landlock":
        if landlock.abi() < 6:
            raise OSError(38, f"landlock: ABI {landlock.abi()}; 6 (Linux 6.12) is needed to keep signals inside")
        setting.program = seccomp.build(network=setting.network, one_session=True)


class ProcessGroup:
    """One execution: a keeper, its script, and whatever they left."""

    def __init__(self, keeper: int, setting: Setting, box: str) -> None:
        self.roots = [keeper]
        self._tree = Tree(setting.processes)
        self._box = box

    def kill(self) -> None:
        """Kill until there is no child any more."""
        self.finish()

    def finish(self) -> dict[str, Any] | None:
        """Kill what is left, and remove the folder."""
        while True:
            members = self._tree.members([os.getpid()])[1:]
            for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first, so that none can fork
                for pid in members:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, number)
            if not _reap():
                break
        if self._box:
            _remove(self._box)
        return None


def _reap() -> bool:
    """Reap what has ended; returns whether children are left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    time.sleep(0.001)
    return True


def _remove(folder: str) -> None:
    """Remove a folder whose processes are all gone, whatever rights were taken from its parts; touches nothing else.

    What lies in a folder below is moved up first. So the path is never long and nothing recurses, however deep a script
    has gone.
    """
    with contextlib.suppress(OSError):
        os.chmod(folder, stat.S_IRWXU)
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            moved = itertools.count()
            while names := os.listdir(top):
                for name in names:
                    _remove_entry(top, name, moved)
        finally:
            os.close(top)
        os.rmdir(folder)


def _remove_entry(top: int, name: str, moved: Iterator[int]) -> None:
    """Remove a file, or a folder once its entries are in `top`."""
    if not _opened_up(top, name):
        os.unlink(name, dir_fd=top)
        return
    inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
    try:
        for child in os.listdir(inner):
            _opened_up(inner, child)  # an ordinary user may not move a folder that he cannot write to
            os.rename(child, f"{_MOVED}{next(moved)}", src_dir_fd=inner, dst_dir_fd=top)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)


def _opened_up(folder: int, name: str) -> bool:
    """Whether an entry is a folder; then its owner has all rights now."""
    # Looked at first: `chmod` follows links, and a link may lead out.
    if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        return False
    os.chmod(name, stat.S_IRWXU, dir_fd=folder)
    return True


def launch(job: JailJob, setting: Setting, streams: Streams) -> ProcessGroup:
    """Start the script. Called in the supervisor."""
    sc.prctl(sc.PR_SET_CHILD_SUBREAPER, 1)
    box = tempfile.mkdtemp(prefix="concertino-box-", dir=setting.options.get("scratch") or tempfile.gettempdir())
    if setting.user is not None:
        os.chown(box, setting.user, setting.user)
    keeper = os.fork()
    if keeper == 0:
        work_or_report(streams.status, lambda: _keep(job, setting, streams, box))
    streams.close()
    return ProcessGroup(keeper, setting, box)


def _keep(job: JailJob, setting: Setting, streams: Streams, box: str) -> NoReturn:
    """Between supervisor and script: wait, and report."""
    sc.prctl(sc.PR_SET_CHILD_SUBREAPER, 1)
    die_with_parent(os.getppid())
    folder = os.open(box, os.O_RDONLY | os.O_DIRECTORY)
    child = os.fork()
    if child == 0:
        _worker(job, setting, streams, box)
    os.close(streams.stdout)
    os.close(streams.stderr)
    code, seconds = wait_for(child)
    # Nothing of the script may write while its files are read.
    for pid in Tree(setting.processes).members([os.getpid()])[1:]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    status.say(streams.status, {"done": {"code": code, "cpu": seconds}})
    status.collect(streams.status, folder, job.artefacts, job.bytes_of("artefact_bytes"))
    os._exit(0)


def _worker(job: JailJob, setting: Setting, streams: Streams, box: str) -> NoReturn:
    """The script's process."""

    def confine() -> None:
        if setting.options["level"] == "landlock":
            readable = [*rootfs.readable(setting.network), *_DEVICES]
            readable += [f"/proc/self/{name}" for name in _OWN_PROCESS]
            landlock.restrict(readable, [box, "/dev/null"], network=setting.network)
            seccomp.apply(setting.program)

    os.setsid()
    if setting.user is not None:
        sc.become(setting.user)
    # After the change of user, which makes the kernel forget the signal.
    die_with_parent(os.getppid())
    start_script(
        job,
        (streams.stdout, streams.stderr, streams.status),
        box,
        box,
        (setting.address_space, _processes_of_user()),
        confine,
    )


def _processes_of_user() -> int:
    """Threads that the user has already: without a user namespace, the limit counts them too."""
    own, count = os.getuid(), 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}").st_uid == own:
                    count += len(os.listdir(f"/proc/{name}/task"))
            except OSError:
                continue  # it ended meanwhile, or is not ours to look at
    return count
