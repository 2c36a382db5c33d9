"""What is checked before a run begins.

Invariant: a run that is refused here has paid nothing, called nothing and left no file.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

from concertino.core.attachment import Attachment
from concertino.core.budget import Budget
from concertino.core.errors import BudgetError, UsageError
from concertino.core.model import Message
from concertino.executor.error_messages import shorten
from concertino.executor.model_call import refused_attachments
from concertino.members.specs import ToolSpec
from concertino.pool.live import LivePool
from concertino.pool.pool import Pool

if TYPE_CHECKING:
    from concertino.members.guards import Guard

logger = logging.getLogger("concertino")
_WARNED_OF: WeakSet[Guard] = WeakSet()


def current_pool(pool: Pool | LivePool, budget: object) -> Pool:
    """The pool of a run that begins now; both arguments are easily mistaken for something simpler.

    Raises:
        UsageError: one is of another type.
    """
    if isinstance(pool, LivePool):
        pool = pool.current
    if not isinstance(pool, Pool):
        given = shorten(repr(pool), 80)
        raise UsageError(f"pool={given} is a {type(pool).__name__}; expected a Pool: Pool.of(tool, ...) makes one")
    if not isinstance(budget, Budget):
        raise UsageError(
            f"budget={budget!r} is a {type(budget).__name__}; expected a Budget: Budget(usd=0.5, seconds=60)"
        )
    return pool


def _least(spec: ToolSpec, unit: str) -> float:
    return spec.cost.units if unit == "units" else spec.cost.usd


def check_budget(pool: Pool, budget: Budget) -> None:
    """Refuse a budget that nothing fits, and one in $ that cannot be enforced.

    Raises:
        BudgetError: names the price that is missing, or what the cheapest call needs.
    """
    if budget.usd is not None:
        reachable = [spec for name in pool.roles.values() for spec in pool.behind(name)]
        unpriced = sorted({spec.name for spec in reachable if spec.prices is None})
        if unpriced:
            raise BudgetError(
                f"a budget in usd needs prices, and the price of {', '.join(unpriced)} is unknown; give them with "
                "pool.price({name: Prices(input=..., output=...)}) or leave usd out"
            )
    if not pool.actions:
        return
    for unit in ("units", "usd"):
        limit = getattr(budget, unit)
        if limit is None:
            continue
        cheapest = min(_least(spec, unit) for _, spec in pool.actions)
        if cheapest > limit:
            raise BudgetError(
                f"budget {unit}={limit:g} fits no call: the cheapest member of the pool needs {cheapest:g}"
            )
    if budget.calls == 0:
        raise BudgetError("budget calls=0 fits no call; leave it out for no limit")


def check_guards(guards: Sequence[Guard], pool: Pool) -> None:
    """Warn, once a guard, of one that looks at calls of no member: a misspelt name would let everything pass.

    This is not an error, because a guard may belong to a program with several pools.
    """
    for guard in guards:
        if not guard.only or guard in _WARNED_OF:
            continue
        members = [spec for _, spec in pool.actions]
        own = [tool for spec in members for tool in getattr(spec, "toolbox", ())]
        if not any(guard.looks_at(member) for member in (*members, *own)):
            from concertino.schema import suggestion

            _WARNED_OF.add(guard)
            there = suggestion(guard.only[0], [spec.name for spec in members])
            logger.warning("guard %r: only=%r fits no member of the pool; %s", guard.name, guard.only, there)


def check_attachments(pool: Pool, attachments: Sequence[Attachment]) -> None:
    """Refuse what the leading model does not take.

    Raises:
        UsageError: says which kind of content, and what to do instead.
    """
    if not attachments:
        return
    message = [Message("user", "", attachments=tuple(attachments))]
    refused = [refused_attachments(spec, message) for spec in pool.behind("orchestrator")]
    if all(refused):
        raise UsageError(f"{refused[0]}; lead with another model, or give the content as text")


def trace_path(trace: object, run_id: str) -> Path:
    """The file of a run's trace; a folder gets one named by the run.

    Raises:
        UsageError: `trace` is not a path, or the id would lead out of the folder.
    """
    path = path_of("trace", trace)
    if not path.is_dir() and path.suffix:
        return path
    # An id may come from outside, over a network maybe.
    if not isinstance(run_id, str) or Path(run_id).name != run_id:
        raise UsageError(f"run_id={run_id!r}: expected a text that can name a file of {path}, without '/'")
    from concertino.traces import TraceStore

    return TraceStore(path).path_for(run_id)


def check_listener(on_event: object) -> None:
    """Refuse what cannot be told of events; a listener that fails is only logged, once an event.

    Raises:
        UsageError: it is not a function.
    """
    if on_event is not None and not callable(on_event):
        raise UsageError(f"on_event={on_event!r}: expected a function of an event")


def path_of(name: str, given: object) -> Path:
    """What names a file or a folder.

    Raises:
        UsageError: it is something else.
    """
    if not isinstance(given, (str, Path)):
        raise UsageError(f"{name}={given!r} is a {type(given).__name__}; expected a path, as a text or a Path")
    return Path(given)
