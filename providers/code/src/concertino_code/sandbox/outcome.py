"""The record of one execution: how it ended, what it wrote, what it used. Every sandbox returns the same record."""

from __future__ import annotations

import enum
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .limits import ScriptLimits


class Ending(enum.StrEnum):
    """How an execution ended. All but OK are caused by the script; a failure of the sandbox is a `SandboxFault`."""

    OK = "ok"
    """Exit status 0."""
    EXIT = "exit"
    """Another exit status, also after an uncaught exception."""
    SIGNAL = "signal"
    """A signal ended it: a crash, or one that it sent to itself."""
    MEMORY = "memory"
    """All its processes together held more memory than `ScriptLimits.tree_mb`."""
    WALL = "wall"
    """The wall clock ran out."""
    CPU = "cpu"
    """The CPU time ran out."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One output stream.

    Attributes:
        head, tail: the bytes kept from both ends; together they are everything unless `cut`.
        total: bytes that the script wrote.
    """

    head: bytes = b""
    tail: bytes = b""
    total: int = 0

    @property
    def cut(self) -> int:
        """Bytes that were not kept."""
        return max(0, self.total - len(self.head) - len(self.tail))

    @property
    def text(self) -> str:
        """The stream as text; what is not UTF-8 becomes U+FFFD, and a line says how much is missing."""
        if not self.cut:
            return (self.head + self.tail).decode("utf-8", "replace")
        head, tail = self.head.decode("utf-8", "replace"), self.tail.decode("utf-8", "replace")
        return f"{head}\n[... {self.cut} bytes cut ...]\n{tail}"


@dataclass(frozen=True, slots=True)
class Artefact:
    """A file to give back. `error` says why there is none."""

    data: bytes = b""
    error: str = ""


@dataclass(frozen=True, slots=True)
class ScriptOutcome:
    """The record of one execution.

    Attributes:
        ending: how it ended.
        exit_code: exit status, or minus the signal's number; None where a limit ended it.
        stdout, stderr: what it wrote.
        seconds: wall clock of the script itself.
        cpu: CPU seconds of the script and the children that it waited for; None where unknown.
        peak_bytes: most memory seen, a sample every 10 ms; 0 where unknown.
        artefacts: the files that were asked back, by name.
    """

    ending: Ending
    exit_code: int | None
    stdout: Stream
    stderr: Stream
    seconds: float = 0.0
    cpu: float | None = None
    peak_bytes: int = 0
    artefacts: dict[str, Artefact] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the script ended with exit status 0."""
        return self.ending is Ending.OK

    def explain(self) -> str:
        """One line on how it ended."""
        match self.ending:
            case Ending.OK:
                return "it ended with exit status 0"
            case Ending.EXIT:
                last = _last_line(self.stderr)
                return last if self.exit_code == 1 and last else f"it ended with exit status {self.exit_code}"
            case Ending.SIGNAL:
                return f"it was ended by {_signal_name(self.exit_code)}"
            case Ending.MEMORY:
                return "its processes held more memory than allowed, and were killed; use less"
            case Ending.WALL:
                return f"it did not end within {self.seconds:.1f} s and was killed; do less, or do it faster"
            case Ending.CPU:
                return "its CPU time ran out and it was killed; do less, or do it faster"


def _signal_name(code: int | None) -> str:
    try:
        return signal.Signals(-(code or 0)).name
    except ValueError:
        return f"signal {-(code or 0)}"


def _last_line(stream: Stream) -> str:
    lines = (stream.tail or stream.head).decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip() if lines else ""


def outcome_of(result: Mapping[str, Any], blobs: Sequence[bytes], limits: ScriptLimits) -> ScriptOutcome:
    """The record of what a supervisor, or the runner in a container, answered."""
    out_head, out_tail, err_head, err_tail, *data = (bytes(blob) for blob in blobs)
    totals = result["totals"]
    ending, code = _ending(result, limits)
    artefacts = {
        name: Artefact(content, about.get("error", ""))
        for (name, about), content in zip(result["files"].items(), data, strict=True)
    }
    return ScriptOutcome(
        ending,
        code,
        Stream(out_head, out_tail, totals[0]),
        Stream(err_head, err_tail, totals[1]),
        result["seconds"],
        result.get("cpu"),
        result["peak"],
        artefacts,
    )


def _ending(result: Mapping[str, Any], limits: ScriptLimits) -> tuple[Ending, int | None]:
    """How it ended, from what its supervisor saw."""
    if result["reason"] == "memory":
        return Ending.MEMORY, None
    if result["reason"] == "wall":
        return Ending.WALL, None
    code: int = result.get("code", -9)  # its process 1 was killed from outside the jail
    spent = result.get("cpu", 0.0) >= max(1, round(limits.cpu)) - 0.1
    if code == -24 or (code == -9 and spent):  # SIGXCPU alone says it; a kill may have other reasons
        return Ending.CPU, None
    return (Ending.OK if code == 0 else Ending.SIGNAL if code < 0 else Ending.EXIT), code
