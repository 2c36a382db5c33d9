"""Sandboxes: each runs one Python script at a time in a world of its own, which ends with the script.

from concertino_code.sandbox import open_sandbox

async with await open_sandbox() as sandbox:
    execution = await sandbox.run("print(6 * 7)")
"""

from .base import Sandbox, SandboxFault, SandboxUnavailable
from .jailed import JailedSandbox
from .levels import choose_level, open_sandbox
from .limits import ScriptLimits
from .outcome import Ending

__all__ = [
    "Ending",
    "JailedSandbox",
    "Sandbox",
    "SandboxFault",
    "SandboxUnavailable",
    "ScriptLimits",
    "choose_level",
    "open_sandbox",
]
