"""From settings to a sandbox: chosen when the tool is declared, started when the first script comes, ended at exit."""

from __future__ import annotations

import atexit
import functools
import os

from .choosing import Choice, choose_now
from .jailed import JailedSandbox
from .sandbox import Sandbox, SandboxUnavailable
from .settings import WHERE, Settings


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
def local_choice(level: str, allow_unsafe: bool, network: bool, python: str, bwrap: str) -> Choice:
    """The level of this machine for these settings, tested once per process."""
    return choose_now(
        level=level, allow_unsafe=allow_unsafe, network=network, python=python or None, bwrap=bwrap or None
    )


def make_backend(settings: Settings) -> Backend:
    """The sandbox that the settings name."""
    try:
        made = remote_sandbox(settings) or _local(settings)
    except SandboxUnavailable as error:
        return Backend(None, str(error))
    return Backend(made)


def _local(settings: Settings) -> Sandbox:
    choice = local_choice(
        settings.level, settings.allow_unsafe, settings.network, settings.python, settings.bwrap
    )  # fmt: skip
    if not choice.level:
        raise SandboxUnavailable(
            f"no sandbox can be trusted here ({choice.explain()}); set level to a remote one, or allow_unsafe to go "
            f"without, in {WHERE}"
        )
    sandbox = JailedSandbox(
        choice.level,  # type: ignore[arg-type]
        limits=settings.limits,
        network=settings.network,
        python=settings.python or None,
        bwrap=settings.bwrap or None,
    )
    atexit.register(sandbox.close_now)
    return sandbox


def remote_sandbox(settings: Settings) -> Sandbox | None:
    """The sandbox elsewhere that the settings name, if they name one.

    Raises:
        SandboxUnavailable: what it needs is not set.
    """
    limits, network = settings.limits, settings.network
    if settings.level == "docker":
        from .remote.docker import IMAGE, DockerSandbox

        return DockerSandbox(settings.image or IMAGE, limits=limits, network=network)
    if settings.level == "sandboxfusion":
        from .remote.sandboxfusion import SandboxFusion

        return SandboxFusion(settings.url, limits=limits)
    if settings.level == "e2b":
        from .remote.e2b import DOMAIN, E2BSandbox

        key = os.environ.get("E2B_API_KEY", "")
        return E2BSandbox(key, limits=limits, network=network, domain=settings.url or DOMAIN)
    return None
