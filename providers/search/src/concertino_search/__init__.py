"""concertino-search: batch search over your own corpus and the web, safe page fetching, and agents that read and cite.

What is published depends on what is configured, so that no pool holds a tool that can only fail: `search/search` and
`search/read` with a corpus in `[providers.search]`, `search/web_search` with a web back-end, `search/fetch_page`
always, and the agents `search/knowledge_searcher` and `search/deep_research` where there is anything to search. The
functions `corpus_tools`, `web_search_tool`, `fetch_page_tool`, `knowledge_searcher` and `deep_research` make them in
Python, with other settings. Importing this module imports nothing that is heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from concertino import hookimpl

if TYPE_CHECKING:
    from concertino import AgentSpec, Finding, ProviderSettings, ToolSpec

    from ._citations import Citation, Source, stands_in
    from ._embedding import Embedder, EncodingEmbedder, HashingEmbedder, ServedEmbedder
    from ._errors import CorpusError, IndexDamaged
    from ._fetching import FetchLimits
    from ._finding import Names
    from ._index import Hit, Index, build_index, default_cache, open_index
    from ._knowledge import knowledge_searcher
    from ._options import IndexOptions
    from ._pages import fetch_page_tool
    from ._passages import Passage
    from ._research import ResearchLimits, deep_research
    from ._tools import Corpus, corpus_tools
    from ._web import BACKENDS, WebBackend, WebRequest, WebResult, web_search_tool

_HOMES = {
    "_citations": ["Citation", "Source", "stands_in"],
    "_embedding": ["Embedder", "EncodingEmbedder", "HashingEmbedder", "ServedEmbedder"],
    "_errors": ["CorpusError", "IndexDamaged"],
    "_fetching": ["FetchLimits"],
    "_finding": ["Names"],
    "_index": ["Hit", "Index", "build_index", "default_cache", "open_index"],
    "_knowledge": ["knowledge_searcher"],
    "_options": ["IndexOptions"],
    "_pages": ["fetch_page_tool"],
    "_passages": ["Passage"],
    "_research": ["ResearchLimits", "deep_research"],
    "_tools": ["Corpus", "corpus_tools"],
    "_web": ["BACKENDS", "WebBackend", "WebRequest", "WebResult", "web_search_tool"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BACKENDS",
    "Citation",
    "Corpus",
    "CorpusError",
    "Embedder",
    "EncodingEmbedder",
    "FetchLimits",
    "HashingEmbedder",
    "Hit",
    "Index",
    "IndexDamaged",
    "IndexOptions",
    "Names",
    "Passage",
    "ResearchLimits",
    "ServedEmbedder",
    "Source",
    "WebBackend",
    "WebRequest",
    "WebResult",
    "build_index",
    "concertino_agents",
    "concertino_cli",
    "concertino_doctor",
    "concertino_tools",
    "corpus_tools",
    "deep_research",
    "default_cache",
    "fetch_page_tool",
    "knowledge_searcher",
    "open_index",
    "stands_in",
    "web_search_tool",
]


_last: dict[str, ProviderSettings] = {}
"""The table that was published last, which `concertino check` is about."""


@hookimpl
def concertino_tools(settings: ProviderSettings) -> list[ToolSpec]:
    """`fetch_page`, and the searches that are configured."""
    from ._published import published_tools
    from ._settings import read_settings

    _last["table"] = settings
    return published_tools(read_settings(settings))


@hookimpl
def concertino_agents(settings: ProviderSettings) -> list[AgentSpec]:
    """The agents, where there is anything to search."""
    from ._published import published_agents
    from ._settings import read_settings

    return published_agents(read_settings(settings))


@hookimpl
def concertino_doctor(settings: ProviderSettings) -> list[Finding]:
    """The corpus, its index and the web back-ends."""
    from ._doctor import findings
    from ._settings import read_settings

    return list(findings(read_settings(settings)))


@hookimpl
def concertino_cli() -> list[Any]:
    """`concertino search-index CORPUS`."""
    from ._cli import search_index

    return [search_index]


def _examples() -> dict[str, Any]:
    """`concertino_examples`: what `concertino check` may call, and what is to come of it."""
    from ._examples import examples_of
    from ._settings import read_settings

    return examples_of(read_settings(_last.get("table")))


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use; make the examples of what was last published."""
    if name == "concertino_examples":
        return _examples()
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
