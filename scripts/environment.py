"""Make `.venv` ready: every member of the tree installed editable; nothing done when nothing changed.

The *stamp* is a hash of what the environment depends on: the Python that runs this, the place of the
checkout, every pyproject.toml and constraints.txt. It is written inside `.venv` only after everything went
well, so an interrupted set-up is simply done again, a deleted `.venv` takes its stamp with it, and an
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


class SetupFailed(Exception):
    """A command of the set-up failed; the message says which, and where its output is."""


def main() -> None:
    """Prepare `.venv`, or exit with what went wrong and what to do."""
    try:
        if not _is_current():
            with exclusive("setup"):
                if not _is_current():  # another make may have prepared it meanwhile
                    _prepare()
    except (SetupFailed, InvalidMember) as failure:
        sys.exit(str(failure))
    except KeyboardInterrupt:
        sys.exit("Interrupted: .venv is not ready; the next make command prepares it again.")


def _prepare() -> None:
    print("Preparing .venv (a minute the first time) ...", flush=True)
    key = _key()  # of what is read now, should a file change while pip works
    LOG.unlink(missing_ok=True)
    STAMP.unlink(missing_ok=True)
    if not _reusable():
        create(VENV)
    _uninstall_vanished()
    chosen = [member for member in members() if member.default_install]
    needed = {tool for member in [sdk(), *members()] for tool in member.pyproject["build-system"]["requires"]}
    pip(VENV, "install", PIP, "editables", *sorted(needed))
    editable = [word for member in chosen for word in ("-e", f"./{member.relative}")]
    pip(VENV, "install", "--no-build-isolation", "--group", "dev", "-e", ".[fast]", *editable)
    temporary = STAMP.with_suffix(f".{os.getpid()}")
    temporary.write_text(key, encoding="utf-8")
    temporary.replace(STAMP)


def _is_current() -> bool:
    return STAMP.is_file() and STAMP.read_text(encoding="utf-8") == _key()


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


def create(venv: Path) -> None:
    """Make an empty virtual environment at `venv`, replacing what is there."""
    try:
        _run([sys.executable, "-m", "venv", "--clear", str(venv)])
    except SetupFailed:
        shutil.rmtree(venv, ignore_errors=True)
        raise


def pip(venv: Path, command: str, *arguments: str) -> None:
    """Run one pip command in `venv`, from the root and under the constraints.

    Raises SetupFailed with the end of pip's output.
    """
    constraints = ["-c", str(CONSTRAINTS)] if command == "install" else []
    python, flags = str(venv / "bin" / "python"), ["--quiet", "--disable-pip-version-check", "--no-input"]
    _run([python, "-m", "pip", *flags, command, *constraints, *arguments])


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


def _run(command: list[str]) -> None:
    with LOG.open("a", encoding="utf-8") as log:
        log.write(f"$ {' '.join(command)}\n")
        log.flush()
        code = subprocess.call(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    if code:
        tail = "\n".join(LOG.read_text(encoding="utf-8", errors="replace").splitlines()[-20:])
        raise SetupFailed(
            f"{tail}\n\nSet-up failed: the last command above ended with status {code}; all output is in "
            f"{LOG.relative_to(ROOT)}.\nWhen the cause is mended, run the same make command again; "
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
