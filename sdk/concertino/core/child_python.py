"""The command line of a Python process that this one starts: it finds what this process finds, and nothing else.

Python puts the working folder before its own library, so that a file `json.py` which lies there would be imported and
run. Invariant: in a child, modules of Python come first, whatever else is on the path; and the working folder is on the
path only where it is on this process's own, which some program has asked for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

_PATH = "import sys\nsys.path[:] = sys.argv.pop(1).split({separator!r})\n"
_MODULE = "import runpy\nrunpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
_LEADS_ASTRAY = ("PYTHONPATH", "PYTHONSTARTUP")
"""Variables that decide what is imported before any line of ours has run."""


def module_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module as `python -m` does."""
    return [*_python(_MODULE), module, *arguments]


def code_command(code: str, *arguments: str) -> list[str]:
    """The command that runs code as `python -c` does; `sys` is imported."""
    return [*_python(code), *arguments]


def safe_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment without what would choose a child's modules before the path is set."""
    return {name: value for name, value in environ.items() if name not in _LEADS_ASTRAY}


def child_path() -> list[str]:
    """This process's path of modules, for another: absolute, Python's own library first."""
    library = str(Path(os.__file__).parent)
    # "" stands for the working folder, which a child may change.
    found = [os.path.abspath(entry) for entry in sys.path]  # noqa: PTH100 (links stay as they are)
    own = [entry for entry in found if _of_library(entry, library)]
    return list(dict.fromkeys([*own, *found]))


def _of_library(entry: str, library: str) -> bool:
    version = f"python{sys.version_info[0]}{sys.version_info[1]}.zip"
    return entry in (library, str(Path(library, "lib-dynload"))) or Path(entry).name == version


def _python(code: str) -> list[str]:
    # -P: the working folder is not put on the path before the code has run. Packages are found by their .pth files.
    boot = _PATH.format(separator=os.pathsep) + code
    return [sys.executable, "-P", "-c", boot, os.pathsep.join(child_path())]
