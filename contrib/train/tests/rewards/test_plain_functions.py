"""Rewards of one's own: plain functions of an episode, by hook and by name."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from concertino import UsageError
from concertino_train.episodes import Episode
from concertino_train.rewards import Reward, installed_rewards
from concertino_train.rewards.plain import imported_term, term_of


def width(episode: Episode) -> float:
    """How many rounds there were.

    And more.
    """
    return float(len(episode.rounds))


def test_a_function_is_a_term_of_its_name_that_says_what_its_docstring_says() -> None:
    term = term_of(width)
    assert (term.name, term.meaning) == ("width", "How many rounds there were.")
    assert term().values([Episode("a", "q"), Episode("b", "q")]) == [0.0, 0.0]


def test_what_is_no_finite_number_names_the_function() -> None:
    term = term_of(lambda episode: math.nan, "odd")
    with pytest.raises(UsageError, match=r"odd: gave \[nan\]; expected finite numbers"):
        term().values([Episode("a", "q")])


def test_a_hook_may_give_functions() -> None:
    manager: Any = SimpleNamespace(named=lambda name: [width])
    assert list(installed_rewards(manager).terms) == ["width"]


def test_a_reward_names_a_function_of_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_rewards.py").write_text(
        "def brief(episode):\n    return 0.25\n\nclass Odd:\n    pass\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    reward = Reward.from_json({"name": "r", "terms": {"brief": {"term": "shop_rewards:brief", "weight": 2}}})
    assert reward.score([Episode("a", "q")])[0].total == 0.5
    assert Reward.from_json(reward.to_json()).to_json() == reward.to_json()
    with pytest.raises(UsageError, match="shop_rewards:brif cannot be imported"):
        imported_term("shop_rewards:brif")
    with pytest.raises(UsageError, match="expected a subclass of Term, or a function of an episode"):
        imported_term("shop_rewards:Odd")
    sys.modules.pop("shop_rewards", None)
