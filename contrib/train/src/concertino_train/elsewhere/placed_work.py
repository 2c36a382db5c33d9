"""What a worker process does for a training: one rollout, whose texts the training samples.

    order -> the same question over the same pool -> a run, asked for over `policy_socket` -> Rollout, as data

Invariants: the question is made from the settings, as the training makes it, and compared with what was ordered; a run
that was begun before is continued from its trace, so that no call that has ended is made again; and what comes back
holds every number as it was.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NoReturn, Self

from concertino import PoolError, TraceError, TraceStore, UsageError
from concertino.rollouts import RunOrder, RunResult, Work, settle_trace
from concertino.traces.records import first_record
from concertino_bench import Grade, Item, Key, Task
from concertino_local.codec import ChatCodec, Codec

from concertino_train.config.config import load_config
from concertino_train.config.named import make_reward
from concertino_train.episodes import Episode
from concertino_train.factories.learners import make_engine
from concertino_train.factories.questions import Questions, evaluation_assignments, measured_tests
from concertino_train.groups.keys import GroupKey
from concertino_train.policies import Policy, Prompt
from concertino_train.rewards.reward import Scored
from concertino_train.rollouts.assignment import Assignment
from concertino_train.rollouts.rollout import Rollout, TurnCandidate
from concertino_train.rollouts.sequences import TokenSequence
from concertino_train.rollouts.tree import TreeSampler

from .policy_socket import PolicyAddress, PolicyLine

if TYPE_CHECKING:
    from concertino_train.config.config import TrainConfig
    from concertino_train.rollouts.engine import RolloutEngine

_MOST_BYTES = 60 << 20
"""Of a rollout, as JSON; a result in whose place is none breaks the worker off."""


class RolloutWork(Work):
    """Makes the rollouts of one training.

    Args:
        config: of the training.
        codec: of its policy.
        address: where the policy is asked.
        folder: of the traces.
        kinds: of questions that are ordered: `train`, `eval`, `measure`.
        rank, ranks: whose questions, of how many processes of the training.
    """

    def __init__(
        self,
        config: TrainConfig,
        codec: Codec,
        address: PolicyAddress,
        folder: Path,
        kinds: Sequence[str] = (),
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        self.folder: Path | None = folder
        self._config, self._codec, self._address, self._kinds = config, codec, address, tuple(kinds)
        self._rank, self._ranks = rank, ranks
        self._line = PolicyLine(address)
        self._policy = _AskedElsewhere(codec)
        self._known: dict[str, Callable[[int], Assignment]] = {}
        self._engine: RolloutEngine | None = None
        self._tree: TreeSampler | None = None
        self._busy = 0

    async def perform(self, order: RunOrder) -> RunResult:
        """Make one rollout, or continue it.

        Raises:
            PoolError, UsageError: question or pool are not what they are where the order was given.
        """
        self._busy += 1
        try:
            return await self._perform(order)
        finally:
            self._busy -= 1
            if not self._busy and self._engine is not None:
                self._engine.forget()

    async def _perform(self, order: RunOrder) -> RunResult:
        engine, told = self._opened(), order.task
        assignment = self._assignment(order)
        assert self.folder is not None
        path = self.folder / f"{order.id}.trace.jsonl"
        # What was done to a world is lost with the process, and a tree has many runs.
        resumable = assignment.world is None and not told["tree"]
        if await settle_trace(path) and not (resumable and _is_of(path, order)):
            TraceStore(self.folder).delete(order.id)
        jury = engine.juries([assignment])[assignment.task.id]
        self._policy.temperature = order.sampling.temperature or 0.0
        player = engine.player(
            told["name"],
            assignment,
            group=order.group,
            sample=order.sample,
            trace=path if resumable else None,
            run_id=order.id,
        )
        seat, seed = self._line.seat(order.id), order.seed or 0
        if told["tree"]:
            assert self._tree is not None
            rollout = await self._tree.grow(player, jury, seat, told["tree"], seed)
        else:
            rollout = await engine.play(player, jury, seat, seed)
        if not path.exists():
            rollout.run.write_trace(path)
        result = result_of(rollout, order.id, path)
        if (size := len(json.dumps(result.data))) > _MOST_BYTES:
            raise UsageError(f"a rollout of {size} bytes; expected at most {_MOST_BYTES}: lower rollout.total_tokens")
        return result

    def _opened(self) -> RolloutEngine:
        """The engine, made at the first order, on the loop of the orders."""
        if self._engine is None:
            self._engine = make_engine(self._config, self._policy)
            if (tree := self._config.rollout.tree) is not None:
                reward = make_reward(self._config.reward)
                self._tree = TreeSampler(self._engine, reward, branch=tree.branch, credit=tree.credit)
        return self._engine

    def _assignment(self, order: RunOrder) -> Assignment:
        """The question of an order, made here."""
        kind, number = order.task["source"]
        found = self._known[kind](number)
        if found.text != order.question or digest_of(found.task) != order.task["digest"]:
            raise UsageError(
                f"question {number} of {kind!r} is another one here: the tasks differ; give workers the same files and "
                "distributions"
            )
        if found.pool.id != order.pool:
            raise PoolError(
                f"the pool of question {number} of {kind!r} is another one here; give workers the same pool file and "
                "distributions"
            )
        return found

    async def aclose(self) -> None:
        """Hang up, and give back what the engine holds."""
        await self._line.close()
        if self._engine is not None:
            engine, self._engine = self._engine, None
            await engine.executor.aclose()
            engine.close()

    # -- in another process --------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Settings, tokenizer and address.

        Raises:
            UsageError: the codec is an object of this program.
        """
        if not isinstance(self._codec, ChatCodec):
            raise UsageError(
                f"rollout.on: the codec {type(self._codec).__name__} is an object of this program, which worker "
                "processes cannot load; take a model with a tokenizer and a template, or rollout.on=local"
            )
        with TemporaryDirectory(prefix="concertino-codec-") as name:
            self._codec.save(name)
            files = {each.name: base64.b64encode(each.read_bytes()).decode() for each in sorted(Path(name).iterdir())}
        return {
            "settings": self._config.resolved(),
            "codec": files,
            "fingerprint": self._codec.fingerprint,
            "address": asdict(self._address),
            "folder": str(self.folder and self.folder.absolute()),
            "kinds": list(self._kinds),
            "here": str(Path.cwd()),
            "rank": self._rank,
            "ranks": self._ranks,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The same work in another process.

        Raises:
            UsageError: the settings, or what they name, are not there or others.
        """
        with _in_folder(data["here"]):
            # Rewards are given where the training is, and may be its own.
            config = load_config(data["settings"], check=False)
            with TemporaryDirectory(prefix="concertino-codec-") as name:
                for file, text in data["codec"].items():
                    Path(name, file).write_bytes(base64.b64decode(text))
                codec = ChatCodec.load(name, **config.model.template_options)
            if codec.fingerprint != data["fingerprint"]:
                raise UsageError("the tokenizer is another one here; install the same version of transformers")
            work = cls(
                config,
                codec,
                PolicyAddress(**data["address"]),
                Path(data["folder"]),
                data["kinds"],
                data["rank"],
                data["ranks"],
            )
            # Read now: what is missing is said before an order is given, and paths are relative to this folder.
            work._known = {kind: questions_of(config, kind, data["rank"], data["ranks"]) for kind in data["kinds"]}
        return work


class _AskedElsewhere(Policy):
    """Stands for the policy in an engine whose runs ask over a line."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec

    def generate(self, prompts: Sequence[Prompt]) -> NoReturn:
        raise NotImplementedError


def questions_of(config: TrainConfig, kind: str, rank: int, ranks: int) -> Callable[[int], Assignment]:
    """The questions of a training by their numbers: `train`, `eval` of a training, or `measure` by themselves."""
    if kind == "train":
        return Questions(config, rank=rank, ranks=ranks).assignment
    tests = evaluation_assignments(config) if kind == "eval" else measured_tests(config)
    return lambda number: tests[number]


@contextlib.contextmanager
def _in_folder(folder: str) -> Iterator[None]:
    """In the folder of the training, to which the paths in its settings are relative."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(contextlib.chdir(folder))
        except OSError as error:
            raise UsageError(
                f"the folder of the training, {folder}, is not here ({error.strerror}), and paths in its settings are "
                "relative to it; share it with the workers"
            ) from error
        yield


def digest_of(task: Task) -> str:
    """SHA-256 of all that a task holds, its answers too: equal for equal tasks, in any process."""
    return hashlib.sha256(json.dumps(asdict(task), sort_keys=True, default=repr).encode()).hexdigest()


def _is_of(path: Path, order: RunOrder) -> bool:
    """Whether a trace is of this very order: a resumed training may ask another question under the same name."""
    try:
        begun = first_record(path)
    except TraceError:
        return False
    asked = dict(begun.get("setup", {}).get("sampling", {}))
    return begun.get("question") == order.question and asked.get("temperature") == order.sampling.temperature


# -- as data -----------------------------------------------------------------------------------------------------------


def result_of(rollout: Rollout, id_: str, path: Path) -> RunResult:
    """A rollout, for the process that ordered it."""
    run, asked = rollout.run, rollout.assignment
    key = Key("", asked.task.id, rollout.sample)
    item = Item.of_run(key, asked.task, rollout.grade, run, asked.pool, owners=asked.owners)
    data = {
        "id": rollout.id,
        "sequences": [each.to_json() for each in rollout.sequences],
        "grade": rollout.grade.to_json(),
        "episode": rollout.episode.to_json(),
        "item": item.to_json(),
        "candidates": [_candidate_to_json(each) for each in rollout.candidates],
        "seconds": run.seconds,
        "pool": run.pool_id,
    }
    return RunResult(id_, "done", run.answer, run.stop, run.detail, run.usage, trace=str(path), data=data)


def rollout_of(result: RunResult, assignment: Assignment, sample: int, path: Path) -> Rollout:
    """The inverse of `result_of`.

    Args:
        path: where the trace is here.
    """
    from concertino import Run

    data = result.data
    run: Run[Any] = Run(
        result.id,
        assignment.text,
        result.answer,
        result.stop,
        result.detail,
        [],
        result.usage,
        data["seconds"],
        data["pool"],
        [],
        path,
    )
    return Rollout(
        data["id"],
        assignment,
        sample,
        [TokenSequence.from_json(each) for each in data["sequences"]],
        run,
        Grade.from_json(data["grade"]),
        Episode.from_json(data["episode"]),
        [_candidate(each) for each in data["candidates"]],
        Item.from_json(data["item"]),
    )


def _candidate_to_json(each: TurnCandidate) -> dict[str, Any]:
    return {
        "key": list(each.key),
        "sequence": each.sequence.to_json(),
        "episode": each.episode.to_json(),
        "reward": each.reward.to_json(),
        "chosen": each.chosen,
    }


def _candidate(data: Mapping[str, Any]) -> TurnCandidate:
    return TurnCandidate(
        GroupKey(*data["key"]),
        TokenSequence.from_json(data["sequence"]),
        Episode.from_json(data["episode"]),
        Scored.from_json(data["reward"]),
        data["chosen"],
    )
