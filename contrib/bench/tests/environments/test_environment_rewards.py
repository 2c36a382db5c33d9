"""The reward terms: the formulas of AT-GRPO's App. A.1 by hand, their ranges, and that better never pays less."""

import itertools
from fractions import Fraction
from typing import Any

import pytest
from concertino_bench.environments import rewards
from concertino_bench.environments.rewards import COEFFICIENTS, LAMBDAS, TurnReward
from hypothesis import given, settings
from hypothesis import strategies as st

UNIT = st.floats(0, 1)
ROLES = [(domain, role) for domain, roles in COEFFICIENTS.items() for role in roles]


@pytest.mark.parametrize(("domain", "role"), ROLES)
def test_the_weights_of_a_role_add_up_to_one(domain: str, role: str) -> None:
    assert sum(COEFFICIENTS[domain][role].values()) == pytest.approx(1)


def test_the_constants_are_the_papers() -> None:
    assert LAMBDAS == {"maths": 0.70, "sudoku": 0.60, "plan-path": 0.50, "sokoban": 0.40}
    constants = (rewards.ALPHA, rewards.DELTA, rewards.MUTATION_GOAL)
    assert constants == (1.0, 1e-6, 0.60)
    assert list(COEFFICIENTS["plan-path"]["planner"].values()) == [0.20, 0.40, 0.40]
    assert list(COEFFICIENTS["plan-path"]["programmer"].values()) == [0.10, 0.40, 0.50]
    assert list(COEFFICIENTS["sudoku"]["planner"].values()) == [0.15, 0.55, 0.30]
    assert list(COEFFICIENTS["sudoku"]["programmer"].values()) == [0.10, 0.20, 0.70]
    assert list(COEFFICIENTS["sokoban"]["planner"].values()) == [0.10, 0.45, 0.45]
    assert list(COEFFICIENTS["sokoban"]["programmer"].values()) == [0.10, 0.30, 0.60]
    assert list(COEFFICIENTS["code"]["coder"].values()) == [0.10, 0.10, 0.80]
    assert list(COEFFICIENTS["code"]["tester"].values()) == [0.20, 0.80]
    assert list(COEFFICIENTS["maths"]["reasoner"].values()) == [0.20, 0.00, 0.80]
    assert list(COEFFICIENTS["maths"]["programmer"].values()) == [0.10, 0.10, 0.80]


def test_plan_path_rewards_what_came_nearer_and_one_at_the_goal() -> None:
    assert rewards.plan_path_team(8, 6, 10) == pytest.approx(0.2)
    assert rewards.plan_path_team(6, 8, 10) == 0
    assert rewards.plan_path_team(6, 8, 10, clip=False) == pytest.approx(-0.2)
    assert rewards.plan_path_team(1, 0, 10) == 1
    assert rewards.plan_path_team(1, 1, 0) == 0  # no division by a first distance of 0


def test_the_papers_clipped_reward_pays_for_going_back_and_forth_and_the_unclipped_one_does_not() -> None:
    walk = [10, 8, 10, 8, 10, 8]
    pairs = list(itertools.pairwise(walk))
    clipped = sum(rewards.plan_path_team(before, after, 10) for before, after in pairs)
    plain = sum(rewards.plan_path_team(before, after, 10, clip=False) for before, after in pairs)
    assert clipped == pytest.approx(0.6)
    assert plain == pytest.approx(0.2)  # what the last position is worth


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_ending_nearer_to_the_goal_never_pays_less(first: int, before: int, near: int, far: int) -> None:
    near, far = sorted((near, far))
    for clip in (True, False):
        better = rewards.plan_path_team(before, near, first, clip=clip)
        worse = rewards.plan_path_team(before, far, first, clip=clip)
        assert worse <= better
        assert better <= 1
    assert rewards.plan_path_team(before, near, first) >= 0


@settings(deadline=None)
@given(st.integers(1, 20), st.data())
def test_more_boxes_or_tests_never_pay_less(whole: int, data: Any) -> None:
    less, more = sorted((data.draw(st.integers(0, whole)), data.draw(st.integers(0, whole))))
    for reward in (rewards.sokoban_team, rewards.code_team, rewards.progress):
        assert 0 <= reward(less, whole) <= reward(more, whole) <= 1
    assert rewards.sokoban_team(whole, whole) == 1


def test_a_part_that_is_larger_than_its_whole_is_refused() -> None:
    with pytest.raises(ValueError, match="3 of 2"):
        rewards.code_team(3, 2)
    with pytest.raises(ValueError, match="0 of 0"):
        rewards.sokoban_team(0, 0)


@pytest.mark.parametrize(("domain", "role"), ROLES)
@settings(deadline=None)
@given(data=st.data())
def test_a_local_reward_lies_within_its_range_and_grows_with_each_score(domain: str, role: str, data: Any) -> None:
    scores = {name: data.draw(UNIT) for name in COEFFICIENTS[domain][role]}
    value = rewards.local(domain, role, scores)
    assert -1e-9 <= value <= 1 + 1e-9
    name = data.draw(st.sampled_from(sorted(scores)))
    better = rewards.local(domain, role, {**scores, name: data.draw(st.floats(scores[name], 1))})
    assert better >= value - 1e-12


def test_scores_that_do_not_fit_are_refused_with_what_is_expected() -> None:
    with pytest.raises(ValueError, match=r"got \['format'\]; expected \['format', 'legal', 'shortest'\]"):
        rewards.local("plan-path", "planner", {"format": 1})
    with pytest.raises(ValueError, match="legal=2"):
        rewards.local("plan-path", "planner", {"format": 1, "legal": 2, "shortest": 0})
    with pytest.raises(ValueError, match="the roles of maths are reasoner, programmer"):
        rewards.local("maths", "coder", {})
    with pytest.raises(ValueError, match="expected one of plan-path"):
        rewards.local("chess", "coder", {})


@settings(deadline=None)
@given(UNIT, UNIT, UNIT, UNIT, st.floats(0, 5))
def test_mixes_grow_with_team_and_local(team: float, local: float, more: float, share: float, alpha: float) -> None:
    best = max(team, more)
    assert rewards.alpha_mix(best, local, alpha) >= rewards.alpha_mix(team, local, alpha) - 1e-12
    assert rewards.alpha_mix(team, max(local, more), alpha) >= rewards.alpha_mix(team, local, alpha) - 1e-12
    assert rewards.lambda_mix(best, local, share) >= rewards.lambda_mix(team, local, share) - 1e-12
    assert rewards.lambda_mix(team, max(local, more), share) >= rewards.lambda_mix(team, local, share) - 1e-12
    assert -1e-12 <= rewards.lambda_mix(team, local, share) <= 1 + 1e-12
    assert rewards.lambda_mix(team, local, share, verifiable=False) == pytest.approx(share * team)


def test_the_two_mixes_of_the_paper_are_not_the_same() -> None:
    scores = {"format": 1.0, "legal": 1.0, "shortest": 0.5}
    reward = TurnReward("plan-path", 1.0, {"planner": scores})
    assert reward.local("planner") == pytest.approx(0.8)
    assert reward.of("planner") == pytest.approx(1.8)
    assert reward.of("planner", alpha=0.5) == pytest.approx(1.3)
    assert reward.of("planner", "lambda") == pytest.approx(0.5 + 0.5 * 0.8)
    assert reward.of("planner", "lambda", share=0.9) == pytest.approx(0.9 + 0.1 * 0.8)
    assert reward.of("programmer", "lambda") == pytest.approx(0.5)  # said nothing: the team's share alone


def test_a_role_that_cannot_be_verified_gets_the_teams_share_alone() -> None:
    scores = {"valid": 1.0, "coverage": 1.0}
    masked = TurnReward("code", 0.5, {"tester": scores}, frozenset({"tester"}))
    assert masked.of("tester", "lambda", share=0.4) == pytest.approx(0.2)
    with pytest.raises(ValueError, match="the paper gives no lambda for code"):
        masked.of("tester", "lambda")


def test_what_was_passed_before_must_still_pass() -> None:
    assert rewards.keeps_passing([], [1]) == 1
    assert rewards.keeps_passing([1, 2, 3, 4], [1, 2, 9]) == 0.5
    assert rewards.keeps_passing([1], []) == 0


def test_coverage_is_whole_from_the_papers_threshold() -> None:
    assert rewards.coverage(None) == 0
    assert rewards.coverage(0.3) == pytest.approx(0.5)
    assert rewards.coverage(0.6) == rewards.coverage(1) == 1


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [("1", "1.0000009", True), ("1", "1.000002", False), ("1000000", "1000000.9", True), ("0.1", "0.1000009", True)],
)
def test_numbers_are_equal_within_an_absolute_or_a_relative_millionth(a: str, b: str, equal: bool) -> None:
    assert rewards.numbers_equal(Fraction(a), Fraction(b)) is equal
