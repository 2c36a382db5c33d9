"""The table `[providers.search]`, the environment that wins over it, and what the doctor and the check make of both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import concertino_search
import pytest
from concertino import Finding, ProviderSettings, UsageError
from concertino_search import IndexOptions
from concertino_search.index import open_index
from concertino_search.settings import VARIABLES, SearchSettings, read_settings

WHERE = "concertino.toml, [providers.search]"
SERVICES = ("TAVILY_API_KEY", "SERPER_API_KEY", "BRAVE_API_KEY", "SEARXNG_URL")


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES.values(), *SERVICES):
        monkeypatch.delenv(name, raising=False)


def test_paths_of_the_table_count_from_its_file(tmp_path: Path) -> None:
    values = {
        "corpus": "wiki.jsonl",
        "cache": "indexes",
        "about": "wiki",
        "fetch_allow": ["10.0.0.0/8"],
        "web": "Brave",
    }
    found = read_settings(ProviderSettings(values, folder=tmp_path), {})
    assert found == SearchSettings(
        tmp_path / "wiki.jsonl", "english", "wiki", tmp_path / "indexes", "brave", ("10.0.0.0/8",)
    )
    assert read_settings(ProviderSettings(), {}) == SearchSettings()


def test_a_variable_wins_over_the_table_key_by_key() -> None:
    table = ProviderSettings({"corpus": "a.jsonl", "analyser": "words", "fetch_allow": ["10.0.0.0/8"]})
    environ = {"CONCERTINO_SEARCH_CORPUS": "b.jsonl", "CONCERTINO_FETCH_ALLOW": "::1, 10.1.0.0/16"}
    found = read_settings(table, environ)
    assert (found.corpus, found.analyser, found.fetch_allow) == (Path("b.jsonl"), "words", ("::1", "10.1.0.0/16"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"corpse": "a"}, "unknown key 'corpse'; did you mean 'corpus'"),
        ({"corpus": 3}, "corpus = 3; expected a path"),
        ({"about": 3}, "about = 3; expected text"),
        ({"analyser": "klingon"}, "analyser: analyser 'klingon': expected"),
        ({"web": "tavilly"}, "web = 'tavilly'; did you mean 'tavily'"),
        ({"web": "bing"}, "web = 'bing'; expected one of tavily, serper"),
        ({"fetch_allow": "10.0.0.0/8"}, "fetch_allow = '10.0.0.0/8'; expected a list"),
        ({"fetch_allow": ["ten"]}, "fetch_allow: .*'ten'"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(values: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=rf"concertino.toml, \[providers.search\]:? ?{message}"):
        read_settings(ProviderSettings(values, where=WHERE), {})


def test_a_wrong_variable_is_named() -> None:
    with pytest.raises(UsageError, match="CONCERTINO_SEARCH_WEB = 'bing'; expected one of tavily"):
        read_settings(ProviderSettings({"web": "tavily"}, where=WHERE), {"CONCERTINO_SEARCH_WEB": "bing"})


# -- the doctor --------------------------------------------------------------------------------------------------------


def diagnosed(**values: object) -> list[Finding]:
    return concertino_search.concertino_doctor(ProviderSettings(values, where=WHERE))


async def test_the_doctor_tells_an_index_that_is_ready_stale_or_absent(
    birds: Path, bird_rows: list[object], cache: Path, write_lines: Callable[..., Path]
) -> None:
    given = {"corpus": str(birds), "cache": str(cache)}
    absent = diagnosed(**given)[0]
    assert (absent.level, absent.step) == ("warning", f"concertino search-index {birds} --cache {cache}")
    assert "has no index yet" in absent.text
    index = await open_index(birds, IndexOptions(), cache=cache)
    ready = diagnosed(**given)[0]
    assert (ready.level, ready.text) == ("ok", f"{birds}: an index of 4 passages at {index.folder}")
    write_lines(bird_rows[:2])
    stale = diagnosed(**given)[0]
    assert (stale.level, "of an older content" in stale.text) == ("warning", True)
    assert "has no index yet" in diagnosed(**given, analyser="words")[0].text


def test_the_doctor_names_a_corpus_that_is_not_there(tmp_path: Path) -> None:
    (finding, _) = diagnosed(corpus=str(tmp_path / "gone.jsonl"))
    assert finding.level == "error"
    assert "gone.jsonl: file or folder not found" in finding.text


def test_the_doctor_says_which_web_back_end_is_asked_and_whose_key_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    unset, named = diagnosed()[1], diagnosed(web="tavily")[1]
    assert (unset.level, "none of TAVILY_API_KEY" in unset.text) == ("ok", True)
    assert (named.level, named.text) == ("error", "tavily needs TAVILY_API_KEY, which is not set")
    assert diagnosed(web="duckduckgo")[1].level == "ok"
    monkeypatch.setenv("BRAVE_API_KEY", "secret-of-brave")
    monkeypatch.setenv("SEARXNG_URL", "http://127.0.0.1:8888")
    found = diagnosed()[1]
    assert (found.level, found.text) == ("ok", "asks brave, which was not asked now; also set up: searxng")
    assert "secret" not in str(found)


# -- the check ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_everything_that_can_be_published_conforms(birds: Path, cache: Path) -> None:
    environ = {
        **os.environ,
        "CONCERTINO_SEARCH_CORPUS": str(birds),
        "CONCERTINO_SEARCH_CACHE": str(cache),
        "CONCERTINO_SEARCH_WEB": "duckduckgo",
    }
    command = [sys.executable, "-m", "concertino", "check", "concertino-search", "--json"]
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, timeout=110, check=False, cwd=birds.parent
    )
    report = json.loads(done.stdout)
    assert [row for row in report["rows"] if row["outcome"] in ("failed", "missing")] == []
    subjects = {row["subject"] for row in report["rows"]}
    names = ("fetch_page", "search", "read", "web_search", "knowledge_searcher", "deep_research")
    assert {f"search/{name}" for name in names} <= subjects
    assert done.returncode == 0
