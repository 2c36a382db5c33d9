"""What a disk does to weights, told as what it is: files that are not whole, and no room for new ones.

The libraries that read and write weights have errors of their own for both, which would look like faults of this
package to those who see them.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from concertino import UsageError

_WORDS = ("no space left", "os error 28", "quota exceeded")
_LEFT = 2**20


def unreadable() -> tuple[type[Exception], ...]:
    """The errors of reading weights that are missing, cut off, or no weights at all."""
    from safetensors import SafetensorError

    return OSError, ValueError, SafetensorError


@contextmanager
def room_on(folder: Path | str, again: str) -> Iterator[None]:
    """Around what writes weights into a folder.

    Args:
        folder: where to; it need not exist.
        again: what to do when there is room.

    Raises:
        UsageError: the disk is full.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, UsageError) or not _is_full(error, Path(folder)):
            raise
        raise UsageError(
            f"{folder}: the disk is full ({_free(Path(folder)) / 2**30:.1f} GiB are free); make room there, or choose "
            f"a folder on another disk, and {again}; what was written before is whole"
        ) from error


def _is_full(error: BaseException | None, folder: Path) -> bool:
    """Whether an error, or what it came from, is that of a full disk."""
    while error is not None:
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
            return True
        text = str(error).lower()
        # torch says only that it could not write.
        if any(words in text for words in _WORDS) or ("failed writing file" in text and _free(folder) < _LEFT):
            return True
        error = error.__cause__ or error.__context__
    return False


def _free(folder: Path) -> int:
    there = next((each for each in (folder.absolute(), *folder.absolute().parents) if each.exists()), Path("/"))
    return shutil.disk_usage(there).free
