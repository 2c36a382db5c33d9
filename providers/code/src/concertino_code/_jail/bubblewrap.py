# Where rights change from call to call, each call is one system call: no pathlib.
# ruff: noqa: PTH100, PTH110, PTH114, PTH115, PTH120, PTH123
"""The level of bubblewrap: its namespaces and mounts, then our own limits and filter inside, one cold interpreter each.

    supervisor (adopts orphans) ── keeper (waits, reports) ── bwrap ── bwrap's process 1 ── worker (the script)

For machines where only the installed `bwrap` may make user namespaces (an AppArmor profile that names it, say).
Libraries are imported anew by every script. Exit statuses 129 to 192 are read as signals, as bwrap reports them. /box,
/tmp and /dev/shm each have the size limit, and give no artefacts back. The keeper is never root: bwrap started by root
leaves /proc/sys writable.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from typing import Any, NoReturn

from . import rootfs, seccomp, status, wire
from . import syscalls as sc
from . import worker as script
from .bare import Pack
from .launch import SCRIPT_USER, Job, Setting, Streams, die_with_parent
from .memory import address_space

_MODULE = "/run/concertino_jail"
_START = (
    "import sys, importlib.util as u\n"
    "s = u.spec_from_file_location('concertino_jail', sys.argv[1] + '/__init__.py',"
    " submodule_search_locations=[sys.argv[1]])\n"
    "m = u.module_from_spec(s); sys.modules['concertino_jail'] = m; s.loader.exec_module(m)\n"
    "from concertino_jail.bubblewrap import inside\n"
    "inside(int(sys.argv[2]), int(sys.argv[3]))\n"
)


def prepare(setting: Setting) -> None:
    """In the zygote, once.

    Raises:
        OSError: there is no bwrap.
    """
    program = setting.options.get("bwrap") or shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin")
    if not program or not os.access(program, os.X_OK):
        raise FileNotFoundError(2, "bwrap is not installed; apt install bubblewrap, or the like")
    setting.options["bwrap"] = program


def _arguments(job: Job, setting: Setting, job_handle: int, status_handle: int) -> list[str]:
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
    return [*words, "-I", "-c", _START, _MODULE, str(job_handle), str(status_handle)]


def launch(job: Job, setting: Setting, streams: Streams) -> Pack:
    """Start bwrap. Called in the supervisor."""
    sc.prctl(sc.PR_SET_CHILD_SUBREAPER, 1)
    keeper = os.fork()
    if keeper == 0:
        try:
            _keep(job, setting, streams)
        except BaseException as error:
            with contextlib.suppress(OSError):
                status.say(streams.status, {"fault": f"{type(error).__name__}: {error}"[:400]})
        os._exit(1)
    streams.close()
    if setting.user is not None:
        sc.become(setting.user)
        sc.prctl(sc.PR_SET_DUMPABLE, 0)
    return Pack(keeper, setting, "")


def _keep(job: Job, setting: Setting, streams: Streams) -> NoReturn:
    if setting.user is not None:
        parent = os.getppid()
        sc.become(setting.user)
        die_with_parent(parent)
    else:
        die_with_parent(os.getppid())
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
    while True:
        ended, code, used = os.wait4(-1, 0)
        if ended == child:
            break
    seconds = used.ru_utime + used.ru_stime
    exit_code = os.waitstatus_to_exitcode(code)
    exit_code = 128 - exit_code if 128 < exit_code <= 192 else exit_code
    status.say(streams.status, {"done": {"code": exit_code, "cpu": seconds}})
    for name in job.artefacts:
        status.say(streams.status, {"file": name, "error": "the level bubblewrap gives no files back"})
    os._exit(0)


def _packed(job: Job, setting: Setting) -> bytes:
    message: dict[str, Any] = {
        "limits": job.limits, "files": list(job.files), "seed": job.seed, "network": setting.network
    }  # fmt: skip
    return wire.pack(message, [job.code.encode("utf-8", "surrogatepass"), job.stdin, *job.files.values()])


def inside(job_handle: int, report: int) -> NoReturn:
    """In bubblewrap's jail: the script's process, up to its first line."""
    try:
        with open(job_handle, "rb") as file:
            unpacked = wire.unpack(file.read())
        assert unpacked is not None
        message, (code, stdin, *files) = unpacked
        named = dict(zip(message["files"], files, strict=True))
        job = Job(code.decode("utf-8", "surrogatepass"), message["limits"], stdin, named, [], message["seed"])
        report = script.take_standard_streams(job.stdin, 1, 2, report)
        script.write_files(job.files)
        script.set_environment(rootfs.BOX, "/tmp")
        script.reset_signals()
        script.set_limits(job, address_space(), 8)
        script.give_up_rights()
        seccomp.apply(seccomp.build(network=message["network"]))
        status.say(report, {"go": True})
        os.close(report)
    except BaseException as error:
        with contextlib.suppress(OSError):
            status.say(report, {"fault": f"{type(error).__name__}: {error}"[:400]})
        os._exit(1)
    script.run_script(job, rootfs.BOX)
