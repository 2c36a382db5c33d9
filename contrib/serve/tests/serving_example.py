"""The example of the pages, served by the command in a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tree import ROOT

EXAMPLES = ROOT / "docs" / "examples" / "serve"


def copy_example(folder: Path) -> None:
    """Put the settings and the pool of the page into a folder."""
    for name in ("serve.toml", "pool.toml"):
        (folder / name).write_text((EXAMPLES / name).read_text())


@contextmanager
def example_served(folder: Path) -> Iterator[dict[str, Any]]:
    """Serve them; gives what the command says with `--json`."""
    copy_example(folder)
    command = [sys.executable, "-m", "concertino", "serve", "serve.toml", "--port", "0", "--json"]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield json.loads("".join(iter(server.stdout.readline, "}\n")) + "}")
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=30)
