"""Writing a file completely or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Replace a file in one step; a crash leaves the old one, or the new one."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with unfinished.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        # Otherwise a crash of the machine could leave the new name on an empty file.
        os.fsync(file.fileno())
    unfinished.replace(path)
