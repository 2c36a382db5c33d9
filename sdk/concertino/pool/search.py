"""A pool that is too large for a prompt is searched: a run lists what fits its question, and a tool finds the rest.

    pool.with_search(ToolSearch(above=10_000, always=("acme/*",)))

What is listed is found by the question. The tool `find_tools` is listed beside it: it says which providers there are,
finds members by what they are needed for, and gives the whole schema of a name. Every member can be called, also one
that is not listed.

Invariant: what is listed follows from question, pool and settings alone, and takes no more tokens than the settings
allow, whatever descriptions and schemas say.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from concertino.core.documents import check_keys
from concertino.core.errors import PoolError, UsageError
from concertino.core.function_objects import FINDER, FunctionObjects
from concertino.members.patterns import matches
from concertino.members.ranking import IndexedRanking, Ranking, RankingEntry, RankingIndex, check_ranking, named_by
from concertino.members.specs import ToolSpec, function_object

from .short_functions import shortened, tokens_of
from .shortlist import entry_of

if TYPE_CHECKING:
    from .pool import Pool

K = TypeVar("K")
V = TypeVar("V")
logger = logging.getLogger("concertino")
_PROVIDERS = 30
"""Providers that the description of the tool names."""
_KEPT = 256
"""Questions whose results are kept, and lists."""
_NAMES_AT_ONCE = 10
_QUERIES_AT_ONCE = 8
_EXPECTED = "expected 'auto', 'never' or a ToolSearch, or a table of its settings; above = 0 searches always"

Search = Literal["auto", "never"]
"""Whether a pool is searched, where nobody said how."""


@dataclass(frozen=True)
class ToolSearch:
    """How a pool is searched. A value, so that pool files and results can name it.

    Args:
        above: estimated tokens of the whole list from which on it is searched; 0 searches always.
        most: members that are listed for a question at most, beside those of `always`.
        tokens: estimated tokens that these may take in the prompt, and the result of one search too.
        always: patterns of members that are always listed: `acme/*`, `*/calculator`.
        ranking: what finds them: an installed ranking as `provider/name`, or an object.
        learn_from: a folder of traces. A member is found by the questions of runs in which a call of it succeeded, too.

    Raises:
        UsageError: a value is out of range; says which and what was expected.
    """

    above: int = 32_000
    most: int = 20
    tokens: int = 3_000
    always: tuple[str, ...] = ()
    ranking: str | Ranking = "search/tools"
    learn_from: str = ""

    def __post_init__(self) -> None:
        for name, least in (("above", 0), ("most", 1), ("tokens", 500)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise UsageError(f"ToolSearch({name}={value!r}): expected a whole number of {least} or more")
        if isinstance(self.always, str) or not all(isinstance(item, str) and item for item in self.always):
            raise UsageError(f"ToolSearch(always={self.always!r}): expected patterns of members, such as ['acme/*']")
        object.__setattr__(self, "always", tuple(self.always))
        check_ranking("ToolSearch", self.ranking, "search/tools", "concertino-search")
        if not isinstance(self.learn_from, str):
            raise UsageError(f"ToolSearch(learn_from={self.learn_from!r}): expected the path of a folder of traces")

    @classmethod
    def parse(cls, given: Any) -> ToolSearch | Search:
        """Read `"auto"`, `"never"`, or a table of a pool file.

        Raises:
            UsageError: a key is unknown, or a value is out of range; says what was expected.
        """
        if isinstance(given, ToolSearch):
            return given
        if given in ("auto", "never"):
            return cast("Search", given)
        if not isinstance(given, Mapping):
            raise UsageError(f"search={given!r}: {_EXPECTED}")
        check_keys("search", given, [field.name for field in fields(cls)], UsageError)
        return cls(**given)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data: `above`, and what is not the default; a ranking that is an object is named."""
        chosen = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        chosen["above"] = self.above
        if not isinstance(self.ranking, str):
            chosen["ranking"] = self.ranking.name
        return {key: list(value) if isinstance(value, tuple) else value for key, value in chosen.items()}


class SearchedPool:
    """A pool as searching runs use it.

    Attributes:
        pool: with the tool that searches.
        settings: how it is searched.
        finder: the visible name of the tool that searches.
    """

    def __init__(self, pool: Pool, settings: ToolSearch, ranking: Ranking) -> None:
        self.settings = settings
        self._ranking = ranking
        self._members = pool = pool.without(FINDER) if FINDER in pool else pool
        self.pool = pool.adding(self._find_tools(pool))
        # With the finder in it, it is searched as it was without.
        self.pool.__dict__["searched"] = self
        self.finder = self.pool.visible_names[FINDER]
        self._listings: dict[tuple[Any, ...], FunctionObjects] = {}
        self._found: dict[str, list[str]] = {}
        self._answered: Mapping[str, Sequence[str]] | None = None
        self._always = [v for v, s in self.pool.actions if any(matches(s, pattern) for pattern in settings.always)]

    def learn(self, read: Callable[[str], Mapping[str, Sequence[str]]]) -> None:
        """Read what earlier runs say, if the settings name some; once, before the first search.

        Args:
            read: gives the questions by the member of which a call succeeded, from a folder of traces.
        """
        if self._answered is None:
            self._answered = read(self.settings.learn_from) if self.settings.learn_from else {}

    def find(self, question: str) -> list[str]:
        """Visible names of the members that fit a question, best first."""
        if question not in self._found:
            _keep(self._found, question, self._search([question], self.settings.most))
        return self._found[question]

    def listing(self, found: Sequence[str], needed: Sequence[str] = (), *, searches: bool = True) -> FunctionObjects:
        """What a run lists: the tool that searches, what is always listed, and what fits the question.

        Args:
            found: visible names of what fits.
            needed: names of members that the strategy itself calls.
            searches: with the tool that searches.
        """
        asked = (*found, None, *needed, searches)
        if asked not in self._listings:
            _keep(self._listings, asked, self._list(found, needed, searches))
        return self._listings[asked]

    def _list(self, found: Sequence[str], needed: Iterable[str], searches: bool) -> FunctionObjects:
        first = dict.fromkeys([*([self.finder] if searches else []), *self._always, *self._visible(needed)])
        if not found and not first:
            # Who cannot search must have something to choose from.
            found = [visible for visible, _ in self._members.actions[: self.settings.most]]
        rest = self._fitted([name for name in found if name not in first])
        return FunctionObjects([*map(self._whole, first), *rest])

    def _visible(self, names: Iterable[str]) -> list[str]:
        """Visible names of members, as far as there are any of these names."""
        specs = (self.pool.find(name) for name in names)
        return [self.pool.visible_names[spec.name] for spec in specs if spec is not None]

    # -- finding ---------------------------------------------------------------------------------------------------

    @cached_property
    def _entries(self) -> list[RankingEntry]:
        answered = self._answered or {}
        return [
            replace(
                entry_of(spec, self._members),
                arguments=tuple(_properties(spec.input_schema)),
                answered=tuple(answered.get(spec.name, ())),
            )
            for _, spec in self._members.actions
        ]

    @cached_property
    def _index(self) -> RankingIndex:
        ranking, entries = self._ranking, self._entries
        return ranking.index(entries) if isinstance(ranking, IndexedRanking) else _Ordering(ranking, entries)

    def _search(self, queries: Sequence[str], most: int) -> list[str]:
        """Visible names, the best of each query in turn."""
        ranked = [self._index.search(query, most) for query in queries]
        turns = (names[place] for place in range(most) for names in ranked if place < len(names))
        return [self.pool.visible_names[name] for name in dict.fromkeys(turns)][:most]

    # -- showing ---------------------------------------------------------------------------------------------------

    def _whole(self, visible: str) -> dict[str, Any]:
        spec = self.pool.find(visible)
        assert spec is not None
        return function_object(visible, self.pool.card(spec), spec.input_schema)

    def _fitted(self, names: Sequence[str]) -> list[Mapping[str, Any]]:
        """The members, best first, each as long as its share of the tokens allows."""
        room: int = self.settings.tokens - tokens_of(self._whole(self.finder))
        fitted: list[Mapping[str, Any]] = []
        for place, name in enumerate(names):
            # What one member does not need is left to those behind it.
            short = shortened(self._whole(name), room // (len(names) - place))
            if short is not None:
                fitted.append(short)
                room -= tokens_of(short)
        return fitted

    def _find_tools(self, pool: Pool) -> ToolSpec:
        """The tool that searches."""

        async def find(arguments: dict[str, Any]) -> dict[str, Any]:
            queries, names = arguments.get("queries") or [], arguments.get("names") or []
            if not queries and not names:
                raise ValueError("give queries that say what is to be done, or names to read their schemas")
            content: dict[str, Any] = {}
            if queries:
                found = self._search(queries, self.settings.most)
                content["tools"] = self._fitted([name for name in found if name not in names])
            if names:
                known = dict.fromkeys(self._visible(names))
                content["tools"] = [*map(self._whole, known), *content.get("tools", ())]
                if unknown := [name for name in names if self.pool.find(name) is None]:
                    content["unknown"] = unknown
            return content

        return ToolSpec(
            FINDER,
            _directory(pool),
            _SCHEMA,
            find,
            takes_mapping=True,
            retry_safe=True,
            # Whole schemas were asked for; a cut would leave none of them readable.
            max_chars=max(16_384, 12 * self.settings.tokens),
        )


_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "queries": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": _QUERIES_AT_ONCE,
            "description": "what is to be done, one step per query: 'send an e-mail', 'weather of a city'",
        },
        "names": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": _NAMES_AT_ONCE,
            "description": "names of found tools, to read their whole descriptions and schemas",
        },
    },
    "additionalProperties": False,
}


def _keep(kept: dict[K, V], key: K, value: V) -> None:
    """Keep a result for when the same is asked again, as trainings and evaluations do."""
    if len(kept) >= _KEPT:
        del kept[next(iter(kept))]
    kept[key] = value


class _Ordering:
    """The search of a ranking without an index: it orders all entries each time."""

    def __init__(self, ranking: Ranking, entries: Sequence[RankingEntry]) -> None:
        self._ranking = ranking
        self._entries = entries

    def search(self, question: str, most: int) -> Sequence[str]:
        # What the ranking does not name has nothing to do with the question.
        return named_by(self._ranking, question, self._entries)[:most]


def searched(pool: Pool, search: ToolSearch | Search) -> SearchedPool | None:
    """The pool as searching runs use it; None where it is listed whole.

    Raises:
        PoolError: the ranking that was chosen is not installed; names those that are.
    """
    settings = ToolSearch() if search == "auto" else search
    if not isinstance(settings, ToolSearch) or not _is_too_large(pool, settings):
        return None
    ranking = settings.ranking
    if isinstance(ranking, str):
        try:
            ranking = pool.ranking(ranking)
        except PoolError as error:
            if search != "auto":
                raise PoolError(f"search: ranking {ranking!r}: {error}") from error
            logger.warning(
                "%d tools and agents are a long list for a prompt, and this pool cannot be searched: %s. With it, runs "
                'list what fits the question; pool.with_search("never") lists all without this warning',
                len(pool.actions),
                error,
            )
            return None
    return SearchedPool(pool, settings, ranking)


def _is_too_large(pool: Pool, settings: ToolSearch) -> bool:
    """Whether the whole list takes more tokens than it may."""
    actions = pool.actions
    if not actions or not settings.above:
        return bool(actions)
    # As many as a search would list.
    if len(actions) <= settings.most:
        return False
    return sum(len(spec.canonical) for _, spec in actions) // 3 > settings.above


def _directory(pool: Pool) -> str:
    """What the tool says of itself: how many members there are, and of which providers."""
    counts = Counter(spec.provider or "this program" for _, spec in pool.actions)
    shown = [f"{name} ({count})" for name, count in counts.most_common(_PROVIDERS)]
    more = f", and {len(counts) - _PROVIDERS} more" if len(counts) > _PROVIDERS else ""
    return (
        f"Find tools. There are {len(pool.actions)}; only some that fit the question are listed. Search with `queries` "
        "for what is missing. A found tool can be called by its name at once; descriptions and schemas may be "
        f"shortened, and `names` gives them whole. Providers: {', '.join(shown)}{more}."
    )


def _properties(schema: Mapping[str, Any]) -> Iterable[str]:
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else ()
