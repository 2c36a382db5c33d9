"""Where the `vllm` command is: the option, `CONCERTINO_VLLM`, beside the running Python, on the PATH; in this order."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from .errors import VllmServerError

VARIABLE = "CONCERTINO_VLLM"

_INSTALL = (
    "No `vllm` command. On a machine with a GPU: `pip install vllm`, best in an environment of its own, and name it: "
    'executable = "/path/to/bin/vllm", or {variable}=/path/to/bin/vllm. On CPU: a CPU build of vLLM (see its '
    'installation guide). Or run the server yourself and give its address: attach = "http://127.0.0.1:8000".'
)


def find_executable(given: str = "") -> Path:
    """The `vllm` command.

    Args:
        given: the command or its folder, if the user named one.

    Raises:
        VllmServerError: there is none; it says where it was looked for.
    """
    for source, path in (("executable", given), (VARIABLE, os.environ.get(VARIABLE, ""))):
        if path:
            return _named(source, path)
    beside = Path(sys.executable).parent / "vllm"
    if _runs(beside):
        return beside
    found = shutil.which("vllm")
    if found:
        return Path(found).absolute()
    raise VllmServerError(f"{_INSTALL.format(variable=VARIABLE)} (Looked in {beside.parent} and on the PATH.)")


def _named(source: str, given: str) -> Path:
    path = Path(given).expanduser()
    if path.is_dir():
        path /= "vllm"
    if "/" not in given and not path.exists():
        path = Path(shutil.which(given) or path)
    if not _runs(path):
        raise VllmServerError(
            f"{source} = {given!r}: {path.absolute()} is not a program; expected the `vllm` command or its folder"
        )
    return path.absolute()


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
