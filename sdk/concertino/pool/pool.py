"""The pool: an immutable value holding tools, agents and models, with their prices and descriptions.

Whatever an orchestrator may call is in a pool, and a pool is nothing but its members in order, the models bound to
roles, and the names under which the orchestrator sees them. Every change returns a new pool, so a pool can be hashed,
compared, sampled, written to a file and swapped under a trained policy or a running service.

Members are called `provider/name`. The orchestrator sees a *visible name*: the short name where it is unique, else
`provider__name`, with characters that model servers refuse replaced by `_`; an alias overrides it.

`Pool.installed()` imports nothing: it knows the installed distributions by their metadata, and imports those whose
members are really asked for.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino.core.errors import PoolError
from concertino.core.function_objects import FunctionObjects
from concertino.core.usage import Prices
from concertino.members.model_agent import ModelAgent, answering_with, describe_expert, model_agent
from concertino.members.patterns import is_full_name, matches
from concertino.members.routing import RouterSpec
from concertino.members.specs import ModelSpec, Spec, ToolSpec, function_object

from .consistency import check_consistency, unknown
from .identity import fingerprint_of, hash_of_members, id_of, with_member
from .named_models import full_name, how_to_name, named_models, names_of_members, names_of_roles
from .views import ContextCost, Member, PoolDiff

if TYPE_CHECKING:
    import hashlib
    import random

    from concertino.members.ranking import Ranking
    from concertino.plugins.manager import PluginManager

    from .search import Search, SearchedPool, ToolSearch

_ALWAYS_LISTED = 20
"""Members that are listed whole, however long their descriptions are."""
_OF_TOOLS = ("actions", "_by_any_name", "visible_names", "_functions")
"""What a pool makes of its tools and agents alone."""
_LEADERS = 8
"""Models for which a pool keeps what it is when they lead."""
# Servers with the OpenAI protocol take names of `[A-Za-z0-9_-]{1,64}` only; see `_sanitise`.
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


class Pool:
    """Tools, agents and models, in order.

    Args:
        members: the specs.
        roles: model names by role: `orchestrator`, `summariser`, `default`, and whatever the agents ask for. A full
            name that is no member becomes one: its provider publishes the model, or makes it by its name.
        aliases: visible names by member name.

    Raises:
        PoolError: two members of one name, an alias or role that names no member, or two members of one visible name.
        SpecError: a member's schema was refused.
    """

    def __init__(
        self,
        members: Iterable[Spec] = (),
        *,
        roles: Mapping[str, str] | None = None,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        members = tuple(members)
        wanted = {**names_of_members(members), **names_of_roles(roles)}
        self._fill((*members, *named_models(wanted, members)), roles, aliases)
        self._check()

    def _fill(
        self,
        members: tuple[Spec, ...] | Callable[[], tuple[Spec, ...]],
        roles: Mapping[str, str] | None,
        aliases: Mapping[str, str] | None,
        manager: PluginManager | None = None,
        patterns: tuple[str, ...] | None = None,
        search: ToolSearch | Search = "auto",
    ) -> None:
        self._source = members
        self._search = search
        self._roles = dict(roles or {})
        self._aliases = dict(aliases or {})
        self._manager = manager
        self._patterns = patterns
        self._file: tuple[Path, str] | None = None

    @classmethod
    def of(cls, *members: Any, **roles: str) -> Pool:
        """A pool of the given members; keywords bind roles to models.

        Args:
            members: specs; typed functions and bound methods; tools of LangChain, openai-agents, pydantic-ai (toolsets
                too), smolagents, LlamaIndex or DSPy; pairs of an OpenAI function object and its function; the `Path` of
                a file or folder that an installed plugin reads, such as Agent Skills or the server.json of an MCP
                registry; any other object that a plugin knows.

        Raises:
            SpecError: one of them is nothing of that, or its function has no types.
            PoolError: a file or folder that is not there, or that no installed plugin reads.
            UsageError: a file or folder is wrong, in the words of the plugin that reads it.
        """
        return cls(_specs_of(members, None), roles=roles)

    @classmethod
    def installed(cls, *patterns: str, manager: PluginManager | None = None) -> Pool:
        """Everything that installed distributions publish, or what matches the patterns (`provider/*`, `*/search`).

        Nothing is imported yet. Broken distributions are left out; `concertino plugins` names them.
        """
        from concertino.plugins.manager import default_manager

        return cls._lazily(manager or default_manager(), patterns or None)

    @classmethod
    def _lazily(
        cls,
        manager: PluginManager,
        patterns: tuple[str, ...] | None,
        roles: Mapping[str, str] | None = None,
        aliases: Mapping[str, str] | None = None,
        search: ToolSearch | Search = "auto",
    ) -> Pool:
        """A pool whose members are imported when somebody asks for them."""
        pool = cls.__new__(cls)

        def members() -> tuple[Spec, ...]:
            found = manager.specs(patterns)
            return (*found, *named_models(names_of_roles(roles), found, manager))

        pool._fill(members, roles, aliases, manager, patterns, search)
        return pool

    @property
    def _importer(self) -> PluginManager | None:
        """Who will import the members, None once they are here."""
        return self._manager if callable(self._source) else None

    @classmethod
    def load(cls, path: str | Path, *, manager: PluginManager | None = None, trusted: bool | None = None) -> Pool:
        """Read a pool file (TOML or YAML; `docs/reference/pool-file.md`).

        Args:
            path: the file.
            manager: whose plugins to use; by default the installed ones.
            trusted: False for a file that a stranger may have put there: what could do harm is then refused until its
                user trusts it (`concertino trust FILE`). By default a program's choice is trusted; the command line's
                is not.

        Raises:
            UsageError: the file could do harm, and was not trusted.
            PoolError: names the file, the key, what was expected and near names.
        """
        from .file import load_pool

        return load_pool(Path(path), manager, trusted=trusted)

    def save(self, path: str | Path) -> None:
        """Write a pool file that `load` reads back, by its suffix TOML or YAML."""
        from .file import save_pool

        save_pool(self, Path(path))

    # -- reading ---------------------------------------------------------------------------------------------------

    @property
    def members(self) -> tuple[Spec, ...]:
        """All specs in order. The first use of an installed pool imports the distributions it needs."""
        if callable(self._source):
            self._source = self._source()
            self._check()
        return self._source

    @property
    def manager(self) -> PluginManager | None:
        """The plugin manager that loaded installed members, None for a pool made by hand."""
        return self._manager

    @property
    def file(self) -> tuple[Path, str] | None:
        """The file that this very pool was loaded from, and the SHA-256 of what was in it."""
        return self._file

    @property
    def roles(self) -> dict[str, str]:
        """Model names by role."""
        return dict(self._roles)

    @property
    def aliases(self) -> dict[str, str]:
        """Visible names by member name, where they were set by hand."""
        return dict(self._aliases)

    @cached_property
    def _by_full_name(self) -> dict[str, Spec]:
        return {member.name: member for member in self.members}

    @cached_property
    def models(self) -> tuple[ModelSpec, ...]:
        """The models."""
        return tuple(member for member in self.members if isinstance(member, ModelSpec))

    @cached_property
    def _models_by_name(self) -> dict[str, ModelSpec]:
        return {spec.name: spec for spec in self.models}

    @cached_property
    def actions(self) -> tuple[Member, ...]:
        """Tools and agents with their visible names: the orchestrator's action space."""
        callables = [member for member in self.members if isinstance(member, ToolSpec)]
        short = [_sanitise(spec.short_name) for spec in callables]
        times = Counter(short)
        actions = []
        for spec, name in zip(callables, short, strict=True):
            visible = self._aliases.get(spec.name) or (
                name if times[name] == 1 else _sanitise(spec.name.replace("/", "__"))
            )
            actions.append(Member(visible, spec))
        self._refuse_equal_names(actions)
        return tuple(actions)

    @staticmethod
    def _refuse_equal_names(actions: Sequence[Member]) -> None:
        seen: dict[str, str] = {}
        for visible, spec in actions:
            if visible in seen:
                raise PoolError(f"{seen[visible]!r} and {spec.name!r} would both be visible as {visible!r}; alias one")
            seen[visible] = spec.name

    @cached_property
    def _by_any_name(self) -> dict[str, ToolSpec]:
        """Visible, full and unambiguous short names of tools and agents."""
        index: dict[str, ToolSpec] = {}
        ambiguous: set[str] = set()
        for _, spec in self.actions:
            if index.setdefault(spec.short_name, spec) is not spec:
                ambiguous.add(spec.short_name)
        for name in ambiguous:
            del index[name]
        index.update({spec.name: spec for _, spec in self.actions})
        # Visible names last: what the model was shown wins over every other meaning of a name.
        index.update(self.actions)
        return index

    @cached_property
    def visible_names(self) -> dict[str, str]:
        """Visible name by member name."""
        return {spec.name: visible for visible, spec in self.actions}

    def find(self, name: str) -> ToolSpec | None:
        """The tool or agent of a visible, full or unambiguous short name."""
        return self._by_any_name.get(name)

    def __getitem__(self, name: str) -> Spec:
        found = self._by_full_name.get(name) or self.find(name)
        if found is not None:
            return found
        raise PoolError(unknown("member", name, [member.name for member in self.members]))

    def __contains__(self, member: object) -> bool:
        """Whether a member, or one of that name, is here."""
        name = member if isinstance(member, str) else getattr(member, "name", None)
        mine = self._by_full_name.get(name) if isinstance(name, str) else None
        return mine is not None and (isinstance(member, str) or mine is member)

    def __iter__(self) -> Iterator[Spec]:
        """The members in order, models included; roles and aliases are not among them."""
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    def behind(self, role_or_name: str) -> tuple[ModelSpec, ...]:
        """The models that a request to a role or name can reach: the model itself, or those of a router.

        Raises:
            PoolError: no such role or model.
        """
        found = self.model(role_or_name)
        if not isinstance(found, RouterSpec):
            return (found,)
        # The recursion ends, because routers that lead to themselves were refused when the pool was made.
        return tuple(dict.fromkeys(model for name in found.models for model in self.behind(name)))

    def ranking(self, name: str) -> Ranking:
        """The installed ranking `provider/name`.

        Raises:
            PoolError: it is not installed; names those that are.
        """
        from concertino.plugins.manager import default_manager

        return (self._manager or default_manager()).ranking(name)

    def model(self, role_or_name: str) -> ModelSpec:
        """The model bound to a role, or of a name.

        An unbound role falls back to the role `default`, then to the only model; what can be no role, such as
        `provider/name` or `gpt-5`, to nothing.

        Raises:
            PoolError: no such role or model; says how to bind one.
        """
        models = self._models_by_name
        wanted = self._roles.get(role_or_name, role_or_name)
        if wanted in models:
            return models[wanted]
        by_short = [spec for spec in models.values() if spec.short_name == wanted]
        if len(by_short) == 1:
            return by_short[0]
        # A name that was meant for one model must not lead to another one; a role is a keyword of `bind`.
        may_fall_back = role_or_name not in self._roles and role_or_name.isidentifier()
        if may_fall_back and "default" in self._roles and role_or_name != "default":
            return self.model("default")
        if may_fall_back and len(models) == 1:
            return next(iter(models.values()))
        message = unknown("model or role", wanted, [*models, *self._roles]).rstrip("?")
        raise PoolError(f"{message}; {how_to_name(role_or_name)}")

    # -- changing --------------------------------------------------------------------------------------------------

    def _copy(self, members: Iterable[Spec] | None = None, **changes: Any) -> Pool:
        roles, aliases = changes.get("roles", self._roles), changes.get("aliases", self._aliases)
        search = changes.get("search", self._search)
        # Stays lazy: changing roles or aliases imports no plugin.
        if members is None and (importer := self._importer) is not None:
            return Pool._lazily(importer, self._patterns, roles, aliases, search)
        kept = self.members if members is None else tuple(members)
        names = {member.name for member in kept}
        # Not through the constructor: it would bring back a model that `without` took away from a role.
        pool = Pool.__new__(Pool)
        kept_aliases = {name: alias for name, alias in aliases.items() if name in names}
        pool._fill(kept, roles, kept_aliases, self._manager, search=search)
        pool._check()
        return pool

    def only(self, *patterns: str) -> Pool:
        """Keep the tools and agents that match (`provider/*`, `*/search`, a full name), and the models of roles.

        Models stay too where a pattern names them.

        Raises:
            PoolError: a pattern matches nothing.
        """
        # Narrowed before it is loaded, so that only what matches is imported.
        if (importer := self._importer) is not None and self._patterns is None:
            more = (*patterns, *self._roles.values())
            return Pool._lazily(importer, more, self._roles, self._aliases, self._search)
        self._require_matches(patterns)
        kept = self._with_needs({m.name for m in self.members if _matches(m, patterns)} | set(self._roles.values()))
        return self._copy(m for m in self.members if m.name in kept)

    def _with_needs(self, names: set[str]) -> set[str]:
        """The names, and those of the models that these members need."""
        # Again until nothing is added, since a router may need another router.
        while more := {need for m in self.members if m.name in names for need in m.needs} - names:
            names = names | more
        return names

    def arranged(self, names: Sequence[str]) -> Pool:
        """With these tools and agents alone, in this order; models, roles and aliases stay.

        Args:
            names: visible, full or unambiguous short names, each once.

        Raises:
            PoolError: a name is of no tool or agent, or stands twice.
        """
        found = [self[name] for name in names]
        wrong = [spec.name for place, spec in enumerate(found) if spec in found[:place] or spec in self.models]
        if wrong:
            raise PoolError(
                f"arranged({list(names)!r}): {wrong[0]!r} is a model or stands twice; name each member once"
            )
        return self._copy((*self.models, *found))

    def without(self, *patterns: str) -> Pool:
        """Leave out what matches.

        Raises:
            PoolError: a pattern matches nothing, or it takes away a model that a role, a router or an agent needs.
        """
        self._require_matches(patterns)
        return self._copy(m for m in self.members if not _matches(m, patterns))

    def _require_matches(self, patterns: Sequence[str]) -> None:
        for pattern in patterns:
            if not any(matches(member, pattern) for member in self.members):
                raise PoolError(unknown("member", pattern, [member.name for member in self.members]))

    def adding(self, *members: Any) -> Pool:
        """With more members at the end; what they may be, `of` says."""
        more = _specs_of(members, self._manager)
        both = (*self.members, *more)
        return self._copy((*both, *named_models(names_of_members(more), both, self._manager)))

    def bind(self, **roles: str) -> Pool:
        """With roles bound to models by name (`bind(worker="groq/llama-3.3-70b-versatile")`).

        A full name need not be in the pool: its provider publishes the model, or makes it by its name.

        Raises:
            PoolError: no model of that name, or its provider is not installed.
        """
        for role, name in roles.items():
            if not isinstance(name, str):
                raise PoolError(f"role {role!r} = {name!r}; expected the name of a model, such as 'provider/name'")
        bound = {role: full_name(name) for role, name in roles.items()}
        roles = {**self._roles, **bound}
        if (importer := self._importer) is not None:
            patterns = self._patterns and (*self._patterns, *bound.values())
            return Pool._lazily(importer, patterns, roles, self._aliases, self._search)
        more = named_models(names_of_roles(bound), self.members, self._manager)
        return self._copy((*self.members, *more) if more else None, roles=roles)

    def led_by(self, model: ModelSpec | str) -> Pool:
        """With the role `orchestrator` bound to a model; the same pool again as long as the same models lead.

        Args:
            model: a spec, which becomes a member if there is none of its name; else a role or name.

        Raises:
            PoolError: as `model` and `bind`.
        """
        led = self._led.get(model)
        if led is None:
            if len(self._led) >= _LEADERS:
                del self._led[next(iter(self._led))]
            led = self._led[model] = self._bound_to(model)
            if self.searched is not None:
                # The same members, so the same index.
                led.__dict__["searched"] = self.searched
        return led

    @cached_property
    def _led(self) -> dict[ModelSpec | str, Pool]:
        return {}

    def _bound_to(self, model: ModelSpec | str) -> Pool:
        if isinstance(model, ModelSpec):
            if type(model) is ModelSpec and model.name not in self:
                return self._with_leader(model)
            known = self if model.name in self else self.adding(model)
            return known.bind(orchestrator=model.name)
        if "/" in model and model not in self:
            return self.bind(orchestrator=model)
        found = self.model(model)
        return self if self._roles.get("orchestrator") == found.name else self.bind(orchestrator=found.name)

    def _with_leader(self, model: ModelSpec) -> Pool:
        """With a new model that leads. What is known of the tools and agents stays; programs make a model per run."""
        pool = Pool.__new__(Pool)
        roles = {**self._roles, "orchestrator": model.name}
        # Not checked again: a model of a new name takes nothing away from a pool that was consistent.
        pool._fill((*self.members, model), roles, self._aliases, self._manager, search=self._search)
        pool.__dict__.update({name: getattr(self, name) for name in _OF_TOOLS})
        pool.__dict__["fingerprints"] = {**self.fingerprints, model.name: fingerprint_of(model)}
        pool.__dict__["_hashed_members"] = with_member(self._hashed_members, model, first=not self.members)
        return pool

    def offering(self, *patterns: str) -> Pool:
        """With each model that matches offered to the orchestrator as an agent, `ask_<name>`.

        What the orchestrator reads about it is the description and the price of the model.

        Raises:
            PoolError: a pattern matches no model.
        """
        named = named_models({name: "" for name in patterns if is_full_name(name)}, self.members, self._manager)
        models = (*self.models, *(spec for spec in named if isinstance(spec, ModelSpec)))
        for pattern in patterns:
            if not any(matches(model, pattern) for model in models):
                raise PoolError(unknown("model", pattern, [model.name for model in models]))
        return self.adding(*named, *(model_agent(model) for model in models if _matches(model, patterns)))

    def replace(self, old: str, new: str | Spec) -> Pool:
        """With one member replaced by another one, or by an installed one of that name.

        The new one takes the old one's place, its roles, and its part in routers and model agents.

        Raises:
            PoolError: no such member, or nothing installed of the new name.
        """
        current = self[old]
        if isinstance(new, str):
            new = Pool.installed(new, manager=self._manager)[new]
        if isinstance(current, ModelSpec) != isinstance(new, ModelSpec):
            raise PoolError(f"{old!r} is a {current.kind}; it cannot be replaced by the {new.kind} {new.name!r}")
        roles = {role: new.name if name == current.name else name for role, name in self._roles.items()}
        return self._copy(
            [new if m is current else _renaming(m, current.name, new.name) for m in self.members], roles=roles
        )

    def adjust(self, pattern: str, **options: Any) -> Pool:
        """With other options of every member that matches: `adjust("acme/*", isolation="process", timeout=5)`.

        Raises:
            PoolError: the pattern matches nothing.
            SpecError: an option has a wrong value.
        """
        self._require_matches([pattern])
        return self._copy(m.with_(**options) if matches(m, pattern) else m for m in self.members)

    def alias(self, names: Mapping[str, str]) -> Pool:
        """With visible names set by hand: `{member name: visible name}`.

        Raises:
            PoolError: a visible name that a model could not call, or an unknown member; names near ones.
        """
        _require_names("alias", names, "{'acme/search': 'search'}")
        for name, visible in names.items():
            self[name]  # raises for an unknown member
            if not isinstance(visible, str) or not visible or _sanitise(visible) != visible:
                raise PoolError(
                    f"alias of {name!r} = {visible!r}; expected letters, digits, '_' or '-', at most 64 characters"
                )
        return self._copy(aliases={**self._aliases, **names})

    def describe(self, descriptions: Mapping[str, str]) -> Pool:
        """With other descriptions: `{member name: text}`.

        Raises:
            PoolError: an unknown member; names near ones.
        """
        _require_names("describe", descriptions, "{'acme/search': 'Search the web.'}")
        texts = {self[name].name: text for name, text in descriptions.items()}
        return self._copy(m.with_(description=texts[m.name]) if m.name in texts else m for m in self.members)

    def price(self, prices: Mapping[str, Prices | None]) -> Pool:
        """With other token prices: `{model name: prices}`.

        A full name need not be in the pool, as for `bind`: so the model that leads has its price, too.

        Raises:
            PoolError: no model of that name, or no prices.
        """
        _require_names("price", prices, "{'openai/small': Prices(input=0.4, output=1.6)}")
        named = {name: "price: " for name in prices if is_full_name(name) and self.find(name) is None}
        more = named_models(named, self.members, self._manager)
        pool = self._copy((*self.members, *more)) if more else self
        chosen = {pool[name].name: value for name, value in prices.items()}
        for name, value in chosen.items():
            if not isinstance(pool[name], ModelSpec):
                raise PoolError(f"{name!r} is a {pool[name].kind}; token prices belong to models")
            if isinstance(pool[name], RouterSpec):
                raise PoolError(f"{name!r} is a router; its prices are those of {', '.join(pool[name].needs)}")
            if not (value is None or isinstance(value, Prices)):
                raise PoolError(f"price of {name!r} = {value!r}; expected Prices(input=..., output=...), or None")
        return pool._copy(
            m.with_(prices=chosen[m.name]) if isinstance(m, ModelSpec) and m.name in chosen else m for m in pool.members
        )

    def with_search(self, search: ToolSearch | Search) -> Pool:
        """With another way to search it.

        Args:
            search: `auto`, the default: a pool whose list is too long for a prompt is searched, if concertino-search is
                installed; `never`; or a `ToolSearch`, which says from which size on, and how.

        Raises:
            UsageError: it is nothing of that.
        """
        from .search import ToolSearch

        return self._copy(search=ToolSearch.parse(search))

    @cached_property
    def searched(self) -> SearchedPool | None:
        """This pool as runs search it; None where its list is short enough to be shown whole.

        Raises:
            PoolError: the ranking that `with_search` names is not installed.
        """
        if self._search == "never" or (self._search == "auto" and len(self.members) <= _ALWAYS_LISTED):
            return None
        from .search import searched

        return searched(self, self._search)

    def sample(
        self,
        rng: random.Random,
        *,
        keep: float = 1.0,
        always: Sequence[str] = (),
        rename: float = 0.0,
        prices: Sequence[Mapping[str, Prices]] = (),
    ) -> Pool:
        """A random variation, for training (ToolOrchestra's general tool configuration).

        Args:
            rng: source of randomness; the same state gives the same pool.
            keep: probability with which each tool or agent stays (at least one does).
            always: patterns of members that stay.
            rename: probability with which each tool or agent is shown under a neutral alias.
            prices: price schedules, of which one is drawn.
        """
        from .variation import varied

        return varied(self, rng, keep, always, rename, prices)

    # -- identity --------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Everything that can change a run, as plain JSON data."""
        return {
            "members": [member.to_json() for member in self.members],
            "roles": dict(sorted(self._roles.items())),
            "aliases": dict(sorted(self._aliases.items())),
            **self._search_setting,
        }

    @property
    def _search_setting(self) -> dict[str, Any]:
        """How it is searched, as a document says it; nothing where it is as usual."""
        if self._search == "auto":
            return {}
        return {"search": self._search if isinstance(self._search, str) else self._search.to_json()}

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """What tells whether a member has changed, by name: 12 digits of the SHA-256 of what the outside sees of it."""
        return {member.name: fingerprint_of(member) for member in self.members}

    @cached_property
    def id(self) -> str:
        """16 hex digits of the SHA-256 of `to_json()`: equal pools have equal ids, in every process."""
        return id_of(self._hashed_members, self._roles, self._search_setting)

    @cached_property
    def _hashed_members(self) -> hashlib._Hash:
        return hash_of_members(self._aliases, self.members)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pool) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        if callable(self._source):
            return f"Pool.installed{self._patterns or ()!r}"
        return f"<Pool {self.id}: {len(self.actions)} tools and agents, {len(self.models)} models>"

    def _repr_html_(self) -> str:
        """For notebooks: members by kind, with names, costs and descriptions. Imports those of installed plugins."""
        from .pool_html import pool_html

        return pool_html(self)

    def diff(self, other: Pool) -> PoolDiff:
        """What would change if `other` took this pool's place."""
        mine = {m.name: m.to_json() for m in self.members}
        theirs = {m.name: m.to_json() for m in other.members}
        roles = sorted({*self._roles, *other._roles})
        return PoolDiff(
            added=tuple(name for name in theirs if name not in mine),
            removed=tuple(name for name in mine if name not in theirs),
            changed=tuple(name for name in mine if name in theirs and mine[name] != theirs[name]),
            rebound=tuple(
                f"{role}: {self._roles.get(role)} -> {other._roles.get(role)}"
                for role in roles
                if self._roles.get(role) != other._roles.get(role)
            ),
        )

    # -- rendering -------------------------------------------------------------------------------------------------

    def to_openai(self) -> list[dict[str, Any]]:
        """The action space as OpenAI-style function objects."""
        return [function_object(visible, self.card(spec), spec.input_schema) for visible, spec in self.actions]

    @property
    def functions(self) -> FunctionObjects:
        """As `to_openai`, made once and shared by all runs, so nobody may change it."""
        # A hook of a plugin may say something else each time.
        hooked = self._manager is not None and bool(self._manager.describe_hooks())
        return FunctionObjects(self.to_openai()) if hooked else self._functions

    @cached_property
    def _functions(self) -> FunctionObjects:
        return FunctionObjects(self.to_openai())

    def card(self, spec: ToolSpec) -> str:
        """The text that the orchestrator reads about a tool or agent: the first hook's, else its own or its model's."""
        for hook in self._manager.describe_hooks() if self._manager is not None else ():
            text = hook(spec=spec)
            if text is not None:
                return str(text)
        return describe_expert(self.model(spec.model)) if isinstance(spec, ModelAgent) else spec.description

    def count_context(self, count: Callable[[str], int] | None = None) -> ContextCost:
        """Tokens that each tool and agent takes in the orchestrator's context.

        Args:
            count: tokens of a text; by default an estimate of one token per 3 bytes.
        """
        from concertino.core.model import Model

        count = count or Model().count_tokens
        by_member = {tool["function"]["name"]: count(json.dumps(tool, ensure_ascii=False)) for tool in self.to_openai()}
        return ContextCost(sum(by_member.values()), by_member)

    def _check(self) -> None:
        if not callable(self._source):
            check_consistency(self._source, self._roles, self._aliases, self.ranking)


def _specs_of(members: Iterable[Any], manager: PluginManager | None) -> list[Spec]:
    """What a pool takes its members as; plugins are asked about what is none of the known."""

    members = list(members)
    specs = [member for member in members if isinstance(member, (ToolSpec, ModelSpec))]
    if len(specs) == len(members):
        return specs
    # Imported here, for most pools are made of specs.
    from concertino.members.foreign import as_specs

    def made_from(source: Any) -> Sequence[Spec] | None:
        from concertino.plugins.manager import default_manager

        return (manager or default_manager()).members_from(source)

    return [spec for member in members for spec in as_specs(member, made_from)]


def _renaming(member: Spec, old: str, new: str) -> Spec:
    """A member that needs a model, with the model's new name."""
    if old == new or old not in member.needs:
        return member
    if isinstance(member, RouterSpec):
        return member.with_(models=tuple(new if name == old else name for name in member.models))
    # The code of other agents names its models itself.
    return answering_with(member, new) if isinstance(member, ModelAgent) else member


def _sanitise(name: str) -> str:
    return _UNSAFE.sub("_", name)[:64]


def _matches(member: Spec, patterns: Iterable[str]) -> bool:
    return any(matches(member, pattern) for pattern in patterns)


def _require_names(method: str, given: object, example: str) -> None:
    if not isinstance(given, Mapping):
        raise PoolError(f"{method}({given!r}): expected a dict by the names of members, such as {example}")
