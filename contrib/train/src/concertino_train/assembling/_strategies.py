"""The strategy and the reward that a settings file names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino import Strategy, UsageError
from concertino.schema import near_names

if TYPE_CHECKING:
    from concertino_train.config import StrategySection, TrainConfig
    from concertino_train.rewards import Reward


MAKERS: Mapping[str, str] = {"practice": "concertino_train.practice:practice_workflow"}
"""Functions that make strategies, by the names that settings files use."""


def make_strategy(config: TrainConfig, other: StrategySection | None = None) -> Strategy:
    """The strategy of `rollout.strategy`, with its settings.

    Args:
        config: the training.
        other: a section to read instead.

    Raises:
        UsageError: there is no such strategy or setting, or it refuses a value; gives near names.
    """
    from concertino.strategies import BUILT_IN, strategy_by_name

    section = other or config.rollout.strategy
    settings = section.settings
    if "make" in settings:
        return _made(section)
    if section.name == "role-workflow" and ("environment" in settings or "file" in settings):
        return _workflow(settings)
    if section.name in BUILT_IN:
        kind = strategy_by_name(section.name)
    else:
        from concertino.plugins import default_manager

        kind = strategy_by_name(section.name, default_manager().strategies())
    known: list[str] = [each.name for each in fields(kind)] if is_dataclass(kind) else []
    _known(section.name, settings, known)
    try:
        return kind.from_json({"name": section.name, **settings})
    except (TypeError, ValueError, KeyError) as error:
        raise UsageError(f"the strategy {section.name!r} refuses {settings}: {error}") from error


def _made(section: StrategySection) -> Strategy:
    """What a function gives: `{name: role-workflow, make: practice, turns: 2}`."""
    from ._pools import make_named

    settings = section.settings
    called = type(section)(name=str(settings.pop("make")), **settings)
    strategy = make_named(called, MAKERS, "rollout.strategy.make")
    if not isinstance(strategy, Strategy) or strategy.name != section.name:
        got = strategy.name if isinstance(strategy, Strategy) else type(strategy).__name__
        raise UsageError(f"rollout.strategy: {called.name} gave {got}; expected the strategy {section.name!r}")
    return strategy


def _workflow(settings: Mapping[str, Any]) -> Strategy:
    """A workflow of concertino-bench by its environment, or one of a file."""
    from concertino.strategies import RoleWorkflow

    given = dict(settings)
    if "file" in given:
        file = given.pop("file")
        if given:
            raise UsageError(f"role-workflow with file and {', '.join(given)}: its settings stand in {file}")
        return RoleWorkflow.load(Path(str(file)))
    from concertino_bench.environments import workflow_for

    environment = str(given.pop("environment"))
    _known("role-workflow", given, [*(each.name for each in fields(RoleWorkflow)), "python"])
    try:
        return workflow_for(environment, **given)
    except (TypeError, ValueError) as error:
        raise UsageError(f"role-workflow, environment={environment!r}: {error}") from error


def _known(name: str, given: Mapping[str, Any], known: list[str]) -> None:
    for key in given:
        if key not in known:
            near = near_names(key, known)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known) or 'none'}"
            raise UsageError(f"the strategy {name!r} has no setting {key!r}; {hint}")


def make_reward(config: TrainConfig) -> Reward:
    """The reward of the section `reward`, of installed terms and presets.

    Raises:
        UsageError: an unknown key, term, preset or parameter, with near names; or a value that cannot be.
    """
    from concertino_train.rewards import PRESETS, TERMS, Reward, installed_rewards

    wanted = {str(config.reward.get("preset", ""))} - {""}
    entries = config.reward.get("terms", {})
    if isinstance(entries, Mapping):
        terms = {str(entry["term"]) for entry in entries.values() if isinstance(entry, Mapping) and "term" in entry}
    else:
        terms = set()
    if terms <= TERMS.keys() and wanted <= PRESETS.keys():
        return Reward.from_json(config.reward)
    catalogue = installed_rewards()  # imports every plugin; only for what does not come with this one
    return Reward.from_json(config.reward, terms=catalogue.terms, presets=catalogue.presets)
