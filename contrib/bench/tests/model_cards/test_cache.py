"""What is kept on disk, and what happens when it is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from concertino import RunError, UsageError
from concertino_bench.model_cards.cache import Cache

KEY = "3f" + "0" * 62


def entry(folder: Path) -> Path:
    (file,) = folder.rglob("*.json")
    return file


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    body = {"text": "grüße \ud800", "seconds": 0.25}
    Cache(tmp_path / "kept").write("answers", KEY, body)
    again = Cache(tmp_path / "kept")
    assert again.read("answers", KEY) == body
    assert (again.read("texts", KEY), again.problems) == (None, [])


def test_what_is_forgotten_is_not_there(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.write("answers", KEY, {})
    cache.forget("answers", KEY)
    cache.forget("answers", KEY)
    assert (cache.read("answers", KEY), cache.problems) == (None, [])


DAMAGE = {
    "cut off": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "another answer": lambda text: text.replace("right", "wrong"),
    "no object": lambda text: "[]",
    "no body": lambda text: json.dumps({"form": 1}),
    "another form": lambda text: text.replace('"form": 1', '"form": 7'),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_entry_is_named_and_counts_as_missing(tmp_path: Path, damage: object) -> None:
    cache = Cache(tmp_path)
    cache.write("answers", KEY, {"text": "right"})
    file = entry(tmp_path)
    file.write_text(damage(file.read_text()))  # type: ignore[operator]
    assert cache.read("answers", KEY) is None
    (problem,) = cache.problems
    assert str(file) in problem
    assert problem.endswith("; it is made again")


def test_an_entry_under_another_key_is_no_entry(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.write("answers", KEY, {"text": "right"})
    other = KEY[:-1] + "1"
    entry(tmp_path).rename(tmp_path / "answers" / "3f" / f"{other}.json")
    assert cache.read("answers", other) is None
    assert "checksum" in cache.problems[0]


def test_bytes_that_are_no_text_are_damage(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.write("answers", KEY, {})
    entry(tmp_path).write_bytes(b"\xff\xfe\xfa")
    assert cache.read("answers", KEY) is None
    assert len(cache.problems) == 1


def test_a_write_that_fails_leaves_the_old_entry_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path)
    cache.write("answers", KEY, {"text": "old"})

    def full(self: Path, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(RunError, match="No space left on device"):
        cache.write("answers", KEY, {"text": "new"})
    monkeypatch.undo()
    assert cache.read("answers", KEY) == {"text": "old"}
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [entry(tmp_path)]


def test_a_folder_that_cannot_be_made_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="name another folder"):
        Cache(tmp_path / "file" / "cache")
