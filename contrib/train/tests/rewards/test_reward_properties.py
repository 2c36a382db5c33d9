"""What holds of every term and every reward, for any group of episodes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from concertino_train.episodes import Episode
from concertino_train.rewards import PRESETS, TERMS, Reward, Term, Weighted, paramanager, toolorchestra
from concertino_train.rewards.functions import SPENDING
from concertino_train.rewards.shared import Spending
from hypothesis import given, settings
from hypothesis import strategies as st

Groups = Callable[..., st.SearchStrategy[list[Episode]]]
VARIANTS: list[Term] = [
    *(term() for term in TERMS.values()),
    *(Spending(what, 100.0) for what in SPENDING),
    *(toolorchestra.PreferenceReward(clock=clock) for clock in ("critical_path", "calls")),
    toolorchestra.PreferenceReward(tools="share", money="calls"),
    paramanager.Efficiency(length_of="tokens", cost_target=2.5),
    paramanager.Diversity(final="leave_out"),
    *(TERMS[name](over="mean", role=role) for name in TERMS if name.startswith("at-grpo/") for role in ("",)),
]
RELEASED: list[Term] = [toolorchestra.PreferenceReward(variant="as_released"), TERMS["gap/exact-match"]("as_released")]
TOLERANCE = 1e-9


def label(term: Term) -> str:
    return f"{term.name} {json.dumps(term.to_json())}"


def test_every_term_is_looked_at() -> None:
    assert {term.name for term in VARIANTS} == set(TERMS)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_values_are_finite_and_within_their_bounds(groups_of: Groups, data: st.DataObject) -> None:
    group = data.draw(groups_of())
    for term in (*VARIANTS, *RELEASED):
        least, most = term.bounds
        values = term.values(group)
        assert len(values) == len(group)
        for value in values:
            assert math.isfinite(value), label(term)
            assert least - TOLERANCE <= value <= most + TOLERANCE, label(term)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_order_of_the_group_does_not_matter(groups_of: Groups, data: st.DataObject) -> None:
    group = data.draw(groups_of(2))
    order = data.draw(st.permutations(range(len(group))))
    for term in (*VARIANTS, *RELEASED):
        values, shuffled = term.values(group), term.values([group[place] for place in order])
        assert [values[place] for place in order] == pytest.approx(shuffled, abs=TOLERANCE), label(term)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_spending_more_never_pays(groups_of: Groups, data: st.DataObject) -> None:
    group = data.draw(groups_of())
    place = data.draw(st.integers(0, len(group) - 1))
    spent = group[place].totals
    more = {what: getattr(spent, what) + data.draw(st.integers(0, 100_000), label=what) for what in SPENDING}
    dearer = replace(group[place], totals=replace(spent, **more))
    for term in VARIANTS:
        before = term.values(group)[place]
        after = term.values([*group[:place], dearer, *group[place + 1 :]])[place]
        assert after <= before + TOLERANCE, label(term)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_being_right_never_hurts(groups_of: Groups, data: st.DataObject) -> None:
    group = data.draw(groups_of())
    place = data.draw(st.integers(0, len(group) - 1))
    right = replace(group[place], correct=1.0, verdict="right", answered=True, answer="Paris")
    wrong = replace(group[place], correct=0.0, verdict="wrong", answer="London")
    for term in (*VARIANTS, *RELEASED[1:]):
        worse, better = (term.values([*group[:place], each, *group[place + 1 :]])[place] for each in (wrong, right))
        assert worse <= better + TOLERANCE, label(term)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_reward_is_the_same_of_episodes_that_were_written_down(groups_of: Groups, data: st.DataObject) -> None:
    group = data.draw(groups_of())
    again = [Episode.from_json(json.loads(json.dumps(episode.to_json()))) for episode in group]
    for reward in PRESETS.values():
        assert reward.score(again) == reward.score(group)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_the_total_is_the_weighted_sum(groups_of: Groups, data: st.DataObject) -> None:
    group = data.draw(groups_of())
    names = data.draw(st.lists(st.sampled_from(sorted(TERMS)), min_size=1, max_size=4, unique=True))
    weights = [data.draw(st.floats(0.01, 10)) for _ in names]
    reward = Reward("any", {name: Weighted(TERMS[name](), w) for name, w in zip(names, weights, strict=True)})
    for scored in reward.score(group):
        expected = sum(w * scored.components[name] for name, w in zip(names, weights, strict=True))
        assert scored.total == pytest.approx(expected)


def test_one_released_reward_pays_for_spending_and_the_tests_would_see_it(make: Any) -> None:
    from concertino_bench.metrics import Preference

    term = toolorchestra.PreferenceReward(Preference(usd=1), "as_released")
    group = [make("a", usd=1), make("b", usd=2), make("c", usd=4)]
    before = term.values(group)[0]
    dearer = [replace(group[0], totals=replace(group[0].totals, usd=3.0)), *group[1:]]
    assert term.values(dearer)[0] > before
