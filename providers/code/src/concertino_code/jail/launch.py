"""What the ways of starting a script's process share."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

from . import status
from . import syscalls as sc

SCRIPT_USER = 1000
"""The user that a script sees itself as, where users can be mapped."""


@dataclass
class Setting:
    """What every execution of one zygote shares.

    Attributes:
        processes: a handle of the host's /proc.
        zygote: process id of the zygote.
        user: host user that scripts run as when the zygote is root; None where it is an ordinary user.
        network: whether scripts may use the host's network.
        address_space: bytes that a forked interpreter has mapped already.
        options: the level's own.
    """

    processes: int
    zygote: int
    user: int | None
    network: bool
    address_space: int
    program: bytes = b""
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class Streams:
    """The ends that the script's process gets."""

    stdout: int
    stderr: int
    status: int

    def close(self) -> None:
        """Close them in a process that does not use them."""
        for handle in (self.stdout, self.stderr, self.status):
            os.close(handle)


class Started(Protocol):
    """An execution under way."""

    roots: list[int]
    """Processes whose trees are measured."""

    def kill(self) -> None:
        """Kill all processes of it, and return when none is left."""

    def finish(self) -> dict[str, Any] | None:
        """After its status pipe has closed: reap everything, and return how the script's process ended, if known."""


def die_with_parent(parent: int) -> None:
    """Have the kernel send SIGKILL when the parent dies; exit at once if it has died already."""
    sc.prctl(sc.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def work_or_report(report: int, work: Callable[[], object]) -> NoReturn:
    """The life of a forked process: its work, or the report of the exception that ended it."""
    try:
        work()
    except BaseException as error:
        with contextlib.suppress(OSError):
            status.say_fault(report, error)
    os._exit(1)


def wait_for(child: int) -> tuple[int, float]:
    """Reap processes until the child has ended; its exit code, and the CPU seconds of it and those it waited for."""
    while True:
        ended, code, used = os.wait4(-1, 0)
        if ended == child:
            return os.waitstatus_to_exitcode(code), used.ru_utime + used.ru_stime
