"""`check_package`: checks everything that an installed distribution publishes.

A distribution may say more of its members in a mapping `concertino_examples` in the module of its hooks, by short
name: a list of examples, or a mapping with attributes of `MemberSubject`, `ModelSubject` or `StrategySubject`.

    concertino_examples = {
        "count_letter": {"examples": [({"text": "banana", "letter": "a"}, 3)], "rejected": [{"text": "banana"}]},
    }

Without it, only what needs no example is checked: nothing of a member runs, and no model is asked; the report says
what is *missing*. A strategy is driven in any case, with replies and observations that are made up.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

from concertino.core.errors import PluginError, UsageError
from concertino.members.specs import AgentSpec, ModelSpec, Spec
from concertino.plugins import PluginManager, default_manager
from concertino.plugins.status import PluginInfo
from concertino.schema import suggestion
from concertino.strategies.base.machine import Strategy

from .agent_checks import AGENT_CHECKS
from .call_checks import CALL_CHECKS
from .check import (
    CheckRow,
    MemberSubject,
    ModelSubject,
    perform,
    requirement_of,
    strategy_subject_from,
    subject_from,
)
from .declaration_checks import DECLARATION_CHECKS, MODEL_DECLARATION_CHECKS
from .model_checks import MODEL_CHECKS
from .report import ConformanceReport
from .strategy_checks import STRATEGY_CHECKS

_LOADS = "The plugin is imported, and every hook of it can be used."
_METADATA = "Its metadata says what it does, and which Python and concertino it needs."
_EXAMPLES = "Its `concertino_examples` name its members and strategies, in the known form."
_MADE = "It is a `Strategy` whose settings have defaults, or the one to check is given."


def check_package(
    name: str,
    *,
    manager: PluginManager | None = None,
    only: str = "",
    tell: Callable[[CheckRow], None] = lambda row: None,
) -> ConformanceReport:
    """Check all members of a distribution. Call it outside of any event loop.

    Args:
        name: the distribution (`concertino-words`), its provider (`words`), or its package (`concertino_words`).
        manager: whose plugins; by default the installed ones.
        only: the one member or strategy to check, by its short or full name.
        tell: called with each row as soon as it is known.

    Raises:
        UsageError: nothing installed has that name; gives near names.
    """
    manager = manager or default_manager()
    rows: list[CheckRow] = []
    for info in _providers(name, manager):
        for row in _check_provider(info, manager, only):
            tell(row)
            rows.append(row)
    return ConformanceReport(name, tuple(rows))


def _providers(name: str, manager: PluginManager) -> list[PluginInfo]:
    known = manager.plugins()
    found = [info for info in known if _canonical(name) in {_canonical(other) for other in _names(info)}]
    if not found:
        names = sorted({other for info in known for other in _names(info)})
        raise UsageError(f"no installed plugin is called {name!r}; {suggestion(name, names)}")
    return found


def _names(info: PluginInfo) -> list[str]:
    return [info.name, *info.distribution.split(", "), re.split(r"[.:\s]", info.target)[0]]


def _canonical(name: str) -> str:
    # PEP 503: names of distributions are compared in this form.
    return re.sub(r"[-_.]+", "-", name).lower()


def _check_provider(info: PluginInfo, manager: PluginManager, only: str) -> Iterator[CheckRow]:
    subject = f"plugin {info.name}"
    loaded = manager.load(info.name)
    if loaded.state != "loaded":
        yield CheckRow("it_loads", subject, "failed", f"{loaded.state}: {loaded.reason}", _LOADS)
        return
    yield CheckRow("it_loads", subject, "ok", "", _LOADS)
    if row := _metadata(info, subject):
        yield row
    specs = {spec.name: spec for spec in (manager.specs([f"{info.name}/*"]) if loaded.members else [])}
    strategies = {name: cls for name, cls in manager.strategies().items() if name.startswith(f"{info.name}/")}
    published = [*specs, *strategies]
    chosen = [name for name in published if only in ("", name, name.partition("/")[2])]
    if published and not chosen:
        raise UsageError(f"{info.name!r} publishes no {only!r}; there are {', '.join(published)}")
    given, problem = _examples(info, specs, strategies)
    if problem:
        yield CheckRow("its_examples_can_be_read", subject, "failed", problem, _EXAMPLES)
    elif given:
        yield CheckRow("its_examples_can_be_read", subject, "ok", "", _EXAMPLES)
    for name in chosen:
        if name in specs:
            yield from _check_member(specs[name], given.get(name))
        else:
            yield from _check_strategy(name, strategies[name], given.get(name))


def _metadata(info: PluginInfo, subject: str) -> CheckRow | None:
    """What an index such as PyPI shows of the distribution, and what pip goes by; None for what is not installed."""
    try:
        known = metadata(info.distribution)
    except (PackageNotFoundError, ValueError):
        return None
    # The name ends where a version, an extra or a marker begins.
    needs = [re.split(r"[^A-Za-z0-9_.-]", need, maxsplit=1)[0] for need in known.get_all("Requires-Dist") or ()]
    lacking = {
        "`description`": "Summary" not in known,
        "`requires-python`": "Requires-Python" not in known,
        "`dependencies` with concertino": "concertino" not in map(_canonical, needs),
    }
    wrong = [what for what, lacks in lacking.items() if lacks]
    detail = f"pyproject.toml lacks {', '.join(wrong)}" if wrong else ""
    return CheckRow("its_metadata_says_what_it_is", subject, "failed" if wrong else "ok", detail, _METADATA)


def _check_member(spec: Spec, subject: MemberSubject | ModelSubject | None) -> Iterator[CheckRow]:
    if isinstance(spec, ModelSpec):
        yield from (perform(check, spec) for check in MODEL_DECLARATION_CHECKS)
        for check in MODEL_CHECKS:
            asked = "`concertino_examples` does not name it, so it is not asked"
            yield (
                perform(check, subject)
                if subject
                else CheckRow(check.__name__, spec.name, "missing", asked, requirement_of(check))
            )
        return
    checks = AGENT_CHECKS if isinstance(spec, AgentSpec) else (*DECLARATION_CHECKS, *CALL_CHECKS)
    yield from (perform(check, subject or MemberSubject(spec)) for check in checks)


def _check_strategy(name: str, strategy: type, given: Any) -> Iterator[CheckRow]:
    try:
        if not issubclass(strategy, Strategy):
            raise UsageError(f"{strategy.__name__} is not a subclass of concertino.Strategy")
        subject = given or strategy_subject_from(strategy, {}, f"concertino_examples[{name.partition('/')[2]!r}]")
    except Exception as error:  # its settings are checked by foreign code
        yield CheckRow("it_can_be_made", name, "failed", str(error), _MADE)
        return
    yield CheckRow("it_can_be_made", name, "ok", "", _MADE)
    # Under the name that the plugin publishes: the class may have another one.
    yield from (replace(perform(check, subject), subject=name) for check in STRATEGY_CHECKS)


def _examples(
    info: PluginInfo, specs: Mapping[str, Spec], strategies: Mapping[str, type]
) -> tuple[dict[str, Any], str]:
    """Subjects by full name, from the mapping in the module of the hooks; or what is wrong with it."""
    try:
        given = _mapping(info)
        by_name = {name: full for full in (*specs, *strategies) for name in (full, full.partition("/")[2])}
        strangers = [name for name in given if name not in by_name]
        if strangers:
            raise UsageError(f"concertino_examples names {strangers[0]!r}; it publishes {', '.join(by_name)}")
        subjects: dict[str, Any] = {}
        for name, value in given.items():
            full, where = by_name[name], f"concertino_examples[{name!r}]"
            subjects[full] = (
                subject_from(specs[full], value)
                if full in specs
                else strategy_subject_from(strategies[full], value, where)
            )
        return subjects, ""
    except (UsageError, PluginError) as error:
        return {}, str(error)


def _mapping(info: PluginInfo) -> Mapping[str, Any]:
    if not info.target.partition(":")[0].isidentifier() and "." not in info.target:
        return {}  # registered in this process, not installed
    module_name, _, attribute = (part.strip() for part in info.target.partition(":"))
    target: Any = importlib.import_module(module_name)
    for step in filter(None, attribute.split(".")):
        target = getattr(target, step)
    given = getattr(target, "concertino_examples", {})
    if not isinstance(given, Mapping):
        raise PluginError(f"concertino_examples is {type(given).__name__}; expected a mapping by member name")
    return given
