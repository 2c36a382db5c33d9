"""Results files of evaluations: what each system got right, and the items where two of them differ.

The files are those of `concertino bench run`; they are read here as plain lines, so concertino-bench need not be there.
Invariants: a line that cannot be read is counted and left out; a trace that a line names is shown only if it is a trace
file inside the folder of its results file.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from concertino.core.errors import UsageError
from concertino.traces.sink import SUFFIX

from .shown_texts import ShownTexts

RIGHT = "right"
MOST = 1_000
"""Items that flipped and are listed; further ones are counted."""


@dataclass(slots=True)
class _Arm:
    """One system of one file.

    Attributes:
        items: lines by task and sample.
    """

    file: Path
    system: str
    items: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)


class EvaluationList:
    """The evaluations of some results files; safe to use from several threads.

    Args:
        files: results files.

    Raises:
        UsageError: one cannot be read, or is no results file.
    """

    def __init__(self, files: Sequence[Path] = ()) -> None:
        self.files = list(files)
        self._texts = ShownTexts()
        self._lock = threading.Lock()
        self._stamps: list[tuple[int, int]] = []
        self._arms: list[_Arm] = []
        self._traces: dict[str, Path] = {}
        self._unread = 0
        self._refresh()

    def arms(self) -> dict[str, Any]:
        """Every system of every file: its items, and how many are right; plain JSON data."""
        with self._lock:
            self._refresh()
            rows = [[*self._named(arm), len(arm.items), sum(map(_right, arm.items.values()))] for arm in self._arms]
            return {"arms": rows, "unread": self._unread}

    def flips(self, a: int, b: int) -> dict[str, Any] | None:
        """Two systems by their places: items where one is right and the other is not; None if there are no such two."""
        with self._lock:
            self._refresh()
            if not (0 <= a < len(self._arms) and 0 <= b < len(self._arms)):
                return None
            one, other = self._arms[a], self._arms[b]
            both = [key for key in one.items if key in other.items]
            pairs = [(key, one.items[key], other.items[key]) for key in both]
            flipped = [pair for pair in pairs if _right(pair[1]) != _right(pair[2])]
            return {
                "both": len(both),
                "alone": [len(one.items) - len(both), len(other.items) - len(both)],
                "only": [sum(_right(pair[1]) for pair in flipped), sum(_right(pair[2]) for pair in flipped)],
                "items": [[self._key(key), self._side(x), self._side(y)] for key, x, y in flipped[:MOST]],
                "more": max(0, len(flipped) - MOST),
            }

    def trace(self, name: str) -> Path | None:
        """The trace of a run by its name, None if no line names it."""
        with self._lock:
            return self._traces.get(name)

    # -- reading -----------------------------------------------------------------------------------------------------

    def _refresh(self) -> None:
        try:
            stamps = [(stat.st_mtime_ns, stat.st_size) for stat in (file.stat() for file in self.files)]
        except OSError:
            return  # what was read stays on the page
        if stamps == self._stamps:
            return
        arms: dict[tuple[Path, str], _Arm] = {}
        self._stamps, self._traces, self._unread = stamps, {}, 0
        for file in self.files:
            for line in self._lines(file):
                system, task, sample = line["key"]
                arm = arms.setdefault((file, system), _Arm(file, system))
                arm.items[task, sample] = line
                self._know_trace(file, line)
        self._arms = list(arms.values())

    def _lines(self, file: Path) -> Iterator[dict[str, Any]]:
        try:
            head, *texts = file.read_bytes().split(b"\n")
        except OSError as error:
            raise UsageError(f"{file}: cannot be read: {error.strerror}") from error
        header = _read(head)
        if header is None or header.get("t") != "bench":
            raise UsageError(f"{file}: not a results file; expected one that `concertino bench run` wrote")
        for text in texts:
            line = _read(text) if text else None
            match line:
                case {"t": "item", "key": [str(), str(), int()]}:
                    yield line
                case _ if text:
                    self._unread += 1

    def _know_trace(self, file: Path, line: dict[str, Any]) -> None:
        """Take the trace of a line, and put its name in the place of its path."""
        named, line["trace"] = line.get("trace"), ""
        if not isinstance(named, str) or not named.endswith(SUFFIX) or "\0" in named:
            return
        folder = file.parent.resolve()
        path = (folder / named).resolve()
        if path.is_relative_to(folder) and path.is_file():
            line["trace"] = path.name.removesuffix(SUFFIX)
            self._traces.setdefault(line["trace"], path)

    # -- showing -----------------------------------------------------------------------------------------------------

    def _named(self, arm: _Arm) -> list[str]:
        return [self._texts.line(arm.file.name), self._texts.line(arm.system)]

    def _key(self, key: tuple[str, int]) -> str:
        task, sample = key
        return self._texts.line(f"{task} #{sample}" if sample else task)

    def _side(self, line: dict[str, Any]) -> list[Any]:
        """Verdict, answer as the grader read it, reason, and the run."""
        # What the grader found says more than the begin of an answer, which may be long.
        found = line.get("found")
        answer = ", ".join(map(str, found)) if isinstance(found, list) else ""
        answer = answer or line.get("answer") or line.get("error") or ""
        told = [line.get("verdict", ""), answer, line.get("reason", "")]
        return [*map(self._texts.line, told), line["trace"]]


def _right(line: dict[str, Any]) -> bool:
    return bool(line.get("verdict") == RIGHT)


def _read(text: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
