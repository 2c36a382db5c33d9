"""What the doctor reports about the sandbox: the level in use, and why each stronger one is not."""

from __future__ import annotations

from concertino import Finding

from .backend import local_choice
from .settings import WHERE, CodeSettings

_SUBJECT = "tool code/python"
_NOT_HELD = {
    "bubblewrap": "the number of files has no bound there",
    "landlock": "disk space and the number of files have no bound there, and a script can see which files exist",
}


def findings(settings: CodeSettings) -> list[Finding]:
    """Test the levels of this machine, which takes about 0.3 s the first time in a process. Docker is not asked."""
    if settings.level == "docker":
        return [Finding("ok", _SUBJECT, "scripts run in docker, which was not asked")]
    choice = local_choice(settings)
    if not choice.level:
        step = f"set level = docker in {WHERE}"
        return [Finding("error", _SUBJECT, f"no sandbox can be trusted here ({choice.explain()})", step)]
    found = [Finding("warning", _SUBJECT, f"{level} cannot be used: {why}") for level, why in choice.refused.items()]
    if not choice.safe:
        step = f"remove allow_unsafe, and set level = docker in {WHERE}"
        return [*found, Finding("warning", _SUBJECT, "scripts run without a sandbox", step)]
    text = f"scripts run at the level {choice.level}, which passed its self-test"
    return [*found, Finding("ok", _SUBJECT, "; ".join(filter(None, (text, weaker(choice.level)))))]


def weaker(level: str) -> str:
    """What a level does not hold though it is a sandbox, in words; empty for the strongest."""
    return _NOT_HELD.get(level, "")
