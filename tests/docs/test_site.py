"""The site: its settings keep its promises, its overview follows its navigation, its search finds usual words."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
import yaml
from tree import ROOT

from .documents import DOCS, PAGES


@cache
def settings() -> Any:
    return yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def section(name: str) -> Any:
    (found,) = (entry[name] for entry in settings()["nav"] if isinstance(entry, dict) and name in entry)
    return found


def pages_of(entries: Any) -> list[str]:
    """Every page below an entry of the navigation, in order."""
    if isinstance(entries, str):
        return [entries]
    below = entries.values() if isinstance(entries, dict) else entries
    return [page for entry in below for page in pages_of(entry)]


def test_the_overview_of_how_to_pages_lists_them_as_the_navigation_does() -> None:
    overview = (DOCS / "how-to" / "index.md").read_text(encoding="utf-8").partition("\n## ")[0]
    rows = [line for line in overview.splitlines() if line.startswith("| [")]
    listed = [f"how-to/{page}" for row in rows for page in re.findall(r"\]\(([\w-]+\.md)\)", row)]
    groups = re.findall(r"^\| ([\w ]+?)(?:: [\w ]+)? \| \|$", overview, re.M)
    assert listed == [page for page in pages_of(section("How-to")) if page != "how-to/index.md"]
    assert groups == [name for entry in section("How-to") if isinstance(entry, dict) for name in entry]


def test_the_first_lesson_is_for_those_who_build_applications() -> None:
    assert pages_of(section("Tutorial"))[:2] == ["tutorial/index.md", "tutorial/first-run.md"]


def test_the_site_has_dark_mode_edit_links_versions_and_texts_for_language_models() -> None:
    theme = settings()["theme"]
    assert {palette.get("scheme") for palette in theme["palette"]} == {None, "default", "slate"}
    assert "content.action.edit" in theme["features"]
    assert (settings()["repo_url"], settings()["edit_uri"]) != (None, None)
    assert settings()["extra"]["version"]["provider"] == "mike"
    (texts,) = (plugin["llmstxt"] for plugin in settings()["plugins"] if "llmstxt" in plugin)
    assert texts["full_output"] == "llms-full.txt"
    tops = {page.relative_to(DOCS).parts[0] for page in PAGES}
    assert {pattern.partition("/")[0] for patterns in texts["sections"].values() for pattern in patterns} == tops


def test_nothing_of_a_page_is_fetched_from_elsewhere() -> None:
    assert settings()["theme"]["font"] is False
    assert not {"extra_css", "extra_javascript"} & set(settings())


@pytest.mark.parametrize(
    "word",
    [
        "quickstart",
        "LLM",
        "FastAPI",
        "streaming",
        "guardrail",
        "Anthropic",
        "Claude",
        "Ollama",
        "Azure",
        "Gemini",
        "Jupyter",
        "RAG",
        "function calling",
        "human in the loop",
        "structured output",
        "LangGraph",
    ],
)
def test_the_search_of_the_site_finds(word: str) -> None:
    found = [page for page in PAGES if re.search(rf"\b{word}\b", page.read_text(encoding="utf-8"), re.IGNORECASE)]
    assert found
