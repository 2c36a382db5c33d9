"""Episodes of runs that were read back from their traces.

The invariant: the episode of a recorded run has the numbers that it had when the run ended. Turns of role workflows are
judged again, from the state that the strategy goes through in a replay; a model's comparison of answers is not.
"""

from __future__ import annotations

from collections.abc import Sequence

from concertino import Run
from concertino.core.events import Asked, Replied
from concertino_bench.rescoring.rewarding import GradedRun

from concertino_train.data.replaying import readings_of
from concertino_train.episodes import Episode
from concertino_train.role_turns import RoleTurns, Scripts


class _Latest:
    """The episodes of the group that was asked for last: several rewards read the same one after the other."""

    runs: Sequence[GradedRun] | None = None
    episodes: Sequence[Episode] = ()


_LATEST = _Latest()


def episodes_of(runs: Sequence[GradedRun]) -> Sequence[Episode]:
    """The episodes of recorded runs, in their order."""
    if _LATEST.runs is not runs:
        scripts = Scripts()
        try:
            _LATEST.episodes = [_episode(each, scripts) for each in runs]
        finally:
            scripts.close()
        _LATEST.runs = runs
    return _LATEST.episodes


def _episode(graded: GradedRun, scripts: Scripts) -> Episode:
    run = graded.run
    watch = RoleTurns(graded.task, scripts) if graded.task is not None else None
    found = readings_of(run.trace, watch.look if watch is not None and watch.domain else None)
    others = _others(run)
    replies = [event for event in run.events if isinstance(event, Replied) and event.role not in others]
    return Episode.of_run(
        run,
        graded.grade,
        group=graded.group,
        sample=graded.sample,
        turns=watch.turns if watch is not None else (),
        domain=watch.domain if watch is not None else "",
        others=others,
        readings=[found.get(event.call_id.partition("~")[0]) for event in replies],
        kinds=graded.kinds,
    )


def _others(run: Run) -> frozenset[str]:
    """Roles that another model than the policy plays: those that the pool of the run binds."""
    asked = [(event.role, event.model) for event in run.events if isinstance(event, Asked)]
    # A role that no model was bound to is played by the policy, so the first of several names is that of the leader.
    leader = next((model for role, model in asked if role == "orchestrator"), asked[0][1] if asked else "")
    return frozenset(role for role, model in asked if model != leader)
