"""From the questions of a step to its batch: rolled out, scored, sampled again where needed, grouped.

    questions -> rollouts -> rewards -> (dynamic sampling: more questions) -> batch + figures + traces

This is what a trainer calls at the beginning of every step. The invariants: a question is asked once, whatever is
sampled on or kept for later; and with the same seed, weights and state a step is the same again, so a
resumed training makes the batches that it would have made.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from concertino import Pool, UsageError

from concertino_train.episodes import Episode
from concertino_train.factories.questions import Questions, in_batches
from concertino_train.groups.sampler import DynamicSampler, Sampled
from concertino_train.rewards.reward import Reward, Scored
from concertino_train.rollouts.assignment import Assignment
from concertino_train.rollouts.batches import Batch
from concertino_train.rollouts.engine import RolloutEngine
from concertino_train.rollouts.group_stream import GroupStream, StreamSettings
from concertino_train.rollouts.judging import GroupJudge
from concertino_train.rollouts.rollout import Rollout, TurnCandidate, score_rollouts
from concertino_train.rollouts.sequences import TokenSequence, TrainingRow
from concertino_train.rollouts.tree import TreeSampler
from concertino_train.running.figures import TESTS, episode_figures
from concertino_train.running.traces import TraceWriter, rows_of_batch

if TYPE_CHECKING:
    from concertino_train.config.config import TrainConfig

Compared = Mapping[str, Sequence[Episode]]
"""Episodes by what they are compared within."""
# A prime far above any number of ranks, so that no round of one rank has the seed of another's.
_ROUNDS_APART = 1_000_003
"""Between the seeds of rounds of one step."""


@dataclass
class KeptRollout:
    """The parts of a rollout that a batch needs; kept for a later step, and written to checkpoints."""

    id: str
    sequences: list[TokenSequence]
    episode: Episode
    reward: Scored
    candidates: list[TurnCandidate] = field(default_factory=list)

    @property
    def group(self) -> str:
        """What it is compared with."""
        return self.episode.group

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        sequences = [sequence.to_json() for sequence in self.sequences]
        return {
            "id": self.id,
            "sequences": sequences,
            "episode": self.episode.to_json(),
            "reward": self.reward.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> KeptRollout:
        """The inverse of `to_json`."""
        sequences = [TokenSequence.from_json(each) for each in data["sequences"]]
        return cls(data["id"], sequences, Episode.from_json(data["episode"]), Scored.from_json(data["reward"]))


class StepCollector:
    """Makes the batch of every step.

    Args:
        config: the training.
        engine: rolls out, with the policy in training.
        questions: this rank's.
        reward: of rollouts.
        traces: writes some of them; None on ranks that do not.
        tests: what is measured on while training, this rank's share; none by default.
        journals: folder of this rank for journals of rollouts that are played ahead.
        before: called at the beginning of every step with its number from 1; gives a server the new weights.
        first: called with the first batch of this process, and what is compared in it: episodes by group.
    """

    def __init__(
        self,
        config: TrainConfig,
        engine: RolloutEngine,
        questions: Questions,
        reward: Reward,
        *,
        traces: TraceWriter | None = None,
        tests: Sequence[Assignment] = (),
        journals: Path | None = None,
        before: Callable[[int], None] | None = None,
        first: Callable[[Batch, Compared], None] | None = None,
    ) -> None:
        self.config, self.engine, self.questions, self.reward = config, engine, questions, reward
        self.traces, self.tests = traces, list(tests)
        self._before, self._first = before, first
        self._traced: list[tuple[str, TrainingRow]] = []
        tree = config.rollout.tree
        self._tree = TreeSampler(engine, reward, branch=tree.branch, credit=tree.credit) if tree is not None else None
        self._judge = _judge_of(config, engine, questions.pool.plain)
        groups = max(1, config.trainer.rl.questions_per_step // questions.ranks)
        self._sampler = DynamicSampler(config.algorithm.sampling, groups)
        self._waiting: list[int] = []
        own, steps = config.rollout, config.trainer.rl
        # Ranks sample different questions with one seed of the training, and must not draw the same numbers.
        self._seed = config.trainer.seed + questions.rank
        ahead = StreamSettings(own.group_size, groups, steps.steps, self._seed, steps.max_staleness, steps.stale)
        self.stream = GroupStream(
            engine,
            questions.numbers,
            questions.assignment,
            ahead,
            journals=journals if steps.max_staleness else None,
            tree=self._tree,
            judge=self._judge,
        )

    # -- a step --------------------------------------------------------------------------------------------------------

    def __call__(self, tasks: Sequence[Any], generation: int) -> Batch:
        """The batch of a step.

        Args:
            tasks: one for each question of this rank; the questions themselves come from `questions`.
            generation: number of the step, from 0.
        """
        step, began = generation + 1, time.monotonic()
        before = replace(self.engine.timings)
        # Weights may change now, for a server too, and tests are sampled alone.
        self.engine.wait(self.stream.hold())
        if self._before is not None:
            self._before(step)
        measured = self._measure(step)
        dynamic = self._sampler.settings.enabled
        fresh, kept, figures = self._dynamically(step, len(tasks)) if dynamic else self._plainly(step)
        for policy in dict.fromkeys(self.engine.policies.values()):
            policy.rest()
        rewards = [each.reward for each in kept]
        # The control experiment: a policy must not improve on rewards that say nothing of its rollouts.
        if self.config.algorithm.shuffle_rewards:
            deal = f"{self.config.trainer.seed} {step}"
            rewards = shuffled(rewards, [each.group for each in kept], deal)
            for each in kept:
                each.candidates = _dealt_out(each.candidates, deal)
        batch = Batch.of(
            cast("list[Rollout]", kept),
            rewards,
            grouping=self.config.algorithm.grouping,
            advantage=self.config.algorithm.advantages,
            filters=self.config.algorithm.filters,
        )
        if staleness := self.config.trainer.rl.max_staleness:
            batch = batch.no_older_than(staleness, lambda role: self.engine.policy(role).version)
        if self._first is not None:
            first, self._first = self._first, None
            first(batch, _compared(fresh))
        self._traced = []
        if self.traces is not None and self.traces.due(step):
            # A turn of a tree has several candidates, of which a trace shows one.
            whole = self.config.algorithm.grouping == "trajectory"
            rows = rows_of_batch(batch, [each.id for each in kept]) if whole else None
            self.traces.write(step, fresh, self._rewards(fresh), rows)
            self._traced = [(kept[row.rollout].id, row) for row in batch.rows] if whole else []
        offered = max((len(rollout.assignment.pool.actions) for rollout in fresh), default=0)
        # Those of groups that are played ahead go with the checkpoints that do not need them any more.
        if self._tree is not None or not self.config.trainer.rl.max_staleness:
            for rollout in fresh:
                rollout.drop_trace()
        figures |= episode_figures([rollout.episode for rollout in fresh], offered)
        figures |= self._spent(before, fresh, time.monotonic() - began)
        return replace(batch, figures={**batch.figures, **figures, **measured})

    def hear_drift(self, generation: int, drift: Callable[[], dict[int, list[float]]]) -> None:
        """Write the drift of the step that was made last, if its traces are written.

        Args:
            generation: number of the step, from 0.
            drift: gives it, by number of a row of the batch.
        """
        if self.traces is not None and self._traced:
            self.traces.write_drift(generation + 1, self._traced, drift())

    def _plainly(self, step: int) -> tuple[list[Rollout], list[KeptRollout], dict[str, float]]:
        """All rollouts of this step; what makes its batch, which are the same; figures of the sampling."""
        stream = self.stream
        fresh = [each for group in self.engine.wait(stream.take(step)) for each in group]
        kept = [_kept(each, reward) for each, reward in zip(fresh, self._rewards(fresh), strict=True)]
        if not self.config.trainer.rl.max_staleness:
            return fresh, kept, {}
        return fresh, kept, {"ahead/open": float(stream.open), "ahead/dropped": float(stream.dropped)}

    def _dynamically(self, step: int, asked: int) -> tuple[list[Rollout], list[KeptRollout], dict[str, float]]:
        """All rollouts of this step; those that make its batch, which may be older; figures of the sampling."""
        # The trainer's tasks only count the beats; which questions they are is kept here, with what waits.
        self._waiting += self.questions.numbers(asked)
        sampler, fresh = self._sampler, list[Rollout]()
        sampler.begin(step)
        rounds = 0
        while sampler.wanted() > 0:
            rollouts = self._rolled_out(self._take(sampler.wanted()), step, rounds)
            fresh += rollouts
            sampler.offer(_groups(rollouts, self._rewards(rollouts), step))
            rounds += 1
        kept = [each for group in sampler.take() for each in cast("list[KeptRollout]", group.payload)]
        return fresh, kept, {f"sampling/{name}": float(value) for name, value in sampler.figures().items()}

    def _take(self, count: int) -> list[Assignment]:
        """The next questions: those that wait, then new ones."""
        self._waiting += self.questions.numbers(count - len(self._waiting))
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return [self.questions.assignment(number) for number in taken]

    def _rolled_out(self, assignments: Sequence[Assignment], step: int, number: int) -> list[Rollout]:
        """One round; groups of later rounds and steps have names of their own, for they may share a batch."""
        size, seed = self.config.rollout.group_size, self._seed + number * _ROUNDS_APART
        if self._tree is not None:
            return self.engine.wait(self._tree.run(assignments, group_size=size, seed=seed, step=step))
        label = f"round-{number}" if number else ""
        rollouts = self.engine.run_sync(assignments, group_size=size, seed=seed, step=step, label=label)
        if self._judge is not None:
            self.engine.wait(self._judge.judge(rollouts, seed))
        for rollout in rollouts:
            rollout.id = f"{rollout.id}-{number}" if number else rollout.id
            rollout.episode = replace(rollout.episode, group=f"{rollout.group}@{step}.{number}")
        return rollouts

    def _rewards(self, rollouts: Sequence[Rollout]) -> list[Scored]:
        """Rewards; of a path through a tree the mean over the turns that were chosen, which is what was trained on."""
        if self._tree is None:
            return score_rollouts(rollouts, self.reward)
        # A path has no reward of its own; what was trained on are the turns that it went through.
        return [_mean([each.reward for each in rollout.candidates if each.chosen]) for rollout in rollouts]

    def _spent(self, before: Any, rollouts: Sequence[Rollout], seconds: float) -> dict[str, float]:
        """Where the time went, how many tokens were sampled, and how the workers are, where there are any."""
        now = self.engine.timings
        spent = {name: getattr(now, name) - getattr(before, name) for name in ("generate", "environment", "grading")}
        tokens = sum(rollout.sampled for rollout in rollouts)
        figures = {f"seconds/{name}": value for name, value in spent.items()}
        rate = tokens / spent["generate"] if spent["generate"] > 0 else 0.0
        if self.engine.place is not None:
            health = self.engine.wait(self.engine.place.health())
            figures["workers/ready"] = float(sum(each.workers for each in health))
            figures["workers/lost"] = float(sum(each.lost for each in health))
        return {**figures, "sampled": float(tokens), "tokens_per_second": rate, "seconds/rollouts": seconds}

    # -- measuring -----------------------------------------------------------------------------------------------------

    def _measure(self, step: int) -> dict[str, float]:
        """Figures of the tests, with the weights before this step, where they are due."""
        every = self.config.trainer.rl.eval_every
        # Before the update, so that step 1 measures the weights that the training begins with.
        return {} if every is None or (step - 1) % every else self.measure()

    def measure(self) -> dict[str, float]:
        """Figures of the tests with the weights as they are: `eval/success` and the like; nothing without tests."""
        if not self.tests:
            return {}
        figures = figures_of_tests(self.config, self.engine, self.tests, f"{self.engine.version}")
        names = ("success", "format", "rounds", "calls", "tokens", "units", "usd")
        return {TESTS: float(len(self.tests)), **{f"eval/{name}": figures[name] for name in names}}

    # -- state ---------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides about the next steps, as plain JSON data."""
        buffer = [replace(each, payload=[one.to_json() for one in each.payload]) for each in self._sampler.buffer]
        dumped = {**self._sampler.dump(), "buffer": [each.to_json() for each in buffer]}
        return {
            "sampler": dumped,
            "waiting": list(self._waiting),
            "questions": self.questions.state_dict(),
            "stream": self.stream.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where `state_dict` was made."""
        self._sampler.restore(state["sampler"])
        self._sampler.buffer = [
            replace(each, payload=[KeptRollout.from_json(one) for one in each.payload]) for each in self._sampler.buffer
        ]
        self._waiting = list(state["waiting"])
        self.stream.load_state_dict(state["stream"])
        self.questions.load_state_dict(state["questions"])


def _judge_of(config: TrainConfig, engine: RolloutEngine, pool: Pool) -> GroupJudge | None:
    own = config.rollout.judge
    if own is None:
        return None
    if config.rollout.tree is not None:
        raise UsageError("rollout.judge compares answers of whole rollouts, and a tree scores turns; leave one out")
    return GroupJudge(engine, pool, own.model, criteria=own.criteria, max_tokens=own.max_tokens)


def measured_rollouts(
    config: TrainConfig, engine: RolloutEngine, tests: Sequence[Assignment], number: int = 0, when: str = ""
) -> list[Rollout]:
    """Rollouts of tests at the temperature of evaluations; that of training is put back.

    Args:
        config: says how often each test is rolled out, and at which temperature.
        engine: rolls out.
        tests: at once.
        number: of this batch of tests.
        when: where in the training.
    """
    label = f"test-{when}" if when else "test"
    own, policies = config.trainer.eval, list(dict.fromkeys(engine.policies.values()))
    usual = [(policy.temperature, policy.top_p) for policy in policies]
    for policy in policies:
        # top_p is for the diversity of groups; a test shows the policy as it is.
        policy.temperature, policy.top_p = own.temperature, 1.0
    try:
        return engine.run_sync(tests, group_size=own.samples, seed=config.trainer.seed, step=number, label=label)
    finally:
        for policy, (temperature, top_p) in zip(policies, usual, strict=True):
            policy.temperature, policy.top_p = temperature, top_p


def figures_of_tests(
    config: TrainConfig, engine: RolloutEngine, tests: Sequence[Assignment], when: str
) -> dict[str, float]:
    """Figures of all tests, rolled out batch by batch."""
    rollouts = list[Rollout]()
    for number, part in enumerate(in_batches(tests, config.trainer.eval.batch)):
        rollouts += measured_rollouts(config, engine, part, number, when)
    for rollout in rollouts:
        rollout.drop_trace()
    return episode_figures([rollout.episode for rollout in rollouts])


def shuffled(rewards: Sequence[Scored], groups: Sequence[str], seed: str) -> list[Scored]:
    """Rewards shuffled within their groups: every group keeps its own, and they say nothing of the rollouts.

    Args:
        rewards: of rollouts.
        groups: of the same rollouts.
        seed: another one, another deal.
    """
    places: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        places.setdefault(group, []).append(place)
    dealt = list(rewards)
    for group, own in places.items():
        order = list(own)
        random.Random(f"shuffled {seed} {group}").shuffle(order)
        # Dealt within groups, so that every group keeps its mean and its std, and only the order is lost.
        for place, taken in zip(own, order, strict=True):
            dealt[place] = rewards[taken]
    return dealt


def _dealt_out(candidates: Sequence[TurnCandidate], seed: str) -> list[TurnCandidate]:
    """Candidates whose rewards are shuffled within their turns."""
    dealt = shuffled([each.reward for each in candidates], [str(each.key) for each in candidates], seed)
    return [replace(each, reward=reward) for each, reward in zip(candidates, dealt, strict=True)]


def _compared(rollouts: Sequence[Rollout]) -> Compared:
    """Whole rollouts by question, or the texts that were tried by role and turn."""
    groups: dict[str, list[Episode]] = {}
    for rollout in rollouts:
        for episode in [each.episode for each in rollout.candidates] or [rollout.episode]:
            groups.setdefault(episode.group, []).append(episode)
    return groups


def _groups(rollouts: Sequence[Rollout], scored: Sequence[Scored], step: int) -> list[Sampled]:
    """Rollouts as groups, with what a batch needs of them."""
    groups: dict[str, list[int]] = {}
    for place, rollout in enumerate(rollouts):
        groups.setdefault(rollout.group, []).append(place)
    return [
        Sampled(
            name,
            tuple(scored[n].total for n in places),
            tuple(rollouts[n].episode.correct for n in places),
            [_kept(rollouts[n], scored[n]) for n in places],
            step,
        )
        for name, places in groups.items()
    ]


def _kept(rollout: Rollout, reward: Scored) -> KeptRollout:
    return KeptRollout(rollout.id, rollout.sequences, rollout.episode, reward, rollout.candidates)


def _mean(rewards: Sequence[Scored]) -> Scored:
    if not rewards:
        return Scored(0.0)
    count = len(rewards)
    names = dict.fromkeys(name for each in rewards for name in each.components)
    parts = {name: sum(each.components.get(name, 0.0) for each in rewards) / count for name in names}
    return Scored(sum(each.total for each in rewards) / count, parts)
