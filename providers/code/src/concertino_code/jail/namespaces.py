"""The strongest level: fresh user, mount, process, network, IPC, host-name and cgroup namespaces per execution.

    supervisor ── init (process 1 of the jail: mounts, waits, reads artefacts) ── worker (the script)

When init ends, for whatever reason, the kernel kills every process of its namespace, and `waitpid(init)` returns only
after that: "nothing survives" is the kernel's promise, not the work of a loop. Init ends when the supervisor does.

A zygote that is root mounts as root and only then becomes an ordinary user in a user namespace of its own: the script
has no right over the mounts, not even in its namespace. RLIMIT_NPROC is set inside the user namespace, where it counts
this execution only.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from typing import Any, NoReturn

from . import rootfs, seccomp, status
from . import syscalls as sc
from .launch import SCRIPT_USER, Setting, Streams, die_with_parent, wait_for, work_or_report
from .worker import JailJob, start_script

_FRESH = sc.CLONE_NEWNS | sc.CLONE_NEWPID | sc.CLONE_NEWIPC | sc.CLONE_NEWUTS | sc.CLONE_NEWCGROUP
_OWN_PROCESSES = 3


def prepare(setting: Setting) -> None:
    """In the zygote, once: the root file system, and the rights to give each execution namespaces.

    Raises:
        OSError: the kernel, or its configuration, does not allow it.
    """
    if setting.user is not None:
        try:
            sc.unshare(sc.CLONE_NEWNS)
        except PermissionError:  # root without its capabilities, as in most containers: an ordinary user, then
            sc.become(setting.user)
            setting.user = None
    if setting.user is None:
        user, group = os.getuid(), os.getgid()
        sc.unshare(sc.CLONE_NEWUSER | sc.CLONE_NEWNS)
        sc.map_user(SCRIPT_USER, user, group)
    rootfs.build(setting.network)
    setting.program = seccomp.build(network=setting.network)


class Jail:
    """One execution, as its supervisor holds it."""

    def __init__(self, init: int) -> None:
        self.init = init
        self.roots = [init]

    def kill(self) -> None:
        """Kill init, and with it the jail."""
        while True:
            try:
                os.kill(self.init, signal.SIGKILL)
                break
            except ProcessLookupError:
                break
            except PermissionError:
                # The supervisor is the script's user already, and init still root while it mounts.
                if os.waitpid(self.init, os.WNOHANG)[0]:
                    return
                time.sleep(0.001)
        self.finish()

    def finish(self) -> dict[str, Any] | None:
        """Wait for init; its report came through the status pipe."""
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.init, 0)
        return None


def launch(job: JailJob, setting: Setting, streams: Streams) -> Jail:
    """Start the jail. Called in the supervisor, which enters the namespaces first."""
    flags = _FRESH | (0 if setting.network else sc.CLONE_NEWNET)
    # In the new process namespace `getppid` is 0, so init needs a pipe to see that the supervisor has died.
    alive, lifeline = os.pipe()
    if setting.user is None:
        user, group = os.getuid(), os.getgid()
        sc.prctl(sc.PR_SET_DUMPABLE, 1)
        sc.unshare(sc.CLONE_NEWUSER | flags)
        sc.map_user(SCRIPT_USER, user, group)
    else:
        sc.unshare(flags)
    init = os.fork()
    if init == 0:
        os.close(lifeline)
        work_or_report(streams.status, lambda: _init(job, setting, streams, alive))
    os.close(alive)
    streams.close()
    if setting.user is not None:
        sc.become(setting.user)
        # It has the script's user on the host now, which must not be able to trace it.
        sc.prctl(sc.PR_SET_DUMPABLE, 0)
    die_with_parent(setting.zygote)
    return Jail(init)


def _init(job: JailJob, setting: Setting, streams: Streams, alive: int) -> NoReturn:
    """Process 1 of the jail."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)  # from inside, process 1 gets no signal that it has no handler for
    rootfs.complete(job.bytes_of("disk_bytes"), job.bytes_of("inodes"), setting.user)
    socket.sethostname("sandbox")
    if setting.user is not None:
        sc.become(setting.user)
        sc.unshare(sc.CLONE_NEWUSER)
        sc.map_user(SCRIPT_USER, setting.user, setting.user)
    # After the change of user, which makes the kernel forget the signal.
    sc.prctl(sc.PR_SET_PDEATHSIG, signal.SIGKILL)
    if select.select([alive], [], [], 0)[0]:
        os._exit(1)  # the supervisor had gone before
    os.close(alive)
    box = os.open(rootfs.BOX, os.O_RDONLY | os.O_DIRECTORY)
    child = os.fork()
    if child == 0:
        _worker(job, setting, streams)
    os.close(streams.stdout)
    os.close(streams.stderr)
    code, seconds = wait_for(child)
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)  # nothing of the script may write while its files are read
    status.say(streams.status, {"done": {"code": code, "cpu": seconds}})
    status.collect(streams.status, box, job.artefacts, job.bytes_of("artefact_bytes"))
    os._exit(0)


def _worker(job: JailJob, setting: Setting, streams: Streams) -> NoReturn:
    """The script's process."""
    os.setsid()
    start_script(
        job,
        (streams.stdout, streams.stderr, streams.status),
        rootfs.BOX,
        "/tmp",
        (setting.address_space, _OWN_PROCESSES),
        lambda: seccomp.apply(setting.program),
    )
