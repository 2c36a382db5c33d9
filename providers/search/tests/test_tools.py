"""`search` and `read` as an orchestrator meets them: through the executor, in bounds, with errors that help."""

# ruff: noqa: ASYNC240
# Files and processes of a test may block its own loop.
from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from concertino import Orchestrator, Pool, ToolSpec
from concertino.testing import ScriptedModel, ToolConformance, run_call
from concertino_search import Corpus, corpus_tools
from concertino_search.analysis import analyser
from concertino_search.index import HashingEmbedder
from concertino_search.snippets import sentences, snippet
from hypothesis import given
from hypothesis import strategies as st


def tools(corpus: Path, cache: Path, **options: object) -> dict[str, ToolSpec]:
    return {tool.short_name: tool for tool in corpus_tools(corpus, cache=cache, **options)}  # type: ignore[arg-type]


async def test_search_answers_all_queries_of_a_call_in_order(birds: Path, cache: Path) -> None:
    search = tools(birds, cache)["search"]
    seen = await run_call(search, {"queries": ["worms", "dreams"], "top_k": 1})
    assert seen.content["results"][0]["passages"][0]["score"] > 0
    del seen.content["results"][0]["passages"][0]["score"]
    text = "The kiwi lives in New Zealand. It smells worms with its beak."
    assert seen.content == {
        "results": [
            {"query": "worms", "passages": [{"id": "kiwi", "title": "Kiwi", "text": text}]},
            {"query": "dreams", "passages": []},
        ]
    }


async def test_read_gives_passages_whole_and_names_the_unknown(birds: Path, cache: Path) -> None:
    read = tools(birds, cache)["read"]
    seen = await run_call(read, {"ids": ["owl", "emu", "owl"]})
    assert [passage["id"] for passage in seen.content["passages"]] == ["owl"]
    assert seen.content["unknown"] == ["emu"]
    lost = await run_call(read, {"ids": ["emu"]})
    assert lost.status == "EXEC_ERR"
    assert "no passage has the id 'emu'; take ids that search returned" in lost.error.message  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"queries": "owl"},
        {"queries": []},
        {"queries": ["  "]},
        {"queries": ["owl"] * 33},
        {"queries": ["a"], "k": 1},
    ],
)
async def test_a_call_that_breaks_the_schema_is_not_run(birds: Path, cache: Path, arguments: dict[str, object]) -> None:
    assert (await run_call(tools(birds, cache)["search"], arguments)).status == "PARSE_ERR"
    assert not cache.exists()


@pytest.mark.parametrize("escaped", [False, True])
async def test_a_large_result_is_shortened_from_its_end_and_says_so(
    write_lines: Callable[..., Path], cache: Path, escaped: bool
) -> None:
    filler = '"\\"\n' * 300 if escaped else "much more text. " * 75
    corpus = write_lines([{"id": str(n), "title": "T" * 20, "text": f"bird {filler} w{n}"} for n in range(60)])
    search = tools(corpus, cache)["search"]
    for queries, top_k in ((1, 50), (8, 5), (32, 50)):
        seen = await run_call(search, {"queries": [f"bird {n}" for n in range(queries)], "top_k": top_k})
        assert seen.truncated == 0
        assert len(json.dumps(seen.content, ensure_ascii=False)) <= 16_256
        assert "shortened" in seen.content["note"]
        kept = [len(result["passages"]) for result in seen.content["results"]]
        assert min(kept) == max(kept) >= 1
        assert ("left out" in seen.content["note"]) == (kept[0] < top_k)


async def test_a_missing_corpus_is_an_error_that_names_it(tmp_path: Path, cache: Path) -> None:
    seen = await run_call(tools(tmp_path / "gone", cache)["search"], {"queries": ["a"]})
    assert seen.status == "EXEC_ERR"
    assert "gone: file or folder not found" in seen.error.message  # type: ignore[union-attr]


async def test_two_corpora_stand_in_one_pool_under_their_providers(birds: Path, cache: Path) -> None:
    one = corpus_tools(birds, cache=cache, provider="birds", about="bird facts")
    corpus = Corpus(birds, cache=cache)
    two = corpus_tools(corpus, provider="dense", embedder=HashingEmbedder(), mode="dense")
    assert [tool.name for tool in (*one, *two)] == ["birds/search", "birds/read", "dense/search", "dense/read"]
    assert "bird facts" in one[0].description
    seen = await run_call(two[0], {"queries": ["sleeping swifts"], "top_k": 1})
    assert seen.content["results"][0]["passages"][0]["id"] == "swift"


async def test_a_refreshed_corpus_is_read_again(birds: Path, cache: Path, write_lines: Callable[..., Path]) -> None:
    corpus = Corpus(birds, cache=cache)
    search = corpus_tools(corpus)[0]
    await run_call(search, {"queries": ["emu"]})
    write_lines([{"id": "emu", "text": "An emu runs."}, {"id": "other", "text": "else"}])
    stale = await run_call(search, {"queries": ["emu"]})
    corpus.refresh()
    fresh = await run_call(search, {"queries": ["emu"]})
    assert stale.content["results"][0]["passages"] == []
    assert fresh.content["results"][0]["passages"][0]["id"] == "emu"


async def test_an_orchestrator_searches_and_reads_in_rounds(birds: Path, cache: Path) -> None:
    pool = Pool(corpus_tools(birds, cache=cache, provider="search"))
    with ScriptedModel(
        [("search", {"queries": ["worms", "night"]}), ("search", {"queries": "night"}), ("read", {"ids": ["swift"]})],
        "<answer>worms</answer>",
    ) as model:
        run = await Orchestrator(model).run("What does a kiwi smell?", pool=pool)
    assert run.answer == "worms"
    seen = run.rounds[0].observations
    assert [one.status for one in seen] == ["OK", "PARSE_ERR", "OK"]
    assert [result["passages"][0]["id"] for result in seen[0].content["results"]] == ["kiwi", "owl"]


def test_a_snippet_shows_the_sentences_that_hold_the_query() -> None:
    text = "First of all. " * 10 + "The kiwi smells worms. " + "And so on. " * 10
    terms = analyser("english")
    split = partial(sentences, terms=terms)
    shown = snippet(text, set(terms("worms of a kiwi")), 60, split)
    assert "The kiwi smells worms." in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(shown) <= 60
    assert snippet("short", {"x"}, 60, split) == "short"


@given(st.text(st.sampled_from("ab. \n!"), max_size=300), st.integers(3, 100))
def test_a_snippet_is_never_longer_than_its_limit(text: str, limit: int) -> None:
    shown = snippet(text, {"a"}, limit, partial(sentences, terms=analyser("words")))
    assert len(shown) <= limit
    assert "".join(shown.strip("…").split()) in "".join(text.split())


class TestSearch(ToolConformance):
    """The search tool does what every tool owes."""

    rejected = ({}, {"queries": []}, {"queries": ["owl"], "top_k": 0})
    examples = (({"queries": ["worms"]}, lambda found: found["results"][0]["passages"][0]["id"] == "kiwi"),)

    @pytest.fixture(autouse=True)
    def _corpus(self, birds: Path, cache: Path) -> None:
        self.spec = tools(birds, cache)["search"]


class TestRead(ToolConformance):
    """The read tool does what every tool owes."""

    rejected = ({}, {"ids": []}, {"ids": "owl"})
    failing = ({"ids": ["emu"]},)
    examples = (({"ids": ["owl"]}, lambda found: found["passages"][0]["title"] == "Owl"),)

    @pytest.fixture(autouse=True)
    def _corpus(self, birds: Path, cache: Path) -> None:
        self.spec = tools(birds, cache)["read"]
