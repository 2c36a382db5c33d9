"""The page about rewards is what the terms say."""

from __future__ import annotations

from concertino_train.rewards import PRESETS, TERMS
from reference_rewards import reference_page
from tree import ROOT

PAGE = ROOT / "docs" / "reference" / "rewards.md"


def test_the_page_of_the_reference_is_made_from_the_terms() -> None:
    same = PAGE.read_text(encoding="utf-8") == reference_page()
    assert same, "run scripts/reference_pages.py"


def test_every_term_and_reward_is_on_the_page() -> None:
    text = reference_page()
    for name in TERMS:
        assert f"### `{name}`" in text
    for name in PRESETS:
        assert f"| `{name}` |" in text
