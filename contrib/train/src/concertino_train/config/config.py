"""One training, whole: all sections, checked, with a hash.

    config = load_config("paramanager/toy", ["trainer.rl.steps=20"])
    config.resolved()                # everything, defaults included, as plain data
    config.id                        # 16 hex digits: equal for equal trainings

The invariant: what a `TrainConfig` holds can be trained, as far as that can be known without the model and the data:
every key is known, every number in its range, strategy and reward exist with the settings that they are given.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin

from concertino import UsageError
from concertino.strategies import installed_strategy
from pydantic import BaseModel, Field, ValidationError

from concertino_train.settings import Section, did_you_mean

from .data import DataSection
from .learning import AlgorithmSection, LoggingSection, RolesSection, TrainerSection
from .named import make_reward, make_strategy
from .reading import Given, Keys, read_settings
from .sections import ModelSection, PoolSection, RolloutSection, TasksSection

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

SCALE = (
    "name",
    "about",
    "logging",
    "tasks.eval",
    "rollout.tool_threads",
    "rollout.on",
    "rollout.env",
    "rollout.listen",
    "trainer.eval",
    "trainer.output",
    "trainer.device",
    "trainer.threads",
    "trainer.processes",
    "trainer.nodes",
    "trainer.accelerate",
    "trainer.keep",
    "trainer.rl.steps",
    "trainer.rl.save_every",
    "trainer.rl.eval_every",
    "trainer.rl.audit",
    "trainer.sft.steps",
    "trainer.sft.epochs",
    "trainer.sft.save_every",
    "trainer.sft.eval_every",
)
"""What may change when a training resumes: how long, where, what is logged. Anything else makes it another training."""


class TrainConfig(Section):
    """All settings of a training.

    Attributes:
        name: for logs and cards.
        about: what it is, in a sentence.
        model: the policy.
        pool: what may be called.
        tasks: the questions.
        data: trajectories for supervised learning.
        rollout: how rollouts are made.
        reward: how they are scored: what `concertino_train.rewards.Reward.from_json` takes.
        algorithm: the update of reinforcement learning.
        trainer: optimisation.
        logging: what is logged.
        roles: who plays the roles of a workflow.
    """

    name: str = "training"
    about: str = ""
    model: ModelSection = ModelSection()
    pool: PoolSection = PoolSection()
    tasks: TasksSection = TasksSection()
    data: DataSection = DataSection()
    rollout: RolloutSection = RolloutSection()
    reward: dict[str, Any] = Field(default_factory=lambda: {"terms": {"correct": {"term": "shared/correct"}}})
    algorithm: AlgorithmSection = AlgorithmSection()
    trainer: TrainerSection = TrainerSection()
    logging: LoggingSection = LoggingSection()
    roles: RolesSection = RolesSection()

    def check(self) -> None:
        """See `Section.check`."""
        self._check_grouping()
        own = self.roles.policies
        if own == "lora" and self.model.adapter is None:
            raise ValueError("roles.policies=lora needs model.adapter, which says what an adapter is: {rank: 16}")
        if own == "full" and self.model.adapter is not None:
            raise ValueError("roles.policies=full trains whole models; leave out model.adapter, or take lora")
        if own == "full" and self.trainer.sharding == "full":
            raise ValueError(
                "roles.policies=full with trainer.sharding=full: a process would need the whole models of all roles at "
                "once; take roles.policies=lora, which shards one model with an adapter for each role"
            )
        if own != "shared" and len(parts := make_strategy(self.rollout.strategy).parts) < 2:
            name = self.rollout.strategy.name
            raise ValueError(
                f"roles.policies={own} needs a rollout.strategy in which several roles speak; in {name} only "
                f"{', '.join(parts)} does"
            )
        if self.data.rewrite is not None:
            installed_strategy(self.data.rewrite)
        if own != "shared" and self.rollout.backend == "vllm":
            raise ValueError("a policy for each role is sampled in this process: rollout.backend=transformers")
        new = self.model.new
        if new is not None and (new.hidden % new.heads or (new.hidden // new.heads) % 2):
            raise ValueError(f"model.new: hidden={new.hidden} / heads={new.heads} has to be even")

    def _check_grouping(self) -> None:
        """What is compared has to be what is sampled."""
        tree, grouping = self.rollout.tree, self.algorithm.grouping
        if (tree is not None) != (grouping == "agent_turn"):
            raise ValueError(
                f"algorithm.grouping={grouping} with {'a' if tree else 'no'} rollout.tree; groups of agent and turn "
                "are the texts that a tree tries, and a tree has no other groups: give both or none of them"
            )
        if self.algorithm.filters.invalid and grouping == "agent_turn":
            raise ValueError(
                "algorithm.filters.invalid with a tree; it leaves out whole rollouts without an answer: the texts that "
                "a tree tries are judged by their scores, and filters.format leaves out what could not be read"
            )
        if self.algorithm.sampling.enabled and grouping == "agent_turn":
            raise ValueError("algorithm.sampling.enabled with a tree; dynamic sampling draws whole rollouts")

    # -- as data -------------------------------------------------------------------------------------------------------

    def resolved(self) -> dict[str, Any]:
        """Everything, defaults included, as plain JSON data; `load_config` makes an equal training of it."""
        return self.model_dump(mode="json")

    def text(self) -> str:
        """The result of `resolved` as YAML."""
        import yaml

        return yaml.safe_dump(self.resolved(), sort_keys=False, allow_unicode=True, width=120)

    @property
    def id(self) -> str:
        """16 hex digits of the SHA-256 of what makes this training this one; `SCALE` does not count."""
        kept = {".".join(key): value for key, value in _leaves(self.resolved()) if not _scales(key)}
        return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:16]

    def changes(self, other: TrainConfig) -> dict[str, tuple[Any, Any]]:
        """Differences that make another training: by dotted key, the value here and there."""
        mine = {".".join(key): value for key, value in _leaves(self.resolved()) if not _scales(key)}
        theirs = {".".join(key): value for key, value in _leaves(other.resolved()) if not _scales(key)}
        return {
            key: (mine.get(key), theirs.get(key))
            for key in sorted({*mine, *theirs})
            if mine.get(key) != theirs.get(key)
        }


def load_config(
    source: str | Path | Mapping[str, Any] | None = None,
    overrides: Sequence[str] = (),
    *,
    check: bool = True,
    trusted: bool | None = None,
) -> TrainConfig:
    """Read and check a training.

    Args:
        source: a YAML file, the name of a recipe (`gap`, `gap/toy`), or a table.
        overrides: `key=value`, keys with dots, values in YAML; a table replaces what is there.
        check: see that reward and strategy can be made; needs what they name to be installed.
        trusted: whether files are obeyed that could do harm and that their user has not trusted; by default those that
            a program passes are, and those that the command line is given are not.

    Raises:
        UntrustedFile: a file could do harm, and was not trusted.
        UsageError: an unknown key, with near names; a value that cannot be; each with its place.
    """
    given = read_settings(source, overrides, trusted=trusted)
    try:
        # With a context, sections leave errors to pydantic, which collects all of them with their places.
        config = TrainConfig.model_validate(given.data, context={})
    except ValidationError as error:
        raise UsageError("\n".join(_told(given, each) for each in error.errors())) from None
    made: dict[str, Callable[[], object]] = {
        "reward": lambda: make_reward(config.reward),
        "rollout.strategy": lambda: make_strategy(config.rollout.strategy),
    }
    # A model that was trained elsewhere may name plugins that are not installed here.
    for key, make in made.items() if check else ():
        try:
            make()
        except UsageError as error:
            place = given.where(key.split("."))
            raise UsageError(f"{place}: {key}: {error}" if place else f"{key}: {error}") from error
    return config


# -- errors ------------------------------------------------------------------------------------------------------------


def _told(given: Given, error: ErrorDetails) -> str:
    """An error of pydantic as a sentence: where, what was given, what is expected."""
    path = tuple(str(key) for key in error["loc"])
    key, place = ".".join(path), given.where(path)
    prefix = f"{place}: " if place else ""
    if error["type"] == "extra_forbidden":
        known = list(_fields(path[:-1]))
        return f"{prefix}unknown key {key!r}; {did_you_mean(path[-1], known)}{_elsewhere(path[-1], known)}"
    if error["type"] == "missing":
        return f"{prefix}{'.'.join(path[:-1])}: {path[-1]!r} is missing"
    if error["type"] == "value_error":
        text = error["msg"].removeprefix("Value error, ")
        # Checks of several settings name the one that is wrong first, whose line is nearer than the section's.
        about = re.match(r"[a-z_.]+", text)
        found = given.where([*path, *about[0].split(".")]) if about else place
        return f"{found + ': ' if found else ''}{key + '.' if key else ''}{text}"
    message = error["msg"].removeprefix("Input should be ").removeprefix("a valid ")
    return f"{prefix}{key}: got {error['input']!r}; expected {message}"


def _elsewhere(name: str, known: Sequence[str]) -> str:
    """A key of that very name in another section."""
    if name in known:
        return ""
    found = [".".join(key) for key in _all_fields(TrainConfig, ()) if key[-1] == name]
    return f" (there is {' and '.join(found[:3])})" if found else ""


def _fields(path: Keys) -> Mapping[str, Any]:
    """The known keys of a table."""
    model: Any = TrainConfig
    for key in path:
        model = _model_in(model, key)
        if model is None:
            return {}
    return model.model_fields if isinstance(model, type) and issubclass(model, BaseModel) else {}


def _model_in(model: Any, key: str) -> Any:
    """The model behind a key, an index, or a name of a table."""
    if isinstance(model, type) and issubclass(model, BaseModel):
        found = model.model_fields.get(key)
        return None if found is None else _unwrapped(found.annotation)
    return _unwrapped(get_args(model)[-1]) if get_origin(model) in (list, dict) else None


def _unwrapped(annotation: Any) -> Any:
    """Without `| None`."""
    if get_origin(annotation) in (list, dict) or isinstance(annotation, type):
        return annotation
    inner = [each for each in get_args(annotation) if each is not type(None)]
    return _unwrapped(inner[0]) if inner else annotation


def _all_fields(model: Any, path: Keys) -> Iterator[Keys]:
    for name, found in model.model_fields.items():
        yield (*path, name)
        inner = _unwrapped(found.annotation)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _all_fields(inner, (*path, name))


# -- leaves ------------------------------------------------------------------------------------------------------------


def _leaves(data: Mapping[str, Any], path: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, (*path, str(key)))
        else:
            yield (*path, str(key)), value


def _scales(key: Keys) -> bool:
    return any(key[: depth + 1] == tuple(word.split(".")) for word in SCALE for depth in [word.count(".")])
