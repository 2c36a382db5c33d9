"""Toolkits: a database with typed functions over it, replayed calls, and the criteria by which a trajectory is judged.

drafts, digests     states that share what they have in common, and their digests
toolkit             a database and functions, declared with `reads` and `writes`
foreign             toolkits that others wrote
world, customer     a toolkit as the world of a run; a model that plays the user
replay, criteria    calls carried out again; execution correctness, process fidelity, operation completeness
tau, tau2           the tasks of tau-bench and tau2-bench; their domains: airline, board, retail, telecom, and the
                    handset and phone of telecom's customers
"""

from __future__ import annotations

from concertino_bench.tasks.task import TaskSet

from . import tau, tau2
from .criteria import verify
from .digests import digest
from .foreign import from_object
from .replaying import replay
from .tau2 import Domain
from .toolkit import CallOutcome, ToolError, Toolkit, reads, writes
from .world import ToolkitWorld, worlds

__all__ = [
    "CallOutcome",
    "Domain",
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


def task_sets() -> list[TaskSet]:
    """`tau/airline`, and the domains of tau2-bench."""
    return [*tau.task_sets(), *tau2.task_sets()]
