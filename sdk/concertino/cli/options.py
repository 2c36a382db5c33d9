"""Options that several commands share: how to print, which pool, which strategy.

A *choice* is what the command line says about a pool. Without one the pool is the file that the settings name, else
everything installed.
"""

from __future__ import annotations

import functools
import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from concertino.core.errors import PoolError, UsageError

from . import complete
from .terminal import say

if TYPE_CHECKING:
    from concertino.pool.pool import Pool
    from concertino.strategies import Strategy

F = TypeVar("F", bound=Callable[..., Any])


def common_options(function: F) -> F:
    """Add `--json` (as `as_json`) and `--debug` to a command."""
    debug = click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
    as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    return as_json(debug(function))


@dataclass(frozen=True)
class PoolChoice:
    """What the command line says about the pool.

    Attributes:
        file: a pool file.
        only, without: patterns of members.
        roles: models by role.
    """

    file: Path | None = None
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    roles: tuple[tuple[str, str], ...] = ()

    def open(self, **roles: str) -> Pool:
        """The chosen pool, with more roles bound.

        Raises:
            PoolError: an unknown member, model or pattern, or a wrong file; says which.
        """
        from concertino.plugins import default_manager
        from concertino.pool.pool import Pool

        settings = default_manager().settings
        file = self.file or settings.pool
        try:
            pool = Pool.load(file) if file else Pool.installed()
        except PoolError as error:
            if self.file is None:
                raise PoolError(f"`pool` in {settings.file}: {error}; correct it, or give --pool FILE") from error
            raise
        for role, name in {**dict(self.roles), **roles}.items():
            if not name.strip():
                option = "--model" if role == "orchestrator" else f"--bind {role}="
                raise UsageError(f"{option} is empty; expected provider/name, such as openai/gpt-5.4-mini")
            # A full name needs no look at the members, so that only its own plugin is imported.
            pool = pool.bind(**{role: name if "/" in name else _full_name(pool, name)})
        if not all(pattern.strip() for pattern in (*self.only, *self.without)):
            raise UsageError("--only and --without: a pattern is empty; expected a name, or 'provider/*'")
        pool = pool.only(*self.only) if self.only else pool
        return pool.without(*self.without) if self.without else pool

    def __bool__(self) -> bool:
        return self != PoolChoice()

    def __str__(self) -> str:
        """The options again, as a shell takes them."""
        words = ["--pool", str(self.file)] if self.file else []
        words += [word for pattern in self.only for word in ("--only", pattern)]
        words += [word for pattern in self.without for word in ("--without", pattern)]
        words += [word for role, name in self.roles for word in ("--bind", f"{role}={name}")]
        return shlex.join(words)


def pool_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--pool`, `--only`, `--without` and `--bind` to a command, as one `choice`."""

    @functools.wraps(function)
    def chosen(*args: Any, pool_file: Path | None, only: Any, without: Any, bind: Any, **options: Any) -> Any:
        roles = tuple(_pair(text, "--bind", "ROLE=MODEL") for text in bind)
        return function(*args, choice=PoolChoice(pool_file, only, without, roles), **options)

    path = click.Path(path_type=Path)
    # In reverse: `--help` lists first what was added last.
    several: dict[str, Any] = {"multiple": True, "metavar": "PATTERN", "shell_complete": complete.patterns}
    for option in (
        click.option(
            "--bind",
            multiple=True,
            metavar="ROLE=MODEL",
            help="Bind a role to a model.",
            shell_complete=complete.bindings,
        ),
        click.option("--without", help="Leave out members, such as toy/slow.", **several),
        click.option("--only", help="Keep these members only, such as 'toy/*'.", **several),
        click.option(
            "--pool",
            "pool_file",
            type=path,
            metavar="FILE",
            help="A pool file (TOML or YAML).",
            shell_complete=complete.pool_files,
        ),
    ):
        chosen = option(chosen)
    return chosen


def view_options(function: F) -> F:
    """Add `--live/--plain` (as `live`)."""
    text = "A live view, or plain lines; by default live on a terminal."
    return click.option("--live/--plain", "live", default=None, help=text)(function)


def _pair(text: str, option: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise UsageError(f"{option} {text!r}: expected {form}")
    return name, value


def make_strategy(name: str | None, settings: tuple[str, ...]) -> Strategy:
    """A strategy, by default the default one, with settings given as `key=value`.

    A value is read as JSON where that is possible, else it is a text.

    Raises:
        UsageError: no such strategy or setting, or a value of the wrong kind.
    """
    from concertino.strategies import DEFAULT_STRATEGY, installed_strategy, load_strategy

    name = name or DEFAULT_STRATEGY
    if name.endswith((".toml", ".json")):
        if settings:
            raise UsageError(f"--set {settings[0]}: the settings of a workflow are in its file, {name}")
        return load_strategy(name)
    chosen = installed_strategy(name)
    defaults: dict[str, object] = {f.name: f.default for f in fields(chosen)} if is_dataclass(chosen) else {}
    values = dict(_setting(text, name, list(defaults)) for text in settings)
    written = {text.partition("=")[0]: text for text in settings}
    for key, value in values.items():
        _check_kind(f"--set {written[key]}", defaults[key], value)
    try:
        return chosen(**values)
    except TypeError as error:
        raise UsageError(f"--set {' '.join(settings)}: the strategy {name!r} refused it: {error}") from error


def _setting(text: str, strategy: str, known: list[str]) -> tuple[str, Any]:
    name, value = _pair(text, "--set", "KEY=VALUE")
    if name not in known:
        raise UsageError(f"--set {text}: {strategy!r} has no setting {name!r}; it has {', '.join(known) or 'none'}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _check_kind(where: str, default: object, value: object) -> None:
    """Refuse a value of another kind than the default, where that says what is expected."""
    kinds = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    wanted = kinds.get(type(default))
    # Exact types, because `true` is an `int` to Python; 1 may stand for 1.0.
    fits = type(value) is type(default) or (type(default) is float and type(value) is int)
    if wanted is not None and not fits:
        raise UsageError(f"{where}: expected {wanted}, such as {json.dumps(default)}")


def check_leader(pool: Pool, *, asked: bool = True) -> None:
    """Make sure that a model leads: the pool's role `orchestrator`.

    Args:
        asked: whether the model will be asked, which it is not in a replay; then it must lack nothing.

    Raises:
        PoolError: no model does; says how to choose one.
        UsageError: it lacks something that can be known now, such as its key.
    """
    from .leaders import chosen_leader, leaders

    if (bound := pool.roles.get("orchestrator")) is not None:
        _full_name(pool, bound)
    leader = chosen_leader(pool)
    if leader is None:
        able = [each.name for each in leaders(pool) if not each.why]
        there = f"there are: {', '.join(able[:12])}{', …' if len(able) > 12 else ''}" if able else _no_models()
        raise PoolError(
            f"no model is chosen to lead the run; give --model NAME ({there}), or bind the role 'orchestrator' in a "
            "pool file"
        )
    if leader.why and asked:
        raise UsageError(f"{leader.name} cannot lead: {leader.why}{f'; {leader.step}' if leader.step else ''}")


def _no_models() -> str:
    """What to do where no model is known."""
    from concertino.plugins import default_manager

    if "openai" in {row.name for row in default_manager().plugins()}:
        return "none is known: set the key of a service, such as OPENAI_API_KEY; `concertino doctor` lists them"
    return "none is installed: pip install 'concertino[openai]', and set OPENAI_API_KEY"


def _full_name(pool: Pool, name: str) -> str:
    """The full name of a model given by full or short name."""
    found = [spec.name for spec in pool.models if name in (spec.name, spec.short_name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise PoolError(f"model {name!r} is ambiguous; give the full name: {' or '.join(found)}")
    from concertino.schema import suggestion

    hint = suggestion(name, [spec.name for spec in pool.models], f"there are: {_names(pool)}")
    in_full = "" if hint.endswith("?") else f"; give another one in full, such as 'openai/{name}'"
    raise PoolError(f"the pool has no model {name!r}; {hint}{in_full}")


def _names(pool: Pool) -> str:
    return ", ".join(spec.name for spec in pool.models) or "none"


def read_stdin() -> str:
    """Everything on stdin.

    Raises:
        UsageError: it is not text in UTF-8.
    """
    try:
        # From the bytes: Python decodes stdin by the locale, which on Windows is not UTF-8.
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"stdin is not UTF-8 text: {error}") from error


def warn_about_broken_plugins() -> None:
    """Say on stderr which installed plugins are left out, and why."""
    from concertino.plugins import default_manager

    for row in default_manager().plugins():
        if row.state in ("failed", "clash"):
            say(f"left out: plugin {row.name!r}: {row.reason} (see `concertino doctor`)", error=True)
