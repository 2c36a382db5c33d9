"""A plugin's row: what `concertino plugins` shows of one entry point, loaded or not, broken or not.

Installed, its metadata is known and nothing of it was imported. Loaded, it was imported and every check
passed. Failed, its own fault keeps it out. Disabled, a setting keeps it out. Clash, several distributions
declare one name, and none of them is used. A row never changes what the others are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from concertino.core.errors import UsageError
from concertino.core.provider_settings import ProviderSettings
from concertino.members.specs import Spec

from .discovery import Declaration
from .guard import PluginFault
from .hooks import Implementations, taken_arguments

State = Literal["installed", "loaded", "failed", "disabled", "clash"]


class PluginInfo(NamedTuple):
    """One provider: an entry point of the group `concertino`, or an object registered in this process.

    Attributes:
        name: the provider part of its members' names.
        distribution: what pip calls it; several for a clash; empty for an object that named none.
        version: of the distribution, in the same order.
        target: `module` or `module:object`, as its metadata says.
        state: how far it got; see above.
        reason: why it failed or is kept out, or what of a loaded plugin is left out; else empty.
        hooks: the hooks that it implements, once loaded.
        members: full names of its tools, agents and models, once a pool asked for them.
        import_seconds: how long its import took in this process; None before.
    """

    name: str
    distribution: str
    version: str
    target: str
    state: State
    reason: str = ""
    hooks: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    import_seconds: float | None = None

    @property
    def origin(self) -> str:
        """Distribution and version in words: `concertino-words 1.0`."""
        distributions, versions = self.distribution.split(", "), self.version.split(", ")
        pairs = zip(distributions, versions, strict=False)
        return " and ".join(" ".join(filter(None, pair)) for pair in pairs) or "registered in this process"


@dataclass
class PluginRow:
    """A row while it changes.

    `members` is None until they are asked for, `settings` is its own table, `implementations` are its hooks once
    loaded, and `results` holds what its other list hooks returned, by hook.
    """

    name: str
    declarations: list[Declaration]
    state: State = "installed"
    reason: str = ""
    hooks: tuple[str, ...] = ()
    members: list[Spec] | None = None
    import_seconds: float | None = None
    results: dict[str, list[Any]] = field(default_factory=dict)
    settings: ProviderSettings = field(default_factory=ProviderSettings)
    implementations: Implementations | None = None

    def info(self) -> PluginInfo:
        """The row as it stands."""
        return PluginInfo(
            self.name,
            ", ".join(declaration.distribution for declaration in self.declarations),
            ", ".join(declaration.version for declaration in self.declarations),
            ", ".join(dict.fromkeys(declaration.target for declaration in self.declarations)),
            self.state,
            self.reason,
            self.hooks,
            tuple(member.name for member in self.members or ()),
            self.import_seconds,
        )

    def ask(self, hook: str, **arguments: Any) -> Any:
        """What its implementation of a hook returns, given what it takes of the arguments and its settings.

        Raises:
            PluginFault: it refuses its settings; says where they stand.
        """
        function = getattr(self.implementations, hook)
        arguments["settings"] = self.settings
        taken = taken_arguments(hook, function)
        try:
            return function(**{name: arguments[name] for name in taken})
        except (UsageError, ValueError) as error:
            # Without settings of its own, the error is not about them.
            if "settings" not in taken or not self.settings:
                raise
            # An error of `ProviderSettings` names file and table already.
            place = "" if str(error).startswith(self.settings.where) else f"{self.settings.where}: "
            raise PluginFault(f"{place}{error}") from error

    def check_settings(self) -> None:
        """Refuse settings that no hook reads.

        Raises:
            PluginFault: there are such.
        """
        hooks = vars(self.implementations)
        if self.settings and not any("settings" in taken_arguments(name, hooks[name]) for name in hooks):
            raise PluginFault(f"{self.settings.where}: it takes no settings; remove the table")

    @property
    def label(self) -> str:
        """The plugin in a message."""
        return f"plugin {self.name!r} ({self.info().origin})"
