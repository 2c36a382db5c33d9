"""Rewards as data: files, presets, and what is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino import UsageError
from concertino_train.episodes import Episode
from concertino_train.rewards import PRESETS, TERMS, Reward, Scored, Term, Weighted, paramanager, shared
from concertino_train.rewards.toolorchestra import PreferenceReward

FRUGAL = """
name: frugal
preset: paramanager
terms:
  diversity: {weight: 0}
  efficiency: {cost_target: 4}
  money: {term: shared/spending, of: usd, limit: 0.05, weight: 0.5}
"""


def test_a_yaml_file_changes_and_adds_terms_of_a_preset(tmp_path: Path, make: Any) -> None:
    (tmp_path / "r.yaml").write_text(FRUGAL)
    reward = Reward.load(tmp_path / "r.yaml")
    assert reward.terms["efficiency"] == Weighted(paramanager.Efficiency(cost_target=4))
    assert reward.terms["money"] == Weighted(shared.Spending("usd", 0.05), 0.5)
    (scored,) = reward.score([make("a", usd=0.05)])
    assert set(scored.components) == {"task", "format", "efficiency", "money"}
    assert scored.total == 1 + 0 + 1 - 0.5


def test_json_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"terms": {"right": {"term": "shared/correct"}}}))
    assert Reward.load(tmp_path / "r.json").terms == {"right": Weighted(shared.Correct())}


@pytest.mark.parametrize("name", PRESETS)
def test_a_reward_written_down_is_the_same_reward(name: str) -> None:
    data = json.loads(json.dumps(PRESETS[name].to_json()))
    assert Reward.from_json(data) == PRESETS[name]


@pytest.mark.parametrize("name", TERMS)
def test_every_parameter_of_a_term_is_explained(name: str) -> None:
    from dataclasses import fields

    term = TERMS[name]
    assert {field.name for field in fields(term)} == set(term.parameters)
    assert term.formula
    assert term.source
    assert term.meaning


def test_a_term_can_count_in_right_episodes_alone(make: Any) -> None:
    terms = {"right": {"term": "shared/correct"}, "ok": {"term": "shared/ok-calls", "weight": 0.5, "when": "right"}}
    reward = Reward.from_json({"terms": terms})
    assert [scored.total for scored in reward.score([make("a"), make("b", False)])] == [1.5, 0.0]
    assert Reward.from_json(reward.to_json()) == reward
    with pytest.raises(UsageError, match="when='wrong'; expected 'always' or 'right'"):
        Reward.from_json({"terms": {"ok": {"term": "shared/ok-calls", "when": "wrong"}}})


def test_with_success_first_no_wrong_episode_earns_more_than_a_right_one() -> None:
    best = PRESETS["paramanager-success-first"]
    always = [each for each in best.terms.values() if each.when == "always" and each.term.name != "paramanager/task"]
    assert sum(each.weight * each.term.bounds[1] for each in always) < best.terms["task"].weight


def test_a_weight_of_zero_leaves_a_term_out_even_if_it_could_not_be_computed(make: Any) -> None:
    terms = {"right": Weighted(shared.Correct()), "money": Weighted(shared.Spending("usd"), 0.0)}
    assert Reward("r", terms).score([make("a", totals={"unpriced": 1})]) == [Scored(1.0, {"right": 1.0})]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "a reward is a table"),
        ({"term": {}}, "unknown key 'term'; did you mean 'terms'"),
        ({"preset": "paramanger"}, "did you mean 'paramanager'"),
        ({"terms": []}, "expected a table of components"),
        ({"terms": {"a": 1}}, r"terms\.a: got 1; expected a table"),
        ({"terms": {"a": {"weight": 1}}}, "`term` is missing"),
        ({"preset": "paramanager", "terms": {"tasks": {"weight": 2}}}, "did you mean 'task'"),
        ({"terms": {"a": {"term": "shared/corect"}}}, r"terms\.a: there is no term 'shared/corect'; did you mean"),
        ({"terms": {"a": {"term": "paramanager/cost", "cost_taget": 4}}}, "did you mean 'cost_target'"),
        ({"terms": {"a": {"term": "paramanager/cost", "cost_target": "4"}}}, r"terms\.a: cost_target='4'.*C_tar"),
        ({"terms": {"a": {"term": "paramanager/cost", "cost_target": 0}}}, r"terms\.a: .*cost_target=0.*above 0"),
        ({"terms": {"a": {"term": "paramanager/cost", "cost_target": math.inf}}}, "above 0"),
        ({"terms": {"a": {"term": "paramanager/cost", "cost_target": math.nan}}}, "above 0"),
        ({"terms": {"a": {"term": "shared/spending", "of": "dollars"}}}, "of='dollars'"),
        ({"terms": {"a": {"term": "shared/overlong", "longest": 5, "margin": 6}}}, "more than longest"),
        ({"terms": {"a": {"term": "shared/correct", "weight": -1}}}, "weight=-1"),
        ({"terms": {"a": {"term": "shared/correct", "weight": "1"}}}, "weight='1'"),
        ({"terms": {"a": {"term": "shared/correct", "weight": 0}}}, "always be 0"),
        ({"terms": {}}, "always be 0"),
        ({"terms": {"a": {"term": "toolorchestra/preference", "variant": "as_relesed"}}}, "variant='as_relesed'"),
        ({"terms": {"a": {"term": "toolorchestra/preference", "preference": {"cost": 1}}}}, "expected members"),
        ({"terms": {"a": {"term": "toolorchestra/preference", "preference": {"usd": 2}}}}, "from 0 to 1"),
        ({"terms": {"a": {"term": "at-grpo/lambda", "share": 1.5}}}, "share=1.5"),
    ],
)
def test_what_cannot_be_is_refused_with_the_place_and_the_next_step(data: Any, message: str) -> None:
    with pytest.raises(ct.UsageError, match=message):
        Reward.from_json(data)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("a: [")
    with pytest.raises(ct.UsageError, match=r"r\.yaml: cannot be read"):
        Reward.load(tmp_path / "r.yaml")
    with pytest.raises(ct.UsageError, match=r"none\.yaml: cannot be read"):
        Reward.load(tmp_path / "none.yaml")


def test_a_preference_in_a_file_is_a_preference() -> None:
    entry = {"term": "toolorchestra/preference", "preference": {"members": {"search/*": 1}, "usd": 0.5}}
    term = Reward.from_json({"terms": {"p": entry}}).terms["p"].term
    assert isinstance(term, PreferenceReward)
    assert term.preference is not None
    assert term.preference.members == {"search/*": 1}
    assert term.bounds == (0, 1.5)


def test_episodes_of_several_groups_are_not_scored_together(make: Any) -> None:
    with pytest.raises(ct.UsageError, match="2 groups"):
        PRESETS["gap"].score([make("a"), make("b", group="other")])


def test_an_empty_group_has_no_scores() -> None:
    assert PRESETS["paramanager"].score([]) == []


@dataclass(frozen=True)
class Broken(Term):
    """A term that breaks its promise."""

    value: float = math.nan

    name = "test/broken"
    formula = "?"
    source = "?"
    meaning = "?"
    parameters = {"value": "what it gives"}  # noqa: RUF012

    @property
    def bounds(self) -> tuple[float, float]:
        return 0, 1

    def values(self, group: Sequence[Episode]) -> list[float]:
        return [self.value] * (len(group) if self.value != 7 else 99)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 7])
def test_a_term_that_gives_nonsense_is_refused(value: float, make: Any) -> None:
    with pytest.raises(ct.UsageError, match=r"test/broken"):
        Reward("r", {"b": Weighted(Broken(value))}).score([make("a")])


def test_a_term_of_somebody_else_is_used_by_name(make: Any) -> None:
    data = {"terms": {"b": {"term": "test/broken", "value": 0.5}}}
    assert Reward.from_json(data, terms={**TERMS, "test/broken": Broken}).score([make("a")])[0].total == 0.5


def test_what_a_reward_charges_follows_from_its_parameters() -> None:
    assert Reward("r", {"a": Weighted(shared.Spending("usd"))}).charges == {"usd"}
    assert Reward("r", {"a": Weighted(shared.Overlong(of="policy_tokens"))}).charges == {"policy_tokens"}
    assert PRESETS["gap"].charges == frozenset()
    assert PRESETS["paramanager"].charges >= {"units", "sequence_tokens"}
