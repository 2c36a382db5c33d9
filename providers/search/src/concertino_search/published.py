"""What the plugin publishes, decided by the settings when it is loaded.

Invariant: no published member can only fail.
"""

from __future__ import annotations

from concertino import AgentSpec, ToolSpec

from .agents.gathered import AgentTools
from .agents.knowledge import knowledge_searcher
from .agents.research import deep_research
from .settings import SearchSettings
from .tools.corpus import corpus_tools
from .tools.pages import fetch_page_tool
from .tools.web import web_search_tool
from .web.backends import chosen_backend

PROVIDER = "search"


def published_tools(settings: SearchSettings) -> list[ToolSpec]:
    """`fetch_page`, and the searches that are configured."""
    tools = [fetch_page_tool(allowed=settings.fetch_allow)]
    if settings.corpus is not None:
        tools += corpus_tools(settings.corpus, cache=settings.cache, about=settings.about, analyser=settings.analyser)
    backend = chosen_backend(settings.web)
    if backend is not None:
        tools.append(web_search_tool(backend))
    return tools


def published_agents(settings: SearchSettings) -> list[AgentSpec]:
    """The agents, with the searches that are configured; none where there is nothing to search."""
    local = settings.corpus is not None
    search = [f"{PROVIDER}/search"] if local else []
    if chosen_backend(settings.web) is not None:
        search.append(f"{PROVIDER}/web_search")
    if not search:
        return []
    names = AgentTools(tuple(search), f"{PROVIDER}/read" if local else "", f"{PROVIDER}/fetch_page")
    return [knowledge_searcher(names), deep_research(names)]
