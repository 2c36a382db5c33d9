"""The rollout engine: many runs at once, each on its own, with the policy in the place of their model.

    every run:  act ... act, ask     all calls of all runs at the same time, on one executor
    policy:     one batch            each run that asks by now is a row (`gathering`)
    every run:  tell, and so on      until it is done, and graded

What makes a run is the same as everywhere: strategy, pool, executor, budget, events. The engine only plays the model:
it keeps the token ids of every conversation, so that what the policy sampled is what it reads on, and what is trained.

Invariants: every rollout that is begun is returned, however it ended; what a rollout holds depends on assignment, seed
and weights, not on which others are in the batch; no run waits for the calls of another; and no run is left open,
whatever happens.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import hashlib
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NoReturn, Protocol, TypeVar

from concertino import (
    Executor,
    Limits,
    ModelSpec,
    Orchestrator,
    Prices,
    Reply,
    Run,
    Sampling,
    SteppedRun,
    Usage,
    UsageError,
)
from concertino.core.events import CallStarted
from concertino.rollouts import NodeHealth
from concertino.strategies import Act, Ask, Reading
from concertino_bench import Grade, Grader, Submission, TaskWorld, Verdict, installed_graders
from concertino_bench.runner import PoolServices, choose_graders, grading_pool
from concertino_local.codec import Codec

from concertino_train.episodes import Episode
from concertino_train.loop_thread import LoopThread
from concertino_train.policies import Policy, Prompt, Sample
from concertino_train.role_turns import RoleTurns, Scripts

from .assignment import Assignment, TokenLimits
from .conversations import Conversations, Encoder
from .gathering import PATIENCE, Answer, Asks, Gatherer
from .rollout import Rollout
from .sequences import TokenSequence
from .sharing import SharedCalls
from .timings import Timings

T = TypeVar("T")
POLICY = "policy"
"""The name under which the policy stands in the pools of rollouts."""
_VERSION = "policy_version"
"""Where a journal has the version of the weights that sampled a reply."""


@dataclass
class Player:
    """One rollout under way. Its name says where it stands in its training, and decides what is drawn for it.

    Attributes:
        temperature: with which the policy samples, for the record.
    """

    name: str
    assignment: Assignment
    group: str
    sample: int
    run: SteppedRun
    world: TaskWorld | None
    watch: RoleTurns
    temperature: float = 1.0
    conversations: Conversations = field(default_factory=Conversations)
    readings: list[Reading | None] = field(default_factory=list)
    turn: int = 0

    def asks(self) -> Ask | None:
        """What the policy is asked, if it is."""
        step = self.run.step
        return step if isinstance(step, Ask) and not self._elsewhere(step) else None

    def _elsewhere(self, step: Ask) -> bool:
        return step.role != "orchestrator" and step.role in self.run.pool.roles

    async def advance(self) -> None:
        """Run until the policy is asked, or the run is done."""
        while not self.run.done and self.asks() is None:
            if isinstance(self.run.step, Act):
                await self.run.act()
            else:
                await self.run.ask()

    def fork(self, suffix: str) -> Player:
        """An independent copy with a longer name, in a world of its own."""
        world, pool = copy.deepcopy(self.world), None
        if world is not None:
            pool = self.assignment.pool_in(world)
        run = self.run.fork(self.run.id + suffix, pool)
        return replace(
            self,
            name=self.name + suffix,
            run=run,
            world=world,
            conversations=self.conversations.fork(),
            readings=list(self.readings),
            watch=self.watch.fork(),
        )


class Place(Protocol):
    """Where runs happen, if not in this process."""

    async def play(self, player: Player, seat: Asks, seed: int, *, tree: int = 0) -> Rollout:
        """Have one run made, and close the one that was begun here.

        Args:
            player: what is to be played.
            seat: its place among those that ask here.
            seed: of everything that is drawn.
            tree: texts at each turn, where a tree is grown.
        """

    async def health(self) -> Sequence[NodeHealth]:
        """What is seen of the worker processes or nodes."""

    async def close(self) -> None:
        """Stop what is under way, and give back what it holds."""


class RolloutEngine:
    """Rolls out.

    Attributes:
        timings: of all runs so far.
        shared: with `share`, calls that could be shared (`asked`), and those that were not made again (`hits`).

    Args:
        policy: what is trained, or one for each role.
        limits: how much it may write.
        graders: who may grade; those of all installed distributions by default.
        share: calls that the rollouts of a group make alike are made once.
        prices: of the policy's tokens.
        executor: shared with others; without one the engine has its own.
        calls: of members, at once, where the engine has its own executor.
        patience: seconds without a new question after which a batch is sampled without runs whose calls last longer.
        scope: the training and the process; part of the ids of runs, from which the idempotency keys of calls are made.
            A provider may answer a key that it knows with what it answered before.
        place: where runs happen instead of in this process, which then only samples; closed with the engine.
    """

    def __init__(
        self,
        policy: Policy | Mapping[str, Policy],
        *,
        limits: TokenLimits | None = None,
        graders: Sequence[Grader] | None = None,
        share: bool = False,
        prices: Prices | None = None,
        executor: Executor | None = None,
        calls: int = 4096,
        patience: float = PATIENCE,
        scope: str = "",
        place: Place | None = None,
    ) -> None:
        self.policies = {"": policy} if isinstance(policy, Policy) else dict(policy)
        self.limits = limits or TokenLimits()
        self.share = share
        self.patience, self.scope, self.place = patience, scope, place
        self.timings = Timings()
        self.shared = {"asked": 0, "hits": 0}
        self._graders = list(graders) if graders is not None else None
        self._leader = ModelSpec(POLICY, _nobody, description="the policy in training", prices=prices)
        self._given = executor
        self._executor, self._calls = executor, calls
        # One thread each: a policy is asked by one thread at a time (`Policy.generate`), and scripts share one sandbox.
        self._sampling, self._judging = ThreadPoolExecutor(1, "policy"), ThreadPoolExecutor(1, "scripts")
        self._scripts = Scripts()
        self._encoders: dict[int, Encoder] = {}
        self._loop: LoopThread | None = None

    @property
    def version(self) -> int:
        """Of the policy's weights; the first policy's, as those of all roles change together."""
        return next(iter(self.policies.values())).version

    @property
    def apart(self) -> bool:
        """Whether sampling may go on while weights are trained."""
        return all(policy.apart for policy in self.policies.values())

    # -- rolling out ---------------------------------------------------------------------------------------------------

    async def run(
        self, assignments: Sequence[Assignment], *, group_size: int = 1, seed: int = 0, step: int = 0, label: str = ""
    ) -> list[Rollout]:
        """Roll out.

        Args:
            assignments: one for each group.
            group_size: rollouts of each.
            seed: of everything that is drawn; the same seed, step and weights give the same rollouts.
            step: of training; part of the names.
            label: sets runs apart from others of the same names.

        Returns:
            `len(assignments) * group_size` rollouts, group by group.

        Raises:
            UsageError: a task has no grader, or a pool lacks what a grader or the strategy needs. Nothing has run.
        """
        with self.measured("total"):
            self.forget()
            juries = self.juries(assignments)
            groups = self.players(assignments, group_size, step, label=label)
            gatherer, players = Gatherer(self.generate, self.patience), [each for group in groups for each in group]
            seats = [gatherer.enter() for _ in players]
            return await together(
                [
                    self.play(each, juries[each.assignment.task.id], seat, seed)
                    for each, seat in zip(players, seats, strict=True)
                ]
            )

    async def play(self, player: Player, jury: Grader, seat: Asks, seed: int) -> Rollout:
        """Play one run from its beginning to its grade, whatever the others do. It is closed in any case."""
        if self.place is not None:
            with self.measured("environment"):
                return await self.place.play(player, seat, seed)
        try:
            await self.advance(player)
            while not player.run.done:
                sequence = self.read(player)
                if sequence is not None:
                    known = recorded_answer(player, sequence)
                    (answer,) = [known] if known else await seat.ask([self.prompt(player, sequence, seed)])
                    self.tell(player, sequence, answer)
                await self.advance(player)
            return await self.finish(player, jury)
        finally:
            seat.leave()
            await player.run.close()

    def run_sync(self, assignments: Sequence[Assignment], **options: Any) -> list[Rollout]:
        """`run` for programs without an event loop; the engine keeps one of its own."""
        return self.wait(self.run(assignments, **options))

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the engine's own event loop."""
        if self._loop is None:
            self._loop = LoopThread("rollouts")
        return self._loop.run(work)

    def close(self) -> None:
        """Release executor, threads and sandbox. May be called again."""
        if self.place is not None and self._loop is not None:
            self.wait(self.place.close())
        # An executor that was given is its owner's to close.
        if self._given is None and self._executor is not None:
            executor, self._executor = self._executor, None
            if self._loop is not None:
                # On the loop that its connections belong to.
                self.wait(executor.aclose())
        if self._loop is not None:
            self._loop.close()
            self._loop = None
        self._sampling.shutdown()
        self._judging.shutdown()
        self._scripts.close()

    # -- the parts -----------------------------------------------------------------------------------------------------

    def players(
        self,
        assignments: Sequence[Assignment],
        group_size: int,
        step: int,
        places: Sequence[tuple[int, str]] = (),
        journals: Path | None = None,
        label: str = "",
    ) -> list[list[Player]]:
        """Runs at their beginning, or where an earlier process left them; a list for each group.

        Args:
            assignments: one for each group.
            group_size: rollouts of each.
            step: of training; part of the names.
            places: number in the step and name of each group, where these are not all groups of the step.
            journals: folder of the traces of runs, which are resumed from what is there. A run in a world has none,
                since what it did to its world is lost with the process.
            label: sets runs apart from others of the same names.
        """
        if group_size < 1:
            raise UsageError(f"group_size={group_size}: expected 1 or more")
        begun: list[list[Player]] = []
        for assignment, (place, name) in zip(assignments, places or enumerate(group_names(assignments)), strict=True):
            calls = SharedCalls(self.shared) if self.share else None
            group = []
            for sample in range(group_size):
                own = f"{step}-{place}-{sample}"
                # Where runs happen elsewhere, their traces are written there.
                trace = None if journals is None or self.place is not None else journal_of(journals, own)
                group.append(
                    self.player(own, assignment, group=name, sample=sample, label=label, calls=calls, trace=trace)
                )
            begun.append(group)
        return begun

    def forget(self) -> None:
        """Forget what was encoded for the questions of earlier steps, which would pile up."""
        self._encoders.clear()

    def player(
        self,
        name: str,
        assignment: Assignment,
        *,
        group: str,
        sample: int,
        label: str = "",
        calls: SharedCalls | None = None,
        trace: Path | None = None,
        run_id: str = "",
    ) -> Player:
        """One run at its beginning, or where an earlier process left it.

        Args:
            name: says where it stands in its training.
            group: what it is compared with.
            sample: which of the group.
            label: sets it apart from others of the same name.
            calls: that the group shares.
            trace: of the run, if it has one; none is kept in a world.
            run_id: by default made of the scope, the label and the name.
        """
        world = assignment.world(assignment.task) if assignment.world is not None else None
        pool = assignment.pool_in(world)
        policy = next(iter(self.policies.values()))
        # For the record: a policy samples with its own temperature, and only `max_tokens` reaches it from here.
        sampling = Sampling(temperature=policy.temperature, max_tokens=self.limits.turn, seed=sample)
        seat = calls.seat() if calls is not None else None
        orchestrator = Orchestrator(
            self._leader,
            assignment.strategy,
            executor=self.executor,
            sampling=sampling,
            before=[seat.before] if seat else [],
            after=[seat.after] if seat else [],
        )
        trace = None if world is not None else trace
        run_id = run_id or "-".join(part for part in (self.scope, label, name) if part)
        run = orchestrator.stepped(assignment.text, pool=pool, budget=assignment.budget, run_id=run_id, trace=trace)
        watch = RoleTurns(assignment.task, self._scripts)
        return Player(name, assignment, group, sample, run, world, watch, policy.temperature)

    @property
    def executor(self) -> Executor:
        """The executor that runs the calls; an own one is made at the first use."""
        if self._executor is None:
            # A limit meant for one run would hold up all others.
            self._executor = Executor(limits=Limits(calls=self._calls))
        return self._executor

    async def advance(self, player: Player) -> None:
        """Make the calls of a run, until it waits for the policy or is done; see what its roles did."""
        with self.measured("environment"):
            await player.advance()
        await self.look(player)

    async def look(self, player: Player) -> None:
        """See whether a turn of a run's roles is over."""
        if player.watch.domain:
            await self.judged(player.watch.look, player.run.machine)

    def read(self, player: Player) -> TokenSequence | None:
        """The sequence on which a run's question is answered; None, and the run ends, where there is no room on it."""
        step = player.asks()
        if step is None:
            return None
        sequence = player.conversations.read(step, self.encoder(step.role))
        if self.limits.room(player.conversations.sampled, len(sequence.ids)) >= 1:
            return sequence
        detail = f"{player.conversations.sampled} tokens were sampled (limit {self.limits.total}), and a context of "
        detail += f"{len(sequence.ids)} read (limit {self.limits.context or 'none'})"
        # A strategy may ask once more for an answer after its end, and there is no room for that one either.
        while not player.run.done:
            player.run.finish("budget", detail)
        return None

    def prompt(self, player: Player, sequence: TokenSequence, seed: int, branch: int = 0) -> Prompt:
        """What the policy is asked to continue."""
        most = self.limits.room(player.conversations.sampled, len(sequence.ids))
        step = player.run.step
        if isinstance(step, Ask) and step.sampling is not None and step.sampling.max_tokens:
            most = min(most, step.sampling.max_tokens)
        # From all that names a text, so no sample depends on what else is in the batch.
        drawn = f"{seed}:{player.name}:{player.group}:{player.sample}:{player.turn}:{branch}"
        return Prompt(tuple(sequence.ids), most, sequence.role, _number(drawn))

    async def generate(self, prompts: Sequence[Prompt]) -> list[Answer]:
        """The policy's answers; each policy of a role gets its own batch."""
        answers: list[Answer | None] = [None] * len(prompts)
        with self.measured("generate"):
            # A policy that plays several roles gets one batch.
            for policy in dict.fromkeys(self.policies.values()):
                places = [place for place, prompt in enumerate(prompts) if self.policy(prompt.role) is policy]
                if places:
                    # The version at the beginning: a server may get new weights before it has ended.
                    started, version = time.monotonic(), policy.version
                    found = await _in(self._sampling, policy.generate, [prompts[place] for place in places])
                    seconds = time.monotonic() - started
                    for place, sample in zip(places, found, strict=True):
                        answers[place] = Answer(sample, version, seconds)
        return [answer for answer in answers if answer is not None]

    def tell(self, player: Player, sequence: TokenSequence, answer: Answer) -> None:
        """Give a run what was sampled for it."""
        step = player.asks()
        assert step is not None
        codec, sample = self.policy(step.role).codec, answer.sample
        # Counted now, as `write` puts the sample behind what was read.
        read = len(sequence.ids)
        reply = reply_of(codec, step, tuple(sequence.ids), sample)
        player.conversations.write(sequence, sample, reply.text, codec, answer.version)
        player.turn += 1
        if player.run.path is not None:
            reply = replace(reply, extra={_VERSION: answer.version})
        used = Usage(input_tokens=read, output_tokens=len(sample.ids))
        player.run.on_reply(replace(reply, usage=used), answer.seconds)
        # Kept while it is known; otherwise the run would be replayed to read the texts again.
        player.readings.append(player.run.machine.reading)

    def encoder(self, role: str) -> Encoder:
        """Between messages and what a role's policy reads; remembers what it encoded in this batch of rollouts."""
        codec = self.policy(role).codec
        if id(codec) not in self._encoders:
            # By identity, since roles often share a codec and equal codecs need no comparison.
            self._encoders[id(codec)] = Encoder(codec)
        return self._encoders[id(codec)]

    def policy(self, role: str) -> Policy:
        """Who plays a role.

        Raises:
            UsageError: nobody does.
        """
        found = self.policies.get(role) or self.policies.get("")
        if found is None:
            raise UsageError(f"no policy plays the role {role!r}; there are policies for {', '.join(self.policies)}")
        return found

    async def judged(self, work: Callable[..., T], *arguments: Any) -> T:
        """Judge a turn, which may run scripts: one at a time, in their thread."""

        def measured() -> T:
            with self.measured("grading"):
                return work(*arguments)

        return await _in(self._judging, measured)

    def measured(self, what: str) -> contextlib.AbstractContextManager[None]:
        """Add the seconds of a block to the timings."""
        return self.timings.measured(what)

    # -- ends ----------------------------------------------------------------------------------------------------------

    def juries(self, assignments: Sequence[Assignment]) -> dict[str, Grader]:
        """The grader of each task, by task id."""
        if self._graders is None:
            self._graders = installed_graders()
        return choose_graders([assignment.task for assignment in assignments], self._graders)

    async def finish(self, player: Player, grader: Grader) -> Rollout:
        """Close a run and grade what it answered."""
        assignment, run = player.assignment, await player.run.close()
        with self.measured("grading"):
            grade = await self._grade(player, run, grader)
        episode = Episode.of_run(
            run,
            grade,
            group=player.group,
            sample=player.sample,
            pool=player.run.pool,
            preference=assignment.preference,
            turns=player.watch.turns,
            domain=player.watch.domain,
            others=[role for role in player.run.pool.roles if role != "orchestrator"],
            readings=player.readings,
        )
        episode = replace(episode, id=player.name)
        return Rollout(player.name, assignment, player.sample, player.conversations.sequences, run, grade, episode)

    async def _grade(self, player: Player, run: Run, grader: Grader) -> Grade:
        task, world = player.assignment.task, player.world
        # In a world the state that was left is graded, so a run without an answer may be right.
        if run.answer is None and world is None:
            return Grade(Verdict.UNPARSABLE, f"no answer: {run.stop}", task.answers)
        state = world.state() if world is not None else None
        submission = Submission(run.answer or "", _calls(run), state, run.stop)
        async with PoolServices(self.executor, grading_pool(player.run.pool, [grader]), f"grading-{run.id}") as desk:
            return await grader.grade(task, submission, desk)


def reply_of(codec: Codec, step: Ask, prompt: tuple[int, ...], sample: Sample) -> Reply:
    """What a run is told: the text of a sample, with its token ids."""
    reply = codec.read(sample.ids, step.tools)
    return replace(
        reply, finish_reason=sample.finish, token_ids=sample.ids, logprobs=sample.logprobs, prompt_token_ids=prompt
    )


def recorded_answer(player: Player, sequence: TokenSequence) -> Answer | None:
    """What an earlier process sampled at this point of a run.

    Raises:
        UsageError: it was shown other tokens.
    """
    reply = player.run.recorded
    if reply is None:
        return None
    if reply.prompt_token_ids != tuple(sequence.ids):
        raise UsageError(
            f"the journal {player.run.path} was written with another tokenizer or template; remove its folder to ask "
            "its runs again"
        )
    finish: Literal["stop", "length"] = "length" if reply.finish_reason == "length" else "stop"
    sample = Sample(reply.token_ids or (), reply.logprobs or (), finish)
    return Answer(sample, int(reply.extra.get(_VERSION, 0)), 0.0)


def journal_of(folder: Path, name: str) -> Path:
    """The file of a rollout's journal."""
    return folder / f"{name}.trace.jsonl"


def _calls(run: Run) -> list[dict[str, Any]]:
    # Arguments of a plan may still name results of other calls; the event has what was sent.
    began = {event.call_id: event.arguments for event in run.events if isinstance(event, CallStarted)}
    return [
        {"name": call.name, "arguments": began.get(seen.call_id, {}), "status": seen.status.value}
        for round_ in run.rounds
        for call, seen in zip(round_.plan.calls, round_.observations, strict=True)
    ]


def _number(text: str) -> int:
    """A seed of 63 bits."""
    # Servers take seeds as signed 64-bit numbers.
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def _nobody() -> NoReturn:
    raise UsageError(
        "the policy is asked by the engine alone; a member of the pool that asks the model `policy` needs a role of "
        "its own in the pool: [roles] worker = ..."
    )


def group_names(assignments: Sequence[Assignment]) -> list[str]:
    """A name for each group of a step: a task that is asked twice makes two groups."""
    seen: dict[str, int] = {}
    names = []
    for assignment in assignments:
        task = assignment.task.id
        count = seen[task] = seen.get(task, 0) + 1
        names.append(f"{task}#{count}" if count > 1 else task)
    return names


async def together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Do all at the same time; the first error ends the others, and is raised once these have ended."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _in(thread: ThreadPoolExecutor, work: Callable[..., T], *arguments: Any) -> T:
    return await asyncio.get_running_loop().run_in_executor(thread, work, *arguments)
