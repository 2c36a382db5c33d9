"""What one execution may use. Every limit is enforced from outside the script; none can be raised from inside."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Self

_KB, _MB = 1 << 10, 1 << 20


@dataclass(frozen=True, slots=True)
class ScriptLimits:
    """The bounds of one execution.

    Attributes:
        wall: seconds of wall clock from the script's first line.
        total: seconds from the request to the end of the script, setting up included.
        cpu: CPU seconds of each process.
        memory_mb: MB of address space that each process may add to the interpreter's; beyond it, `MemoryError`.
        tree_mb: MB that all processes hold together, shared memory included; beyond it, all are killed.
        processes: processes and threads at once.
        descriptors: open files of each process.
        file_mb: MB of a single file.
        disk_mb: MB of all files together, in /box, /tmp and /dev/shm.
        inodes: files and folders at once.
        output_kb: KB kept of stdout and of stderr each, half from the start and half from the end.
        artefacts_mb: MB of files given back.
    """

    wall: float = 10.0
    total: float = 3600.0
    cpu: float = 10.0
    memory_mb: int = 512
    tree_mb: int = 640
    processes: int = 32
    descriptors: int = 64
    file_mb: int = 16
    disk_mb: int = 64
    inodes: int = 4096
    output_kb: int = 64
    artefacts_mb: int = 8

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e9:
                raise ValueError(f"ScriptLimits: {field.name}={value!r}; expected a number > 0")
        if self.descriptors < 8:
            raise ValueError(f"ScriptLimits: descriptors={self.descriptors}; an interpreter needs at least 8")

    def with_(self, **changes: Any) -> Self:
        """A copy with some limits changed."""
        return type(self)(**{**asdict(self), **changes})

    def to_wire(self) -> dict[str, float]:
        """The limits in seconds and bytes, as the jail reads them."""
        return {
            "wall": self.wall,
            "total": self.total,
            "cpu": self.cpu,
            "memory_bytes": self.memory_mb * _MB,
            "tree_bytes": self.tree_mb * _MB,
            "processes": self.processes,
            "descriptors": self.descriptors,
            "file_bytes": self.file_mb * _MB,
            "disk_bytes": self.disk_mb * _MB,
            "inodes": self.inodes,
            "output_bytes": self.output_kb * _KB,
            "artefact_bytes": self.artefacts_mb * _MB,
        }


DEFAULT = ScriptLimits()
"""The limits of an execution that names none."""
