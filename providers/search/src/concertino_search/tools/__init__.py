"""The tools: `search` and `read` over a corpus, `web_search`, `fetch_page`. Their calls import what is heavy."""

from .corpus import Corpus, corpus_tools
from .pages import fetch_page_tool
from .web import web_search_tool

__all__ = ["Corpus", "corpus_tools", "fetch_page_tool", "web_search_tool"]
