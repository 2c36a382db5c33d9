# Where rights change from call to call, each call is one system call: no pathlib.
# ruff: noqa: PTH102, PTH103, PTH110, PTH112, PTH114, PTH115, PTH116, PTH120, PTH123, PTH211
"""The file system that a script sees: built once by the zygote, read-only, and completed for each execution.

Built once: a tmpfs with read-only binds of the system's libraries and of the interpreter, five devices, a small /etc.
For each execution, in its own mount namespace: one tmpfs of bounded size for /box, /tmp and /dev/shm together, and a
/proc of its own. Nothing of the host can be written, and nothing else of it be seen.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from . import syscalls as sc

BOX = "/box"
SYSTEM = (
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/bin",
    "/sbin",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/alternatives",
)
NETWORK_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/ca-certificates")
DEVICES = ("null", "zero", "full", "random", "urandom")
# Files below these change the host's kernel when a process with rights writes to them.
_COVERED = ("sys", "irq", "bus", "sysrq-trigger")
_PASSWD = "sandbox:x:1000:1000:sandbox:/box:/bin/sh\n"


def interpreter_paths() -> list[str]:
    """The folders that this interpreter needs: its prefixes, shortest first, without those inside another."""
    wanted = {os.path.realpath(sys.base_prefix), sys.base_prefix, sys.prefix, os.path.realpath(sys.prefix)}
    wanted |= {os.path.dirname(os.path.dirname(os.path.realpath(sys.executable)))}
    paths: list[str] = []
    for path in sorted(wanted, key=len):
        if path not in ("", "/") and not _inside(path, (*paths, "/usr")):
            paths.append(path)
    return paths


def _inside(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def readable(network: bool) -> list[str]:
    """What a script may read of the host."""
    return [*SYSTEM, *(NETWORK_FILES if network else ()), *interpreter_paths()]


def build(network: bool) -> None:
    """Make the root file system and move into it. Needs a mount namespace of its own and the right to mount."""
    # A shared mount would carry all that follows to the host.
    sc.mount(None, "/", None, sc.MS_REC | sc.MS_PRIVATE)
    # A network file that is a link is bound as the file behind it: systemd-resolved keeps that in /run, which scripts
    # do not see.
    linked = (path for path in readable(network) if os.path.islink(path) and path not in NETWORK_FILES)
    links = {path: os.readlink(path) for path in linked}
    # Handles, because the mount on /tmp hides what lies there, perhaps the interpreter.
    sources = {path: os.open(path, os.O_PATH) for path in readable(network) if path not in links and _exists(path)}
    sources |= {f"/dev/{name}": os.open(f"/dev/{name}", os.O_PATH) for name in DEVICES}
    process_files = os.open("/proc", os.O_PATH)
    # Any folder that exists will do: it becomes the root.
    root = "/tmp"
    sc.mount("tmpfs", root, "tmpfs", sc.MS_NOSUID | sc.MS_NODEV, "size=256k,nr_inodes=600,mode=0755")
    for folder in (BOX, "/tmp", "/proc", "/dev", "/dev/shm", "/etc"):
        os.makedirs(root + folder, exist_ok=True)
    for path, handle in sources.items():
        _bind(handle, root + path)
        if not path.startswith("/dev/"):
            sc.make_read_only(root + path)
    for path, target in links.items():
        if not os.path.lexists(root + path):
            os.makedirs(os.path.dirname(root + path), exist_ok=True)
            os.symlink(target if not path.startswith("/etc/") else os.path.realpath(path), root + path)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(target, f"{root}/dev/{name}")
    for name, text in (("passwd", _PASSWD), ("group", "sandbox:x:1000:\n"), ("hostname", "sandbox\n")):
        with open(f"{root}/etc/{name}", "w", encoding="ascii") as file:
            file.write(text)
    # The host's /proc stays until an execution covers it: the kernel grants a new one only beside a visible one.
    sc.mount(f"/proc/self/fd/{process_files}", root + "/proc", None, sc.MS_BIND | sc.MS_REC)
    for handle in (*sources.values(), process_files):
        os.close(handle)
    os.chdir(root)
    sc.pivot_root_here()
    sc.mount(None, "/", None, sc.MS_BIND | sc.MS_REMOUNT | sc.MS_RDONLY | sc.MS_NOSUID | sc.MS_NODEV)


def _exists(path: str) -> bool:
    try:
        os.stat(path)
    except OSError:
        return False
    return True


def _bind(handle: int, target: str) -> None:
    source = f"/proc/self/fd/{handle}"
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    sc.mount(source, target, None, sc.MS_BIND | sc.MS_REC)


def complete(disk_bytes: int, inodes: int, owner: int | None) -> None:
    """Mount what belongs to one execution. Needs mount and process namespaces of its own.

    Args:
        disk_bytes: of everything that the script writes together.
        inodes: how many files and folders that may be.
        owner: who the folders are given to; None for the present user.
    """
    # An interpreter under /tmp, as in a checkout there, would be hidden by the script's own /tmp.
    hidden = {path: os.open(path, os.O_PATH) for path in interpreter_paths() if _inside(path, ("/tmp",))}
    # /tmp hides the tmpfs's own top in the end, so the script sees three folders and not how they hang together.
    sc.mount("tmpfs", "/tmp", "tmpfs", sc.MS_NOSUID | sc.MS_NODEV, f"size={disk_bytes},nr_inodes={inodes},mode=0755")
    for name in ("box", "shm", "tmp"):
        os.mkdir(f"/tmp/{name}", 0o700)
        if owner is not None:
            os.chown(f"/tmp/{name}", owner, owner)
    sc.mount("/tmp/box", BOX, None, sc.MS_BIND)
    sc.mount("/tmp/shm", "/dev/shm", None, sc.MS_BIND)
    sc.mount("/tmp/tmp", "/tmp", None, sc.MS_BIND)
    for path, handle in hidden.items():
        _bind(handle, path)
        sc.make_read_only(path)
        os.close(handle)
    sc.mount("proc", "/proc", "proc", sc.MS_NOSUID | sc.MS_NODEV | sc.MS_NOEXEC)
    for name in _COVERED:
        place = f"/proc/{name}"
        if os.path.exists(place):
            sc.mount(place, place, None, sc.MS_BIND | sc.MS_REC)
            sc.make_read_only(place)
