"""Toolkits: a database with typed functions over it, replayed calls, and the criteria by which a trajectory is judged.

drafts, digests     states that share what they have in common, and their digests
toolkit             a database and functions, declared with `reads` and `writes`
foreign             toolkits that others wrote
world               a toolkit as the world of a run
replay, criteria    calls carried out anew; execution correctness, process fidelity, operation completeness
airline, board, tau the domains and tasks of tau-bench and tau2-bench
"""

from .airline import Airline
from .board import TaskBoard
from .criteria import (
    Criterion,
    Fact,
    Verification,
    execution_correctness,
    mentions,
    operation_completeness,
    process_fidelity,
    verify,
)
from .digests import canonical, digest
from .drafts import Draft, Entry, changed_entries, plain
from .foreign import ForeignToolkit, from_object
from .replay import GoldenCall, Operated, Replayed, Step, replay, replay_async
from .tau import AIRLINE_DIGEST, LeftOut, airline_tasks, left_out, task_sets, tau2_tasks
from .toolkit import Database, Function, Outcome, Snapshot, ToolError, Toolkit, reads, writes
from .world import ToolkitWorld, WorldState, worlds

__all__ = [
    "AIRLINE_DIGEST",
    "Airline",
    "Criterion",
    "Database",
    "Draft",
    "Entry",
    "Fact",
    "ForeignToolkit",
    "Function",
    "GoldenCall",
    "LeftOut",
    "Operated",
    "Outcome",
    "Replayed",
    "Snapshot",
    "Step",
    "TaskBoard",
    "ToolError",
    "Toolkit",
    "ToolkitWorld",
    "Verification",
    "WorldState",
    "airline_tasks",
    "canonical",
    "changed_entries",
    "digest",
    "execution_correctness",
    "from_object",
    "left_out",
    "mentions",
    "operation_completeness",
    "plain",
    "process_fidelity",
    "reads",
    "replay",
    "replay_async",
    "task_sets",
    "tau2_tasks",
    "verify",
    "worlds",
    "writes",
]
