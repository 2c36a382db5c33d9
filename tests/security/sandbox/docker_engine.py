"""A docker engine for tests: the one that answers here, or a private one that is started where `dockerd` is installed.

The private engine has its own folder, its own socket, no bridge and no firewall rules, and ends with the block. Its one
image is made of this machine's Python, so nothing is fetched.

Invariant: where no engine can be had, `Unavailable` says what was tried.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

IMAGE = "concertino-attacks:local"
_START_SECONDS = 30.0
# A mount namespace of its own: runc refuses cgroup version 2 beside version 1.
_START = "mount --make-rprivate / && (umount /sys/fs/cgroup/unified || true) 2>/dev/null; exec dockerd"
_OPTIONS = ("--iptables=false", "--ip6tables=false", "--bridge=none", "--ip-forward=false", "--ip-masq=false")


class Unavailable(Exception):
    """There is no docker engine; says why."""


class DockerEngine(NamedTuple):
    """An engine that answers, and an image with a Python that it has."""

    socket: str
    image: str


@contextlib.contextmanager
def docker_engine() -> Iterator[DockerEngine]:
    """An engine for as long as the block lasts.

    Raises:
        Unavailable: there is none.
    """
    host, image = os.environ.get("DOCKER_HOST", ""), os.environ.get("CONCERTINO_CODE_IMAGE", "")
    if host.startswith("unix://") and image:
        yield DockerEngine(host.removeprefix("unix://"), image)
        return
    if os.getuid() != 0 or not shutil.which("dockerd") or not shutil.which("docker"):
        raise Unavailable(
            "no DOCKER_HOST with CONCERTINO_CODE_IMAGE, and no root with `dockerd` (apt install docker.io)"
        )
    folder = Path(tempfile.mkdtemp(prefix="concertino-docker-"))
    process = _start(folder)
    try:
        socket = str(folder / "docker.sock")
        _wait_until_it_answers(process, socket, folder / "log")
        _import_image(socket, folder)
        yield DockerEngine(socket, IMAGE)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _start(folder: Path) -> subprocess.Popen[bytes]:
    places = ["--data-root", folder / "data", "--exec-root", folder / "exec", "--pidfile", folder / "pid"]
    words = [*map(str, places), "-H", f"unix://{folder}/docker.sock", *_OPTIONS]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", f'{_START} "$@"', "sh", *words], stdout=log, stderr=log
        )


def _wait_until_it_answers(process: subprocess.Popen[bytes], socket: str, log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        if (
            subprocess.run(["docker", "-H", f"unix://{socket}", "version"], capture_output=True, check=False).returncode
            == 0
        ):
            return
        time.sleep(0.3)
    last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
    raise Unavailable(f"dockerd did not start here: {last}")


def _import_image(socket: str, folder: Path) -> None:
    archive = folder / "image.tar"
    with tarfile.open(archive, "w") as tar:
        for path in _python_files():
            tar.add(os.path.realpath(path), path.lstrip("/"), recursive=False)
        for name in ("tmp", "etc", "proc", "dev", "sys"):
            made = tarfile.TarInfo(name)
            made.type, made.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(made)
    command = ["docker", "-H", f"unix://{socket}", "import", str(archive), IMAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    archive.unlink()
    if done.returncode:
        raise Unavailable(f"docker import: {done.stderr.strip()[-300:]}")


def _python_files() -> list[str]:
    """The system's Python with its standard library, a shell, and the libraries that both need."""
    python = Path(shutil.which("python3", path="/usr/bin") or "")
    if not python.is_file():
        raise Unavailable("there is no /usr/bin/python3 to make an image of")
    version = os.path.realpath(python).rpartition("python")[2]
    library = Path(f"/usr/lib/python{version}")
    skipped = ("/test/", "/dist-packages/", "/__pycache__/", "/idlelib/")
    found = [str(path) for path in library.rglob("*") if path.is_file() and not any(x in str(path) for x in skipped)]
    programs = ["/usr/bin/python3", "/bin/sh"]
    listed = subprocess.run(
        ["ldd", *programs, *(path for path in found if path.endswith(".so"))],
        capture_output=True,
        text=True,
        check=False,
    )
    libraries = sorted(set(re.findall(r"(/\S+) \(0x", listed.stdout)))
    return [*programs, *found, *libraries]
