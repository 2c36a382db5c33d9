"""Private files and folders: what concertino keeps of runs is for its user alone.

    fd = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)     # 0600
    make_private_folder(path)                                         # 0700, missing parents too
    write_private(path, data)                                         # whole or not at all

Invariants: a file or folder has its rights from the moment it is there, whatever the umask allows; rights are never
changed afterwards, for a file that was there already is the user's own matter (`too_open` tells of it). In a folder
where others may write, such as `/tmp`, no link is followed: it may be somebody else's.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

FILE_MODE, FOLDER_MODE = 0o600, 0o700
"""Rights of what is made here."""

_ALWAYS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""`O_BINARY`: Windows would translate line ends."""
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file; if it is made, only its user may read or write it.

    Args:
        flags: as those of `os.open`.

    Returns:
        The descriptor.

    Raises:
        OSError: as `os.open`; also for a link in a folder where others may write.
    """
    if flags & os.O_CREAT and not flags & os.O_EXCL and _NO_LINK and _is_shared(Path(path).parent):
        flags |= _NO_LINK
    return os.open(path, flags | _ALWAYS, FILE_MODE)


def make_private_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder that only its user may enter, and the folders above it that are missing.

    Raises:
        OSError: it cannot be made, or something else has its name.
    """
    folder = Path(path)
    try:
        folder.mkdir(FOLDER_MODE)
    except FileExistsError:
        if not folder.is_dir():
            raise
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        # Not `mkdir(parents=True)`, which gives the folders above the rights that the umask leaves.
        make_private_folder(folder.parent)
        make_private_folder(folder)


def write_private(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file in one step: who reads it meanwhile sees the old one or the new one, and no other user either.

    Raises:
        OSError: it cannot be written; the old one is as it was.
    """
    target = Path(path)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}")
    fd = open_private(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        unfinished.replace(target)
    except BaseException:  # an interrupt too must leave nothing behind
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise


def too_open(paths: Iterable[Path]) -> list[Path]:
    """Those of some files and folders of this user that others may read or write."""
    return [path for path in paths if _is_too_open(path)]


def _is_too_open(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    own = hasattr(os, "getuid") and found.st_uid == os.getuid()
    return own and not stat.S_ISLNK(found.st_mode) and bool(found.st_mode & 0o077)


def _is_shared(folder: Path) -> bool:
    """Whether others may make files in a folder."""
    try:
        return bool(folder.stat().st_mode & 0o022)
    except OSError:
        return False
