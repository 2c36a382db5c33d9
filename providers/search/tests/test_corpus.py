"""Corpora: what becomes a passage, and what is an error that names its line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from concertino_search import CorpusError
from concertino_search.index.corpus import corpus_hash, read_corpus
from concertino_search.index.passages import Passage, PassageStore
from hypothesis import given
from hypothesis import strategies as st


def test_lines_become_passages_as_they_stand(tmp_path: Path) -> None:
    file = tmp_path / "c.jsonl"
    file.write_text('{"_id": 7, "title": "A", "text": "x", "more": []}\n\n{"contents": "y"}\n', encoding="utf-8-sig")
    assert list(read_corpus(file)) == [Passage("7", "A", "x"), Passage("3", "", "y")]


def test_half_a_character_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "c.jsonl"
    file.write_text(r'{"id": "\ud800", "title": "\ud83d\ude00", "text": "a\udc00b"}', encoding="ascii")
    assert list(read_corpus(file)) == [Passage("?", "\U0001f600", "a\ufffdb")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"text": "a"', r":2: invalid JSON: .* at column"),
        (b"[" * 100_000, r":2: invalid JSON"),
        (b'["a"]', r":2: list; expected an object"),
        (b'{"id": "x", "body": "a"}', r":2: 'text' is missing; the line has 'id', 'body'"),
        (b'{"text": 3}', r":2: 'text' is int; expected a text"),
        (b'{"text": "a", "title": ["b"]}', r":2: 'title' is list"),
        (b'{"text": "a", "id": true}', r":2: id True; expected"),
        (b'{"text": "a", "id": [1]}', r":2: id \[1\]; expected"),
        (b'{"text": "\xff"}', r":2: byte 10 of the line is not UTF-8"),
        (b'{"text": "b", "id": "one"}', r":2: id 'one' was given before, at .*:1"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    file = tmp_path / "c.jsonl"
    file.write_bytes(b'{"id": "one", "text": "a"}\n' + line + b"\n")
    with pytest.raises(CorpusError, match=message):
        list(read_corpus(file))


def test_empty_passages_are_left_out_and_counted_in_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "c.jsonl"
    rows = [{"text": "a"}, {"text": "  "}, {"id": "x", "text": ""}, {"title": "T", "text": ""}, {"text": "b"}]
    file.write_text("\n".join(map(json.dumps, rows)))
    # A title can be searched, so a passage that has one stays; lines are counted with the empty ones.
    assert list(read_corpus(file)) == [Passage("1", "", "a"), Passage("4", "T", ""), Passage("5", "", "b")]
    assert [record.getMessage() for record in caplog.records] == [
        f"corpus {file}: 2 passages without text left out, the first at {file}:2"
    ]
    file.write_bytes(b'{"text": ""}\n')
    with pytest.raises(CorpusError, match="it holds no passage"):
        list(read_corpus(file))


def test_a_folder_is_read_in_the_order_of_its_paths(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.md").write_text("hidden")
    (tmp_path / "b" / "one.md").write_text("# Head\n\nFirst.\n\n## Second\nMore.\n")
    (tmp_path / "a.txt").write_text("# no heading\n\nin plain text")
    (tmp_path / "c.jsonl").write_text('{"text": "line"}')
    (tmp_path / "d.html").write_text("<title>Page</title><p>One<p>Two")
    (tmp_path / "e.bin").write_bytes(b"\0")
    assert list(read_corpus(tmp_path)) == [
        Passage("a.txt#1", "a", "# no heading\n\nin plain text"),
        Passage("b/one.md#1", "Head", "First."),
        Passage("b/one.md#2", "Second", "More."),
        Passage("c.jsonl:1", "", "line"),
        Passage("d.html#1", "Page", "One\n\nTwo"),
    ]


@given(st.text(st.sampled_from("ab.!? \n#北。"), max_size=200), st.integers(5, 40))
def test_cutting_a_document_loses_no_character(text: str, limit: int) -> None:
    from concertino_search.index.corpus import _parts

    parts = [part for _, part in _parts(text, limit, False)]
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(0 < len(part) <= limit for part in parts)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone", None, "file or folder not found"),
        ("c.pdf", b"", "expected a file that ends in .jsonl"),
        ("c.jsonl", b"\n\n", "it holds no passage"),
        ("c.txt", b"a\xff", "byte 1 is not UTF-8"),
    ],
)
def test_a_corpus_that_cannot_be_read_says_why(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match=message):
        list(read_corpus(tmp_path / name))


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no file in it ends in"):
        list(read_corpus(tmp_path))


def test_the_hash_follows_names_and_content(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1")
    first = corpus_hash(tmp_path)
    (tmp_path / "a.txt").write_text("2")
    second = corpus_hash(tmp_path)
    (tmp_path / "a.txt").rename(tmp_path / "b.txt")
    assert len({first, second, corpus_hash(tmp_path)}) == 3
    (tmp_path / "b.txt").rename(tmp_path / "a.txt")
    assert corpus_hash(tmp_path) == second


def test_a_store_gives_back_every_passage_by_position_and_id(tmp_path: Path) -> None:
    passages = [Passage(f"id {n}", "T\u2028itle" * (n % 2), f"text\n{n} \ud83d\ude00") for n in range(200)]
    PassageStore.write(tmp_path, passages)
    store = PassageStore(tmp_path)
    assert list(store) == passages
    assert [store.find(passage.id) for passage in passages] == list(range(200))
    assert store.find("id 200") is None
    with pytest.raises(IndexError):
        store[200]


def test_ids_of_equal_hash_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concertino_search.index.passages._hash", lambda passage_id: 7)
    PassageStore.write(tmp_path, [Passage("a", "", "1"), Passage("b", "", "2")])
    store = PassageStore(tmp_path)
    assert (store.find("a"), store.find("b"), store.find("c")) == (0, 1, None)


def test_several_line_files_may_use_the_same_numbers(tmp_path: Path, write_lines: Callable[..., Path]) -> None:
    write_lines([{"text": "a"}], "one.jsonl")
    write_lines([{"text": "b"}], "two.jsonl")
    assert [passage.id for passage in read_corpus(tmp_path)] == ["one.jsonl:1", "two.jsonl:1"]
