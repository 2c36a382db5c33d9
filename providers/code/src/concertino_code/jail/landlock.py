# Where rights change from call to call, each call is one system call: no pathlib.
# ruff: noqa: PTH112
"""Landlock: the kernel's own file rules for a process that has no namespace to hide in.

Readable paths may be read and executed, writable ones also changed; everything else can be neither opened nor
listed. From ABI 4 on, TCP is closed, and from ABI 6 on no process outside can be signalled and no abstract UNIX
socket of the host's be reached. `abi()` is 0 where the kernel has none.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable

from .syscalls import syscall

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_TO_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE


def abi() -> int:
    """The version that the kernel speaks; 0 for none."""
    try:
        # Flag 1 asks for the version and makes no rule set.
        return syscall("landlock_create_ruleset", None, 0, 1)
    except OSError:
        return 0


def _rights(version: int) -> int:
    # The 13 rights of ABI 1, then what later ABIs added: the kernel refuses bits that it does not know.
    rights = (1 << 13) - 1
    for since, bit in ((2, 1 << 13), (3, _TRUNCATE), (5, _IOCTL)):
        rights |= bit if version >= since else 0
    return rights


def restrict(readable: Iterable[str], writable: Iterable[str], *, network: bool = False) -> None:
    """Put this process, and all that it will start, under the rules, for good. Needs no_new_privs."""
    version = abi()
    if version < 1:
        raise OSError(38, "landlock: this kernel has none")
    rights = _rights(version)
    closed_ports = 3 if version >= 4 and not network else 0
    scope = 3 if version >= 6 else 0
    # An older kernel knows a shorter structure.
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = syscall("landlock_create_ruleset", struct.pack("<QQQ", rights, closed_ports, scope)[:size], size, 0)
    try:
        for paths, allowed in ((readable, _READING), (writable, rights & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL))):
            for path in paths:
                _allow(rules, path, allowed & rights)
        syscall("landlock_restrict_self", rules, 0)
    finally:
        os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there needs no rule
    try:
        # The kernel refuses a rule that gives a file the rights of a folder.
        wanted = rights if os.path.isdir(path) else rights & _TO_FILES
        syscall("landlock_add_rule", rules, 1, struct.pack("<Qi", wanted, place), 0)
    finally:
        os.close(place)
