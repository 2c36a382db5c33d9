"""Folders `checkpoint-N`: which there are, and which are kept.

What makes a checkpoint whole is a file in it that is written last; each kind of training has its own. The invariant: a
whole checkpoint is removed only when a newer one is whole, and its file first, so that a crash leaves none that only
looks whole.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

_NAME = re.compile(r"checkpoint-(\d+)")


def number_of(path: Path) -> int:
    """N; -1 for a folder of another name."""
    found = _NAME.fullmatch(path.name)
    return int(found[1]) if found else -1


def numbered(folder: Path | str) -> list[Path]:
    """All checkpoints in a folder, whole or not, oldest first."""
    if not Path(folder).is_dir():
        return []
    return sorted((path for path in Path(folder).iterdir() if number_of(path) >= 0 and path.is_dir()), key=number_of)


def prune(folder: Path | str, keep: int, file: str, whole: Callable[[Path], bool]) -> None:
    """Remove all but the newest whole checkpoints, and what crashes left before them.

    Args:
        folder: with `checkpoint-N` in it.
        keep: how many are kept; 0 keeps all.
        file: makes a checkpoint whole.
        whole: whether one is.
    """
    found = numbered(folder)
    complete = [path for path in found if whole(path)]
    kept = complete[-keep:] if keep else complete
    for path in found[: found.index(complete[-1])] if complete else ():
        if path not in kept:
            (path / file).unlink(missing_ok=True)
            shutil.rmtree(path, ignore_errors=True)
