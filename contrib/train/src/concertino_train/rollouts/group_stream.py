"""Groups of rollouts, played ahead of the steps that train on them.

    step 1:  begin the groups of steps 1 .. 1 + k,  wait for as many as a step needs
    step 2:  begin the groups of step 2 + k,        wait ...

Weights have a version, and a group is as old as the updates since it began. With a staleness of k, a step takes the
groups that are k updates old first, and fills up with those that are done, oldest first. So a slow call delays a step
only if its group may not get older. With 0, a step plays its own groups and waits for all of them.

The invariants: no group is taken that is more than k updates old; every group is taken once or dropped; names, seeds
and questions of a group follow from the step that it was meant for and its place there, not from when it is played; and
nothing is sampled between two steps by a policy whose weights are being trained.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from concertino import TraceStore

from .engine import Player, RolloutEngine, group_names, together
from .gathering import Gatherer, Seat

if TYPE_CHECKING:
    from concertino_bench import Grader

    from .assignment import Assignment
    from .judging import GroupJudge
    from .rollout import Rollout
    from .tree import TreeSampler

Stale = Literal["wait", "drop"]
"""How a group is handled that is not done and would become too old."""


@dataclass(frozen=True)
class StreamSettings:
    """How far ahead groups are played.

    Attributes:
        group_size: rollouts of each group; texts of each turn with a tree.
        groups: that a step takes.
        steps: of the whole training; no group is begun for a later one.
        seed: of everything that is drawn.
        staleness: updates that a group may be old, k.
        stale: what happens to a group that would become older: it is waited for, or dropped.
    """

    group_size: int
    groups: int
    steps: int
    seed: int = 0
    staleness: int = 0
    stale: Stale = "wait"


@dataclass(eq=False)
class _Group:
    """A group that was begun: for which step, at which place of it, on which question, and by which weights."""

    step: int
    place: int
    name: str
    question: int
    version: int
    work: asyncio.Task[list[Rollout]] | None = field(default=None, repr=False)
    players: list[Player] = field(default_factory=list, repr=False)

    @property
    def done(self) -> bool:
        return self.work is not None and self.work.done()

    def to_json(self) -> dict[str, Any]:
        names = ("step", "place", "name", "question", "version")
        return {name: getattr(self, name) for name in names}


class GroupStream:
    """Plays groups ahead.

    Args:
        engine: plays them.
        numbers: gives the numbers of the next questions.
        assignment: gives what is asked, by number.
        settings: how far ahead.
        journals: folder for the journals of runs, from which they are resumed after a crash; without, they are asked
            again. Trees have none.
        tree: grows a tree of each question, instead of whole rollouts.
        judge: compares the answers of a group.

    Attributes:
        dropped: groups that the last step left out.
    """

    def __init__(
        self,
        engine: RolloutEngine,
        numbers: Callable[[int], list[int]],
        assignment: Callable[[int], Assignment],
        settings: StreamSettings,
        *,
        journals: Path | None = None,
        tree: TreeSampler | None = None,
        judge: GroupJudge | None = None,
    ) -> None:
        self.engine, self.settings = engine, settings
        self.dropped = 0
        self._numbers, self._assignment, self._tree, self._judge = numbers, assignment, tree, judge
        self._journals = journals if tree is None else None
        self._taken: list[str] = []
        self._saved: list[str] = []
        self._open: list[_Group] = []
        self._begun = 0
        self._gatherer: Gatherer | None = None

    @property
    def open(self) -> int:
        """Groups that were begun and not taken."""
        return len(self._open)

    async def hold(self) -> None:
        """Sample nothing until the next `take`, as weights are about to change; calls go on."""
        if self._gatherer is not None:
            await self._gatherer.shut()

    async def take(self, step: int) -> list[list[Rollout]]:
        """The groups of a step, numbered from 1, in the order in which they were begun; other groups go on."""
        if self._gatherer is None:
            self._gatherer = Gatherer(self.engine.generate, self.engine.patience)
        self._gatherer.open()
        try:
            with self.engine.measured("total"):
                self._begin(step)
                taken = await self._ripe(step)
                found = [await _result(group) for group in taken]
                # In other processes a trace is called after its run.
                here = self.engine.place is None
                self._taken += [each.id if here else each.run.id for rollouts in found for each in rollouts]
                if not self.engine.apart:
                    await self.hold()
                return found
        except BaseException:
            await self._end(self._open)
            raise

    # -- begin ---------------------------------------------------------------------------------------------------------

    def _begin(self, step: int) -> None:
        """Begin the groups of this step and of those that may be played ahead; what a checkpoint had open goes on."""
        own, version = self.settings, self.engine.version
        self.engine.forget()
        # A training that is resumed begins behind the steps that are over.
        self._begun = max(self._begun, step - 1)
        while self._begun < min(step + own.staleness, max(own.steps, step)):
            self._begun += 1
            questions = self._numbers(own.groups)
            names = group_names([self._assignment(question) for question in questions])
            places = enumerate(zip(names, questions, strict=True))
            self._open += [_Group(self._begun, place, *each, version) for place, each in places]
        for meant in dict.fromkeys(group.step for group in self._open):
            fresh = [group for group in self._open if group.step == meant and group.work is None]
            if fresh:
                self._play(meant, fresh)

    def _play(self, step: int, fresh: Sequence[_Group]) -> None:
        """Play groups that are meant for one step."""
        own, gatherer = self.settings, self._gatherer
        assert gatherer is not None
        questions = [self._assignment(group.question) for group in fresh]
        juries = self.engine.juries(questions)
        size, places = own.group_size if self._tree is None else 1, [(group.place, group.name) for group in fresh]
        begun = self.engine.players(questions, size, step, places, self._journals)
        for group, question, players in zip(fresh, questions, begun, strict=True):
            jury = juries[question.task.id]
            seats, group.players = [gatherer.enter() for _ in players], players
            group.work = asyncio.create_task(self._played(group, jury, seats), name=f"group {step}-{group.place}")

    async def _played(self, group: _Group, jury: Grader, seats: Sequence[Seat]) -> list[Rollout]:
        own, players = self.settings, group.players
        if self._tree is not None:
            rollouts = await together([self._tree.grow(players[0], jury, seats[0], own.group_size, own.seed)])
        else:
            rollouts = await together(
                [self.engine.play(each, jury, seat, own.seed) for each, seat in zip(players, seats, strict=True)]
            )
        if self._judge is not None:
            await self._judge.judge(rollouts, self.settings.seed)
        if self.settings.staleness:
            # Groups of several steps share a batch, and a question may be in two of them.
            for rollout in rollouts:
                rollout.episode = replace(rollout.episode, group=f"{rollout.group}@{group.step}")
        return rollouts

    # -- end -----------------------------------------------------------------------------------------------------------

    async def _ripe(self, step: int) -> list[_Group]:
        """The groups that this step takes, once they are done."""
        own, self.dropped = self.settings, 0
        due = [group for group in self._open if self.engine.version - group.version >= own.staleness]
        if own.stale == "drop" and own.staleness:
            late = [group for group in due if not group.done]
            self.dropped = len(late)
            await self._end(late)
            due = [group for group in due if group not in late]
        while True:
            done = [group for group in self._open if group.done]
            wanted = [*due, *(group for group in done if group not in due)][: max(own.groups, len(due))]
            enough = len(wanted) >= min(own.groups, len(self._open))
            if failed := [group for group in done if _failed(group)]:
                wanted, enough = failed, True
            if enough and all(group.done for group in wanted):
                break
            await asyncio.wait(
                [group.work for group in self._open if group.work is not None and not group.done],
                return_when=asyncio.FIRST_COMPLETED,
            )
        self._open = [group for group in self._open if group not in wanted]
        return sorted(wanted, key=lambda group: (group.step, group.place))

    async def _end(self, groups: Sequence[_Group]) -> None:
        """Stop groups that nobody will take."""
        ended, going = list(groups), [group.work for group in groups if group.work is not None]
        self._open = [group for group in self._open if group not in ended]
        for work in going:
            work.cancel()
        await asyncio.gather(*going, return_exceptions=True)
        # A task that is cancelled before its first step closes nothing.
        for player in (player for group in ended for player in group.players):
            await player.run.close()

    # -- state ---------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Which groups are begun and not taken, as plain JSON data; a resumed training plays them on.

        Journals that no checkpoint from the last one on needs are removed.
        """
        for name in self._saved if self._journals is not None else ():
            TraceStore(self._journals).delete(name)
        self._saved, self._taken = self._taken, []
        return {"begun": self._begun, "open": [group.to_json() for group in self._open]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where `state_dict` was made."""
        self._begun, self._open = state["begun"], [_Group(**each) for each in state["open"]]


def _failed(group: _Group) -> bool:
    return group.work is not None and not group.work.cancelled() and group.work.exception() is not None


async def _result(group: _Group) -> list[Rollout]:
    assert group.work is not None
    return await group.work
