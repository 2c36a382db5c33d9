"""G-Pass@k against every draw of samples, and F1 over labels against figures worked out by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import ceil
from typing import Any

import pytest
from concertino_bench import Item, Task, Verdict
from concertino_bench.metrics import METRICS, accuracy, g_pass_at, intervals, label_f1
from concertino_bench.metrics.samples import g_pass_at_k, pass_at_k

MakeItem = Callable[..., Item]


@pytest.mark.parametrize("n", [1, 4, 7])
def test_g_pass_at_k_is_the_share_of_draws_with_enough_right_samples(n: int) -> None:
    for right, k in itertools.product(range(n + 1), range(1, n + 1)):
        samples = [True] * right + [False] * (n - right)
        draws = [sum(draw) for draw in itertools.combinations(samples, k)]
        for tau in (0.25, 0.5, 0.75, 1.0):
            enough = sum(count >= max(1, ceil(tau * k)) for count in draws) / len(draws)
            assert g_pass_at_k(n, right, k, tau) == pytest.approx(enough)
        above = [sum(count >= least for count in draws) / len(draws) for least in range(ceil(k / 2) + 1, k + 1)]
        assert g_pass_at_k(n, right, k) == pytest.approx(2 / k * sum(above))
        assert g_pass_at_k(n, right, k, 0.0) == pytest.approx(pass_at_k(n, right, k))


def test_a_share_that_is_a_whole_number_of_samples_is_not_rounded_up() -> None:
    assert g_pass_at_k(10, 3, 10, 0.1 + 0.2) == 1.0


@pytest.mark.parametrize(("n", "c", "k", "tau"), [(2, 3, 1, 0.5), (2, 1, 3, 0.5), (2, 1, 0, None), (2, 1, 1, 1.5)])
def test_impossible_counts_are_refused(n: int, c: int, k: int, tau: float | None) -> None:
    with pytest.raises(ValueError, match="expected"):
        g_pass_at_k(n, c, k, tau)


def test_g_pass_is_a_metric_with_its_parameters_in_its_name(item: MakeItem) -> None:
    items = [item(sample=number, verdict=Verdict.RIGHT if number < 3 else Verdict.WRONG) for number in range(4)]
    assert g_pass_at(2, 1.0).name == "g-pass@2:1"
    assert g_pass_at(2, 1.0)(items).value == pytest.approx(0.5)
    assert g_pass_at(2)(items).value == pytest.approx(0.5)
    assert g_pass_at(5, 1.0)(items).missing == 4
    with pytest.raises(TypeError, match="g_pass_at"):
        METRICS["g-pass@k"](items)


GOLD = ["A", "A", "A", "B", "B", "C"]
SAID = ["A", "A", "B", "B", "C", ""]


@pytest.fixture
def labelled(item: MakeItem) -> tuple[list[Task], list[Item]]:
    tasks = [Task(f"t{number}", "?", (gold,), "choice") for number, gold in enumerate(GOLD)]
    items = [
        item(
            task=f"t{number}",
            verdict=Verdict.RIGHT if gold == said else Verdict.WRONG if said else Verdict.UNPARSABLE,
            found=(said,) if said else (),
        )
        for number, (gold, said) in enumerate(zip(GOLD, SAID, strict=True))
    ]
    return tasks, items


def test_macro_counts_labels_and_micro_counts_tasks(labelled: tuple[list[Task], list[Item]]) -> None:
    tasks, items = labelled
    # A: 2 hits, 1 miss; B: 1 hit, 1 claim, 1 miss; C: 1 claim, 1 miss.
    assert label_f1("macro", tasks)(items).value == pytest.approx((4 / 5 + 2 / 4 + 0) / 3)
    assert label_f1("micro", tasks)(items).value == pytest.approx(2 * 3 / (2 * 3 + 2 + 3))


def test_micro_is_accuracy_where_every_item_has_an_answer(labelled: tuple[list[Task], list[Item]]) -> None:
    tasks, items = labelled
    assert label_f1("micro", tasks)(items[:5]).value == pytest.approx(accuracy(items[:5]).value)


def test_items_of_other_tasks_are_missing_and_an_interval_is_drawn(labelled: tuple[list[Task], list[Item]]) -> None:
    tasks, items = labelled
    seen = label_f1("macro", tasks[:3])(items)
    assert (seen.tasks, seen.missing) == (3, 3)
    assert label_f1("macro", tasks)([]).value is None
    (value,) = intervals(items, [label_f1("macro", tasks)], resamples=200)
    assert value.low is not None
    assert value.high is not None
    assert value.low <= 0.4334 <= value.high + 1e-9
    other: Any = "weighted"
    with pytest.raises(ValueError, match="'macro' or 'micro'"):
        label_f1(other, tasks)
