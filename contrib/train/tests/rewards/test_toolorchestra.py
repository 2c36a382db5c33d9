"""ToolOrchestra's reward: the paper's, the released one, and the metric of the bench."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import concertino as ct
import pytest
from concertino import Usage
from concertino_bench import Item, Key, MemberUse, Verdict
from concertino_bench.metrics import Preference, preference_adherence
from concertino_train.episodes import Episode
from concertino_train.rewards import UnpricedError
from concertino_train.rewards import toolorchestra as to
from hypothesis import given, settings
from hypothesis import strategies as st

CHEAP, QUICK = Preference(usd=1), Preference(seconds=1)


def values(group: list[Episode], preference: Preference, **options: Any) -> list[float]:
    return to.PreferenceReward(preference, **options).values(group)


def three(make: Any, **column: list[float]) -> list[Episode]:
    ((name, spent),) = column.items()
    return [make(f"e{place}", **{name: each}) for place, each in enumerate(spent)]


def test_the_paper_prefers_the_cheap_and_the_quick(make: Any) -> None:
    assert values(three(make, usd=[1, 2, 4]), CHEAP) == pytest.approx([1, 2 / 3, 0])
    assert values(three(make, seconds=[5, 10, 20]), QUICK) == pytest.approx([1, 2 / 3, 0])


def test_the_released_code_prefers_the_dear_and_the_slow(make: Any) -> None:
    expected = pytest.approx([3.0, 10 / 3, 4.0])
    assert values(three(make, usd=[1, 2, 4]), CHEAP, variant="as_released") == expected
    assert values(three(make, seconds=[5, 10, 20]), QUICK, variant="as_released") == expected


def test_the_released_code_takes_reward_away_for_a_tool_that_was_not_used(make: Any) -> None:
    group = [make(f"e{count}", uses={"search": count} if count else {}) for count in (0, 1, 3)]
    tool = Preference({"search": 1})
    assert values(group, tool, variant="as_released") == pytest.approx([-0.5, 0, 1])
    assert values(group, tool) == pytest.approx([0, 1 / 3, 1])


def test_a_wrong_episode_gets_nothing_and_still_moves_the_bounds(make: Any) -> None:
    group = [make("a", usd=2), make("b", usd=3), make("c", False, usd=4), make("d", False, usd=0)]
    assert values(group, CHEAP) == pytest.approx([0.5, 0.25, 0, 0])


def test_no_rollouts_have_no_rewards() -> None:
    assert to.released_reward([], [], []) == to.preference_reward([], [], []) == to.normalised([]) == []


def test_a_feature_that_is_equal_for_all_is_disregarded(make: Any) -> None:
    assert values([make("a"), make("b")], Preference({"search": 1}, 1, 1, 1)) == [0, 0]
    assert values([make("a"), make("b", False)], Preference(accuracy=1)) == [1, 0]


def test_patterns_count_members_at_any_depth(make: Any) -> None:
    episode = make("a", uses={"search/web": 2, "search/wiki": 1, "code": 1})
    assert to.tool_feature(episode, "search/*") == 3
    assert to.tool_feature(episode, "search/*", "share") == 0.75
    assert to.tool_feature(make("b"), "search/*", "share") == 0


def test_a_share_does_not_pay_for_padding(make: Any) -> None:
    padded = [make("a", uses={"search": 1, "code": 1}), make("b", uses={"search": 9, "code": 9}), make("c", uses={})]
    search = Preference({"search": 1})
    assert values(padded, search, tools="share")[:2] == [1, 1]
    assert values(padded, search)[0] < values(padded, search)[1]


def test_the_clock_is_wall_time_the_critical_path_or_the_sum_of_calls(make: Any) -> None:
    group = [
        make("a", totals={"seconds": 1, "critical_path": 3, "call_seconds": 2}),
        make("b", totals={"seconds": 2, "critical_path": 2, "call_seconds": 2}),
    ]
    assert values(group, QUICK) == [1, 0]
    assert values(group, QUICK, clock="critical_path") == [0, 1]
    assert values(group, QUICK, clock="calls") == [0, 0]


def test_an_episode_s_own_preference_comes_first(make: Any) -> None:
    group = [make("a", usd=1, preference=QUICK), make("b", usd=2, seconds=1)]
    assert values(group, CHEAP) == [1, 0]


def test_without_any_preference_the_message_says_where_to_set_one(make: Any) -> None:
    with pytest.raises(ct.UsageError, match=r"Episode\.preference, or `preference:"):
        to.PreferenceReward().values([make("a")])


def test_an_unknown_price_is_refused_with_the_fix(make: Any) -> None:
    episode = make("a", totals={"unpriced": 3, "policy_unpriced": 1}, unpriced=("openai/gpt-x",))
    with pytest.raises(UnpricedError, match=r"1 of the policy itself and 2 of members \(openai/gpt-x\).*prices"):
        values([episode], CHEAP)
    with pytest.raises(UnpricedError, match=r"2 of members"):
        values([episode], CHEAP, money="calls")
    own = make("a", totals={"unpriced": 1, "policy_unpriced": 1})
    with pytest.raises(UnpricedError, match="money: calls"):
        values([own], CHEAP)
    assert values([own], CHEAP, money="calls") == [0]


def test_an_unknown_price_does_not_matter_where_nobody_cares_for_money(make: Any) -> None:
    assert values([make("a", totals={"unpriced": 3}), make("b", False)], Preference(accuracy=1)) == [1, 0]


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_the_paper_s_reward_is_the_metric_of_the_bench(groups_of: Callable[..., Any], data: st.DataObject) -> None:
    group = data.draw(groups_of())
    preference = group[0].preference
    items = [_item(place, episode) for place, episode in enumerate(group)]
    metric = preference_adherence(items, preference)
    plain = [Episode(**{**vars(episode), "preference": None}) for episode in group]
    for item, ours in zip(items, values(plain, preference), strict=True):
        assert metric([item]).value == pytest.approx(ours, abs=1e-9)


def _item(place: int, episode: Episode) -> Item:
    members = {name: MemberUse("tool", count, {"OK": count}, Usage()) for name, count in episode.uses.items()}
    return Item(
        Key("s", "q", place),
        "text",
        Verdict(episode.verdict),
        "",
        usage=Usage(usd=episode.totals.usd),
        seconds=episode.totals.seconds,
        members=members,
    )


BOTH = Preference({"sure": 0.5}, usd=0.5)


def contrast(make: Any, wish: Preference | None, **what: Any) -> float:
    term = to.PreferenceContrast(BOTH, most_usd=2)
    (value,) = term.values([replace(make("a", **what), preference=wish)])
    return value


def test_a_contrast_pays_for_what_one_preference_likes_and_the_other_does_not(make: Any) -> None:
    sure = Preference({"sure": 1})
    saving, spending = {"usd": 0, "uses": {"other": 1}}, {"usd": 2, "uses": {"sure": 1}}
    assert [contrast(make, CHEAP, **each) for each in (saving, spending)] == [0.5, -0.5]
    assert [contrast(make, sure, **each) for each in (saving, spending)] == [-0.5, 0.5]


def test_a_contrast_pays_nothing_for_what_pleases_under_every_preference(make: Any) -> None:
    assert contrast(make, CHEAP, usd=0, uses={"sure": 1}) == 0
    assert contrast(make, BOTH, usd=1) == contrast(make, None, usd=1) == 0


def test_a_contrast_looks_at_prices_only_where_a_preference_weighs_them(make: Any) -> None:
    unknown = replace(make("a"), preference=CHEAP)
    unknown = replace(unknown, totals=replace(unknown.totals, unpriced=1))
    with pytest.raises(UnpricedError, match="toolorchestra/contrast charges"):
        to.PreferenceContrast(QUICK).values([unknown])
    assert to.PreferenceContrast(QUICK).values([replace(unknown, preference=QUICK)]) == [0]
