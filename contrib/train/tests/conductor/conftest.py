"""A tiny model with random weights, as a training saves it."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from concertino_train.tiny import new_model, new_tokenizer

    folder = tmp_path_factory.mktemp("tiny")
    texts = ["How many apples are left?", "Problem 1: How many?", "Which part is next?", "Answer by calls."] * 20
    tokenizer = new_tokenizer(texts, 700)
    tokenizer.save_pretrained(folder)
    new_model(tokenizer, layers=2, hidden=64, heads=4, context=2048, seed=3).save_pretrained(folder)
    return folder
