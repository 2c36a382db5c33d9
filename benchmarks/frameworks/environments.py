"""An environment for each framework: its newest release, installed with pip from the configured index, on demand."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / ".make" / "frameworks"
"""Where the environments are made, unless another folder is named."""
NEEDS = {
    "concertino": (str(ROOT), str(ROOT / "providers" / "openai")),
    "pydantic-ai": ("pydantic-ai-slim[openai]",),
    "langgraph": ("langgraph", "langchain", "langchain-openai"),
    "openai-agents": ("openai-agents",),
    "smolagents": ("smolagents[openai]",),
}
"""What each needs from the index."""
QUIET = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "LANGSMITH_TRACING": "false"}
"""Variables that keep frameworks from sending runs to services of their vendors."""


class Absent(Exception):
    """A framework cannot be had; the message says why."""


def environment(framework: str, folder: Path = FOLDER) -> Path:
    """The Python of a framework's environment, which is made if need be.

    Raises:
        Absent: it cannot be installed.
    """
    place = folder / framework
    python, ready = place / "bin" / "python", place / "ready"
    if not ready.is_file():
        print(f"  installing {framework} into {place}", file=sys.stderr, flush=True)
        venv.create(place, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "--quiet", *NEEDS[framework]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Absent(f"not installed: {(done.stderr.strip().splitlines() or ['pip failed'])[-1][:120]}")
        ready.touch()
    return python
