"""What a doctor says about the sandbox of this machine: the level in use, and why each stronger one is not."""

from __future__ import annotations

from typing import Literal, NamedTuple

from .backends import local_choice
from .settings import Settings, read_settings

_SUBJECT = "tool code/python"


class Finding(NamedTuple):
    """One line: a level, what it is about, what was seen, and what to do."""

    level: Literal["ok", "warning", "error"]
    subject: str
    text: str
    step: str = ""


def findings(settings: Settings | None = None) -> list[Finding]:
    """Test the levels of this machine; takes about 0.3 s the first time in a process."""
    settings = settings or read_settings()
    if settings.level in ("docker", "sandboxfusion", "e2b"):
        return [Finding("ok", _SUBJECT, f"scripts run by {settings.level}, which was not asked")]
    choice = local_choice(
        settings.level, settings.allow_unsafe, settings.network, settings.python, settings.bwrap
    )  # fmt: skip
    found = [Finding("warning", _SUBJECT, f"{level} cannot be used: {why}") for level, why in choice.refused.items()]
    if not choice.level:
        step = "name docker, sandboxfusion or e2b in CONCERTINO_CODE_LEVEL"
        return [Finding("error", _SUBJECT, f"no sandbox can be trusted here ({choice.explain()})", step)]
    if not choice.safe:
        step = "unset CONCERTINO_CODE_ALLOW_UNSAFE, and name a remote level in CONCERTINO_CODE_LEVEL"
        return [*found, Finding("warning", _SUBJECT, "scripts run without a sandbox", step)]
    return [*found, Finding("ok", _SUBJECT, f"scripts run at the level {choice.level}, which passed its self-test")]
