# Where rights change from call to call, each call is one system call: no pathlib.
# ruff: noqa: PTH123
"""System calls that Python does not offer, by ctypes: mounts, namespaces, capabilities, process settings.

Every function raises `OSError` with the call's name. Numbers are those of x86_64 and of aarch64, which shares the
generic table with newer architectures; on any other machine `NUMBERS` is empty, and each level refuses itself.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

MACHINE = platform.machine()

# name: (x86_64, aarch64); None where the architecture has no such call.
_TABLE: dict[str, tuple[int | None, int | None]] = {
    "capset": (126, 91),
    "close_range": (436, 436),
    "landlock_add_rule": (445, 445),
    "landlock_create_ruleset": (444, 444),
    "landlock_restrict_self": (446, 446),
    "mount_setattr": (442, 442),
    "openat2": (437, 437),
    "pivot_root": (155, 41),
    "seccomp": (317, 277),
}
MACHINES = ("x86_64", "aarch64")
"""Those with a column in a table of numbers."""


def numbers(table: dict[str, tuple[int | None, int | None]], machine: str) -> dict[str, int]:
    """The numbers of a machine, without the calls that it lacks."""
    if machine not in MACHINES:
        return {}
    column = MACHINES.index(machine)
    return {name: number for name, row in table.items() if (number := row[column]) is not None}


NUMBERS = numbers(_TABLE, MACHINE)

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_NOATIME, MS_BIND, MS_REC, MS_PRIVATE, MS_RELATIME = 1024, 4096, 16384, 1 << 18, 1 << 21
MNT_DETACH = 2

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 36, 38, 47

_AT_RECURSIVE = 0x8000
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_CAPABILITY_VERSION_3 = 0x20080522
_RESOLVE_NO_SYMLINKS, _RESOLVE_BENEATH = 0x04, 0x08

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(name: str, *arguments: object) -> int:
    """A raw system call of `NUMBERS`."""
    if name not in NUMBERS:
        raise OSError(38, f"{name}: not known on {MACHINE}")
    # To a variadic function, ctypes would pass an int as 32 bits.
    passed = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return _checked(_libc.syscall(ctypes.c_long(NUMBERS[name]), *passed), name)


def prctl(option: int, *values: int) -> int:
    """`prctl(2)`."""
    padded = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    return _checked(_libc.prctl(ctypes.c_int(option), *padded), f"prctl {option}")


def unshare(flags: int) -> None:
    """`unshare(2)`."""
    _checked(_libc.unshare(ctypes.c_int(flags)), f"unshare {flags:#x}")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """`mount(2)`."""
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    result = _libc.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3])
    _checked(result, f"mount {source} on {target}")


def unmount(target: str) -> None:
    """`umount2(2)`, detached."""
    _checked(_libc.umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def make_read_only(target: str) -> None:
    """Make a mount and everything mounted below it read-only, without set-user-id and devices."""
    attributes = struct.pack("<QQQQ", _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV, 0, 0, 0)
    try:
        syscall("mount_setattr", -100, os.fsencode(target), _AT_RECURSIVE, attributes, len(attributes))
    except OSError as error:
        if error.errno != 38:
            raise
        for place in _mounts_below(target):  # Linux before 5.12
            flags = os.statvfs(place).f_flag
            # In a user namespace, a remount may not drop a flag of the mount; statvfs numbers two of them differently.
            kept = flags & (MS_NOSUID | MS_NODEV | MS_NOEXEC)
            kept |= (MS_NOATIME if flags & 1024 else 0) | (MS_RELATIME if flags & 4096 else 0)
            mount(None, place, None, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | kept)


def _mounts_below(target: str) -> list[str]:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        # mountinfo writes blanks in paths as octal escapes.
        places = [line.split()[4].encode("latin-1", "replace").decode("unicode_escape") for line in lines]
    return [place for place in places if place == target or place.startswith(target.rstrip("/") + "/")]


def pivot_root_here() -> None:
    """Make the working folder the root, and unmount the old one."""
    syscall("pivot_root", b".", b".")
    # With "." for both, the old root lies on top of the new one.
    unmount(".")
    os.chdir("/")


def map_user(inside: int, user: int, group: int) -> None:
    """In a fresh user namespace: the one user and group that exist in it."""
    prctl(PR_SET_DUMPABLE, 1)  # after a change of user, /proc/self belongs to root until this
    # An ordinary user may write gid_map only after denying setgroups.
    for name, text in (("setgroups", "deny"), ("uid_map", f"{inside} {user} 1"), ("gid_map", f"{inside} {group} 1")):
        handle = os.open(f"/proc/self/{name}", os.O_WRONLY)
        try:
            os.write(handle, text.encode())
        finally:
            os.close(handle)
    # Init has the script's user inside, and a script that could write to its memory would forge the result.
    prctl(PR_SET_DUMPABLE, 0)


def drop_capabilities() -> None:
    """Drop every capability, for good."""
    # Before `capset`, since dropping from the bounding set needs CAP_SETPCAP.
    for number in range(64):
        if _libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(number), 0, 0, 0) < 0:
            break
    _libc.prctl(PR_CAP_AMBIENT, ctypes.c_ulong(4), 0, 0, 0)
    header = ctypes.create_string_buffer(struct.pack("<Ii", _CAPABILITY_VERSION_3, 0), 8)
    syscall("capset", header, ctypes.create_string_buffer(24))


def become(user: int) -> None:
    """Become an ordinary user without groups, for good."""
    # Groups first: an ordinary user may not change them.
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def open_beneath(folder: int, path: str) -> int:
    """Open a file for reading below a folder, through no link and out of no `..`."""
    # O_NONBLOCK, because opening a FIFO of the script's would wait for a writer.
    how = struct.pack(
        "<QQQ", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS
    )
    return syscall("openat2", folder, os.fsencode(path), how, len(how))
