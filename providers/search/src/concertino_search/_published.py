"""What is published without any line of Python: decided by the environment when the plugin is loaded.

CONCERTINO_SEARCH_CORPUS     a JSON Lines file, a document, or a folder: publishes `search` and `read`
CONCERTINO_SEARCH_ANALYSER   how its text is analysed, `english` unless set
CONCERTINO_SEARCH_ABOUT      what it holds, for the descriptions that models read
CONCERTINO_SEARCH_WEB        a web back-end; without it, the first whose key or address is set
"""

from __future__ import annotations

import os

from concertino import AgentSpec, ToolSpec

from ._finding import Names
from ._knowledge import knowledge_searcher
from ._pages import fetch_page_tool
from ._research import deep_research
from ._tools import corpus_tools
from ._web import chosen_backend, web_search_tool

PROVIDER = "search"


def published_tools() -> list[ToolSpec]:
    """`fetch_page`, and the searches that are configured.

    Raises:
        CorpusError, SpecError: a variable holds what cannot be.
    """
    tools = [fetch_page_tool()]
    corpus = os.environ.get("CONCERTINO_SEARCH_CORPUS", "")
    if corpus:
        analyser = os.environ.get("CONCERTINO_SEARCH_ANALYSER") or "english"
        tools += corpus_tools(corpus, about=os.environ.get("CONCERTINO_SEARCH_ABOUT", ""), analyser=analyser)
    backend = chosen_backend()
    if backend is not None:
        tools.append(web_search_tool(backend))
    return tools


def published_agents() -> list[AgentSpec]:
    """The agents, with the searches that are configured; none where there is nothing to search."""
    published = {tool.name for tool in published_tools()}
    search = [f"{PROVIDER}/{name}" for name in ("search", "web_search") if name in published]
    if not search:
        return []
    names = Names(tuple(search), f"{PROVIDER}/read" if "read" in published else "", f"{PROVIDER}/fetch_page")
    return [knowledge_searcher(names), deep_research(names)]
