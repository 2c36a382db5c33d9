# Where rights change from call to call, each call is one system call: no pathlib.
# ruff: noqa: PTH100, PTH110, PTH114, PTH115, PTH120, PTH123
"""The level of bubblewrap: its namespaces and mounts, then our own limits and filter inside, one cold interpreter each.

    supervisor (adopts orphans) ── keeper (waits, reports) ── bwrap ── bwrap's process 1 ── worker (the script)

For machines where only the installed `bwrap` may make user namespaces (an AppArmor profile that names it, say).
Libraries are imported again by every script. Exit statuses 129 to 192 are read as signals, as bwrap reports them. /box,
/tmp and /dev/shm each have the size limit, and give no artefacts back.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any, NoReturn

from . import BOOT, rootfs, seccomp, status, wire
from . import syscalls as sc
from .bare import ProcessGroup
from .launch import SCRIPT_USER, Setting, Streams, die_with_parent, wait_for, work_or_report
from .memory import address_space
from .worker import JailJob, start_script

_MODULE = "/run/concertino_jail"
_OWN_PROCESSES = 8


def prepare(setting: Setting) -> None:
    """In the zygote, once.

    Raises:
        OSError: there is no bwrap.
    """
    program = setting.options.get("bwrap") or shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin")
    if not program or not os.access(program, os.X_OK):
        raise FileNotFoundError(2, "bwrap is not installed; apt install bubblewrap, or the like")
    setting.options["bwrap"] = program


def _arguments(job: JailJob, setting: Setting, job_handle: int, status_handle: int) -> list[str]:
    """The command line of bwrap."""
    size = str(job.bytes_of("disk_bytes"))
    words = [setting.options["bwrap"], "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    words += ["--share-net"] if setting.network else []
    words += ["--cap-drop", "ALL", "--uid", str(SCRIPT_USER), "--gid", str(SCRIPT_USER), "--hostname", "sandbox"]
    for path in rootfs.readable(setting.network):
        if os.path.islink(path) and not path.startswith("/etc/"):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path):
            words += ["--ro-bind", path, path]
    words += ["--ro-bind", os.path.dirname(os.path.abspath(__file__)), _MODULE, "--proc", "/proc", "--dev", "/dev"]
    for folder in (rootfs.BOX, "/tmp", "/dev/shm"):
        words += ["--size", size, "--tmpfs", folder]
    words += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", rootfs.BOX, "--", sys.executable]
    return [*words, "-I", "-c", BOOT, _MODULE, "bubblewrap", str(job_handle), str(status_handle)]


def launch(job: JailJob, setting: Setting, streams: Streams) -> ProcessGroup:
    """Start bwrap. Called in the supervisor."""
    sc.prctl(sc.PR_SET_CHILD_SUBREAPER, 1)
    keeper = os.fork()
    if keeper == 0:
        work_or_report(streams.status, lambda: _keep(job, setting, streams))
    streams.close()
    if setting.user is not None:
        sc.become(setting.user)
        # It has the script's user now, which must not be able to trace it.
        sc.prctl(sc.PR_SET_DUMPABLE, 0)
    return ProcessGroup(keeper, setting, "")


def _keep(job: JailJob, setting: Setting, streams: Streams) -> NoReturn:
    parent = os.getppid()
    # Started by root, bwrap maps the script's user to root and leaves /proc/sys writable.
    if setting.user is not None:
        sc.become(setting.user)
    die_with_parent(parent)
    # 0 instead of the default MFD_CLOEXEC: it has to outlive the exec of bwrap and that of Python.
    handle = os.memfd_create("job", 0)
    with open(os.dup(handle), "wb") as file:
        file.write(_packed(job, setting))
    os.lseek(handle, 0, os.SEEK_SET)
    child = os.fork()
    if child == 0:
        os.dup2(streams.stdout, 1)
        os.dup2(streams.stderr, 2)
        os.set_inheritable(streams.status, True)
        words = _arguments(job, setting, handle, streams.status)
        os.execv(words[0], words)
    os.close(streams.stdout)
    os.close(streams.stderr)
    exit_code, seconds = wait_for(child)
    exit_code = 128 - exit_code if 128 < exit_code <= 192 else exit_code
    status.say(streams.status, {"done": {"code": exit_code, "cpu": seconds}})
    for name in job.artefacts:
        status.say(streams.status, {"file": name, "error": "the level bubblewrap gives no files back"})
    os._exit(0)


def _packed(job: JailJob, setting: Setting) -> bytes:
    message: dict[str, Any] = {
        "limits": job.limits,
        "files": list(job.files),
        "seed": job.seed,
        "network": setting.network,
    }
    return wire.pack(message, [job.code.encode("utf-8", "surrogatepass"), job.stdin, *job.files.values()])


def main(job_handle: str, report: str) -> NoReturn:
    """In bubblewrap's jail: the script's process."""
    work_or_report(int(report), lambda: _worker(int(job_handle), int(report)))


def _worker(job_handle: int, report: int) -> NoReturn:
    with open(job_handle, "rb") as file:
        unpacked = wire.unpack(file.read())
    assert unpacked is not None
    message, (code, stdin, *files) = unpacked
    named = dict(zip(message["files"], files, strict=True))
    job = JailJob(code.decode("utf-8", "surrogatepass"), message["limits"], stdin, named, [], message["seed"])
    program = seccomp.build(network=message["network"])
    start_script(
        job, (1, 2, report), rootfs.BOX, "/tmp", (address_space(), _OWN_PROCESSES), lambda: seccomp.apply(program)
    )
