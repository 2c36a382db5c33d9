"""From settings to a sandbox: chosen when the tool is declared, started by the first script, ended at exit."""

from __future__ import annotations

import atexit
import functools

from .sandbox import JailedSandbox, Sandbox, SandboxUnavailable
from .sandbox.docker import DockerSandbox
from .sandbox.levels import LevelChoice, choose_level_now
from .settings import WHERE, CodeSettings


class Backend:
    """Where a tool's scripts run, or why there is nowhere."""

    def __init__(self, sandbox: Sandbox | None, refusal: str = "") -> None:
        self._sandbox = sandbox
        self._refusal = refusal
        self.level = sandbox.level if sandbox is not None else ""

    @property
    def local(self) -> bool:
        """Whether scripts run on this machine, with its libraries."""
        return isinstance(self._sandbox, JailedSandbox)

    @property
    def description(self) -> str:
        """What the tool's description says about it."""
        if self._sandbox is None:
            return f"NOT AVAILABLE on this machine, every call fails: {self._refusal}"
        return f"{self._sandbox.description} Sandbox level: {self.level}."

    def sandbox(self) -> Sandbox:
        """The sandbox.

        Raises:
            SandboxUnavailable: there is none; says why.
        """
        if self._sandbox is None:
            raise SandboxUnavailable(self._refusal)
        return self._sandbox


@functools.cache
def local_choice(settings: CodeSettings) -> LevelChoice:
    """The level of this machine for these settings, tested once per process."""
    return choose_level_now(
        settings.level,
        allow_unsafe=settings.allow_unsafe,
        network=settings.network,
        python=settings.python or None,
        bwrap=settings.bwrap or None,
    )


def make_backend(settings: CodeSettings) -> Backend:
    """The sandbox that the settings name."""
    if settings.level == "docker":
        options = {"image": settings.image} if settings.image else {}
        return Backend(DockerSandbox(**options, limits=settings.limits, network=settings.network))
    choice = local_choice(settings)
    if not choice.level:
        return Backend(
            None,
            f"no sandbox can be trusted here ({choice.explain()}); set level to docker, or allow_unsafe to go without, "
            f"in {WHERE}",
        )
    sandbox = JailedSandbox(
        choice.level,
        limits=settings.limits,
        network=settings.network,
        python=settings.python or None,
        bwrap=settings.bwrap or None,
    )
    atexit.register(sandbox.close_now)
    return Backend(sandbox)


@functools.cache
def shared_backend(settings: CodeSettings) -> Backend:
    """One backend for the tools of the plugin: equal settings share a sandbox."""
    return make_backend(settings)
