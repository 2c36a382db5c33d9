"""What an export says of the pool that it was trained with, so that its card works as it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from concertino_toy.practice import practice_pool
from concertino_train.config import load_config
from concertino_train.export import export
from concertino_train.factories.learners import SETTINGS
from model_families import family


def exported(folder: Path, pool: str) -> Path:
    """The export of a model that was trained with this pool."""
    each = family("qwen-2.5")
    codec, trained = each.codec(), folder / "trained"
    each.model(codec.tokenizer).save_pretrained(str(trained))
    codec.save(trained)
    (trained / SETTINGS).write_text(load_config(None, [pool], check=False).text(), encoding="utf-8")
    return export(trained, folder / "frugal").folder


def program(folder: Path) -> str:
    """The Python of the card, without the line that asks."""
    return (folder / "README.md").read_text(encoding="utf-8").split("```python\n")[1].split("run = ")[0]


def test_the_card_makes_the_pool_that_a_function_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = exported(tmp_path, "pool={make: {name: practice, manners: [sure]}}")
    card, file = (folder / "README.md").read_text(encoding="utf-8"), (folder / "pool.toml").read_text(encoding="utf-8")
    assert "the function `concertino_toy.practice:practice_pool` makes" in card
    assert "the pool of concertino_toy.practice:practice_pool, which no file can hold: see README.md" in file
    monkeypatch.chdir(folder)
    made: dict[str, Any] = {}
    exec(program(folder), made)
    assert [each.name for each in made["pool"].members] == [
        each.name for each in practice_pool(manners=["sure"]).members
    ]


def test_the_card_reads_the_pool_file_where_members_have_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = exported(tmp_path, "pool={members: ['toy/calculate']}")
    monkeypatch.chdir(folder)
    made: dict[str, Any] = {}
    exec(program(folder), made)
    assert "toy/calculate" in [each.name for each in made["pool"].members]
    named = exported(tmp_path / "other", "pool={file: mine.toml}")
    assert "the pool of mine.toml: copy its members" in (named / "pool.toml").read_text(encoding="utf-8")
