"""Many runs: orders go in, results come out, wherever the runs happen.

run_order       what is to be run, and what came of it     ordered_work    how one order is carried out
dispatch        back-pressure, shares, priorities, joins   in_process_runs runs on this event loop
worker_pool     runs in processes of this machine          run_worker      the program of such a process
pool_reference  a pool for another process                 place           which of these a word names
node_health     what is seen of a part of a place

Invariant: whoever orders runs sees no difference between the places but the time that they take.
"""

from __future__ import annotations

from .dispatch import Rollouts, RolloutsError
from .in_process_runs import InProcess
from .node_health import NodeHealth
from .ordered_work import OrderedRuns, Work, run_once, settle_trace
from .place import check_place, open_rollouts
from .pool_reference import PoolReference
from .run_order import RunOrder, RunResult
from .worker_pool import Processes

__all__ = [
    "InProcess",
    "NodeHealth",
    "OrderedRuns",
    "PoolReference",
    "Processes",
    "Rollouts",
    "RolloutsError",
    "RunOrder",
    "RunResult",
    "Work",
    "check_place",
    "open_rollouts",
    "run_once",
    "settle_trace",
]
