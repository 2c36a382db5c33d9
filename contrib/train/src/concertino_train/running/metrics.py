"""The figures of a training, one line per step, in `metrics.jsonl`.

    {"step": 12, "reward": 0.61, "success": 0.5, ...}

The invariants: a line is written whole in one call, so a crash leaves at most one torn line, at the end, which is cut
off when a training resumes. Steps go up. Every number is finite; others are left out and counted in `not_finite`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from concertino import UsageError

from .files import write_atomically


class MetricsFile:
    """Writes figures, step by step.

    Args:
        path: the file; it is created, or continued.
        after: the step that a training resumes from: lines of later steps are dropped, since they are done again.
            None if the file has to be new.

    Raises:
        UsageError: a new training would write into a file that has lines.
    """

    def __init__(self, path: str | Path, after: int | None = None) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.last = self._begin(after)
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def _begin(self, after: int | None) -> int:
        lines = list(read_metrics(self.path)) if self.path.exists() else []
        if after is None:
            if lines:
                raise UsageError(f"{self.path} has {len(lines)} steps already; resume it, or choose another folder")
            self.path.unlink(missing_ok=True)
            return -1
        # Steps behind the checkpoint are made again, and would stand in the file twice.
        kept = [line for line in lines if line["step"] <= after]
        write_atomically(self.path, "".join(_line(line) for line in kept))
        return kept[-1]["step"] if kept else -1

    def write(self, step: int, figures: Mapping[str, Any]) -> None:
        """Write the line of a step.

        Args:
            step: more than that of the line before.
            figures: numbers, and short texts.

        Raises:
            UsageError: the step is not later than the last one.
        """
        if step <= self.last:
            raise UsageError(f"{self.path}: step {step} after step {self.last}; steps go up")
        kept = {name: value for name, value in figures.items() if not _not_finite(value)}
        if len(kept) < len(figures):
            kept["not_finite"] = len(figures) - len(kept)
        os.write(self._file, _line({"step": step, **kept}).encode())
        self.last = step

    def close(self) -> None:
        """Release the file. May be called again."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def read_metrics(path: str | Path) -> Iterator[dict[str, Any]]:
    """The lines of a metrics file; a torn last one is skipped.

    Raises:
        UsageError: the file cannot be read, or another line is damaged.
    """
    file = Path(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror or error}") from error
    lines = data.split(b"\n")
    for number, line in enumerate(lines[:-1], 1):
        try:
            read = json.loads(line)
            if not isinstance(read.get("step"), int):
                raise ValueError("no step")
        except (ValueError, AttributeError) as error:
            raise UsageError(f"{file}:{number}: not a line of figures: {error}") from error
        yield read


def _line(data: Mapping[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n"


def _not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
