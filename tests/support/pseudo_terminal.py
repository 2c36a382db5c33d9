"""A terminal for tests: a command runs in one, types are sent to it, and what stands on it is read."""

from __future__ import annotations

import os
import re
import select
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

SECONDS = 60.0
"""How long a command may be silent."""


def on_terminal(
    arguments: Sequence[str], environment: Mapping[str, str], *, columns: int = 80, typed: Sequence[str] = ()
) -> tuple[int, list[str]]:
    """Run the command line in a terminal.

    Returns:
        Its exit code, and every line that was ever written, without what moves the cursor or gives colours.
    """
    code, written = written_to_terminal(arguments, environment, columns=columns, typed=typed)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", written.decode("utf-8", "replace"))
    return code, text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def written_to_terminal(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    columns: int = 80,
    typed: Sequence[str] = (),
    program: Sequence[str] = (sys.executable, "-m", "concertino"),
) -> tuple[int, bytes]:
    """Run a program in a terminal.

    Args:
        environment: beside that of the tests.
        columns: of the terminal.
        typed: lines that are typed, each when the program has asked for one: `…: `.

    Returns:
        Its exit code, and every byte that was written.
    """
    import fcntl
    import pty
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    child = subprocess.Popen(
        [*program, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**kept, "TERM": "xterm", **environment},
    )
    os.close(theirs)
    written, waiting = b"", list(typed)
    begun = time.monotonic()
    try:
        while time.monotonic() - begun < SECONDS:
            if not select.select([ours], [], [], 0.2)[0]:
                if waiting and written.endswith(b": "):
                    os.write(ours, f"{waiting.pop(0)}\n".encode())
                continue
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux says so when the other side is closed
                break
            if not piece:
                break
            written += piece
        code = child.wait(timeout=SECONDS)
    finally:
        child.kill()
        child.wait()
        os.close(ours)
    return code, written
