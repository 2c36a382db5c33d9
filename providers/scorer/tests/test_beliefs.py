"""Evidence moves a belief as Bayes' rule says."""

from __future__ import annotations

import concertino as ct
import numpy as np
import pytest
from concertino_scorer.beliefs import Belief


@pytest.mark.parametrize(("right", "wrong"), [(0, 0), (0, 3), (2, 1), (30, 2)])
def test_the_expected_share_is_that_of_the_exact_posterior(right: int, wrong: int) -> None:
    shares = np.linspace(0.0005, 0.9995, 2000)
    prior = 0.9 * 9 * shares**8 + 0.1  # a beta distribution of 9 and 1, and the uniform one
    weight = prior * shares**right * (1 - shares) ** wrong
    belief = Belief(0.9, 10.0, 0.9).after(right, wrong)
    assert belief.expected == pytest.approx((weight * shares).sum() / weight.sum(), abs=2e-3)


def test_three_wrong_answers_outweigh_a_card_that_praises() -> None:
    belief = Belief(0.95, 60.0, 0.95)
    assert belief.expected > 0.9
    assert belief.after(0, 3).expected < 0.5
    assert belief.after(0, 3).trusted < 0.1
    assert belief.after(10, 0).trusted > 0.95


def test_answers_add_up() -> None:
    belief = Belief(0.6, 5.0, 0.8)
    assert belief.after(1, 0).after(0, 2) == belief.after(1, 2)
    with pytest.raises(ct.UsageError, match="right=-1"):
        belief.after(-1, 0)
