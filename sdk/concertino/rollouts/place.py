"""Where runs happen, in one word: `local` for this process, `local:4` for four worker processes.

Invariant: a word that is not known is refused before anything has run, with those that are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from concertino.core.errors import UsageError

from .dispatch import Rollouts
from .in_process_runs import InProcess
from .ordered_work import Work
from .worker_pool import Processes

_LOCAL = re.compile(r"local(?::([1-9][0-9]{0,3}))?")


def check_place(word: str) -> int:
    """The worker processes that a word names; 0 for this process itself.

    Raises:
        UsageError: it names no place.
    """
    found = _LOCAL.fullmatch(word or "local")
    if found is None:
        raise UsageError(
            f"on={word!r}: expected where runs happen: local (in this process), or local:4 (four worker processes)"
        )
    return int(found[1] or 0)


def open_rollouts(word: str, work: Work, *, slots: int = 16, env_from: Sequence[str] = ()) -> Rollouts:
    """The place that a word names. Close it, or use it as `async with`.

    Args:
        work: what orders are carried out with; closed with the place.
        slots: runs at once.
        env_from: environment variables that worker processes are given beside harmless ones, such as OPENAI_API_KEY.

    Raises:
        UsageError: the word names no place, or the work holds what cannot be sent to another process.
    """
    count = check_place(word)
    if count:
        return Processes(work, count, slots=slots, env_from=env_from)
    return InProcess(work, slots=slots)
