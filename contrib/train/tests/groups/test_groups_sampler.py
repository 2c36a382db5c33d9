"""Dynamic sampling goes on until there is enough, stops at its limits, and can be taken up again."""

from __future__ import annotations

import json
from typing import Any

import concertino as ct
import pytest
from concertino_train.groups import DynamicSampler, SamplerSettings
from concertino_train.groups.sampler import Sampled
from hypothesis import given, settings
from hypothesis import strategies as st


def mixed(name: str, step: int = 0) -> Sampled:
    return Sampled(name, (0.0, 1.0), (0.0, 1.0), step=step)


def plain(name: str, correct: float = 1.0, step: int = 0, rewards: tuple[float, ...] = (1.0, 1.0)) -> Sampled:
    return Sampled(name, rewards, (correct, correct), step=step)


def sampler(groups: int = 2, **options: Any) -> DynamicSampler:
    made = DynamicSampler(SamplerSettings(**{"enabled": True, **options}), groups)
    made.begin(0)
    return made


def test_groups_without_a_difference_are_not_kept_and_more_are_wanted() -> None:
    one = sampler()
    assert one.wanted() == 2
    assert one.offer([mixed("a"), plain("b"), plain("c", 0)]) == 1
    assert one.wanted() == 1
    one.offer([mixed("d")])
    assert one.wanted() == 0
    assert [group.key for group in one.take()] == ["a", "d"]
    assert one.figures() == {
        "rounds": 2,
        "sampled": 4,
        "all_right": 1,
        "all_wrong": 1,
        "all_equal": 2,
        "stale": 0,
        "buffered": 0,
    }


def test_what_differs_may_be_the_reward() -> None:
    by_reward = plain("a", rewards=(0.5, 0.9))
    assert sampler().offer([by_reward]) == 0
    assert sampler(by="reward").offer([by_reward]) == 1


def test_more_is_asked_for_than_is_missing() -> None:
    assert sampler(groups=4, oversample=1.5).wanted() == 6
    assert sampler(groups=4, oversample=1.5, most_groups=5).wanted() == 5


def test_it_stops_at_its_limits_and_says_what_is_missing() -> None:
    one = sampler(most_rounds=2)
    one.offer([plain("a")])
    assert one.wanted() == 2
    one.offer([mixed("b")])
    assert one.wanted() == 0
    assert [group.key for group in one.take()] == ["b"]
    other = sampler(most_groups=3)
    other.offer([plain("a"), plain("b")])
    assert other.wanted() == 1
    other.offer([plain("c")])
    assert other.wanted() == 0


def test_what_is_left_over_waits_as_long_as_it_may() -> None:
    one = sampler(max_age=1)
    one.offer([mixed("a"), mixed("b"), mixed("c")])
    one.take()
    one.begin(1)
    assert one.wanted() == 1
    one.begin(2)
    assert (one.wanted(), one.figures()["stale"]) == (2, 1)


def test_on_policy_nothing_waits() -> None:
    one = sampler()
    one.offer([mixed("a"), mixed("b"), mixed("c")])
    one.take()
    one.begin(1)
    assert one.buffer == []


def test_switched_off_it_takes_everything_in_one_round() -> None:
    one = sampler(enabled=False, oversample=3)
    assert one.wanted() == 2
    assert one.offer([plain("a"), plain("b")]) == 2
    assert one.wanted() == 0
    assert len(one.take()) == 2


def test_a_group_of_another_step_or_without_grades_is_refused() -> None:
    with pytest.raises(ct.UsageError, match="sampled in step 3, and this is step 0"):
        sampler().offer([mixed("a", step=3)])
    with pytest.raises(ct.UsageError, match="2 rewards and 0 grades"):
        sampler().offer([Sampled("a", (0.0, 1.0))])


@settings(max_examples=60, deadline=None)
@given(
    script=st.lists(st.lists(st.booleans(), max_size=4), max_size=8),
    cut=st.integers(0, 8),
    age=st.integers(0, 2),
    rounds=st.integers(1, 3),
)
def test_a_sampler_that_was_written_down_goes_on_as_if_nothing_had_been(
    script: list[list[bool]], cut: int, age: int, rounds: int
) -> None:
    setting = SamplerSettings(enabled=True, max_age=age, most_rounds=rounds, oversample=1.5)

    def play(interrupted: bool) -> list[Any]:
        one, told = DynamicSampler(setting, 2), []
        for step, offers in enumerate(script):
            one.begin(step)
            for number, useful in enumerate(offers):
                if interrupted and step == cut:
                    dumped = json.loads(json.dumps(one.dump()))
                    one = DynamicSampler(setting, 2)
                    one.restore(dumped)
                name = f"{step}.{number}"
                told.append(one.wanted())
                one.offer([mixed(name, step) if useful else plain(name, step=step)])
            told += [one.take(), one.figures()]
        return told

    assert play(True) == play(False)


def test_a_payload_survives() -> None:
    one = sampler()
    one.offer([Sampled("a", (0.0, 1.0), (0.0, 1.0), {"rows": [[1, 2], [3]]})])
    again = sampler()
    again.restore(json.loads(json.dumps(one.dump())))
    assert again.take()[0].payload == {"rows": [[1, 2], [3]]}


@pytest.mark.parametrize("wrong", [{"by": "luck"}, {"oversample": 0.5}, {"most_rounds": 0}, {"max_age": -1}])
def test_a_setting_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ct.UsageError, match=next(iter(wrong))):
        SamplerSettings(**wrong)
