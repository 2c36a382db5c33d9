"""ParaManager's formulas, number by number."""

from __future__ import annotations

from typing import Any

import concertino as ct
import pytest
from concertino.testing import ScriptedModel, fake_tool
from concertino_bench import Grade, Verdict
from concertino_train.episodes import Called, Episode, EpisodeRound
from concertino_train.rewards import PRESETS
from concertino_train.rewards import paramanager as pm


def rounds(*calls: tuple[str, ...], end: bool = True) -> tuple[EpisodeRound, ...]:
    made = [EpisodeRound(calls=tuple(Called(name) for name in names)) for names in calls]
    return (*made, EpisodeRound("final"), EpisodeRound("answer")) if end else tuple(made)


def test_equations_11_to_13(make: Any) -> None:
    assert pm.TaskReward().values([make("a"), make("b", False)]) == [1, 0]
    assert pm.format_reward([True, True, False, True]) == 0.75
    assert pm.format_reward([]) == 0
    two, three = (make("a", rounds=rounds(names, end=False)) for names in (("x", "y"), ("x", "y", "z")))
    assert pm.Diversity().values([two, three]) == [0.5, 1]


@pytest.mark.parametrize(
    ("calls", "value"), [([1, 1, 1, 2], 1), ([1, 1, 1, 1], 0), ([2, 1], 1), ([], 0), ([5, 0, 0, 0], 1)]
)
def test_equation_14_compares_the_mean_with_the_threshold(calls: list[int], value: int) -> None:
    assert pm.parallelism_reward(calls) == value


def test_equation_15_counts_different_tools() -> None:
    assert pm.tool_reward({"a", "b", "c"}) == 1
    assert pm.tool_reward(["a", "b", "b", "b"]) == 0


@pytest.mark.parametrize(("spent", "value"), [(0, 1), (8, 1), (10, 0.75), (12, 0.5), (16, 0), (17, 0)])
def test_equations_16_and_17_fall_from_the_target_to_twice_the_target(spent: int, value: float, make: Any) -> None:
    episode = make("a", units=spent, totals={"sequence_tokens": spent * 1536})
    assert pm.CostReward(final_units=0).values([episode]) == pm.Length().values([episode]) == [value]


def test_equation_18(make: Any) -> None:
    episode = make("a", units=12, totals={"sequence_tokens": 1})
    assert pm.Efficiency(final_units=0).values([episode]) == [0.75]


def test_the_thresholds_are_those_of_the_paper() -> None:
    assert (pm.THETA_PAR, pm.THETA_TOOL, pm.LENGTH_TARGET, pm.COST_TARGET) == (1.25, 3, 12_288, 8)


def test_equation_10_adds_four_terms(make: Any) -> None:
    best = make("a", units=7, rounds=rounds(("search", "code"), ("solve",)), totals={"sequence_tokens": 12_288})
    (scored,) = PRESETS["paramanager"].score([best])
    assert scored.components == {"task": 1, "format": 1, "diversity": 1, "efficiency": 1}
    assert scored.total == 4
    worst = make("b", False, units=99, rounds=(EpisodeRound("unread"),), totals={"sequence_tokens": 10**6})
    assert PRESETS["paramanager"].score([worst])[0].total == 0


def test_the_round_that_ends_the_run_makes_one_call_and_costs_one_unit(make: Any) -> None:
    episode = make("a", units=8, rounds=rounds(("search", "code")))
    assert pm.calls_per_round(episode) == [2, 1]
    assert pm.calls_per_round(episode, "leave_out") == [2]
    assert pm.cost_units(episode) == 9
    assert pm.CostReward(final_units=0).values([episode]) == [1]
    assert pm.CostReward().values([episode]) == [pytest.approx(7 / 8)]


def test_an_unread_text_is_a_round_without_calls(make: Any) -> None:
    episode = make("a", rounds=(EpisodeRound("unread"), *rounds(("search", "code", "solve"))))
    assert pm.calls_per_round(episode) == [0, 3, 1]
    assert pm.Format().values([episode]) == [pytest.approx(2 / 3)]


def test_names_that_nobody_has_are_no_tools(make: Any) -> None:
    calls = (Called("search"), Called("serach", "unknown", "PARSE_ERR"), Called("code", status="TIMEOUT"))
    assert pm.tools_of(make("a", rounds=(EpisodeRound(calls=calls),))) == {"search", "code"}


def test_a_real_run_is_scored() -> None:
    pool = ct.Pool.of(*(fake_tool(name, returns=name, cost=ct.Cost(units=1)) for name in ("search", "code", "solve")))
    calls = [[("search", {}), ("code", {})], [("solve", {}), ("code", {})], [("final_answer", {})]]
    with ScriptedModel(*calls, "<answer>5</answer>") as model:
        run = ct.Orchestrator(model, duplicates="run").run_sync("?", pool=pool)
    episode = Episode.of_run(run, Grade(Verdict.RIGHT, "yes"), group="q")
    assert PRESETS["paramanager"].score([episode])[0].components == {
        "task": 1.0,
        "format": 1.0,
        "diversity": 1.0,
        "efficiency": 1.0,
    }
    assert pm.cost_units(episode) == 5
