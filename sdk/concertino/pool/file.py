"""Pool files: a pool written down in TOML or YAML, by the names of installed members and what was changed of
them.

    members = ["toy/*", "search/web"]       # patterns; the order is the order in the pool; absent: everything
    without = ["toy/slow"]
    search = "never"                        # the whole list is shown, however long; absent: "auto"
    sources = ["skills", "weather/server.json"]   # files and folders that plugins make members of
    [roles]
    worker = "toy/steady"
    [aliases]
    "search/web" = "search"
    [descriptions]
    "toy/steady" = "Good at arithmetic."
    [prices."toy/steady"]                   # $ per million tokens, or the word "unknown"
    input = 0.1
    output = 0.4
    [overrides."search/web"]                # fields of the spec; "none" lifts a limit
    timeout = 5
    [models."vllm/coder"]                   # a model that the provider makes from these options
    model = "Qwen/Qwen3-8B"
    [routers.careful]                       # several models under one name
    models = ["vllm/coder", "toy/steady"]
    policy = "fallback"
    [orchestrators.planner]                 # an agent that leads its own run
    description = "Plans and carries out a trip."
    model = "vllm/coder"
    [providers.search]                      # what a provider itself takes, instead of that in concertino.toml
    corpus = "pages.jsonl"

`offer = ["vllm/*"]` at the top offers these models of the pool to the orchestrator as agents.

Saving writes full names and only what differs from the installed members; loading that file with the same
distributions gives an equal pool. What a file cannot hold, such as code, is refused when saving.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino.core.documents import check_keys, read_document, write_document
from concertino.core.errors import PluginError, PoolError, UsageError
from concertino.core.settings import provider_tables
from concertino.core.trust import require
from concertino.core.usage import Cost, Prices
from concertino.members.model_agent import ModelAgent, model_agent
from concertino.members.patterns import is_full_name, matches
from concertino.members.routing import RouterSpec, router_of
from concertino.members.specs import ModelSpec, Spec, ToolSpec

from .named_models import full_name
from .orchestrator_agent import OrchestratorAgent, orchestrator_of
from .pool import Pool

if TYPE_CHECKING:
    from concertino.plugins.manager import PluginManager

KEYS = (
    "members",
    "without",
    "search",
    "sources",
    "offer",
    "roles",
    "aliases",
    "descriptions",
    "prices",
    "overrides",
    "models",
    "routers",
    "orchestrators",
    "providers",
)

_number, _count, _text, _truth = (int, float), int, str, bool
_ACTION_FIELDS: dict[str, Any] = {
    "timeout": _number,
    "concurrency": _count,
    "isolation": _text,
    "max_chars": _count,
    "writes": _truth,
    "retry_safe": _truth,
    "cost": dict,
    "approval": _truth,
}
_MODEL_FIELDS: dict[str, Any] = {
    "timeout": _number,
    "concurrency": _count,
    "context": _count,
    "max_tokens": _count,
}
# TOML has no null, so the word "none" lifts these limits.
_MAY_BE_NONE = ("timeout", "concurrency", "context")


def load_pool(path: Path, manager: PluginManager | None = None, *, trusted: bool | None = None) -> Pool:
    """Read a pool file.

    Args:
        path: a `.toml`, `.yaml` or `.yml` file.
        manager: whose plugins to use; by default the installed ones.
        trusted: whether it is obeyed without having been trusted; by default a program's choice is, and what the
            command line is given is not.

    Raises:
        UntrustedFile: it could do harm, and was not trusted.
        PoolError: names the file, the key, what was expected and what was given.
        PluginError: it names a provider that is failed or disabled.
    """
    data = read_document(path)
    digest = digest_of(path)
    check_keys(str(path), data, KEYS, PoolError)
    require(path, data, "pool", trusted=trusted)
    manager = _configured(path, data, manager or _default_manager())
    roles = {role: full_name(name) for role, name in _texts(path, data, "roles").items()}
    pool = Pool(_members(path, data, manager, list(roles.values())))
    with _naming(path, "roles"):
        pool = pool.bind(**roles)
    overrides = _tables(path, data, "overrides", pool)
    pool = Pool([_override(path, m, overrides.get(m.name, {})) for m in pool.members], roles=pool.roles)
    steps: list[tuple[str, Callable[[Pool, dict[str, Any]], Pool], dict[str, Any]]] = [
        ("descriptions", Pool.describe, _texts(path, data, "descriptions", pool)),
        ("prices", Pool.price, _prices(path, data, pool)),
        ("aliases", Pool.alias, _texts(path, data, "aliases", pool)),
    ]
    for key, change, values in steps:
        with _naming(path, key):
            pool = change(pool, values) if values else pool
    if "search" in data:
        with _naming(path, "search"):
            pool = pool.with_search(_from_file(path, data["search"]))
    with _naming(path, "aliases"):
        pool.actions  # noqa: B018 - two members of one visible name must be an error of this file
    # The pools made on the way have none; rendering, saving and locking need the one that loaded the members.
    pool._manager = manager
    pool._file = path.absolute(), digest
    return pool


def digest_of(path: Path) -> str:
    """SHA-256 of a file, as hex digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def save_pool(pool: Pool, path: Path, manager: PluginManager | None = None) -> None:
    """Write a pool file that `load_pool` reads back as an equal pool.

    Args:
        pool: what to write.
        path: a `.toml`, `.yaml` or `.yml` file; replaced if it is there.
        manager: whose plugins to compare with; by default those the pool came from, or the installed ones.

    Raises:
        PoolError: a member is not installed, or differs from the installed one in what a file cannot hold.
    """
    manager = manager or pool._manager or _default_manager()
    data: dict[str, Any] = {key: {} for key in KEYS}
    data["members"] = [member.name for member in pool.members]
    data["roles"], data["aliases"] = pool.roles, pool.aliases
    data.update(_saved_search(path, pool))
    data["providers"] = {name: dict(settings) for name, settings in manager.own.items()}
    made_here = (RouterSpec, ModelAgent, OrchestratorAgent)
    local = [m.name for m in pool.members if not m.provider and not isinstance(m, made_here)]
    for name in local:
        raise PoolError(
            f"{path}: {name!r} is a member of this process alone and cannot be loaded by name; "
            f"publish it in a plugin, or save pool.without({name!r})"
        )
    with _naming(path, "sources"):
        made = _write_sources(path, data, pool, manager)
    with _naming(path, "members"):
        made += [spec for member in pool.members if (spec := _write_made(data, pool, member, manager)) is not None]
        installed = {spec.name: spec for spec in manager.specs(data["members"], made)}
    for member in pool.members:
        _write_changes(path, data, installed[member.name], member)
    # The short form, where each agent has the very name that loading gives it.
    if all(name == model_agent(_model(pool[model])).name for name, model in data["offer"].items()):
        data["offer"] = list(data["offer"].values())
    # An empty list of members is written: without the key, the file would mean everything installed.
    write_document(path, {key: value for key, value in data.items() if value or key == "members"})


def _saved_search(path: Path, pool: Pool) -> dict[str, Any]:
    """How the pool is searched, where that is not as usual."""
    search = pool._search
    if isinstance(search, str):
        return {} if search == "auto" else {"search": search}
    if not isinstance(search.ranking, str):
        raise PoolError(
            f"{path}: search: ranking {search.ranking.name!r} is an object of this process; publish it in a plugin "
            'and name it, such as "acme/by-meaning"'
        )
    table = search.to_json()
    if search.learn_from:
        table["learn_from"] = _from_folder(Path(search.learn_from), path)
    return {"search": table}


def _write_sources(path: Path, data: dict[str, Any], pool: Pool, manager: PluginManager) -> list[Spec]:
    """Put the files and folders that members were made of into the table; the members as loading would make them."""
    sources = dict.fromkeys(member.source for member in pool.members if isinstance(member, ToolSpec) and member.source)
    data["sources"] = [_from_folder(Path(source), path) for source in sources]
    made = [spec for source in sources for spec in manager.members_from(Path(source)) or ()]
    # Loading brings all members of a source.
    data["without"] = [spec.name for spec in made if spec.name not in pool]
    return [spec for spec in made if spec.name in pool]


def _from_folder(source: Path, path: Path) -> str:
    """A source as a pool file names it: from the file's own folder, where it lies there."""
    found, folder = source.absolute(), path.absolute().parent
    return (found.relative_to(folder) if found.is_relative_to(folder) else found).as_posix()


def _write_made(data: dict[str, Any], pool: Pool, member: Spec, manager: PluginManager) -> Spec | None:
    """Put a member that the file makes itself into the tables; the member as loading would make it, None for others."""
    if isinstance(member, RouterSpec):
        data["routers"][member.name] = member.routing()
        return router_of(member.name, member.routing())
    if isinstance(member, OrchestratorAgent):
        data["orchestrators"][member.name] = member.setup()
        return orchestrator_of(member.name, member.setup())
    if isinstance(member, ModelAgent):
        data["offer"][member.name] = member.model
        return model_agent(_model(pool[member.model])).with_(name=member.name)
    if isinstance(member, ModelSpec) and member.options is not None:
        data["models"][member.name] = dict(member.options)
        return manager.declare(member.name, member.options)
    return None


def _default_manager() -> PluginManager:
    from concertino.plugins.manager import default_manager

    return default_manager()


@contextmanager
def _naming(path: Path, key: str) -> Iterator[None]:
    """Put file and key before the text of errors that speak of a pool only."""
    try:
        yield
    except UsageError as error:
        raise PoolError(f"{path}: {key}: {error}") from error
    except PluginError as error:
        raise PluginError(f"{path}: {key}: {error}") from error


def _configured(path: Path, data: Mapping[str, Any], manager: PluginManager) -> PluginManager:
    """The plugins under the file's own settings of them."""
    tables = _tables(path, data, "providers")
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise PoolError(f"{path}: providers.{name} = {table!r}; expected a table")
    return manager.configured(provider_tables(path, tables))


def _from_file(path: Path, search: Any) -> Any:
    """How a pool is searched, with the folder of traces found from the file's own."""
    folder = search.get("learn_from") if isinstance(search, dict) else None
    if not isinstance(folder, str):
        return search
    return {**search, "learn_from": str(path.parent / Path(folder).expanduser())}


# -- reading -------------------------------------------------------------------------------------------------


def _members(path: Path, data: Mapping[str, Any], manager: PluginManager, bound: list[str]) -> list[Spec]:
    """What the patterns name, in their order; then what the file itself makes, and the models that others need."""
    patterns = _patterns(path, data, "members")
    made: list[Spec] = [*_declared(path, data, manager)]
    made += _sourced(path, data, manager)
    made += _offered(path, data, manager, made)
    with _naming(path, "members"):
        found = manager.specs(patterns, made)
    if patterns is not None:
        own = {spec.name: spec for spec in made}  # a name that the file gives itself means that alone
        found = [s for p in patterns for s in ([own[p]] if p in own else [s for s in found if matches(s, p)])]
        found += made
    led = _bound(path, manager, made, bound)
    found += _offered_by_pattern(path, data, [*found, *led])
    for pattern in _patterns(path, data, "without") or ():
        kept = [spec for spec in found if not matches(spec, pattern)]
        if len(kept) == len(found):
            raise PoolError(f"{path}: without: {pattern!r} matches no member; leave it out, or correct it")
        found = kept
    found += led
    with _naming(path, "routers"):
        found += manager.specs([need for spec in found for need in spec.needs], made)
    return list({spec.name: spec for spec in found}.values())


def _bound(path: Path, manager: PluginManager, made: list[Spec], names: list[str]) -> list[Spec]:
    """The models that roles name."""
    found: list[Spec] = []
    for name in names:
        with _naming(path, "roles"):
            try:
                found += manager.specs([name], made)
            except PoolError as error:
                step = "" if "/" in name else "; a model that is not installed is named in full, 'provider/name'"
                raise PoolError(f"{error}{step}") from error
    return found


def _declared(path: Path, data: Mapping[str, Any], manager: PluginManager) -> list[Spec]:
    """The models, routers and orchestrators that the file declares."""
    made: list[Spec] = []
    makers: tuple[tuple[str, Callable[[str, Mapping[str, Any]], Spec]], ...] = (
        ("models", manager.declare),
        ("routers", router_of),
        ("orchestrators", orchestrator_of),
    )
    for key, make in makers:
        for name, table in _tables(path, data, key).items():
            if not isinstance(table, dict):
                raise PoolError(f"{path}: {key}.{name!r} = {table!r}; expected a table")
            with _naming(path, key):
                made.append(make(name, table))
    return made


def _sourced(path: Path, data: Mapping[str, Any], manager: PluginManager) -> list[Spec]:
    """What plugins make of the files and folders that the file names."""
    sources = data.get("sources", [])
    if not isinstance(sources, list) or not all(isinstance(item, str) and item for item in sources):
        raise PoolError(f"{path}: sources: expected a list of paths such as ['skills'], got {sources!r}")
    made: list[Spec] = []
    for source in sources:
        with _naming(path, "sources"):
            made += manager.members_from(path.parent / Path(source).expanduser()) or ()
    return made


def _offered(path: Path, data: Mapping[str, Any], manager: PluginManager, made: list[Spec]) -> list[Spec]:
    """The models that are offered as agents by their full names, also from a table from names of agents to models."""
    if isinstance(data.get("offer"), dict):
        names = _texts(path, data, "offer")
        with _naming(path, "offer"):
            models = {spec.name: spec for spec in manager.specs(list(names.values()), made)}
            for model in names.values():
                if model not in models:
                    raise PoolError(f"{model!r} is not the full name of a model; there are {', '.join(models)}")
            return [model_agent(_model(models[model])).with_(name=name) for name, model in names.items()]
    full = [pattern for pattern in _patterns(path, data, "offer") or () if is_full_name(pattern)]
    with _naming(path, "offer"):
        return _agents(full, manager.specs(full, made)) if full else []


def _offered_by_pattern(path: Path, data: Mapping[str, Any], own: list[Spec]) -> list[Spec]:
    """The models of this pool that patterns offer: a pattern means what the pool holds, as in `Pool.offering`."""
    value = data.get("offer")
    patterns = [pattern for pattern in value if not is_full_name(pattern)] if isinstance(value, list) else []
    left_out = _patterns(path, data, "without") or ()
    with _naming(path, "offer"):
        kept = [spec for spec in own if not any(matches(spec, pattern) for pattern in left_out)]
        return _agents(patterns, kept, " of the pool: name one under members too, or offer it by its full name")


def _agents(patterns: list[str], found: list[Spec], where: str = "") -> list[Spec]:
    models = {spec.name: spec for spec in found if isinstance(spec, ModelSpec)}.values()
    for pattern in patterns:
        if not any(_means(pattern, spec) for spec in models):
            raise PoolError(f"{pattern!r} matches no model{where}; only models can be offered")
    return [model_agent(spec) for spec in models if any(_means(pattern, spec) for pattern in patterns)]


def _means(pattern: str, spec: Spec) -> bool:
    return pattern == spec.name or matches(spec, pattern)


def _model(spec: Spec) -> ModelSpec:
    if not isinstance(spec, ModelSpec):
        raise PoolError(f"{spec.name!r} is a {spec.kind}; only models can be offered")
    return spec


def _patterns(path: Path, data: Mapping[str, Any], key: str) -> list[str] | None:
    value = data.get(key)
    if value is None and key not in data:
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise PoolError(f"{path}: {key}: expected a list of patterns such as ['search/*'], got {value!r}")
    return value


def _tables(
    path: Path, data: Mapping[str, Any], key: str, pool: Pool | None = None, *, named: bool = False
) -> dict[str, Any]:
    """A table by name; by the full name of a member where a pool is given, or of any model if it may be `named`."""
    value = data.get(key, {})
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise PoolError(f"{path}: {key}: expected a table, got {value!r}")
    if pool is not None:
        known = [member.name for member in pool.members]
        known += [name for name in value if named and is_full_name(name)]
        check_keys(f"{path}: {key}", value, known, PoolError)
    return value


def _texts(path: Path, data: Mapping[str, Any], key: str, pool: Pool | None = None) -> dict[str, str]:
    table = _tables(path, data, key, pool)
    for name, text in table.items():
        if not isinstance(text, str):
            raise PoolError(f"{path}: {key}: {name!r} = {text!r}; expected a text")
    return table


def _prices(path: Path, data: Mapping[str, Any], pool: Pool) -> dict[str, Prices | None]:
    return {
        name: None if value == "unknown" else _record(path, f"prices.{name!r}", Prices, value)
        for name, value in _tables(path, data, "prices", pool, named=True).items()
    }


def _record(path: Path, key: str, kind: type[Any], value: object) -> Any:
    """A `Prices` or `Cost` of a table."""
    if not isinstance(value, dict):
        raise PoolError(f"{path}: {key} = {value!r}; expected a table")
    check_keys(f"{path}: {key}", value, kind.__dataclass_fields__, PoolError)
    for name, item in value.items():
        _check_type(path, f"{key}.{name}", item, str if name == "as_of" else _number)
    with _naming(path, key):
        try:
            return kind(**value)
        except TypeError:
            raise PoolError(f"expected at least 'input' and 'output', got {sorted(value)}") from None


def _check_type(path: Path, key: str, value: object, expected: Any) -> None:
    # A bool is an int to Python, but `timeout = true` is a mistake.
    right = isinstance(value, expected) and (expected is bool or not isinstance(value, bool))
    if not right:
        word = "a number" if expected == _number else f"{expected.__name__}"
        raise PoolError(f"{path}: {key} = {value!r}; expected {word}")


def _override(path: Path, spec: Spec, table: object) -> Spec:
    key = f"overrides.{spec.name!r}"
    if not isinstance(table, dict):
        raise PoolError(f"{path}: {key} = {table!r}; expected a table")
    if isinstance(spec, RouterSpec) and table:
        raise PoolError(f"{path}: {key}: a router has no limits; set those of its models")
    fields = _MODEL_FIELDS if isinstance(spec, ModelSpec) else _ACTION_FIELDS
    check_keys(f"{path}: {key}", table, fields, PoolError)
    changes: dict[str, Any] = {}
    for name, value in table.items():
        if name in _MAY_BE_NONE and value in ("none", None):
            changes[name] = None
        elif name == "cost":
            changes[name] = _record(path, f"{key}.cost", Cost, value)
        else:
            _check_type(path, f"{key}.{name}", value, fields[name])
            changes[name] = value
    with _naming(path, key):
        return spec.with_(**changes) if changes else spec


# -- writing -------------------------------------------------------------------------------------------------


def _write_changes(path: Path, data: dict[str, Any], installed: Spec, member: Spec) -> None:
    """Put what was changed of a member into the tables."""
    rebuilt = installed
    if member.description != installed.description:
        data["descriptions"][member.name] = member.description
        rebuilt = rebuilt.with_(description=member.description)
    if isinstance(member, ModelSpec) and isinstance(installed, ModelSpec) and member.prices != installed.prices:
        data["prices"][member.name] = _plain(member.prices) if member.prices else "unknown"
        rebuilt = rebuilt.with_(prices=member.prices)
    fields = _MODEL_FIELDS if isinstance(member, ModelSpec) else _ACTION_FIELDS
    changed = {
        name: value
        for name in fields
        if (value := getattr(member, name)) != getattr(installed, name, None) and not callable(value)
    }
    if changed:
        data["overrides"][member.name] = {name: _plain(value) for name, value in changed.items()}
        rebuilt = rebuilt.with_(**changed)
    # What the tables cannot express still differs here, and is refused instead of being lost.
    was, now = rebuilt.to_json(), member.to_json()
    if different := sorted(key for key in {*was, *now} if was.get(key) != now.get(key)):
        raise PoolError(
            f"{path}: {member.name!r} differs from the installed one in {', '.join(different)}, which a pool "
            "file cannot hold; publish the changed member in a plugin under its own name"
        )


def _plain(value: Any) -> Any:
    if isinstance(value, (Cost, Prices)):
        return {name: item for name, item in asdict(value).items() if item not in (None, "")}
    return "none" if value is None else value
