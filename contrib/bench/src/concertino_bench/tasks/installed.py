"""The task sets and graders of all installed distributions.

The invariant: a name is one thing; where two distributions use one, the first keeps it and the other is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from concertino.core.logs import logger_of

from .grade import Grader
from .task import TaskSet

if TYPE_CHECKING:
    from concertino.plugins import PluginManager

logger = logger_of("bench")


def installed_task_sets(manager: PluginManager | None = None) -> dict[str, TaskSet]:
    """By name, what `concertino_tasks` hooks give."""
    return _by_name("concertino_tasks", TaskSet, manager)


def installed_graders(manager: PluginManager | None = None) -> list[Grader]:
    """What `concertino_graders` hooks give."""
    return list(_by_name("concertino_graders", Grader, manager).values())


def _by_name(hook: str, kind: type[Any], manager: PluginManager | None) -> dict[str, Any]:
    from concertino.plugins import default_manager

    found: dict[str, Any] = {}
    for each in (manager or default_manager()).named(hook):
        if not isinstance(each, kind):
            logger.warning("%s gave a %s; expected a %s", hook, type(each).__name__, kind.__name__)
        elif each.name in found:
            # Not an error: one distribution must not take the bench away from all others.
            logger.warning("two distributions offer %s %r; the first is taken", kind.__name__, each.name)
        else:
            found[each.name] = each
    return found
