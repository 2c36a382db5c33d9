"""What completion proposes for each kind of name. Nothing here imports a plugin, starts a program or asks a server.

Names of members and the like come from `seen`, models that files declare from these files, traces and sessions from
their folder. Whatever goes wrong, there are fewer proposals, never an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

    from concertino.core.settings import Settings

Completer = Callable[["click.Context", "click.Parameter", str], "list[CompletionItem[str]]"]
Proposal = tuple[str, str]
"""A name and its description. A name that ends in `/` or `=` is to be continued."""

_TRACES = 40
"""Traces and sessions that are proposed, the newest ones."""
_STRATEGIES = "parallel-rounds", "agent-graph", "dependency-plan", "serial-calls", "role-workflow"
_LIMITS = "rounds", "parallel", "calls", "units", "usd", "tokens", "seconds"
_ROLES = "orchestrator", "summariser", "default"
_POOL_FILES = (".toml", ".yaml", ".yml")


def completer(propose: Callable[[click.Context, str], Iterable[Proposal]]) -> Completer:
    """What click asks for proposals."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        from click.shell_completion import CompletionItem

        found: dict[str, str] = {}
        with suppress(Exception):  # a key press has no place for an error
            for name, text in propose(ctx, incomplete):
                if name.startswith(incomplete):
                    found.setdefault(name, text)
        open_ended = ("/", "=", ",")
        return [
            CompletionItem(name, type="part" if name.endswith(open_ended) else "plain", help=text)
            for name, text in found.items()
        ]

    return complete


# -- members -----------------------------------------------------------------------------------------------------------


def _settings() -> Settings:
    from concertino.core.errors import UsageError
    from concertino.core.settings import Settings, load_settings

    try:
        return load_settings()
    except UsageError:
        return Settings()


def _members(ctx: click.Context, *kinds: str) -> Iterator[Proposal]:
    """Members that were seen, and models that the settings and the pool file declare."""
    from .seen import recall

    settings = _settings()
    for known in recall(settings.file).values():
        yield from ((name, text) for kind, name, text in known.members if kind in kinds)
    if "model" in kinds:
        yield from ((name, f"declared in {settings.file}") for name in settings.models)
        file = ctx.params.get("pool_file") or settings.pool
        if file is not None:
            yield from _declared(Path(file))


def _declared(file: Path) -> Iterator[Proposal]:
    from concertino.core.documents import read_document

    for table in ("models", "routers"):
        yield from ((name, f"declared in {file}") for name in read_document(file).get(table, {}))


def _models(ctx: click.Context, incomplete: str) -> Iterator[Proposal]:
    """Models, and the services whose models may be named without being declared."""
    from concertino.core.services import LOCAL_SERVERS, SERVICE_KEYS

    yield from _members(ctx, "model")
    if "/" not in incomplete:
        yield from ((f"{name}/", f"key: {' and '.join(keys)}") for name, keys in SERVICE_KEYS.items())
        yield from ((f"{name}/", f"a server at {address}") for name, address in LOCAL_SERVERS.items())


def _patterns(ctx: click.Context, incomplete: str) -> Iterator[Proposal]:
    """Members, and all of a provider."""
    listed = list(_members(ctx, "tool", "agent", "model"))
    for provider in dict.fromkeys(name.partition("/")[0] for name, _ in listed):
        yield f"{provider}/*", f"everything of {provider}"
    yield from listed


def _bindings(ctx: click.Context, incomplete: str) -> Iterator[Proposal]:
    """ROLE=MODEL."""
    role, equals, model = incomplete.partition("=")
    if not equals:
        yield from ((f"{name}=", "a role") for name in _ROLES)
    else:
        yield from ((f"{role}={name}", text) for name, text in _models(ctx, model))


members_of = {
    "tool": completer(lambda ctx, word: _members(ctx, "tool")),
    "agent": completer(lambda ctx, word: _members(ctx, "agent")),
    "model": completer(lambda ctx, word: _members(ctx, "model")),
}
"""Members of one kind."""
callables = completer(lambda ctx, word: _members(ctx, "tool", "agent"))
models = completer(_models)
patterns = completer(_patterns)
bindings = completer(_bindings)


# -- strategies, budgets -----------------------------------------------------------------------------------------------


def _strategies(ctx: click.Context, incomplete: str) -> Iterator[Proposal]:
    from .seen import recall

    yield from ((name, "built in") for name in _STRATEGIES)
    for known in recall(_settings().file).values():
        yield from ((name, "") for name in known.strategies)
    yield from _files(incomplete, (".toml", ".json"))


def _strategy_settings(ctx: click.Context, incomplete: str) -> Iterator[Proposal]:
    from .seen import recall

    chosen = ctx.params.get("strategy") or _STRATEGIES[0]
    for known in recall(_settings().file).values():
        for name, settings in known.strategies.items():
            if chosen in (name, name.rpartition("/")[2]):
                yield from ((f"{setting}=", f"a setting of {name}") for setting in settings)


def _limits(ctx: click.Context, incomplete: str) -> Iterator[Proposal]:
    done, comma, _ = incomplete.rpartition(",")
    given = {part.partition("=")[0] for part in done.split(",")}
    yield from ((f"{done}{comma}{name}=", "a limit") for name in _LIMITS if name not in given)


def _rankings(ctx: click.Context, incomplete: str) -> Iterator[Proposal]:
    from .seen import recall

    for known in recall(_settings().file).values():
        yield from ((name, "a ranking") for name in known.rankings)


def _guards(ctx: click.Context, incomplete: str) -> Iterator[Proposal]:
    from .seen import recall

    for known in recall(_settings().file).values():
        yield from known.guards


def _providers(ctx: click.Context, incomplete: str) -> Iterator[Proposal]:
    from importlib.metadata import entry_points

    yield from ((entry.name, entry.value) for entry in entry_points(group="concertino"))


strategies = completer(_strategies)
strategy_settings = completer(_strategy_settings)
limits = completer(_limits)
rankings = completer(_rankings)
guards = completer(_guards)
providers = completer(_providers)


def commands_seen() -> dict[str, dict[str, Any]]:
    """Commands of plugins as far as they were seen, as `command_tree` describes them; " " in a name is a subcommand."""
    from .seen import recall

    with suppress(Exception):
        found = [pair for known in recall(_settings().file).values() for pair in known.commands.items()]
        return {name: data for name, data in found if " " not in name}
    return {}


# -- files -------------------------------------------------------------------------------------------------------------


def _files(incomplete: str, suffixes: tuple[str, ...]) -> Iterator[Proposal]:
    """Folders, and files with one of the suffixes."""
    head, slash, _ = incomplete.rpartition("/")
    folder = Path(f"{head}{slash}").expanduser() if head or slash else Path()
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") and not incomplete.rpartition("/")[2].startswith("."):
            continue
        if path.is_dir():
            yield f"{head}{slash}{path.name}/", ""
        elif path.name.endswith(suffixes):
            yield f"{head}{slash}{path.name}", ""


def _pools_to_compare(ctx: click.Context, incomplete: str) -> Iterator[Proposal]:
    yield "installed", "everything installed"
    yield from _files(incomplete, _POOL_FILES)


def _newest(ctx: click.Context, suffix: str) -> Iterator[str]:
    """Names of files in the folder of traces, without the suffix, the newest first."""
    folder = Path(ctx.params.get("folder") or _settings().trace_folder)
    aged: list[tuple[float, str]] = []
    for path in folder.glob(f"*{suffix}"):
        with suppress(OSError):
            aged.append((path.stat().st_mtime, path.name.removesuffix(suffix)))
    return (name for _, name in sorted(aged, reverse=True)[:_TRACES])


def _traces(ctx: click.Context, incomplete: str) -> Iterator[Proposal]:
    yield "last", "the newest trace"
    yield from ((name, "") for name in _newest(ctx, ".trace.jsonl"))
    yield from _files(incomplete, (".trace.jsonl",))


def _sessions(ctx: click.Context, incomplete: str) -> Iterator[Proposal]:
    yield from ((name, "a session") for name in _newest(ctx, ".session.jsonl"))


pool_files = completer(lambda ctx, word: _files(word, _POOL_FILES))
pools_to_compare = completer(_pools_to_compare)
traces = completer(_traces)
sessions = completer(_sessions)
recordings = completer(lambda ctx, word: _files(word, (".jsonl",)))
json_files = completer(lambda ctx, word: _files(word, (".json",)))
