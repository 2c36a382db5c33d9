"""Runs attacks at one level as one user, who can reach this interpreter, and prints what they achieved.

python attack_cell.py root|ordinary LEVEL REPETITIONS [FOLDER OF SHARED ATTACKS]

Started by an ordinary user, it stays that user.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import jail_suite
from concertino_code.jail import syscalls as sc
from concertino_code.sandbox.base import Sandbox
from concertino_code.sandbox.docker import DockerSandbox
from concertino_code.sandbox.jailed import JailedSandbox
from concertino_code.sandbox.selftest import self_test

NOBODY = 65534


def make_reachable(paths: list[str]) -> None:
    """In a mount namespace of our own: whatever closes the way to these paths is replaced by an open folder."""
    sc.unshare(sc.CLONE_NEWNS)
    sc.mount(None, "/", None, sc.MS_REC | sc.MS_PRIVATE)
    held = {path: os.open(path, os.O_PATH) for path in dict.fromkeys(map(os.path.realpath, paths))}
    for path, handle in held.items():
        for parent in reversed(Path(path).parents):
            if not parent.stat().st_mode & 0o001:
                sc.mount("tmpfs", str(parent), "tmpfs", 0, "mode=0755")
                Path(path).mkdir(parents=True)
                sc.mount(f"/proc/self/fd/{handle}", path, None, sc.MS_BIND | sc.MS_REC)
                break


def open_level(level: str) -> Sandbox:
    """The sandbox of a level; docker's engine and image are those of DOCKER_HOST and CONCERTINO_CODE_IMAGE."""
    if level == "docker":
        return DockerSandbox(os.environ["CONCERTINO_CODE_IMAGE"])
    return JailedSandbox(level, bwrap=os.environ.get("CONCERTINO_CODE_BWRAP"))


def own_scratch() -> Path:
    """A folder for the working folders of this process alone, so that those of others are not taken for left ones."""
    folder = Path(tempfile.mkdtemp(prefix="concertino-cell-"))
    folder.chmod(0o755)  # scripts of root have another user
    tempfile.tempdir = str(folder)
    return folder


async def main(scratch: Path) -> None:
    """Self-test, then attacks; prints one JSON object."""
    level, repetitions, *folder = sys.argv[2:]
    scripts = jail_suite.ATTACKS + (jail_suite.read_attacks(Path(folder[0])) if folder else [])
    sandbox = open_level(level)
    # The self-test asks for what a container has its own kind of: it is for the choice among local levels.
    refused = await self_test(sandbox) if level != "docker" else ""
    found = {} if refused else await jail_suite.assault(sandbox, scripts, repetitions=int(repetitions), at_once=6)
    await sandbox.close()
    if left := os.listdir(scratch):  # noqa: PTH208 - nothing else runs in this loop
        found["left folders"] = left
    shutil.rmtree(scratch)
    sys.stdout.write(json.dumps({"user": os.getuid(), "refused": refused, "scripts": len(scripts), "achieved": found}))


if __name__ == "__main__":
    if os.getuid() == 0:
        make_reachable([sys.base_prefix, sys.prefix])
        if sys.argv[1] == "ordinary":
            sc.become(NOBODY)
            sc.prctl(sc.PR_SET_DUMPABLE, 1)
    asyncio.run(main(own_scratch()))
