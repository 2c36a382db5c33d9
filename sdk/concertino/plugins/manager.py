"""The plugin manager: from installed distributions to specs, without one broken plugin hurting another.

A *provider* is one entry point of the group `concertino`; its name is the first part of its members' names.
Metadata says which there are; a provider is imported when a pattern can only be answered by it. Import,
search for hooks and each list hook run in the guard, one plugin at a time; whatever goes wrong becomes the
state of its row.

Invariant: what the manager gives out does not depend on the order in which plugins were loaded, and a
provider that is failed, disabled or claimed by two distributions gives nothing.
"""

from __future__ import annotations

import functools
import json
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pluggy

from concertino.core.display_text import one_line
from concertino.core.errors import PluginError, PoolError, UsageError
from concertino.core.provider_settings import ProviderSettings
from concertino.core.settings import Settings, load_settings
from concertino.members.patterns import is_full_name, matches, may_match, provider_of
from concertino.members.ranking import Ranking
from concertino.members.specs import ModelSpec, Spec, ToolSpec

from . import hookspecs
from .discovery import Declaration, discover
from .guard import PluginFault, guarded, inside_guard, show
from .hooks import HOOK_ARGUMENTS, Hook, Implementations, read_hooks, taken_arguments
from .plugin_log import tell_left_out, tell_loaded
from .published import MEMBER_HOOKS, check_declared, check_list, check_members, refuse_equal_names
from .sources import check_made, show_source, unknown_source
from .status import PluginInfo, PluginRow

if TYPE_CHECKING:
    from concertino.members.guards import Guard

    from .finding import Finding

_LISTS = ((), ("settings",))
"""The arguments of hooks that give a list."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_SOURCE_SECONDS = 90.0
"""For what a provider makes of a file: a server that it starts may have to be fetched first."""


class PluginManager:
    """The providers of this environment. Safe to use from several threads.

    Args:
        settings: what is disabled; by default `load_settings()`.
        installed: whether installed distributions count; without, there are only registered objects.
        seconds: how long one plugin may take to be imported, and for each list hook.
    """

    def __init__(self, settings: Settings | None = None, *, installed: bool = True, seconds: float = 10.0) -> None:
        self.settings = load_settings() if settings is None else settings
        self._installed = installed
        self._seconds = seconds
        self._declared: dict[tuple[str, str], ModelSpec] = {}
        self._twins: dict[str, PluginManager] = {}
        self.own: Mapping[str, ProviderSettings] = {}
        """The settings that `configured` was given."""
        self._lock = threading.RLock()
        self._pluggy = pluggy.PluginManager("concertino")
        self._pluggy.add_hookspecs(hookspecs)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if inside_guard():  # the thread that loads this plugin holds the lock, and waits for this one
            raise PluginError("a plugin asks for plugins while it is being loaded; ask inside a call instead")
        with self._lock:
            yield

    # -- rows ------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _plugins(self) -> dict[str, PluginRow]:
        """All rows by name, in order; found at first use, and nothing is imported."""
        found = discover() if self._installed else []
        rows = (self._row(name, list(same)) for name, same in groupby(found, lambda entry: entry.name))
        return {row.name: row for row in rows}

    def _row(self, name: str, declarations: list[Declaration]) -> PluginRow:
        row = PluginRow(name, declarations, settings=self.settings.providers.get(name, ProviderSettings()))
        if reason := self.settings.why_disabled(name):
            row.state, row.reason = "disabled", reason
        elif len(declarations) > 1:
            row.state = "clash"
            row.reason = f"{row.info().origin} both declare the provider {name!r}; uninstall one"
        elif declarations[0].fault:
            row.state, row.reason = "failed", declarations[0].fault
        elif not _NAME.fullmatch(name):
            row.state = "failed"
            row.reason = f"its entry point is called {one_line(repr(name))}; expected letters, digits, '_', '-' or '.'"
        return row

    def plugins(self) -> tuple[PluginInfo, ...]:
        """A row per provider, by name. Imports nothing."""
        with self._locked():
            return tuple(plugin.info() for plugin in self._plugins.values())

    def load(self, name: str) -> PluginInfo:
        """Import a provider, if that was not done yet, and check it. A fault is in the row, it is not raised.

        Raises:
            PoolError: nothing installed has that name; gives near names.
        """
        with self._locked():
            self._check_known(name)
            self._load(self._plugins[name])
            return self._plugins[name].info()

    def register(self, target: object, name: str, distribution: str = "", version: str = "") -> PluginInfo:
        """Add a module or object of this process as a provider, and load it. For tests and applications.

        Returns:
            Its row; like an installed plugin, a broken one is a row with a reason.

        Raises:
            PoolError: the name is taken.
        """
        package = getattr(target, "__name__", type(target).__module__).split(".")[0]
        declaration = Declaration(name, distribution, version, show(target), lambda: target, package)
        with self._locked():
            if name in self._plugins:
                raise PoolError(f"{self._plugins[name].label} is there already; register {show(target)} otherwise")
            self._plugins[name] = self._row(name, [declaration])
            # In the order of names, for what is given out must not depend on the order of registering.
            ordered = sorted(self._plugins.items())
            self._plugins.clear()
            self._plugins.update(ordered)
            return self.load(name)

    def configured(self, providers: Mapping[str, ProviderSettings]) -> PluginManager:
        """The same plugins, some with other settings, which replace those of `concertino.toml`.

        Plugins without are shared, so that nothing is loaded or asked twice.

        Raises:
            PoolError: nothing installed has one of the names; gives near names.
        """
        if not providers:
            return self
        key = json.dumps({name: [s.where, dict(s)] for name, s in providers.items()}, sort_keys=True, default=str)
        with self._locked():
            for name, settings in providers.items():
                if name not in self._plugins:
                    raise PoolError(f"{settings.where}: {self._missing(name)}")
            # Equal settings give the same manager, so that a pool file which is read again loads nothing twice.
            if key not in self._twins:
                self._twins[key] = self._twin(providers)
            return self._twins[key]

    def _twin(self, providers: Mapping[str, ProviderSettings]) -> PluginManager:
        merged = {**self.settings.providers, **providers}
        twin = PluginManager(replace(self.settings, providers=merged), seconds=self._seconds)
        twin.own = providers
        # Shared: rows belong to several managers, and hooks around calls are registered once.
        twin._lock, twin._pluggy, twin._declared = self._lock, self._pluggy, self._declared
        twin._plugins = {
            name: twin._row(name, row.declarations) if name in providers else row for name, row in self._plugins.items()
        }
        return twin

    # -- members ---------------------------------------------------------------------------------------------

    def specs(self, patterns: Sequence[str] | None = None, also: Sequence[Spec] = ()) -> list[Spec]:
        """Tools, agents and models, by provider, then in the provider's order. Imports only who may match.

        A full name that nothing published has is declared by its provider, if that makes models by name.

        Args:
            patterns: `provider/*`, `*/search`, a full or a short name; None for everything.
            also: members that are not published by a provider and that patterns may mean as well; they come last,
                and take the place of published ones of their name.

        Raises:
            PluginError: a pattern names a provider that is failed or disabled; says why.
            PoolError: a pattern names an unknown provider or two of one name, or nothing matches it.
        """
        with self._locked():
            own = {spec.name for spec in also}
            self._check_settings()
            foreign = None if patterns is None else [pattern for pattern in patterns if pattern not in own]
            # Checked before anything is imported, so that a misspelt name costs no import.
            explicit = [name for name in map(provider_of, foreign or ()) if name]
            for name in explicit:
                self._check_known(name)
            for plugin in self._plugins.values():
                if foreign is None or any(may_match(pattern, plugin.name) for pattern in foreign):
                    self._load(plugin)
            for name in explicit:
                self._check_usable(self._plugins[name])
            loaded = [
                plugin
                for plugin in self._plugins.values()
                if plugin.state == "loaded"
                and (foreign is None or any(may_match(pattern, plugin.name) for pattern in foreign))
            ]
            specs: list[Spec] = [m for plugin in loaded for m in self._members_of(plugin) if m.name not in own]
            specs += also
            if patterns is None:
                return specs
            for pattern in patterns:
                refused = ""
                if is_full_name(pattern) and not any(matches(spec, pattern) for spec in specs):
                    try:
                        specs += self._by_name(pattern)
                    except PoolError as error:
                        if not specs:  # it publishes nothing, so there is no other name to suggest
                            raise
                        refused = f"; {error}"
                self._check_matched(pattern, specs, refused)
            return [s for s in specs if any(p == s.name if p in own else matches(s, p) for p in patterns)]

    def declare(self, name: str, options: Mapping[str, Any]) -> ModelSpec:
        """The model that a table `[models."provider/name"]` declares. Starts and connects nothing.

        The same declaration gives the same spec, so that a pool file which is read again opens nothing twice.

        Raises:
            PoolError: the name has no provider, the provider takes no declarations, or it refuses an option.
            PluginError: the provider is failed or disabled, or its hook is broken.
        """
        provider, _, short = name.partition("/")
        if not provider or not short:
            raise PoolError(f"model {name!r}: expected 'provider/name', with the provider that makes it")
        with self._locked():
            self._check_known(provider)
            plugin = self._plugins[provider]
            self._load(plugin, members=False)
            self._check_usable(plugin)
            try:
                key = name, json.dumps(options, sort_keys=True)
            except (TypeError, ValueError) as error:
                raise PoolError(
                    f"model {name!r}: its options must be plain JSON data ({error}); quote a date"
                ) from None
            if key not in self._declared:
                self._declared[key] = self._declare(plugin, short, dict(options))
            return self._declared[key]

    def _by_name(self, name: str) -> list[Spec]:
        """The model of a full name that nobody declared, as its provider makes it; none where it makes none."""
        plugin = self._plugins[provider_of(name)]
        return [self.declare(name, {})] if "concertino_declare_model" in plugin.hooks else []

    def _declare(self, plugin: PluginRow, short: str, options: dict[str, Any]) -> ModelSpec:
        hook = "concertino_declare_model"
        full = f"{plugin.name}/{short}"
        if hook not in plugin.hooks:
            able = [row.name for row in self._plugins.values() if hook in row.hooks]
            raise PoolError(f"model {full!r}: provider {plugin.name!r} takes no declared models{_those(able)}")
        wrong: list[Exception] = []

        def ask() -> ModelSpec | None:
            try:
                # A copy, so that what the hook does to it does not show in the spec.
                found = plugin.ask(hook, name=short, options=dict(options))
            except (ValueError, UsageError) as error:
                # An option that cannot be is the user's mistake; raised in the guard, it would be the plugin's fault.
                wrong.append(error)
                return None
            return check_declared(hook, found, plugin.name, short)

        try:
            spec: ModelSpec | None = self._guarded(plugin, f"{hook}()", ask)
        except PluginFault as fault:
            raise PluginError(f"{plugin.label} cannot declare {full!r}: {fault}") from fault
        if spec is None:
            # The provider knows the short name alone.
            raise PoolError(f"model {full!r}: {str(wrong[0]).removeprefix(f'model {short!r}: ')}") from wrong[0]
        return spec if spec.options is not None else spec.with_(options=options)

    def members_from(self, source: Any) -> list[ToolSpec] | None:
        """The members that a provider makes of a file, a folder or an object; None of an object that nobody knows.

        Providers are asked by name, and the first that knows it counts; those behind it are not imported for it.

        Raises:
            PoolError: a file or folder that nobody knows; says what would help.
            UsageError: it is known, and wrong; in the provider's words.
            PluginError: the hook of the provider is broken.
        """
        with self._locked():
            names = list(self._plugins)
        for name in names:
            with self._locked():
                plugin = self._plugins[name]
                self._load(plugin, members=False)
            if "concertino_members_from" in plugin.hooks and plugin.state == "loaded":
                # Without the lock: a server that is started takes its time, and other threads want other plugins.
                found = self._made_from(plugin, source)
                if found is not None:
                    return found
        if isinstance(source, Path):
            broken = [plugin.name for plugin in self._plugins.values() if plugin.state in ("failed", "clash")]
            raise PoolError(unknown_source(source, broken))
        return None

    def _made_from(self, plugin: PluginRow, source: Any) -> list[ToolSpec] | None:
        """What one provider makes of a source; None for nothing of its."""
        hook = "concertino_members_from"
        wrong: list[UsageError] = []

        def ask() -> list[ToolSpec] | None:
            function = getattr(plugin.implementations, hook)
            given = {"source": source, "settings": plugin.settings}
            try:
                found = function(**{name: given[name] for name in taken_arguments(hook, function)})
            except UsageError as error:
                # About the source, which is the user's; raised in the guard, it would be the plugin's fault.
                wrong.append(error)
                return None
            return None if found is None else check_made(hook, found, plugin.name, source)

        try:
            made: list[ToolSpec] | None = self._guarded(plugin, f"{hook}()", ask, max(self._seconds, _SOURCE_SECONDS))
        except PluginFault as fault:
            raise PluginError(f"{plugin.label} cannot read {show_source(source)}: {fault}") from fault
        if wrong:
            raise wrong[0]
        return made

    def _check_settings(self) -> None:
        """A model or a table under the name of no provider would never be seen."""
        places = {f"{self.settings.file}: model {name!r}": name.partition("/")[0] for name in self.settings.models}
        places |= {settings.where: name for name, settings in self.settings.providers.items()}
        for place, provider in places.items():
            if provider not in self._plugins:
                raise PoolError(f"{place}: {self._missing(provider)}")

    def _members_of(self, plugin: PluginRow) -> list[Spec]:
        """What a provider publishes, and what `concertino.toml` declares under its name."""
        declared = [name for name in self.settings.models if name.partition("/")[0] == plugin.name]
        members = plugin.members or []
        if not declared:
            return members
        try:
            specs = {name: self.declare(name, self.settings.models[name]) for name in declared}
        except UsageError as error:
            raise PoolError(f"{self.settings.file}: {error}") from error
        return [*(m for m in members if m.name not in specs), *specs.values()]

    def _check_known(self, name: str) -> None:
        if name not in self._plugins:
            raise PoolError(self._missing(name))

    def _missing(self, provider: str) -> str:
        from .packages import install_provider  # only a message needs it

        hint = install_provider(provider) or _hint(provider, self._plugins)
        return f"no installed provider is called {provider!r}; {hint}"

    def _check_usable(self, plugin: PluginRow) -> None:
        if plugin.state == "clash":
            raise PoolError(f"provider {plugin.name!r} cannot be used: {plugin.reason}")
        if plugin.state == "disabled":
            raise PluginError(f"{plugin.label} cannot be used: {plugin.reason}; change the setting")
        if plugin.state == "failed":
            raise PluginError(f"{plugin.label} cannot be used: {plugin.reason}; see `concertino doctor`")

    def _check_matched(self, pattern: str, specs: Sequence[Spec], refused: str) -> None:
        if any(matches(spec, pattern) for spec in specs):
            return
        broken = [
            p.name for p in self._plugins.values() if p.state in ("failed", "clash") and may_match(pattern, p.name)
        ]
        left_out = f"; left out as broken: {', '.join(broken)} (see `concertino doctor`)" if broken else refused
        if not left_out and any(spec.name.startswith(f"{pattern.partition('/')[0]}/") for spec in specs):
            left_out = "; `concertino doctor` says whether the provider lacks a setting"
        hint = _hint(pattern, (m.name for m in specs))
        raise PoolError(f"no installed member matches {pattern!r}; {hint.rstrip('?') if left_out else hint}{left_out}")

    # -- other hooks -----------------------------------------------------------------------------------------

    def before_call_hooks(self) -> list[Hook]:
        """The `concertino_before_call` implementations of loaded plugins, in the order to ask them in."""
        return self._hooks("concertino_before_call")

    def after_call_hooks(self) -> list[Hook]:
        """The `concertino_after_call` implementations of loaded plugins, in order."""
        return self._hooks("concertino_after_call")

    def before_run(self, run_id: str, trace: Path) -> dict[str, Any]:
        """Tell loaded plugins that a run begins or goes on. Gives what they note about it, by provider.

        Raises:
            PluginError: a plugin refuses the run, or notes what is no plain JSON data.
        """
        noted: dict[str, Any] = {}
        for hook in self._hooks("concertino_before_run"):
            found = hook(run_id=run_id, trace=trace, settings=self._plugins[hook.provider].settings)
            if found is None:
                continue
            try:
                noted[hook.provider] = json.loads(json.dumps(dict(found), allow_nan=False))
            except (TypeError, ValueError) as error:
                raise PluginError(
                    f"{hook.plugin}: {hook.name} returned {found!r:.80}; expected None or a table of plain JSON data"
                ) from error
        return noted

    def describe_hooks(self) -> list[Hook]:
        """The `concertino_describe` implementations of loaded plugins, in order."""
        return self._hooks("concertino_describe")

    def strategies(self) -> dict[str, type]:
        """Strategy classes of all plugins, as `provider/name`, and as `name` where only one has that."""
        pairs = self._collect("concertino_strategies", _check_strategy)
        classes = {f"{plugin.name}/{cls.name}": cls for plugin, cls in pairs}
        return {
            **classes,
            **{cls.name: cls for _, cls in self._single(pairs, "strategy", lambda cls: str(cls.name))},
        }

    def ranking(self, name: str) -> Ranking:
        """The ranking `provider/name`. Loads that provider alone.

        Raises:
            PoolError: no such provider, or it is broken, or offers no such ranking; names those that there are.
        """
        found: Ranking = self._one("concertino_rankings", _check_ranking, name, "ranking")
        return found

    def guard(self, name: str) -> Guard:
        """The guard `provider/name`, under that name. Loads that provider alone.

        Raises:
            PoolError: no such provider, or it is broken, or offers no such guard; names those that there are.
        """
        found: Guard = self._one("concertino_guards", _check_guard, name, "guard")
        return found.with_(name=name)

    def guards(self) -> dict[str, Guard]:
        """Guards of all plugins, as `provider/name`."""
        pairs = self._collect("concertino_guards", _check_guard)
        return {f"{plugin.name}/{guard.name}": guard for plugin, guard in pairs}

    def _one(self, hook: str, check: Callable[[Any], str], name: str, what: str) -> Any:
        """What one provider gives from a list hook under a name."""
        provider, slash, short = name.partition("/")
        if not slash:
            raise PoolError(f"{what} {name!r}: expected 'provider/name', such as 'acme/{name}'")
        with self._locked():
            self._check_known(provider)
            plugin = self._plugins[provider]
            self._load(plugin, members=False)
            if hook in plugin.hooks and plugin.state == "loaded" and hook not in plugin.results:
                self._attempt(plugin, functools.partial(self._ask, plugin, hook, check))
        self._check_usable(plugin)
        found = {item.name: item for item in plugin.results.get(hook, ())}
        if short not in found:
            raise PoolError(f"provider {provider!r} offers no {what} {short!r}; {_hint(short, found)}")
        return found[short]

    def rankings(self) -> dict[str, Ranking]:
        """Rankings of all plugins, as `provider/name`."""
        pairs = self._collect("concertino_rankings", _check_ranking)
        return {f"{plugin.name}/{ranking.name}": ranking for plugin, ranking in pairs}

    def commands(self, providers: Collection[str] | None = None) -> list[Any]:
        """The `click.Command`s of plugins. Two of one name are both left out; the rows say so.

        Args:
            providers: whose; by default those of all.
        """
        return [command for _, command in self._commands(providers)]

    def given(self) -> dict[str, dict[str, list[Any]]]:
        """What loaded providers have given so far: `members`, and what each list hook returned. Asks nobody."""
        with self._locked():
            loaded = [plugin for plugin in self._plugins.values() if plugin.state == "loaded"]
            members = {row.name: {"members": list(row.members)} for row in loaded if row.members is not None}
            return {plugin.name: {**members.get(plugin.name, {}), **plugin.results} for plugin in loaded}

    def findings(self, name: str) -> list[Finding]:
        """What a loaded provider says of itself in `concertino_doctor`; a fault of it is a finding too."""
        from .finding import Finding, Level

        hook = "concertino_doctor"
        plugin = self._plugins[name]
        if hook not in plugin.hooks or plugin.state != "loaded":
            return []

        def ask() -> list[Finding]:
            items = check_list(hook, plugin.ask(hook))
            found = [Finding(*item) for item in items]
            for finding in found:
                if finding.level not in get_args(Level) or not all(isinstance(part, str) for part in finding):
                    raise PluginFault(f"{hook}() gave {finding!r}; expected texts, and one of {get_args(Level)} first")
            return found

        try:
            found: list[Finding] = self._guarded(plugin, f"{hook}()", ask)
        except PluginFault as fault:
            return [Finding("error", f"plugin {name}", str(fault), "tell its author")]
        return found

    def providers_of_commands(self) -> dict[str, str]:
        """The provider of each command that `commands` gives, by the name of the command."""
        return {str(command.name): plugin.name for plugin, command in self._commands()}

    def _commands(self, providers: Collection[str] | None = None) -> list[tuple[PluginRow, Any]]:
        pairs = self._collect("concertino_cli", _check_command, providers)
        return self._single(pairs, "command", lambda command: str(command.name))

    def named(self, hook: str) -> list[Any]:
        """What all plugins return from a list hook such as `concertino_tasks`. Each is asked once.

        Raises:
            UsageError: the hook does not exist.
        """
        if HOOK_ARGUMENTS.get(hook) not in _LISTS:
            known = [name for name, arguments in HOOK_ARGUMENTS.items() if arguments in _LISTS]
            raise UsageError(f"no hook that gives a list is called {hook!r}; {_hint(hook, known)}")
        return [item for _, item in self._collect(hook, lambda item: "")]

    def _hooks(self, hook: str) -> list[Hook]:
        # A plugin that is to approve or to redact must never be missing silently.
        for name in self.settings.always:
            self._check_known(name)
            self.load(name)
            self._check_usable(self._plugins[name])
        with self._locked():
            found = getattr(self._pluggy.hook, hook).get_hookimpls()
            # pluggy's own order is that of registering, which depends on what was loaded first.
            order = sorted(found, key=lambda impl: (impl.trylast - impl.tryfirst, impl.plugin_name))
            plugins = [self._plugins[implementation.plugin_name] for implementation in order]
            return [
                Hook(plugin.label, hook, implementation.function, plugin.declarations[0].package, plugin.name)
                for plugin, implementation in zip(plugins, order, strict=True)
            ]

    def _collect(
        self, hook: str, check: Callable[[Any], str], providers: Collection[str] | None = None
    ) -> list[tuple[PluginRow, Any]]:
        """What each plugin returns from a list hook; `check` says what is wrong with an item, or nothing."""
        with self._locked():
            asked = [plugin for plugin in self._plugins.values() if providers is None or plugin.name in providers]
            for plugin in asked:
                # Its members are not asked for: a command or a strategy must not start somebody's servers.
                self._load(plugin, members=False)
                if hook in plugin.hooks and plugin.state == "loaded" and hook not in plugin.results:
                    self._attempt(plugin, functools.partial(self._ask, plugin, hook, check))
            usable = [plugin for plugin in asked if plugin.state == "loaded"]
            return [(plugin, item) for plugin in usable for item in plugin.results.get(hook, ())]

    def _ask(self, plugin: PluginRow, hook: str, check: Callable[[Any], str]) -> None:
        def ask() -> list[Any]:
            items = check_list(hook, plugin.ask(hook))
            for position, item in enumerate(items):
                if wrong := check(item):
                    raise PluginFault(f"{hook}()[{position}] is {show(item)}; {wrong}")
            return items

        plugin.results[hook] = self._guarded(plugin, f"{hook}()", ask)

    @staticmethod
    def _single(
        pairs: Iterable[tuple[PluginRow, Any]], kind: str, name: Callable[[Any], str]
    ) -> list[tuple[PluginRow, Any]]:
        """Without what several plugins call the same; their rows name each other."""
        owners: dict[str, list[PluginRow]] = {}
        pairs = list(pairs)
        for plugin, item in pairs:
            owners.setdefault(name(item), []).append(plugin)
        for shared, plugins in owners.items():
            if len(plugins) > 1:
                origins = " and ".join(dict.fromkeys(plugin.label for plugin in plugins))
                for plugin in plugins:
                    plugin.reason = f"{kind} {shared!r} is left out, it is published more than once: by {origins}"
        # None of them wins, for the order of loading must decide nothing.
        return [(plugin, item) for plugin, item in pairs if len(owners[name(item)]) == 1]

    # -- loading ---------------------------------------------------------------------------------------------

    def _load(self, plugin: PluginRow, members: bool = True) -> None:
        """Import a plugin and read its hooks; ask for its members too, unless they are not needed."""
        if plugin.state == "installed":
            self._attempt(plugin, functools.partial(self._read, plugin))
        if members and plugin.state == "loaded" and plugin.members is None:
            self._attempt(plugin, functools.partial(self._ask_members, plugin))

    def _attempt(self, plugin: PluginRow, step: Callable[[], None]) -> None:
        """Take a step; a fault makes the row failed, and nothing of the plugin is used any more."""
        try:
            step()
        except PluginFault as fault:
            plugin.state, plugin.reason, plugin.members = "failed", str(fault), None
            tell_left_out(plugin)
            # Its hooks around calls were registered before the step that failed.
            if plugin.implementations and self._pluggy.is_registered(plugin.implementations):
                self._pluggy.unregister(plugin.implementations)

    def _read(self, plugin: PluginRow) -> None:
        started = time.perf_counter()
        target = self._guarded(plugin, "import", plugin.declarations[0].load)
        plugin.import_seconds = time.perf_counter() - started
        hooks: Implementations = self._guarded(plugin, "reading its hooks", lambda: read_hooks(self._pluggy, target))
        plugin.implementations = hooks
        if not self._pluggy.has_plugin(plugin.name):  # else it is there already, with other settings
            self._pluggy.register(hooks, name=plugin.name)
        plugin.hooks = tuple(sorted(vars(hooks)))
        plugin.check_settings()
        plugin.state = "loaded"
        tell_loaded(plugin)

    def _ask_members(self, plugin: PluginRow) -> None:
        members: list[Spec] = []
        for hook in MEMBER_HOOKS:
            if hook in plugin.hooks:
                ask = functools.partial(_members, hook, plugin)
                members += self._guarded(plugin, f"{hook}()", ask)
        refuse_equal_names(members)
        plugin.members = members

    def _guarded(self, plugin: PluginRow, doing: str, function: Callable[[], Any], seconds: float | None = None) -> Any:
        return guarded(function, doing, plugin.declarations[0].package, seconds or self._seconds)


@functools.cache
def default_manager() -> PluginManager:
    """The manager of this process, under the settings that were in force at its first use.

    Raises:
        UsageError: the settings are wrong.
    """
    return PluginManager()


def _members(hook: str, plugin: PluginRow) -> list[Spec]:
    return check_members(hook, plugin.ask(hook), plugin.name)


def _those(names: Sequence[str]) -> str:
    return f"; those that do: {', '.join(names)}" if names else ""


def _check_strategy(item: Any) -> str:
    named = isinstance(item, type) and isinstance(getattr(item, "name", None), str)
    return "" if named else "expected a class with a `name`"


def _check_ranking(item: Any) -> str:
    named = isinstance(item, Ranking) and isinstance(item.name, str)
    return "" if named else "expected an object with a `name` and a method `order(question, entries)`"


def _check_guard(guard: Any) -> str:
    from concertino.members.guards import Guard

    if not isinstance(guard, Guard):
        return f"concertino_guards() gave {show(guard)}; expected guards made with @concertino.guard(stage)"
    return ""


def _check_command(item: Any) -> str:
    import click

    return "" if isinstance(item, click.Command) else "expected a click.Command"


def _hint(name: str, known: Iterable[str]) -> str:
    from concertino.schema import suggestion  # only a message needs it

    return suggestion(name, known)
