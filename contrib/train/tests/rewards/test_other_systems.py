"""MAS-Orchestra, GAP, AT-GRPO and the shared terms, number by number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import concertino as ct
import pytest
from concertino_bench.environments import TurnReward
from concertino_train.episodes import Called, EpisodeRound, RoleTurn
from concertino_train.rewards import PRESETS, UnpricedError, at_grpo, gap, mas_orchestra, shared
from concertino_train.rewards.functions import between, min_max, overlong, soft_target, spent

# -- MAS-Orchestra -----------------------------------------------------------------------------------------------------


def test_the_released_reward_of_mas_orchestra_pays_for_any_output(make: Any) -> None:
    group = [make("right"), make("wrong", False), make("none", False, answered=False, answer=None)]
    assert [each.total for each in PRESETS["mas-orchestra"].score(group)] == [1, 0, 0]
    assert [each.total for each in PRESETS["mas-orchestra-as-released"].score(group)] == pytest.approx([1, 0.1, 0])


def test_a_graph_can_be_asked_to_have_run_without_a_failure(make: Any) -> None:
    failed = make("a", rounds=(EpisodeRound(calls=(Called("x"), Called("y", status="TIMEOUT"))),))
    assert mas_orchestra.Executed().values([failed]) == [1]
    assert mas_orchestra.Executed(every_call=True).values([failed]) == [0]
    fine = make("b", rounds=(EpisodeRound(calls=(Called("x"), Called("y"))),))
    assert mas_orchestra.Executed(every_call=True).values([fine]) == [1]


# -- GAP ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "paper", "training", "evaluation"),
    [
        ("Paris", 1, 1, 1),
        ("the Paris!", 1, 1, 1),
        ("Paris|London", 0, 0, 1),
        ("London|Paris", 0, 0, 0),
        ("Paris|City of Light", 0, 1, 1),
        ("", 0, 0, 0),
    ],
)
def test_three_ways_to_match_exactly(answer: str, paper: float, training: float, evaluation: float) -> None:
    gold = ["Paris", "City of Light"]
    ways = (gap.exact_match, gap.released_exact_match, gap.evaluated_exact_match)
    assert [way(answer, gold) for way in ways] == [paper, training, evaluation]


def test_the_variants_of_gap_read_the_answer_and_the_paper_s_the_verdict(make: Any) -> None:
    episode = make("a", False, answer="Paris|London", expected=("Paris",))
    ways = [gap.GapExactMatch(way).values([episode]) for way in ("paper", "as_released", "as_evaluated")]
    assert ways == [[0], [0], [1]]
    with pytest.raises(ct.UsageError, match="no gold answers"):
        gap.GapExactMatch("as_released").values([replace(episode, expected=())])


# -- AT-GRPO -----------------------------------------------------------------------------------------------------------

PLANNER = {"format": 1.0, "legal": 0.5, "shortest": 0.0}  # 0.2 + 0.2 + 0 = 0.4


def turns_of(*turns: RoleTurn) -> dict[str, Any]:
    return {"domain": "plan-path", "turns": turns}


def test_equation_4_adds_and_appendix_a1_mixes(make: Any) -> None:
    episode = make("a", **turns_of(RoleTurn(1, "planner", 0.5, PLANNER)))
    assert at_grpo.Local().values([episode]) == [pytest.approx(0.4)]
    assert at_grpo.Team().values([episode]) == [0.5]
    assert at_grpo.AlphaMix().values([episode]) == [pytest.approx(0.9)]
    assert at_grpo.AlphaMix(alpha=2).values([episode]) == [pytest.approx(1.4)]
    assert at_grpo.LambdaMix().values([episode]) == [pytest.approx(0.5 * 0.5 + 0.5 * 0.4)]
    assert at_grpo.LambdaMix(share=1).values([episode]) == [0.5]


def test_a_role_that_cannot_be_verified_earns_the_team_s_part_only(make: Any) -> None:
    episode = make("a", **turns_of(RoleTurn(1, "planner", 0.5, PLANNER, verifiable=False)))
    assert at_grpo.Local().values([episode]) == [0]
    assert at_grpo.AlphaMix().values([episode]) == [0.5]
    assert at_grpo.LambdaMix().values([episode]) == [0.25]


def test_the_mixes_are_those_of_the_environments(make: Any) -> None:
    reward = TurnReward("plan-path", 0.5, {"planner": PLANNER})
    episode = make("a", **turns_of(*RoleTurn.of(1, reward)))
    assert at_grpo.AlphaMix().values([episode]) == [reward.of("planner")]
    assert at_grpo.LambdaMix().values([episode]) == [reward.of("planner", "lambda")]


@pytest.mark.parametrize(("domain", "share"), [("maths", 0.7), ("sudoku", 0.6), ("plan-path", 0.5), ("sokoban", 0.4)])
def test_lambda_is_the_paper_s_for_the_domain(domain: str, share: float, make: Any) -> None:
    episode = make("a", domain=domain, turns=(RoleTurn(1, "planner", 1.0),))
    assert at_grpo.LambdaMix().values([episode]) == [pytest.approx(share)]


def test_the_last_turn_or_the_mean_of_all_is_scored_of_one_role_or_all(make: Any) -> None:
    turns = (RoleTurn(1, "planner", 0.2), RoleTurn(1, "programmer", 0.4), RoleTurn(2, "planner", 0.9))
    episode = make("a", **turns_of(*turns))
    assert at_grpo.Team().values([episode]) == [0.9]
    assert at_grpo.Team(over="mean").values([episode]) == [pytest.approx(0.5)]
    assert at_grpo.Team(role="programmer").values([episode]) == [0.4]


def test_a_workflow_that_ended_before_anybody_acted_earns_nothing(make: Any) -> None:
    episode = make("a", domain="plan-path")
    assert [term.values([episode]) for term in (at_grpo.Team(), at_grpo.Local(), at_grpo.AlphaMix())] == [[0.0]] * 3


@pytest.mark.parametrize(
    ("term", "episode", "message"),
    [
        (at_grpo.Team(), {}, "has no turn"),
        (at_grpo.Team(role="coder"), turns_of(RoleTurn(1, "planner")), "no turn of 'coder'"),
        (at_grpo.LambdaMix(), {"domain": "code", "turns": (RoleTurn(1, "coder"),)}, "no lambda for domain 'code'"),
        (at_grpo.Local(), turns_of(RoleTurn(1, "planer", 0, PLANNER)), "did you mean 'planner'"),
        (at_grpo.Local(), {"domain": "plan", "turns": (RoleTurn(1, "planner", 0, PLANNER),)}, "mean 'plan-path'"),
        (at_grpo.Local(), turns_of(RoleTurn(1, "planner", 0, {"format": 1.0})), "do not fit"),
        (at_grpo.Released(), {"domain": "code", "turns": (RoleTurn(1, "tester"),)}, "lacks the fact 'golden'"),
        (at_grpo.Released(), {"domain": "chess", "turns": (RoleTurn(1, "coder"),)}, "no reward for 'coder' of 'chess'"),
    ],
)
def test_what_a_turn_lacks_is_named(term: Any, episode: dict[str, Any], message: str, make: Any) -> None:
    with pytest.raises(ct.UsageError, match=message):
        term.values([make("a", **episode)])


def test_own_coefficients_replace_the_paper_s(make: Any) -> None:
    episode = make("a", domain="chess", turns=(RoleTurn(1, "white", 0.0, {"mate": 1.0, "form": 0.0}),))
    term = at_grpo.Local(coefficients={"white": {"mate": 0.75, "form": 0.25}})
    assert term.values([episode]) == [0.75]
    with pytest.raises(ct.UsageError, match=r"add up to 1, got 0\.5"):
        at_grpo.Local(coefficients={"white": {"mate": 0.5}})


@pytest.mark.parametrize(
    ("domain", "turn", "value"),
    [
        ("code", RoleTurn(1, "coder", 0.5), 1.0),
        ("code", RoleTurn(1, "tester", 0.5, facts={"golden": 1.0}), 1.5),
        ("maths", RoleTurn(1, "reasoner", 1.0), 2.0),
        ("maths", RoleTurn(1, "programmer", 0.0, facts={"step": -1}), -1.0),
        ("plan-path", RoleTurn(1, "planner", 0.0, {"format": 0.0}, facts={"environment": 0.25}), -1.75),
        ("sokoban", RoleTurn(1, "planner", 0.0, {"format": 1.0}, facts={"environment": 5}), 5.0),
    ],
)
def test_the_released_rewards_of_roles(domain: str, turn: RoleTurn, value: float, make: Any) -> None:
    assert at_grpo.Released().values([make("a", domain=domain, turns=(turn,))]) == [value]


# -- shared ------------------------------------------------------------------------------------------------------------


def test_shared_terms(make: Any) -> None:
    calls = (Called("x"), Called("y", status="EXEC_ERR"))
    episode = make("a", units=2, usd=0.03, rounds=(EpisodeRound(calls=calls),), totals={"policy_usd": 0.01})
    assert shared.Correct().values([episode]) == [1]
    assert shared.Answered().values([replace(episode, answered=False)]) == [0]
    assert shared.OkCalls().values([episode, make("b")]) == [0.5, 1]
    assert shared.Spending("units", 8).values([episode]) == [-0.25]
    assert shared.Spending("usd", 0.1).values([episode]) == [pytest.approx(-0.3)]
    assert shared.Spending("usd", 0.1, "calls").values([episode]) == [pytest.approx(-0.2)]
    assert shared.Spending("units", 1).values([episode]) == [-1]


def test_a_charge_in_dollars_refuses_an_unknown_price(make: Any) -> None:
    with pytest.raises(UnpricedError, match="an unknown price is not 0"):
        shared.Spending("usd").values([make("a", totals={"unpriced": 1})])
    assert shared.Spending("units").values([make("a", totals={"unpriced": 1})]) == [0]


@pytest.mark.parametrize(("length", "value"), [(0, 0), (20, 0), (25, -0.5), (30, -1), (99, -1)])
def test_overlong_texts_are_punished_softly(length: int, value: float) -> None:
    assert overlong(length, 30, 10) == value


def test_shapes_of_numbers() -> None:
    assert min_max([]) == []
    assert min_max([3, 1, 2]) == [1, 0, 0.5]
    assert min_max([2, 2]) == [0, 0]
    assert between(5, 0, 2) == 2.5
    assert soft_target(3, 2) == 0.5


def test_what_nobody_can_spend_is_refused_with_near_names(make: Any) -> None:
    with pytest.raises(ct.UsageError, match="did you mean 'seconds'"):
        spent(make("a"), "second")
