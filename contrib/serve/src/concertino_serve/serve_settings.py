"""The settings file of a server: what it serves, to whom, and within which limits.

    traces = "runs"                       # where the runs are recorded; by default as the project's settings say
    [presets.helper]                      # a model that clients see, `helper`
    pool = "pool.toml"                    # by default the pool of the project's settings, else all that is installed
    model = "openai/gpt-5.4-mini"         # who leads; by default the role `orchestrator` of the pool
    strategy = "parallel-rounds"
    budget = "usd=0.5,seconds=120"
    members = ["openai/gpt-5.4-mini"]     # models of the pool that clients may ask alone, by their names
    [keys.ada]                            # a client
    env = "ADA_KEY"                       # the variable of the environment that holds its key
    usd_per_day = 5.0
    [mcp]                                 # the pool as an MCP server, at /mcp
    members = ["toy/*"]                   # the tools beside `ask`; by default all

Invariant: a key stands in the environment, never in the file; what the file says is checked before the server listens.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from concertino import Budget, Pool, ToolSpec
from concertino.cli.options import PoolChoice, make_strategy
from concertino.core.documents import check_keys, read_document
from concertino.core.errors import ConcertinoError, UsageError
from concertino.core.known_secrets import Secret, read_secret
from concertino.members.patterns import matches
from concertino.strategies import Strategy

T = TypeVar("T")
OnDisconnect = Literal["cancel", "continue"]
_LEAST_KEY = 16
"""Characters of a key at least: a shorter one can be guessed."""
_MB = 1 << 20


@dataclass(frozen=True)
class Preset:
    """A served model.

    Attributes:
        name: as clients give it.
        model: who leads: a role or a name in the pool.
        strategy: None for the default one.
        budget: of each run.
        instructions: what the leader is told beside its task.
        on_disconnect: what becomes of a run whose last client has left.
        side: answers side prompts of chat pages; None if they are questions like any other.
    """

    name: str
    pool: Pool
    model: str = "orchestrator"
    strategy: Strategy | None = None
    budget: Budget = field(default_factory=Budget)
    instructions: str = ""
    on_disconnect: OnDisconnect = "cancel"
    side: Preset | None = None

    def for_request(self, side: bool) -> Preset:
        """Who answers.

        Args:
            side: the request is a side prompt.
        """
        return self.side if side and self.side is not None else self

    def alone(self, model: str) -> Preset:
        """A model of its pool that answers alone, without calls, and with the same budget.

        Raises:
            PoolError: the model is not in the pool.
        """
        name = self.pool.model(model).name
        return replace(
            self, name=name, pool=self.pool.arranged([]), model=name, strategy=None, instructions="", side=None
        )


@dataclass(frozen=True)
class ClientKey:
    """A client, and what it may use; None is no limit.

    Attributes:
        name: of the client; it owns the runs that it begins.
        secret: what it sends as `Authorization: Bearer ...`.
        usd_per_day: $ from midnight to midnight, UTC.
        runs: at once.
        per_minute: runs that it may begin.
    """

    name: str
    secret: Secret
    usd_per_day: float | None = None
    runs: int | None = None
    per_minute: int | None = None


@dataclass(frozen=True)
class Limits:
    """Limits of the whole server.

    Attributes:
        runs: at once, of all clients.
        body_bytes: of a request.
        body_seconds: until its body has come.
        drain_seconds: how long a stop waits for runs; then they are suspended, and go on at the next start.
    """

    runs: int = 64
    body_bytes: int = 16 * _MB
    body_seconds: float = 30.0
    drain_seconds: float = 10.0


@dataclass(frozen=True)
class McpOffer:
    """What clients of MCP find, beside the tool `ask`.

    Attributes:
        preset: whose pool, budget and `on_disconnect` hold for calls of members; the first where empty.
        members: patterns of the members that are tools.
        approved: patterns of the members that need a person's approval, and that clients may call without it. No other
            such member is a tool.
        task_seconds: how long a call may take until it becomes a task, for a client that can read tasks.
    """

    preset: str = ""
    members: tuple[str, ...] = ("*",)
    approved: tuple[str, ...] = ()
    task_seconds: float = 10.0

    def approves(self, spec: ToolSpec) -> bool:
        """Whether clients may call a member that needs a person's approval."""
        return any(matches(spec, pattern) for pattern in self.approved)


@dataclass(frozen=True)
class ServeSettings:
    """What a server is.

    Attributes:
        mcp: None where it is no MCP server.
        a2a: whether its presets are agents for clients of A2A.
        hosts: names under which it may be asked, beside those of this machine.
        origins: of pages that may ask, beside its own.
        files: that say it: the settings file and the pool files.
    """

    presets: Mapping[str, Preset]
    keys: tuple[ClientKey, ...] = ()
    limits: Limits = field(default_factory=Limits)
    traces: Path | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    mcp: McpOffer | None = None
    a2a: bool = False


def read_serve_settings(file: Path) -> ServeSettings:
    """The settings of a file.

    Raises:
        UsageError: something in it is wrong; names the file, the key and what was expected.
        PoolError: a pool cannot be made.
    """
    data = read_document(file, error=UsageError)
    check_keys(str(file), data, ("presets", "keys", "limits", "traces", "hosts", "origins", "mcp"), UsageError)
    presets: dict[str, Preset] = {}
    for name, table in _tables(file, data, "presets").items():
        _add(file, presets, _preset(file, name, table), _texts(str(file), table, "members"))
    if not presets:
        raise UsageError(f'{file}: there is no preset; add [presets.helper] with pool = "pool.toml"')
    traces = _value(str(file), data, "traces", str, None)
    return ServeSettings(
        presets,
        tuple(_key(file, name, table) for name, table in _tables(file, data, "keys").items()),
        _limits(file, data.get("limits", {})),
        file.parent / traces if traces is not None else None,
        _texts(str(file), data, "hosts"),
        _texts(str(file), data, "origins"),
        tuple(dict.fromkeys([file, *(each.pool.file[0] for each in presets.values() if each.pool.file is not None)])),
        _mcp(file, data["mcp"], presets) if "mcp" in data else None,
    )


def _add(file: Path, presets: dict[str, Preset], preset: Preset, members: Sequence[str]) -> None:
    """Add a preset, and the models of its pool that are served alone."""
    for made in (preset, *(_alone(file, preset, "members", member) for member in members)):
        if made.name in presets:
            raise UsageError(f"{file}: presets.{preset.name}: {made.name!r} is served already; name it once")
        presets[made.name] = made


def _alone(file: Path, preset: Preset, key: str, model: str) -> Preset:
    try:
        return preset.alone(model)
    except ConcertinoError as error:
        raise UsageError(f"{file}: presets.{preset.name}: {key}: {error}") from error


def _preset(file: Path, name: str, table: Mapping[str, Any]) -> Preset:
    where = f"{file}: presets.{name}"
    known = ("pool", "model", "strategy", "set", "budget", "instructions", "on_disconnect", "members", "side_model")
    check_keys(where, table, known, UsageError)
    pool_file = _value(where, table, "pool", str, None)
    pool = PoolChoice(file.parent / pool_file if pool_file is not None else None).open()
    left = _value(where, table, "on_disconnect", str, "cancel")
    if left not in ("cancel", "continue"):
        raise UsageError(f"{where}: on_disconnect = {left!r}; expected 'cancel' or 'continue'")
    model = _value(where, table, "model", str, "orchestrator")
    try:
        pool.model(model)
    except ConcertinoError as error:
        raise UsageError(f"{where}: {error}") from error
    preset = Preset(
        name,
        pool,
        model,
        _strategy(file, where, table),
        Budget.parse(_value(where, table, "budget", str, "")),
        _value(where, table, "instructions", str, ""),
        cast("OnDisconnect", left),
    )
    side = _value(where, table, "side_model", str, None)
    return preset if side is None else replace(preset, side=_alone(file, preset, "side_model", side))


def _strategy(file: Path, where: str, table: Mapping[str, Any]) -> Strategy | None:
    name = _value(where, table, "strategy", str, None)
    chosen = _value(where, table, "set", dict, {})
    if name is None and not chosen:
        return None
    if name is not None and name.endswith((".toml", ".json")):
        name = str(file.parent / name)
    try:
        return make_strategy(name, tuple(f"{key}={json.dumps(value)}" for key, value in chosen.items()))
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error


def _key(file: Path, name: str, table: Mapping[str, Any]) -> ClientKey:
    where = f"{file}: keys.{name}"
    check_keys(where, table, ("env", "usd_per_day", "runs", "per_minute"), UsageError)
    variable = _value(where, table, "env", str, None)
    if variable is None:
        raise UsageError(f'{where}: env is missing; name the variable that holds the key: env = "{name.upper()}_KEY"')
    secret = read_secret(variable)
    if len(secret) < _LEAST_KEY:
        raise UsageError(
            f"{where}: the variable {variable} {'is not set' if not secret else 'is too short'}; expected "
            f"{_LEAST_KEY} characters or more, such as: export {variable}=$(openssl rand -hex 24)"
        )
    usd = _value(where, table, "usd_per_day", float, None, least=0.0)
    runs, rate = (_value(where, table, each, int, None, least=1) for each in ("runs", "per_minute"))
    return ClientKey(name, secret, usd, runs, rate)


def _mcp(file: Path, table: Any, presets: Mapping[str, Preset]) -> McpOffer:
    where = f"{file}: mcp"
    if not isinstance(table, dict):
        raise UsageError(f"{where}: expected a table, got {table!r}")
    check_keys(where, table, McpOffer.__dataclass_fields__, UsageError)
    preset = _value(where, table, "preset", str, "")
    if preset and preset not in presets:
        raise UsageError(f"{where}: preset = {preset!r}; expected one of: {', '.join(presets)}")
    usual = McpOffer()
    return McpOffer(
        preset,
        _texts(where, table, "members") if "members" in table else usual.members,
        _texts(where, table, "approved"),
        _value(where, table, "task_seconds", float, usual.task_seconds, least=0.0),
    )


def _limits(file: Path, table: Any) -> Limits:
    where = f"{file}: limits"
    if not isinstance(table, dict):
        raise UsageError(f"{where}: expected a table, got {table!r}")
    check_keys(where, table, Limits.__dataclass_fields__, UsageError)
    usual = Limits()
    return Limits(
        _value(where, table, "runs", int, usual.runs, least=1),
        _value(where, table, "body_bytes", int, usual.body_bytes, least=1024),
        _value(where, table, "body_seconds", float, usual.body_seconds, least=0.1),
        _value(where, table, "drain_seconds", float, usual.drain_seconds, least=0.0),
    )


_KINDS: dict[type, tuple[str, Callable[[Any], bool]]] = {
    str: ("a text in quotes", lambda value: isinstance(value, str)),
    int: ("a whole number", lambda value: type(value) is int),
    float: ("a number", lambda value: type(value) in (int, float)),
    dict: ("a table", lambda value: isinstance(value, dict)),
}


def _value(where: str, table: Mapping[str, Any], key: str, kind: type, usual: Any, least: float | None = None) -> Any:
    if key not in table:
        return usual
    value, (words, fits) = table[key], _KINDS[kind]
    if not fits(value):
        raise UsageError(f"{where}: {key} = {value!r}; expected {words}")
    if least is not None and not value >= least:
        raise UsageError(f"{where}: {key} = {value!r}; expected {least:g} or more")
    return value


def _tables(file: Path, data: Mapping[str, Any], key: str) -> Mapping[str, Mapping[str, Any]]:
    found = data.get(key, {})
    if not isinstance(found, dict) or not all(isinstance(table, dict) for table in found.values()):
        raise UsageError(f"{file}: {key}: expected tables such as [{key}.helper], got {found!r}")
    return found


def _texts(where: str, data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    found = data.get(key, [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise UsageError(f"{where}: {key} = {found!r}; expected a list of texts")
    return tuple(found)
