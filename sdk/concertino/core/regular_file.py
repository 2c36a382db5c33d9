"""A file that somebody else may have put there: opened only if it is a plain file, and read up to a size.

A named pipe under the name of a file would keep its reader waiting for ever, a device has no end, and a file with holes
may be larger than the memory. Invariant: nothing here waits, and nothing is read beyond the given size. Errors are
`OSError` with a `strerror` in plain words, as for a file that is not there.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

DOCUMENT_BYTES = 16 << 20
"""Bytes of a file that people write by hand, at most."""

_KINDS = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


def open_regular(path: str | os.PathLike[str], buffering: int = -1) -> BinaryIO:
    """Open a file to read its bytes.

    Raises:
        OSError: there is none, it may not be read, or it is a folder, a pipe, a socket or a device.
    """
    # Without `O_NONBLOCK`, opening a pipe would wait for its writer; a plain file takes no notice of it.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0)
    fd = os.open(path, flags)
    try:
        kind = stat.S_IFMT(os.fstat(fd).st_mode)
        if kind == stat.S_IFDIR:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if kind in _KINDS:
            raise OSError(errno.EINVAL, f"it is {_KINDS[kind]}, not a file", os.fspath(path))
        return os.fdopen(fd, "rb", buffering)
    except BaseException:
        os.close(fd)
        raise


def read_regular(path: str | os.PathLike[str], most: int = DOCUMENT_BYTES) -> bytes:
    """The bytes of a file.

    Raises:
        OSError: as `open_regular`, or it has more than `most` bytes.
    """
    with open_regular(path, 0) as file:
        data = file.read(most + 1) if (size := os.fstat(file.fileno()).st_size) <= most else b""
    if size > most or len(data) > most:
        raise OSError(errno.EFBIG, f"it has {max(size, len(data)):,} bytes, at most {most:,} are read", str(Path(path)))
    return data
