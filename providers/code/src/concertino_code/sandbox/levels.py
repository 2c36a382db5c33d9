"""Which sandbox this machine gets: the strongest level that passes its self-test, and never silently a weaker kind.

    namespaces > bubblewrap > landlock            chosen by themselves, in this order
    limits                                        no sandbox; only with `allow_unsafe`
    docker                                        only where it is named

Invariant: what is chosen has just passed; what was passed over is named with the reason.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from .base import Sandbox, SandboxUnavailable
from .jailed import JailedSandbox
from .limits import DEFAULT, ScriptLimits
from .selftest import self_test

SAFE_LEVELS: tuple[str, ...] = ("namespaces", "bubblewrap", "landlock")


@dataclass(frozen=True)
class LevelChoice:
    """What was chosen.

    Attributes:
        level: the chosen level; empty if there is none.
        refused: why each level before it was passed over.
    """

    level: str
    refused: Mapping[str, str]

    @property
    def safe(self) -> bool:
        """Whether scripts are kept from the rest of the machine."""
        return self.level not in ("", "limits")

    def explain(self) -> str:
        """The levels that were passed over, in words; empty if none was."""
        return "; ".join(f"{level}: {reason}" for level, reason in self.refused.items())


async def choose_level(
    level: str = "auto", *, allow_unsafe: bool = False, network: bool = False, **options: Any
) -> LevelChoice:
    """Try the levels, strongest first.

    Args:
        level: `auto`, or the only level to be tried.
        allow_unsafe: `limits` may be chosen if nothing else passes.
        network: scripts are to have the network.
        options: of `JailedSandbox`.
    """
    refused: dict[str, str] = {}
    if sys.platform != "linux":
        return LevelChoice("", dict.fromkeys(SAFE_LEVELS, f"it needs Linux, and this is {sys.platform}"))
    for name in SAFE_LEVELS if level == "auto" else (level,):
        if name == "limits":
            continue
        sandbox = JailedSandbox(name, network=network, preload=(), **options)
        try:
            reason = await self_test(sandbox, network=network)
        finally:
            await sandbox.close()
        if not reason:
            return LevelChoice(name, refused)
        refused[name] = reason
    if allow_unsafe and level in ("auto", "limits"):
        return LevelChoice("limits", refused)
    if level == "limits":
        refused["limits"] = "it is not a sandbox; say allow_unsafe=True (CONCERTINO_CODE_ALLOW_UNSAFE=1) to use it"
    return LevelChoice("", refused)


def choose_level_now(level: str = "auto", **options: Any) -> LevelChoice:
    """`choose_level` from anywhere, inside an event loop too; takes about 0.2 s."""
    with ThreadPoolExecutor(1, "concertino-code self-test") as thread:  # the caller's may have a running loop
        return thread.submit(lambda: asyncio.run(choose_level(level, **options))).result()


async def open_sandbox(
    level: str = "auto",
    *,
    limits: ScriptLimits = DEFAULT,
    network: bool = False,
    allow_unsafe: bool = False,
    python: str | os.PathLike[str] | None = None,
    bwrap: str | os.PathLike[str] | None = None,
) -> Sandbox:
    """A sandbox on this machine, tested.

    Args:
        level: `auto` for the strongest that works, or one of `namespaces`, `bubblewrap`, `landlock`, `limits`.
        limits: of an execution that names none.
        network: whether scripts may use this machine's network, loopback included.
        allow_unsafe: whether `limits`, which is not a sandbox, may be taken where nothing else works.
        python: the interpreter of the scripts, by default this one.
        bwrap: path of the `bwrap` program.

    Raises:
        SandboxUnavailable: nothing passed; names each level with the reason.
    """
    choice = await choose_level(level, allow_unsafe=allow_unsafe, network=network, python=python, bwrap=bwrap)
    if not choice.level:
        raise SandboxUnavailable(f"no sandbox here can be trusted ({choice.explain()})")
    return JailedSandbox(choice.level, limits=limits, network=network, python=python, bwrap=bwrap)
