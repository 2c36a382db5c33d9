"""Objects that settings name: functions, the strategy, the reward.

It stands beside the settings because a name that cannot be made is an error of the settings file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from concertino import Strategy, UsageError

from concertino_train.settings import did_you_mean, imported

from .sections import Named, StrategySection

if TYPE_CHECKING:
    from concertino_train.rewards.reward import Reward


MAKERS: Mapping[str, str] = {"practice": "concertino_train.practice:practice_workflow"}
"""Functions that make strategies, by the names that settings files use."""


def make_named(section: Named, known: Mapping[str, str], key: str, **more: Any) -> Any:
    """What a function gives that settings name, with their arguments.

    Args:
        section: a name of `known` or `module:function`, and arguments.
        known: `module:function` by name.
        key: of the settings, for errors.
        more: further arguments.

    Raises:
        UsageError: the function does not exist, or it refuses the arguments.
    """
    target = known.get(section.name, section.name)
    module, colon, attribute = target.partition(":")
    if not colon:
        raise UsageError(f"{key}: got {section.name!r}; expected one of {', '.join(known)}, or module:function")
    try:
        function = getattr(imported(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"{key}: {target} cannot be imported: {error}") from error
    arguments = {**section.settings, **more}
    try:
        return function(**arguments)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{key}: {section.name} refuses {section.settings}: {error}") from error


def make_strategy(section: StrategySection) -> Strategy:
    """The strategy that a section such as `rollout.strategy` describes.

    Args:
        section: its name and its settings.

    Raises:
        UsageError: an unknown strategy or setting, or it refuses a value; gives near names.
    """
    from concertino.strategies import installed_strategy

    settings = section.settings
    if "make" in settings:
        return _made(section)
    kind = installed_strategy(section.name)
    known: list[str] = [each.name for each in fields(kind)] if is_dataclass(kind) else []
    if "file" in settings and "file" not in known:
        return _from_file(kind, settings)
    if "environment" in settings and "environment" not in known:
        return _for_environment(section, known)
    _known(section.name, settings, known)
    try:
        return kind.from_json({"name": section.name, **settings})
    except (TypeError, ValueError, KeyError) as error:
        raise UsageError(f"the strategy {section.name!r} refuses {settings}: {error}") from error


def _made(section: StrategySection) -> Strategy:
    """What a function gives: `{name: my-strategy, make: "module:function", turns: 2}`."""
    settings = section.settings
    called = type(section)(name=str(settings.pop("make")), **settings)
    # `name` says what it has to be; who makes it stands in `make`.
    return _named_so(make_named(called, MAKERS, "rollout.strategy.make"), called.name, section.name)


def _named_so(strategy: Any, maker: str, name: str) -> Strategy:
    """Return what was made; refuse it if it is not the strategy that was asked for."""
    if not isinstance(strategy, Strategy) or strategy.name != name:
        got = strategy.name if isinstance(strategy, Strategy) else type(strategy).__name__
        raise UsageError(f"rollout.strategy: {maker} gave {got}; expected the strategy {name!r}")
    return strategy


def _from_file(kind: type[Strategy], settings: Mapping[str, Any]) -> Strategy:
    """The strategy that stands in a file."""
    file, given = settings["file"], [key for key in settings if key != "file"]
    if given:
        raise UsageError(f"{kind.name} with file and {', '.join(given)}: its settings stand in {file}")
    return kind.load(str(file))


def _for_environment(section: StrategySection, known: list[str]) -> Strategy:
    """The strategy that concertino-bench has for an environment."""
    from concertino_bench.environments import workflow_for

    given = dict(section.settings)
    environment = str(given.pop("environment"))
    _known(section.name, given, [*known, "python"])
    try:
        strategy = workflow_for(environment, **given)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{section.name}, environment={environment!r}: {error}") from error
    return _named_so(strategy, f"environment={environment!r}", section.name)


def _known(name: str, given: Mapping[str, Any], known: list[str]) -> None:
    for key in given:
        if key not in known:
            raise UsageError(f"the strategy {name!r} has no setting {key!r}; {did_you_mean(key, known)}")


def make_reward(section: Mapping[str, Any]) -> Reward:
    """The reward that the section `reward` describes, made of installed terms and presets.

    Raises:
        UsageError: an unknown key, term, preset or parameter, with near names; or a value that cannot be.
    """
    from concertino_train.rewards import PRESETS, TERMS
    from concertino_train.rewards.installed import installed_rewards
    from concertino_train.rewards.reward import Reward

    wanted = {str(section.get("preset", ""))} - {""}
    entries = section.get("terms", {})
    if isinstance(entries, Mapping):
        terms = {str(entry["term"]) for entry in entries.values() if isinstance(entry, Mapping) and "term" in entry}
    else:
        terms = set()
    if terms <= TERMS.keys() and wanted <= PRESETS.keys():
        return Reward.from_json(section)
    catalogue = installed_rewards()  # imports every plugin; only for what does not come with this one
    return Reward.from_json(section, terms=catalogue.terms, presets=catalogue.presets)
