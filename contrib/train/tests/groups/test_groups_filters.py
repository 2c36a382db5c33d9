"""Filters mark rows, and leave the others as they were."""

from __future__ import annotations

import concertino as ct
import numpy as np
import pytest
from concertino_train.groups import AdvantageSettings, Filters, GroupKey, Groups, compute_advantages
from concertino_train.groups.filters import homogeneous
from concertino_train.groups.statistics import distinct_rewards as distinct
from concertino_train.groups.statistics import group_statistics
from hypothesis import given, settings
from hypothesis import strategies as st

KEYS = [GroupKey(key) for key in "aaabbbc"]
GROUPS = Groups.of(KEYS)
REWARDS = [0.0, 1.0, 1.0, 0.5, 0.55, 0.5, 1.0]


def test_a_homogeneous_group_is_left_out_whole() -> None:
    assert homogeneous(REWARDS, GROUPS).tolist() == [False, True, True]
    filtered = Filters(homogeneity=0.1).apply(REWARDS, GROUPS)
    assert filtered.keep.tolist() == [True] * 3 + [False] * 4
    assert filtered.counts() == {"kept": 3, "homogeneous": 4}


def test_the_threshold_is_of_the_sample_std() -> None:
    pair = Groups.of([GroupKey("q")] * 2)
    assert homogeneous([0, 0.13], pair).tolist() == [True]
    assert homogeneous([0, 0.15], pair).tolist() == [False]


def test_every_row_has_the_first_reason_that_applies() -> None:
    filters = Filters(format=True, invalid=True, overlong="drop")
    filtered = filters.apply(
        REWARDS,
        GROUPS,
        exact=[True, False, True, True, True, True, False],
        answered=[True, False, False, True, True, True, True],
        truncated=[False, False, False, True, False, False, True],
    )
    assert filtered.reasons == ("", "format", "invalid", "overlong", "", "", "format")


@settings(max_examples=60, deadline=None)
@given(
    rewards=st.lists(st.floats(-2, 2), min_size=7, max_size=7), exact=st.lists(st.booleans(), min_size=7, max_size=7)
)
def test_what_is_kept_has_the_same_advantages_bit_by_bit(rewards: tuple[float, ...], exact: tuple[bool, ...]) -> None:
    before = compute_advantages(rewards, GROUPS, AdvantageSettings(std="batch"))
    filtered = Filters(homogeneity=0.1, format=True).apply(rewards, GROUPS, exact=exact)
    after = np.where(filtered.keep, before.values, 0.0)
    assert (after[filtered.keep] == before.values[filtered.keep]).all()
    assert not after[~filtered.keep].any()
    dropped = {GROUPS.index[row] for row in range(7) if filtered.reasons[row] == "homogeneous"}
    assert all(filtered.reasons[row] == "homogeneous" for row in range(7) if GROUPS.index[row] in dropped)


def test_a_filter_that_could_filter_nothing_is_refused() -> None:
    with pytest.raises(ct.UsageError, match=r"Filters\(homogeneity=0\): expected greater than 0"):
        Filters(homogeneity=0)
    with pytest.raises(ct.UsageError, match="'keep' or 'drop'"):
        Filters(overlong="cut")  # type: ignore[arg-type]
    assert not Filters().any


def test_a_filter_says_what_it_needs() -> None:
    with pytest.raises(ct.UsageError, match="'format' needs exact"):
        Filters(format=True).apply(REWARDS, GROUPS)
    with pytest.raises(ct.UsageError, match="got 2 marks"):
        Filters(invalid=True).apply(REWARDS, GROUPS, answered=[True, False])


def test_statistics_tell_what_there_is_to_learn_from() -> None:
    figures = group_statistics(REWARDS, GROUPS)
    assert (figures.groups, figures.rows, figures.singletons) == (3, 7, 1)
    assert (figures.zero_variance, figures.homogeneous) == (0, 1)
    assert figures.homogeneous_share == 0.5
    assert figures.distinct_mean == pytest.approx(5 / 3)
    assert figures.distinct_least == 1
    assert (figures.least, figures.most) == (0, 1)
    assert figures.zero_variance_share == 0


def test_different_rewards_are_counted_but_for_rounding() -> None:
    assert distinct([0.1 + 0.2, 0.3, 1, 5, 5, 5, 9], GROUPS).tolist() == [2, 1, 1]


def test_statistics_of_nothing() -> None:
    figures = group_statistics([], Groups.of([]))
    assert (figures.groups, figures.zero_variance_share, figures.homogeneous_share) == (0, 0, 0)
