"""Ranking, shortlists and the file of a scorer; what a scorer has learned is measured in concertino-train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import concertino as ct
import numpy as np
import pytest
from concertino_scorer.model_file import ScorerModel
from concertino_scorer.scorer import Scorer


@ct.tool(cost=ct.Cost(units=1))
def one(task: str) -> str:
    """Excellent at chemistry: 9 of 10 right."""
    return task


@ct.tool(cost=ct.Cost(units=2))
def two(task: str) -> str:
    """Poor at chemistry. 2 of 10 right."""
    return task


@ct.tool(cost=ct.Cost(units=8))
def three(task: str) -> str:
    """Of poetry."""
    return task


POOL = ct.Pool.of(one, two, three)


@pytest.fixture
def scorer(model: ScorerModel) -> Scorer:
    return Scorer(model)


def names(scorer: Scorer, pool: ct.Pool = POOL, **options: Any) -> list[str]:
    return [each.name for each in scorer.rank("Which acid?", pool, **options)]


def test_names_and_order_are_not_read(scorer: Scorer) -> None:
    values = {each.name: each.value for each in scorer.rank("Which acid?", POOL)}
    turned = {each.name: each.value for each in scorer.rank("Which acid?", ct.Pool.of(three, two, one))}
    assert values == pytest.approx(turned)
    assert len(set(values.values())) == 3
    renamed = scorer.rank("Which acid?", POOL.alias({"one": "xyzzy"}))
    assert [each.value for each in renamed] == sorted(values.values(), reverse=True)


def test_evidence_by_name_moves_the_ranking(scorer: Scorer) -> None:
    for name in ("one", "two", "three"):
        assert names(scorer, evidence={name: (40, 0)})[0] == name
        assert names(scorer, evidence={name: (0, 40)})[-1] == name


def test_a_weight_of_the_price_moves_cheap_members_up(scorer: Scorer) -> None:
    assert names(scorer, price_weight=10.0) == ["one", "two", "three"]


def test_of_members_that_suffice_the_cheapest_comes_first(scorer: Scorer) -> None:
    assert names(scorer, sufficient=0.0) == ["one", "two", "three"]
    evidence = {"two": (40, 0), "three": (90, 0), "one": (0, 40)}
    assert names(scorer, sufficient=0.8, evidence=evidence) == ["two", "three", "one"]


def test_prices_may_be_counted_in_money(scorer: Scorer) -> None:
    models = [ct.ModelSpec(name, lambda: ct.ScriptedModel([]), prices=price) for name, price in PRICES.items()]
    pool = ct.Pool.of(*models).offering("*")
    found = {each.name: each.price for each in scorer.rank("Which acid?", pool, unit="usd")}
    assert found == {"ask_dear": pytest.approx(0.02), "ask_cheap": pytest.approx(0.002)}
    unknown = ct.Pool.of(ct.ModelSpec("odd", lambda: ct.ScriptedModel([]))).offering("*")
    with pytest.raises(ct.UsageError, match=r"the price of odd is unknown; give it with pool\.price"):
        scorer.rank("Which acid?", unknown, unit="usd")


PRICES = {"dear": ct.Prices(input=10, output=20), "cheap": ct.Prices(input=1, output=2)}


@pytest.mark.parametrize("options", [{"price_weight": -1}, {"sufficient": 2}])
def test_numbers_out_of_range_are_refused(scorer: Scorer, options: dict[str, Any]) -> None:
    with pytest.raises(ct.UsageError, match="expected 0 or more, and 0 to 1"):
        scorer.rank("Which acid?", POOL, **options)


def test_strange_texts_are_read(scorer: Scorer) -> None:
    cards = ["", "   ", "…", "100%", "9" * 400, "excellent " * 500, "\x00\ud800", "10⁵ ² ٣ of ٤"]
    found = scorer.beliefs("", cards)
    assert all(0 <= each.expected <= 1 for each in found)


def test_a_file_keeps_the_scorer(model: ScorerModel, tmp_path: Path) -> None:
    path = tmp_path / "small.npz"
    model.save(path)
    kept = Scorer.load(path)
    assert kept.model.about == {"made": "for tests"}
    cards = ["excellent at chemistry", "poor, 3 of 9 wrong", "failed"]
    for one_, same in zip(Scorer(model).beliefs("acid", cards), kept.beliefs("acid", cards), strict=True):
        assert same.expected == pytest.approx(one_.expected, abs=5e-3)  # words with 8 bits, weights with 16


def test_other_files_are_refused_with_what_they_are(tmp_path: Path) -> None:
    text = tmp_path / "text.npz"
    text.write_text("no zip")
    arrays = tmp_path / "arrays.npz"
    np.savez(arrays, head=np.zeros(2))
    with pytest.raises(ct.UsageError, match=r"none\.npz: file not found; .*concertino train scorer FILE"):
        Scorer.load(tmp_path / "none.npz")
    for path in (text, arrays):
        with pytest.raises(ct.UsageError, match=r"cannot be read as a scorer .*concertino train scorer FILE"):
            Scorer.load(path)
