"""Tree sampling (AT-GRPO, Algorithm 1): at every turn of every role, K texts are tried after one prompt.

    snapshot -> K texts -> each acts on a copy of the run -> the other roles finish the turn on a copy of that
             -> scored -> one is chosen, the others are dropped

So every turn has a group of K rows with one identical prompt, whatever happened before, which whole rollouts of several
roles never have. A run keeps the state of its environment among its own data, so a copy of it is a branch.

The invariant: K candidates of a point differ in nothing but what was sampled there.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from concertino import UsageError
from concertino_bench import Grader

from concertino_train.episodes import Episode, EpisodeRound, Totals
from concertino_train.groups.keys import GroupKey
from concertino_train.rewards.reward import Reward

from .assignment import Assignment
from .engine import Player, RolloutEngine, together
from .gathering import Asks, Gatherer
from .rollout import Rollout, TurnCandidate
from .sequences import TokenSequence

Branch = Literal["greedy", "sampled"]
Credit = Literal["turn", "text"]


class TreeSampler:
    """Rolls role workflows out as trees.

    Args:
        engine: which rolls out.
        reward: of one role's turn: terms of `at-grpo/...`, which read `Episode.turns`.
        branch: the candidate that a run continues with: `greedy`, the one with the greatest reward, the first of
            equals (the paper's); or `sampled`, one drawn evenly, so that later prompts are as the policy would meet
            them.
        credit: what a candidate is scored by: `turn`, after the roles that speak behind it have finished the turn, so
            that the role that speaks first is credited with the result; or `text`, as it stands, which saves the texts
            of the others, and gives all candidates of a role that does not act itself the same team reward.
    """

    def __init__(
        self, engine: RolloutEngine, reward: Reward, *, branch: Branch = "greedy", credit: Credit = "turn"
    ) -> None:
        if branch not in ("greedy", "sampled"):
            raise UsageError(f"TreeSampler(branch={branch!r}): expected 'greedy' or 'sampled'")
        if credit not in ("turn", "text"):
            raise UsageError(f"TreeSampler(credit={credit!r}): expected 'turn' or 'text'")
        self.engine = engine
        self.reward = reward
        self.branch: Branch = branch
        self.credit: Credit = credit

    async def run(
        self, assignments: Sequence[Assignment], *, group_size: int, seed: int = 0, step: int = 0
    ) -> list[Rollout]:
        """Roll out.

        Args:
            assignments: role workflows over tasks with an environment.
            group_size: K, 2 or more.
            seed, step: as of `RolloutEngine.run`.

        Returns:
            One rollout for each assignment: the path that was chosen, with all candidates.

        Raises:
            UsageError: K is below 2, or a task has no environment that judges turns.
        """
        if group_size < 2:
            raise UsageError(f"group_size={group_size}: a tree needs 2 candidates or more at every turn")
        engine = self.engine
        with engine.measured("total"):
            engine.forget()
            juries = engine.juries(assignments)
            # One rollout for each assignment: the K texts are branches of it, not runs of their own from the beginning.
            players = [player for (player,) in engine.players(assignments, 1, step)]
            gatherer = Gatherer(engine.generate, engine.patience)
            seats = [gatherer.enter() for _ in players]
            return await together(
                [
                    self.grow(each, juries[each.assignment.task.id], seat, group_size, seed)
                    for each, seat in zip(players, seats, strict=True)
                ]
            )

    async def grow(self, player: Player, jury: Grader, seat: Asks, group_size: int, seed: int) -> Rollout:
        """Grow one tree, whatever the others do; its runs are closed in any case.

        Raises:
            UsageError: the task has no environment that judges turns.
        """
        engine, tried = self.engine, list[TurnCandidate]()
        if engine.place is not None:
            with engine.measured("environment"):
                return await engine.place.play(player, seat, seed, tree=group_size)
        try:
            self._refuse_unjudged(player)
            await engine.advance(player)
            while not player.run.done:
                sequence = engine.read(player)
                if sequence is not None:
                    player = await self._branch(player, sequence, seat, tried, group_size, seed)
            rollout = await engine.finish(player, jury)
        finally:
            seat.leave()
            await player.run.close()
        rollout.candidates = tried
        return rollout

    def run_sync(self, assignments: Sequence[Assignment], **options: Any) -> list[Rollout]:
        """`run` for programs without an event loop."""
        return self.engine.wait(self.run(assignments, **options))

    @staticmethod
    def _refuse_unjudged(player: Player) -> None:
        if not player.watch.domain or player.run.machine.turn_state() is None:
            raise UsageError(
                f"task {player.assignment.task.id}: tree sampling scores single turns, so it needs a role workflow "
                "over a task of concertino_bench.environments; roll whole trajectories out instead"
            )

    async def _branch(
        self, player: Player, sequence: TokenSequence, seat: Asks, tried: list[TurnCandidate], k: int, seed: int
    ) -> Player:
        """K candidates of a run that asks, and the one that it continues with."""
        engine, ask, where = self.engine, player.asks(), player.conversations.place(sequence)
        assert ask is not None
        # AT-GRPO Algorithm 1, line 10: K samples behind one prompt, which differ in their seed alone.
        answers = await seat.ask([engine.prompt(player, sequence, seed, branch) for branch in range(k)])
        twins = [player.fork(f".{player.turn + 1}.{branch}") for branch in range(k)]
        for twin, answer in zip(twins, answers, strict=True):
            engine.tell(twin, twin.conversations.sequences[where], answer)
        with engine.measured("environment"):
            await together([twin.advance() for twin in twins])
        ends = await self._finished_turns(twins, seat, ask.turn, seed) if self.credit == "turn" else twins
        candidates = await self._scored(player, twins, ends, where, ask.part or ask.role, ask.turn)
        chosen = self._choice(candidates, player, seed)
        tried += [replace(each, chosen=number == chosen) for number, each in enumerate(candidates)]
        # An open run holds a world and its calls, and K - 1 of them are left over at every turn.
        for over in (*(end for end in ends if end not in twins), *twins[:chosen], *twins[chosen + 1 :], player):
            await over.run.close()
        await engine.look(twins[chosen])
        return twins[chosen]

    async def _finished_turns(self, twins: Sequence[Player], seat: Asks, turn: int, seed: int) -> list[Player]:
        """Each branch where its turn is over, else a copy of it in which the other roles have spoken too."""
        engine = self.engine
        ends = [twin.fork(".end") if _is_in(twin, turn) else twin for twin in twins]
        while open_ := [end for end in ends if _is_in(end, turn)]:
            asked = [(end, engine.read(end)) for end in open_]
            rows = [(end, sequence) for end, sequence in asked if sequence is not None]
            if not rows:
                continue
            answers = await seat.ask([engine.prompt(end, sequence, seed) for end, sequence in rows])
            for (end, sequence), answer in zip(rows, answers, strict=True):
                engine.tell(end, sequence, answer)
            with engine.measured("environment"):
                await together([end.advance() for end, _ in rows])
        return ends

    async def _scored(
        self, player: Player, twins: Sequence[Player], ends: Sequence[Player], where: int, role: str, turn: int
    ) -> list[TurnCandidate]:
        # AT-GRPO Algorithm 1, line 11: the group is the instance, the agent and the turn.
        key = GroupKey(player.group, role, player.turn + 1)
        sequences = [twin.conversations.sequences[where] for twin in twins]
        judge = self.engine.judged
        judged = [await judge(end.watch.candidate, end.run.machine, turn, role) for end in ends]
        episodes = [
            Episode(
                twin.name,
                str(key),
                number,
                judged[number].team,
                # A turn has no verdict of its own; the full team reward stands for it.
                "right" if judged[number].team >= 1 else "wrong",
                rounds=(_round(role, sequences[number]),),
                domain=twin.watch.domain,
                turns=(judged[number],),
                totals=Totals(policy_tokens=_tokens(sequences[number])),
            )
            for number, twin in enumerate(twins)
        ]
        rewards = self.reward.score(episodes)
        return [TurnCandidate(key, *each) for each in zip(sequences, episodes, rewards, strict=True)]

    def _choice(self, candidates: Sequence[TurnCandidate], player: Player, seed: int) -> int:
        if self.branch == "sampled":
            return random.Random(f"{seed}:{player.name}:{player.turn}").randrange(len(candidates))
        # AT-GRPO Algorithm 1, line 13: argmax, the first of equals.
        totals = [each.reward.total for each in candidates]
        return totals.index(max(totals))


def _is_in(player: Player, turn: int) -> bool:
    """Whether a role is asked in this turn."""
    ask = player.asks()
    return ask is not None and ask.turn == turn


def _round(role: str, sequence: TokenSequence) -> EpisodeRound:
    return EpisodeRound("said", role, (), (), _tokens(sequence), sequence.turns[-1].finish == "length")


def _tokens(sequence: TokenSequence) -> int:
    return sequence.turns[-1].end - sequence.turns[-1].start
