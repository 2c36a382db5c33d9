"""Toolkits: a database with typed functions over it, replayed calls, and the criteria by which a trajectory is judged.

drafts, digests     states that share what they have in common, and their digests
toolkit             a database and functions, declared with `reads` and `writes`
foreign             toolkits that others wrote
world               a toolkit as the world of a run
replay, criteria    calls carried out again; execution correctness, process fidelity, operation completeness
airline, board, tau the domains and tasks of tau-bench and tau2-bench
"""

from __future__ import annotations

from .criteria import verify
from .digests import digest
from .foreign import from_object
from .replaying import replay
from .tau import task_sets
from .toolkit import CallOutcome, ToolError, Toolkit, reads, writes
from .world import ToolkitWorld, worlds

__all__ = [
    "CallOutcome",
    "ToolError",
    "Toolkit",
    "ToolkitWorld",
    "digest",
    "from_object",
    "reads",
    "replay",
    "task_sets",
    "verify",
    "worlds",
    "writes",
]
