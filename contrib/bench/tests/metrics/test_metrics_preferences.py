"""How well systems follow a preference: the two formulas, and the sign of cost."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from concertino import Usage
from concertino_bench.metrics import Preference, preference_adherence, preference_reward
from concertino_bench.tasks import Item, MemberUse
from hypothesis import given, settings
from hypothesis import strategies as st

MakeItem = Callable[..., Item]
WEIGHT = st.floats(0, 1)


def uses(**calls: int) -> dict[str, MemberUse]:
    return {name.replace("_", "/"): MemberUse("tool", n, {"OK": n}, Usage(n)) for name, n in calls.items()}


def of(items: list[Item], system: str, preference: Preference) -> float | None:
    return preference_adherence(items, preference)([i for i in items if i.key.system == system]).value


def test_minimum_and_maximum_are_taken_over_all_systems(item: MakeItem) -> None:
    items = [
        item("a", usage=Usage(usd=1.0), seconds=1.0, members=uses(search_wiki=2)),
        item("b", usage=Usage(usd=3.0), seconds=5.0, members=uses(search_wiki=4, search_web=2)),
        item("c", usage=Usage(usd=2.0), seconds=2.0, right=False),
    ]
    preference = Preference({"search/*": 1.0}, accuracy=0.5, usd=1.0, seconds=0.5)
    assert of(items, "a", preference) == pytest.approx(2 / 6 + 0.5 + 1.0 + 0.5)
    assert of(items, "b", preference) == pytest.approx(1.0 + 0.5)
    assert of(items, "c", preference) == 0.0


def test_a_feature_in_which_all_are_equal_counts_nothing(item: MakeItem) -> None:
    items = [item("a", usage=Usage(usd=1.0)), item("b", usage=Usage(usd=1.0))]
    assert of(items, "a", Preference(accuracy=1.0, usd=1.0)) == 0.0


@settings(deadline=None)
@given(WEIGHT, WEIGHT, st.floats(0.1, 5), st.floats(0.1, 5))
def test_more_weight_on_cost_never_favours_the_dearer(low: float, more: float, cheap: float, extra: float) -> None:
    def make(system: str, usd: float, calls: int) -> Item:
        from concertino_bench import Verdict
        from concertino_bench.tasks import Key

        members = uses(tool=calls)
        return Item(Key(system, "t"), "number", Verdict.RIGHT, "r", usage=Usage(usd=usd), members=members)

    items = [make("cheap", cheap, 1), make("dear", cheap + extra, 5)]
    low, high = sorted((low, more))
    gaps = []
    for weight in (low, high):
        preference = Preference({"tool": 0.5}, usd=weight)
        gaps.append((of(items, "cheap", preference) or 0.0) - (of(items, "dear", preference) or 0.0))
    assert gaps[1] >= gaps[0]


@settings(deadline=None)
@given(st.floats(0, 9), st.floats(0, 9), WEIGHT, WEIGHT)
def test_spending_more_never_pays(usd: float, extra: float, weight: float, time: float) -> None:
    from concertino_bench import Verdict
    from concertino_bench.tasks import Key

    def adherence(spent: float) -> float:
        items = [
            Item(Key(name, "t"), "number", Verdict.RIGHT, "r", usage=Usage(usd=u), seconds=u)
            for name, u in (("a", spent), ("b", 2.0), ("c", 5.0))
        ]
        return of(items, "a", Preference(usd=weight, seconds=time)) or 0.0

    assert adherence(usd + extra) <= adherence(usd) + 1e-9


def test_an_unknown_price_matters_only_if_cost_has_weight(item: MakeItem) -> None:
    items = [item("a", usage=Usage(unpriced=1), seconds=1.0), item("b", usage=Usage(usd=1.0), seconds=2.0)]
    metric = preference_adherence(items, Preference(usd=1.0))
    assert (metric(items[:1]).value, metric(items[:1]).unknown) == (None, 1)
    assert of(items, "a", Preference(seconds=1.0)) == 1.0


def test_the_evaluation_formula_divides_by_the_baseline(item: MakeItem) -> None:
    items = [
        item("base", usage=Usage(usd=0.04), seconds=8.0, members=uses(tool=2)),
        item("ours", usage=Usage(usd=0.02), seconds=2.0, members=uses(tool=4)),
    ]
    metric = preference_reward(items, Preference({"tool": 1.0}, accuracy=1.0, usd=1.0, seconds=1.0), "base")
    assert metric(items[1:]).value == pytest.approx(4 / 2 + 1.0 + 4 / 2 + 8 / 2)
    wrong = item("ours", "t2", right=False)
    assert preference_reward([*items, wrong], Preference(accuracy=1.0), "base")([wrong]).missing == 1
    with pytest.raises(ValueError, match="there are base, ours"):
        preference_reward(items, Preference(), "gone")


def test_a_weight_outside_zero_to_one_and_an_unknown_key_are_refused() -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        Preference(usd=-1.0)
    with pytest.raises(ValueError, match="expected members"):
        Preference.from_json({"cost": 1.0})
    preference = Preference({"a": 1.0}, 0.5, 0.25, 0.0)
    assert Preference.from_json(preference.to_json()) == preference
