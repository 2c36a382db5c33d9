"""Typed answers of real schemas: a model that errs is right at its second try, and a wrong value is never given out."""

from __future__ import annotations

from collections import Counter
from itertools import cycle
from pathlib import Path

import pytest

from . import answer_trials
from .answer_trials import FAULTS, SHARES, STRATEGIES, Subject

pytestmark = pytest.mark.slow
ENOUGH = 0.95


@pytest.fixture(scope="module")
def subjects(shared_data: Path) -> list[Subject]:
    return answer_trials.subjects(shared_data)


def test_three_hundred_schemas_are_drawn_from_all_sources(subjects: list[Subject]) -> None:
    assert Counter(subject.source for subject in subjects) == SHARES
    assert sum(SHARES.values()) == 300
    assert any(not subject.held for subject in subjects)


async def test_a_corrector_that_sees_schema_reply_and_message_is_right_at_the_second_try(
    subjects: list[Subject],
) -> None:
    strategies = cycle(STRATEGIES)
    trials = [
        await answer_trials.trial(subject, kind, fault, next(strategies))
        for subject, kind, fault in answer_trials.one_each(subjects)
    ]
    assert set(Counter(trial.kind for trial in trials)) == set(FAULTS)
    failed = [(trial.kind, trial.strategy, trial.why, trial.told) for trial in trials if trial.tries not in (1, 2)]
    assert len(failed) <= (1 - ENOUGH) * len(trials), failed
    for name in STRATEGIES:
        assert sum(strategy == name for _, strategy, *_ in failed) <= 0.1 * len(trials) / len(STRATEGIES), failed
    assert not [trial for trial in trials if trial.unvalidated]
    # A server is given what it can hold, each time that it is asked for JSON alone, and nothing else.
    again = [trial for trial in trials if trial.told]
    assert all((trial.held > 0) == trial.subject.held for trial in again)
    assert {trial.strategy for trial in again if trial.held} == set(STRATEGIES)


async def test_without_the_message_hardly_any_fault_of_a_value_is_corrected(subjects: list[Subject]) -> None:
    of_text = ("truncated", "prose", "wrong nesting")
    drawn = [each for each in answer_trials.one_each(subjects) if each[1] not in of_text][:60]
    assert not [each for each in drawn if (await answer_trials.trial(*each, "parallel-rounds", deaf=True)).tries]


async def test_a_model_that_never_gets_it_right_gives_no_output(subjects: list[Subject]) -> None:
    strategies = cycle(STRATEGIES)
    for seed, subject in enumerate(subjects):
        assert await answer_trials.stubborn(subject, next(strategies), seed) == "", subject.schema
