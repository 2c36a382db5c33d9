"""concertino-search: batch search over your own corpus and the web, safe page fetching, and agents that read and cite.

What is published depends on what is configured, so that no pool holds a tool that can only fail: `search/search` and
`search/read` with a corpus in `[providers.search]`, `search/web_search` with a web back-end, `search/fetch_page`
always, and the agents `search/knowledge_searcher` and `search/deep_research` where there is anything to search. The
functions `corpus_tools`, `web_search_tool`, `fetch_page_tool`, `knowledge_searcher` and `deep_research` make them in
Python, with other settings. The ranking `search/tools` finds the members of pools that are too large for a prompt.

The index itself is in `concertino_search.index`. It needs numpy and bm25s, which this module does not import.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from concertino import AgentSpec, Finding, ProviderSettings, Ranking, ToolSpec, hookimpl

from .agents.gathered import AgentTools
from .agents.knowledge import knowledge_searcher
from .agents.research import ResearchLimits, deep_research
from .doctor import findings
from .errors import CorpusError
from .examples import examples_of
from .options import FetchLimits, IndexOptions
from .published import published_agents, published_tools
from .settings import read_settings
from .tool_ranking import ToolRanking
from .tools.corpus import Corpus, corpus_tools
from .tools.pages import fetch_page_tool
from .tools.web import web_search_tool
from .web.backends import WebBackend, WebRequest, WebResult

__all__ = [
    "AgentTools",
    "Corpus",
    "CorpusError",
    "FetchLimits",
    "IndexOptions",
    "ResearchLimits",
    "ToolRanking",
    "WebBackend",
    "WebRequest",
    "WebResult",
    "corpus_tools",
    "deep_research",
    "fetch_page_tool",
    "knowledge_searcher",
    "web_search_tool",
]


@hookimpl
def concertino_tools(settings: ProviderSettings) -> list[ToolSpec]:
    """`fetch_page`, and the searches that are configured."""
    concertino_examples.settings = settings
    return published_tools(read_settings(settings))


@hookimpl
def concertino_agents(settings: ProviderSettings) -> list[AgentSpec]:
    """The agents, where there is anything to search."""
    return published_agents(read_settings(settings))


@hookimpl
def concertino_rankings(settings: ProviderSettings) -> list[Ranking]:
    """`search/tools`, which finds the members of large pools."""
    return [ToolRanking()]


@hookimpl
def concertino_doctor(settings: ProviderSettings) -> list[Finding]:
    """The corpus, its index and the web back-ends."""
    return list(findings(read_settings(settings)))


@hookimpl
def concertino_cli() -> list[Any]:
    """`concertino search-index CORPUS`."""
    from .cli import search_index

    return [search_index]


class _Examples(Mapping[str, Any]):
    """What `concertino check` may call: examples of what was published last, made when they are asked for."""

    settings = ProviderSettings()

    def __getitem__(self, name: str) -> Any:
        return self._made()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made())

    def __len__(self) -> int:
        return len(self._made())

    def _made(self) -> dict[str, Any]:
        return examples_of(read_settings(self.settings))


concertino_examples = _Examples()
