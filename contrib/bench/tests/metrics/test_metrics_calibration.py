"""Confidence against how often answers are right, by hand and by brute force; and answers that were attempted."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from concertino_bench import Item, Verdict
from concertino_bench.metrics import METRICS, intervals

MakeItem = Callable[..., Item]
ERROR = METRICS["calibration_error"]


def told(item: MakeItem, pairs: Sequence[tuple[float, bool]]) -> list[Item]:
    return [
        item(task=f"t{place:04}", right=right, values={"confidence": confidence})
        for place, (confidence, right) in enumerate(pairs)
    ]


def by_hand(pairs: Sequence[tuple[float, bool]], size: int = 100) -> float:
    """The root of the mean square gap over bins of a hundred; the last one takes the rest."""
    pairs = sorted(pairs)
    count = max(1, len(pairs) // size)
    ends = [*(size * place for place in range(count)), len(pairs)]
    total = 0.0
    for start, end in pairwise(ends):
        part = pairs[start:end]
        gap = sum(confidence for confidence, _ in part) / len(part) - sum(right for _, right in part) / len(part)
        total += len(part) / len(pairs) * gap**2
    return math.sqrt(total)


def test_the_error_is_0_where_the_share_of_right_answers_is_the_confidence_and_1_where_all_are_sure_and_wrong(
    item: MakeItem,
) -> None:
    assert ERROR(told(item, [(0.25, place % 4 == 0) for place in range(400)])).value == pytest.approx(0, abs=1e-9)
    assert ERROR(told(item, [(1.0, False)] * 250)).value == 1.0
    assert ERROR(told(item, [(0.9, True), (0.3, False)])).value == pytest.approx(0.1)


@pytest.mark.parametrize("count", [1, 99, 100, 199, 200, 537])
def test_bins_hold_a_hundred_answers_by_confidence_and_the_last_one_the_rest(item: MakeItem, count: int) -> None:
    draw = random.Random(count)
    # No two confidences are equal, so the bins have one order.
    pairs = [(place / 1000, draw.random() < 0.4) for place in draw.sample(range(1000), count)]
    items = told(item, pairs)
    value = ERROR(items)
    assert value.value == pytest.approx(by_hand(pairs))
    assert value.tasks == count
    draw.shuffle(items)
    assert ERROR(items) == value


def test_answers_without_a_confidence_are_missing_and_the_interval_holds_the_value(item: MakeItem) -> None:
    draw = random.Random(5)
    items = told(item, [(confidence := draw.random(), draw.random() < confidence) for _ in range(300)])
    blank = [item(task=f"u{place}", verdict=Verdict.UNPARSABLE) for place in range(7)]
    (found,) = intervals([*items, *blank], [ERROR], resamples=200, level=0.95, seed=1)
    assert (found.value, found.tasks, found.missing) == (ERROR(items).value, 300, 7)
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.high <= 1
    assert ERROR(blank).value is None


def test_silence_is_no_attempt_and_neither_guessing_nor_silence_raises_the_f(item: MakeItem) -> None:
    right = [item(task=f"r{place}", right=True, values={"attempted": 1.0}) for place in range(3)]
    wrong = [item(task=f"w{place}", right=False, values={"attempted": 1.0}) for place in range(1)]
    silent = [item(task=f"s{place}", right=False, values={"attempted": 0.0}) for place in range(3)]
    none = [item(task="n", verdict=Verdict.UNPARSABLE)]
    items = [*right, *wrong, *silent, *none]
    given, f1 = METRICS["accuracy_attempted"](items).value, METRICS["attempts_f1"](items).value
    assert given == 3 / 4
    assert f1 == pytest.approx(2 / (1 / (3 / 4) + 1 / (3 / 8)))
    assert METRICS["accuracy_attempted"](silent).value is None
    assert METRICS["attempts_f1"](silent).value == 0.0
