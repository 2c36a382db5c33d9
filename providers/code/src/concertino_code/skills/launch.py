"""How a script of a skill is started in the sandbox: its whole skill lies in a folder there, and is the working folder.

The sandbox runs one Python script. For a script in Python that is a few lines which run it under its own name; for any
other, lines which start its interpreter, if the sandbox has one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

FOLDER = "skill"
"""Where a skill lies in the sandbox, below the script that starts it."""
_PROGRAMS = {".sh": "bash", ".bash": "bash", ".js": "node", ".mjs": "node"}
_PYTHON = """\
import json, os, runpy, sys
path, arguments = json.loads({job!r})
os.chdir({folder!r})
sys.argv[:] = [path, *arguments]
sys.path[0] = os.path.dirname(os.path.abspath(path))
runpy.run_path(path, run_name="__main__")
"""
_OTHER = """\
import json, os, shutil, subprocess, sys
path, arguments, program = json.loads({job!r})
os.chdir({folder!r})
found = shutil.which(program[0]) or (shutil.which("sh") if program[0] == "bash" else None)
if found is None:
    sys.exit(f"the sandbox has no {{program[0]}}, which {{path}} needs")
code = subprocess.call([found, *program[1:], path, *arguments])
sys.exit(code if code >= 0 else 128 - code)
"""


def launcher(path: str, first_line: str, arguments: Sequence[str]) -> str:
    """The Python script that runs a script of a skill.

    Args:
        path: of the script, from the skill's folder.
        first_line: of the script, where a `#!` may name its interpreter.
        arguments: of its command line.
    """
    program = _program(path, first_line)
    job: list[object] = [path, list(arguments)]
    if program:
        return _OTHER.format(job=json.dumps([*job, program]), folder=FOLDER)
    return _PYTHON.format(job=json.dumps(job), folder=FOLDER)


def _program(path: str, first_line: str) -> list[str]:
    """The interpreter and its options; empty for Python."""
    suffix = PurePosixPath(path).suffix
    if suffix == ".py":
        return []
    if suffix in _PROGRAMS:
        return [_PROGRAMS[suffix]]
    words = first_line.removeprefix("#!").split()
    if words and PurePosixPath(words[0]).name == "env":
        words = [word for word in words[1:] if word != "-S"]
    if not words:
        return ["sh"]
    name = PurePosixPath(words[0]).name
    return [] if name.startswith("python") else [name, *words[1:]]


def placed(files: Mapping[str, bytes | str]) -> dict[str, bytes | str]:
    """Files of a skill under their names in the sandbox."""
    return {f"{FOLDER}/{name}": content for name, content in files.items()}
