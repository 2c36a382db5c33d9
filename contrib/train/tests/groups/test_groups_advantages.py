"""Advantages, for any rewards and any mix of groups."""

from __future__ import annotations

import math
from typing import Any

import concertino as ct
import numpy as np
import pytest
from concertino_train.groups import AdvantageSettings, GroupKey, Groups, compute_advantages
from hypothesis import given, settings
from hypothesis import strategies as st

SETTINGS = [
    AdvantageSettings(std=std, ddof=ddof, epsilon=epsilon, baseline=baseline)  # type: ignore[arg-type]
    for std in ("none", "group", "batch")
    for ddof in (0, 1)
    for epsilon in (0.0, 1e-6, 1e-2)
    for baseline in ("mean", "leave_one_out")
]


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[GroupKey], list[float]]:
    """Environments of one to six turns, with one or two roles and any number of candidates each."""
    keys = [
        GroupKey(f"env{env}", role, turn)
        for env in range(draw(st.integers(1, 3)))
        for turn in range(1, draw(st.integers(1, 6)) + 1)
        for role in draw(st.sampled_from((("coder",), ("coder", "tester"))))
        for _ in range(draw(st.integers(1, 5)))
    ]
    reward = st.one_of(st.sampled_from((0.0, 1.0)), st.floats(-5, 5), st.floats(-1e6, 1e6))
    rewards = draw(st.lists(reward, min_size=len(keys), max_size=len(keys)))
    return keys, rewards


@settings(max_examples=80, deadline=None)
@given(batch=batches(), order=st.randoms(use_true_random=False))
def test_advantages_of_every_group_add_up_to_zero_in_any_order(
    batch: tuple[list[GroupKey], list[float]], order: Any
) -> None:
    keys, rewards = batch
    groups = Groups.of(keys)
    shuffled = list(range(len(keys)))
    order.shuffle(shuffled)
    for setting in SETTINGS:
        result = compute_advantages(rewards, groups, setting)
        assert np.isfinite(result.values).all()
        for number in range(len(groups)):
            own = result.values[np.flatnonzero(groups.index == number)]
            assert abs(own.mean()) < 1e-6
        moved = compute_advantages(
            [rewards[row] for row in shuffled], Groups.of([keys[row] for row in shuffled]), setting
        )
        scale = max(1.0, float(np.abs(result.values).max()))
        assert np.allclose(moved.values, result.values[shuffled], rtol=1e-6, atol=1e-6 * scale)
        assert moved.counted.tolist() == result.counted[shuffled].tolist()


@settings(max_examples=60, deadline=None)
@given(batch=batches())
def test_groups_of_one_and_groups_of_equal_rewards_have_none_and_do_not_count(
    batch: tuple[list[GroupKey], list[float]],
) -> None:
    keys, rewards = batch
    groups = Groups.of(keys)
    for setting in SETTINGS:
        result = compute_advantages(rewards, groups, setting)
        for number in range(len(groups)):
            rows = np.flatnonzero(groups.index == number)
            own = [rewards[row] for row in rows]
            if len(own) == 1 or max(own) == min(own):
                assert not result.values[rows].any()
                assert not result.counted[rows].any()
        assert not result.values[~result.counted].any()


@settings(max_examples=40, deadline=None)
@given(batch=batches(), other=st.lists(st.floats(-5, 5), min_size=1, max_size=6))
def test_a_group_does_not_depend_on_other_groups_unless_the_std_is_the_batch_s(
    batch: tuple[list[GroupKey], list[float]], other: list[float]
) -> None:
    keys, rewards = batch
    more = Groups.of([*keys, *[GroupKey("other")] * len(other)])
    for setting in SETTINGS:
        if setting.std != "batch":
            alone = compute_advantages(rewards, Groups.of(keys), setting).values
            beside = compute_advantages([*rewards, *other], more, setting).values
            assert np.allclose(alone, beside[: len(keys)], rtol=1e-9, atol=1e-12)


def values(rewards: list[float], keys: list[str] | None = None, **options: Any) -> list[float]:
    groups = Groups.of([GroupKey(key) for key in keys or ["q"] * len(rewards)])
    found: list[float] = compute_advantages(rewards, groups, AdvantageSettings(**options)).values.tolist()
    return found


def test_grpo_divides_by_the_sample_std_of_the_group() -> None:
    assert values([0, 0, 0, 1], epsilon=0) == pytest.approx([-0.5, -0.5, -0.5, 1.5])
    assert values([0, 0, 0, 1], epsilon=0, ddof=0) == pytest.approx([-1 / math.sqrt(3)] * 3 + [math.sqrt(3)])


def test_dr_grpo_does_not_divide() -> None:
    assert values([0, 0, 0, 1], std="none") == [-0.25, -0.25, -0.25, 0.75]


def test_leave_one_out_compares_with_the_others() -> None:
    assert values([0, 3, 6], std="none", baseline="leave_one_out") == pytest.approx([-4.5, 0, 4.5])


def test_the_std_of_the_batch_is_that_of_the_rows_that_count() -> None:
    rewards, keys = [0.0, 1.0, 5.0, 5.0, 9.0], ["a", "a", "b", "b", "c"]
    assert values(rewards, keys, std="batch", epsilon=0, ddof=0) == pytest.approx([-1, 1, 0, 0, 0])


def test_epsilon_is_added_to_the_std() -> None:
    assert values([0, 1], epsilon=0.5, ddof=0) == pytest.approx([-0.5, 0.5])


def test_rewards_that_differ_by_rounding_are_equal() -> None:
    assert values([0.1 + 0.2, 0.3], epsilon=0) == [0, 0]
    assert values([0.3 + 1e-6, 0.3], epsilon=0) != [0, 0]


def test_a_clip_bounds_advantages() -> None:
    found = values([0] * 15 + [1], epsilon=0, clip=3)
    assert max(found) == 3
    assert max(values([0] * 15 + [1], epsilon=0)) > 3


def test_an_empty_batch_has_no_advantages() -> None:
    assert len(compute_advantages([], Groups.of([])).values) == 0


@pytest.mark.parametrize("reward", [math.nan, math.inf])
def test_a_reward_that_is_no_number_is_refused_with_its_row(reward: float) -> None:
    with pytest.raises(ct.UsageError, match=r"reward of row 1 \(group q\)"):
        values([0, reward])


def test_another_number_of_rewards_is_refused() -> None:
    with pytest.raises(ct.UsageError, match="2 rows"):
        compute_advantages([1.0], Groups.of([GroupKey("q")] * 2))


@pytest.mark.parametrize("wrong", [{"std": "both"}, {"ddof": 2}, {"epsilon": -1}, {"baseline": "max"}, {"clip": 0}])
def test_a_setting_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ct.UsageError, match=next(iter(wrong))):
        AdvantageSettings(**wrong)
