"""Sandboxes: each runs one Python script at a time in a world of its own, which ends with the script.

from concertino_code.sandbox import open_sandbox

async with await open_sandbox() as sandbox:
    execution = await sandbox.run("print(6 * 7)")
"""

from .base import Sandbox, SandboxFault, SandboxUnavailable, Script
from .docker import DockerSandbox
from .execution import Artefact, Ending, Execution, Stream
from .jailed import JailedSandbox
from .levels import LevelChoice, choose_level, choose_level_now, open_sandbox
from .limits import ScriptLimits

__all__ = [
    "Artefact",
    "DockerSandbox",
    "Ending",
    "Execution",
    "JailedSandbox",
    "LevelChoice",
    "Sandbox",
    "SandboxFault",
    "SandboxUnavailable",
    "Script",
    "ScriptLimits",
    "Stream",
    "choose_level",
    "choose_level_now",
    "open_sandbox",
]
