"""Which sandbox this machine gets: the strongest level that passes its self-test, and never silently a weaker kind.

    namespaces > bubblewrap > landlock            chosen by themselves, in this order
    limits                                        no sandbox; only with `allow_unsafe`
    docker, sandboxfusion, e2b                    only where they are named

Invariant: what is chosen has just passed; what was passed over is named with the reason.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .jailed import JailedSandbox, Level
from .limits import DEFAULT, Limits
from .sandbox import Sandbox, SandboxUnavailable
from .selftest import self_test

SAFE_LEVELS: tuple[Level, ...] = ("namespaces", "bubblewrap", "landlock")


@dataclass(frozen=True)
class Choice:
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


async def choose(level: str = "auto", *, allow_unsafe: bool = False, network: bool = False, **options: Any) -> Choice:
    """Try the levels, strongest first.

    Args:
        level: `auto`, or the only level to be tried.
        allow_unsafe: `limits` may be chosen if nothing else passes.
        network: scripts are to have the network.
        options: of `JailedSandbox`.
    """
    refused: dict[str, str] = {}
    if sys.platform != "linux":
        refused = dict.fromkeys(SAFE_LEVELS, f"it needs Linux, and this is {sys.platform}")
        return Choice("", refused)
    wanted: tuple[str, ...] = SAFE_LEVELS if level == "auto" else (level,)
    for name in wanted:
        if name == "limits":
            continue
        sandbox = JailedSandbox(name, network=network, preload=(), **options)  # type: ignore[arg-type]
        try:
            reason = await self_test(sandbox, network=network)
        finally:
            await sandbox.close()
        if not reason:
            return Choice(name, refused)
        refused[name] = reason
    if allow_unsafe and level in ("auto", "limits"):
        return Choice("limits", refused)
    if level == "limits":
        refused["limits"] = "it is no sandbox; say allow_unsafe=True (CONCERTINO_CODE_ALLOW_UNSAFE=1) to use it"
    return Choice("", refused)


def choose_now(**options: Any) -> Choice:
    """`choose` from anywhere, inside an event loop too; takes about 0.2 s."""
    found: list[Choice] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            found.append(asyncio.run(choose(**options)))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, name="concertino-code self-test")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]


async def open_sandbox(
    level: str = "auto",
    *,
    limits: Limits = DEFAULT,
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
        allow_unsafe: whether `limits`, which is no sandbox, may be taken where nothing else works.
        python: the interpreter of the scripts, by default this one.
        bwrap: path of the `bwrap` program.

    Raises:
        SandboxUnavailable: nothing passed; names each level with the reason.
    """
    choice = await choose(level, allow_unsafe=allow_unsafe, network=network, python=python, bwrap=bwrap)
    if not choice.level:
        raise SandboxUnavailable(f"no sandbox here can be trusted ({choice.explain()})")
    return JailedSandbox(choice.level, limits=limits, network=network, python=python, bwrap=bwrap)  # type: ignore[arg-type]
