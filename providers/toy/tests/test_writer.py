"""The writer's answers are worked out while writing; the solver must find the same from the text."""

from __future__ import annotations

from random import Random

import pytest
from concertino_toy.problems.grammar import read
from concertino_toy.problems.solver import solve
from concertino_toy.problems.writer import make_question


@pytest.mark.parametrize("block", range(6))
def test_the_solver_agrees_with_the_writer(block: int) -> None:
    for seed in range(block * 50, block * 50 + 50):
        rng = Random(seed)
        sizes = {"depth": rng.randint(1, 12), "breadth": rng.randint(1, 8)}
        kinds = {"lure": seed % 2 == 0, "chained": seed % 3 == 0, "needle": seed % 5 == 0}
        text, answers = make_question(rng, rng.randint(1, 5), **sizes, **kinds)
        assert solve(read(text)).answers == answers, f"seed {seed}"


def test_the_same_seed_writes_the_same_text() -> None:
    assert make_question(Random(7), lure=True) == make_question(Random(7), lure=True)
    assert make_question(Random(7)) != make_question(Random(8))


def test_depth_is_the_number_of_sentences_on_the_chain() -> None:
    shallow, deep = (make_question(Random(1), 1, depth=depth, breadth=1)[0] for depth in (1, 12))
    assert deep.count("equals") - shallow.count("equals") >= 10


def test_a_lure_claims_something_false_about_the_first_problem() -> None:
    for seed in range(30):
        text, _ = make_question(Random(seed), 2, lure=True)
        first, second = read(text).problems
        assert len(first.lures) == 1
        assert not second.lures
        true_values = {step.about: step.value for step in solve(read(text)).steps}
        assert first.lures[0].about is not None
        assert first.lures[0].value != true_values.get(first.lures[0].about)


@pytest.mark.parametrize("sizes", [{"parts": 0}, {"parts": 13}, {"depth": 0}, {"breadth": 9}])
def test_a_size_out_of_range_is_refused(sizes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="expected 1 to"):
        make_question(Random(0), **sizes)
