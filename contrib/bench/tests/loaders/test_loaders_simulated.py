"""The simulated memory and web of BFCL: what calls answer, what they keep, and what they refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest
from concertino_bench.loaders.simulated import Memory, Web


def ask(world: Memory | Web, name: str, **arguments: Any) -> Any:
    return json.loads(world.call(name, arguments))


def test_a_store_by_key_keeps_finds_changes_and_forgets() -> None:
    memory = Memory("kv", ["I am Michael."])
    assert ask(memory, "archival_memory_retrieve", key="user_said_1") == {"value": "I am Michael."}
    assert ask(memory, "core_memory_add", key="first_name", value="Michael") == {"status": "Added."}
    assert ask(memory, "core_memory_replace", key="first_name", value="Mike") == {"status": "Replaced."}
    assert ask(memory, "core_memory_key_search", query="the first name", k=1) == {
        "ranked_results": [[0.6667, "first_name"]]
    }
    assert ask(memory, "core_memory_retrieve_all") == {"first_name": "Mike"}
    assert memory.state() == {"core": {"first_name": "Mike"}, "archival": {"user_said_1": "I am Michael."}}
    ask(memory, "archival_memory_clear")
    assert ask(memory, "archival_memory_list_keys") == {"keys": []}
    assert ask(memory, "core_memory_remove", key="first_name") == {"status": "Removed."}


def test_a_store_of_texts_gives_numbers_that_are_not_used_again() -> None:
    memory = Memory("vector")
    assert [ask(memory, "core_memory_add", text=text) for text in ("red tea", "green tea")] == [{"id": 0}, {"id": 1}]
    found = ask(memory, "core_memory_retrieve", query="green tea", top_k=1)
    assert found == {"result": [{"id": 1, "similarity_score": 1.0, "text": "green tea"}]}
    ask(memory, "core_memory_remove", vec_id=1)
    assert ask(memory, "core_memory_add", text="black tea") == {"id": 2}
    assert ask(memory, "core_memory_update", vec_id=0, new_text="white tea") == {"status": "Updated."}
    assert ask(memory, "core_memory_retrieve_all")["result"][0] == {"id": 0, "text": "white tea"}


def test_a_store_of_one_text_is_appended_to_and_rewritten() -> None:
    memory = Memory("rec_sum", ["a", "b"])
    ask(memory, "memory_append", text="c")
    ask(memory, "memory_replace", old_text="b", new_text="B")
    assert ask(memory, "memory_retrieve") == {"memory_content": "a\nB\nc"}
    ask(memory, "memory_clear")
    assert memory.state() == {"memory": ""}


@pytest.mark.parametrize(
    ("backend", "name", "arguments", "error"),
    [
        ("kv", "core_memory_add", {"key": "First Name", "value": "x"}, "snake_case"),
        ("kv", "core_memory_add", {"key": "a", "value": "x" * 301}, "at most 300 characters"),
        ("kv", "core_memory_retrieve", {"key": "a"}, "'a' does not exist"),
        ("kv", "core_memory_remove", {"key": "a"}, "'a' does not exist"),
        ("kv", "core_memory_fly", {}, "does not fit"),
        ("vector", "core_memory_update", {"vec_id": 7, "new_text": "x"}, "7 does not exist"),
        ("vector", "core_memory_add", {"text": 5}, "does not fit"),
        ("vector", "core_memory_add", {}, "does not fit"),
        ("rec_sum", "memory_replace", {"old_text": "a", "new_text": "b"}, "not in the memory"),
        ("rec_sum", "memory_update", {"text": "x" * 10_001}, "at most 10000 characters"),
        ("rec_sum", "state", {}, "does not fit"),
    ],
)
def test_what_a_store_refuses_is_told_to_the_model_and_changes_nothing(
    backend: str, name: str, arguments: dict[str, Any], error: str
) -> None:
    memory = Memory(backend)
    before = memory.state()
    assert error in ask(memory, name, **arguments)["error"]
    assert memory.state() == before


def test_a_core_memory_is_full_after_seven_entries() -> None:
    memory = Memory("kv")
    answers = [ask(memory, "core_memory_add", key=f"key_{number}", value="x") for number in range(8)]
    assert [*answers[:7]] == [{"status": "Added."}] * 7
    assert answers[7] == {"error": "The memory is full: it holds 7 entries."}
    assert "exists" in ask(memory, "core_memory_add", key="key_1", value="y")["error"]


PAGES = [
    {"subquestion": "Who directed Oppenheimer", "answer": "Christopher Nolan", "source": "https://a.example/nolan"},
    {"subquestion": "Most expensive tea", "answer": "Da Hong Pao", "source": "https://a.example/tea"},
]


def test_a_search_finds_the_pages_that_share_words_and_a_page_can_be_fetched() -> None:
    web = Web(PAGES)
    (found,) = ask(web, "search_engine_query", keywords="oppenheimer director", max_results=5)
    assert found["href"] == "https://a.example/nolan"
    assert "Nolan" in ask(web, "fetch_url_content", url=found["href"], mode="truncate")["content"]
    assert (
        "only pages that the simulated search finds" in ask(web, "fetch_url_content", url="https://b.example")["error"]
    )
    assert ask(web, "search_engine_query", keywords="weather") == []


def test_without_snippets_a_result_shows_no_text() -> None:
    assert set(ask(Web(PAGES, snippets=False), "search_engine_query", keywords="tea")[0]) == {"title", "href"}
