"""What a doctor says about the sandbox of this machine: the level in use, and why each stronger one is not."""

from __future__ import annotations

from concertino import Finding

from .backends import local_choice, remote_sandbox
from .sandbox import SandboxUnavailable
from .settings import WHERE, Settings

_SUBJECT = "tool code/python"


def findings(settings: Settings) -> list[Finding]:
    """Test the levels of this machine; takes about 0.3 s the first time in a process. Remote ones are not asked."""
    try:
        if remote_sandbox(settings) is not None:
            return [Finding("ok", _SUBJECT, f"scripts run by {settings.level}, which was not asked")]
    except SandboxUnavailable as error:
        return [Finding("error", _SUBJECT, f"{settings.level} cannot be used: {error}", "set what is missing")]
    choice = local_choice(
        settings.level, settings.allow_unsafe, settings.network, settings.python, settings.bwrap
    )  # fmt: skip
    found = [Finding("warning", _SUBJECT, f"{level} cannot be used: {why}") for level, why in choice.refused.items()]
    if not choice.level:
        step = f"set level = docker, sandboxfusion or e2b in {WHERE}"
        return [Finding("error", _SUBJECT, f"no sandbox can be trusted here ({choice.explain()})", step)]
    if not choice.safe:
        step = f"take allow_unsafe back, and set level to a remote one in {WHERE}"
        return [*found, Finding("warning", _SUBJECT, "scripts run without a sandbox", step)]
    return [*found, Finding("ok", _SUBJECT, f"scripts run at the level {choice.level}, which passed its self-test")]
