"""Make `.venv` ready: the members of the tree installed editable; nothing done when nothing changed.

    python scripts/environment.py [light | full]

There are two *levels*. `light` (the default; for the demo) has every member but those that opted out as too
heavy for everyone. `full` (for tests, types and benchmarks) has those too, the model server that runs in
`.venv` itself, and the kernel of notebooks. A full environment serves where a light one is asked for, and never
goes back to light.

The *stamp* is the level and a hash of what the environment depends on: the Python that runs this, the place
of the checkout, every pyproject.toml and constraints.txt. It is written inside `.venv` only after everything
went well, so an interrupted set-up is simply done again, a deleted `.venv` takes its stamp with it, and an
unchanged tree costs no pip call. A file lock lets two `make`s start at once: the second waits, then finds
the stamp.

Members are installed in one pip call, so that pip finds siblings in the tree and not in an index, and
without build isolation, so that build tools are installed once and not once per member.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

MINIMUM = (3, 11)
PIP = "pip>=25.1"  # the first that knows --group
if sys.version_info < MINIMUM:  # said before `tree` is imported, which an old Python cannot read
    sys.exit(
        f"concertino needs Python {MINIMUM[0]}.{MINIMUM[1]} or newer; {sys.executable} is "
        f"{sys.version.split()[0]}.\nInstall a newer one, then name it:  make test PYTHON=python3.12"
    )

from collections.abc import Iterator  # noqa: E402

from tree import ROOT, InvalidMember, members, sdk  # noqa: E402

VENV = ROOT / ".venv"
STAMP = VENV / "concertino-stamp"
WORK = ROOT / ".make"
LOG = WORK / "setup.log"
CONSTRAINTS = ROOT / "constraints.txt"
LEVELS = {"light": "a minute", "full": "two or three minutes"}  # what the first time takes


class SetupFailed(Exception):
    """A command of the set-up failed; the message says which, and where its output is."""


def main() -> None:
    """Prepare `.venv` at the level of the command line, or exit with what went wrong and what to do."""
    level = sys.argv[1] if len(sys.argv) > 1 else "light"
    if level not in LEVELS:
        sys.exit(f"{level!r} is no level of the environment; expected one of: {', '.join(LEVELS)}")
    try:
        if not _is_current(level):
            with exclusive("setup"):
                if not _is_current(level):  # another make may have prepared it meanwhile
                    _prepare("full" if _stamped()[0] == "full" else level)
    except (SetupFailed, InvalidMember) as failure:
        sys.exit(str(failure))
    except KeyboardInterrupt:
        sys.exit("Interrupted: .venv is not ready; the next make command prepares it again.")


def _prepare(level: str) -> None:
    print(f"Preparing .venv ({LEVELS[level]} the first time) ...", flush=True)
    key = _key()  # of what is read now, should a file change while pip works
    LOG.unlink(missing_ok=True)
    STAMP.unlink(missing_ok=True)
    if not _reusable():
        create(VENV)
    _uninstall_vanished()
    chosen = [member for member in members() if member.default_install or level == "full"]
    needed = {tool for member in [sdk(), *members()] for tool in member.pyproject["build-system"]["requires"]}
    pip(VENV, "install", PIP, "editables", *sorted(needed))
    editable = [word for member in chosen for word in ("-e", f"./{member.relative}")]
    servers = ["--group", "servers", "--group", "notebooks"] if level == "full" else []
    # pip would compile all files of all packages, one after another: 40 s of 100. Most of them are never imported.
    pip(VENV, "install", "--no-compile", "--no-build-isolation", "--group", "dev", *servers, "-e", ".", *editable)
    temporary = STAMP.with_suffix(f".{os.getpid()}")
    temporary.write_text(f"{level}\n{key}", encoding="utf-8")
    temporary.replace(STAMP)


def _is_current(level: str) -> bool:
    stamped, key = _stamped()
    return stamped in (level, "full") and key == _key()


def _stamped() -> tuple[str, str]:
    """Level and key of the stamp; empty where there is none."""
    if not STAMP.is_file():
        return "", ""
    level, _, key = STAMP.read_text(encoding="utf-8").partition("\n")
    return level, key


def _key() -> str:
    digest = hashlib.sha256(f"{sys.version}\n{sys.platform}\n{ROOT}\n".encode())
    for file in [CONSTRAINTS, *(member.path / "pyproject.toml" for member in [sdk(), *members()])]:
        digest.update(f"{file}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def _reusable() -> bool:
    """Whether `.venv` was made here, by this version of Python; a copied or older one is made anew."""
    try:
        lines = (VENV / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return False
    settings = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}
    version = ".".join(map(str, sys.version_info[:3]))
    return settings.get("version") == version and settings.get("command", "").endswith(f" {VENV}")


def create(venv: Path, log: Path = LOG) -> None:
    """Make an empty virtual environment at `venv`, replacing what is there."""
    try:
        run([sys.executable, "-m", "venv", "--clear", str(venv)], log)
    except SetupFailed:
        shutil.rmtree(venv, ignore_errors=True)
        raise


def pip(venv: Path, command: str, *arguments: str, log: Path = LOG, constrained: bool = True) -> None:
    """Run one pip command in `venv`, from the root and, unless told otherwise, under the constraints.

    Raises SetupFailed with the end of pip's output.
    """
    constraints = ["-c", str(CONSTRAINTS)] if command == "install" and constrained else []
    python, flags = str(venv / "bin" / "python"), ["--quiet", "--disable-pip-version-check", "--no-input"]
    run([python, "-m", "pip", *flags, command, *constraints, *arguments], log)


def _uninstall_vanished() -> None:
    """Take out members whose folder is gone (deleted, renamed), or they would stay as broken plugins."""
    gone = []
    for record in VENV.glob("lib/python*/site-packages/concertino*.dist-info/direct_url.json"):
        origin = json.loads(record.read_text(encoding="utf-8"))
        folder = Path(unquote(urlsplit(origin["url"]).path))
        if "dir_info" in origin and not (folder / "pyproject.toml").is_file():
            gone.append(record.parent.name.partition("-")[0])
    if gone:
        pip(VENV, "uninstall", "--yes", *gone)


def run(command: list[str], log: Path) -> None:
    """Run a command from the root, its output in the log. Raises SetupFailed with the end of it."""
    with log.open("a", encoding="utf-8") as out:
        out.write(f"$ {' '.join(command)}\n")
        out.flush()
        code = subprocess.call(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    if code:
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:])
        raise SetupFailed(
            f"{tail}\n\nSet-up failed: the last command above ended with status {code}; all output is in "
            f"{log.relative_to(ROOT)}.\nWhen the cause is mended, run the same make command again; "
            "`make clean` first starts from nothing."
        )


@contextlib.contextmanager
def exclusive(name: str) -> Iterator[None]:
    """Hold the tree's lock `name`; another process that wants it waits here, and says so."""
    WORK.mkdir(exist_ok=True)
    with (WORK / f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"Waiting for another `make` that holds the {name} lock ...", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    main()
