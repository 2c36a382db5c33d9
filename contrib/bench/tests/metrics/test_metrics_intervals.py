"""Intervals and paired comparisons."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from concertino import Usage
from concertino_bench import Verdict
from concertino_bench.metrics import compare, intervals
from concertino_bench.metrics.correctness import accuracy, value_mean
from concertino_bench.metrics.metric import Metric, by_task
from concertino_bench.metrics.pairs import holm, mcnemar_p
from concertino_bench.metrics.shares import tool_entropy
from concertino_bench.metrics.spending import cost_of_pass, usd
from concertino_bench.metrics.times import seconds
from concertino_bench.tasks import Item, Key, MemberUse
from hypothesis import given, settings
from hypothesis import strategies as st

MakeItem = Callable[..., Item]
ROWS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 2), st.booleans(), st.floats(0, 9)),
    min_size=1,
    unique_by=lambda row: row[:2],
)


def made(rows: list[tuple[int, int, bool, float]], system: str = "a") -> list[Item]:
    return [
        Item(
            Key(system, f"t{t}", s),
            "number",
            Verdict.RIGHT if right else Verdict.WRONG,
            "r",
            seconds=usd,
            usage=Usage(1, usd=usd),
        )
        for t, s, right, usd in rows
    ]


@settings(max_examples=40, deadline=None)
@given(ROWS, st.randoms())
def test_an_interval_holds_the_value_and_does_not_depend_on_the_order(rows: list, chance: object) -> None:
    items = made(rows)
    metrics = [accuracy, usd, cost_of_pass, tool_entropy]
    found = intervals(items, metrics, resamples=50)
    for value in found:
        if value.low is not None and value.high is not None and value.value is not None:
            assert value.low <= value.value <= value.high
    chance.shuffle(items)  # type: ignore[attr-defined]
    assert intervals(items, metrics, resamples=50) == found


def test_an_interval_of_a_proportion_is_about_that_of_the_normal_law(item: MakeItem) -> None:
    items = [item(task=f"t{i}", right=i % 10 < 7) for i in range(400)]
    (value,) = intervals(items, [accuracy])
    assert value.low is not None
    assert value.high is not None
    half = 1.96 * math.sqrt(0.7 * 0.3 / 400)
    assert (value.low, value.high) == (pytest.approx(0.7 - half, abs=0.008), pytest.approx(0.7 + half, abs=0.008))


def test_samples_of_a_task_are_drawn_together(item: MakeItem) -> None:
    """Eight equal samples say no more than one."""
    once = [item(task=f"t{i}", right=i % 2 == 0) for i in range(50)]
    often = [item(task=f"t{i}", sample=s, right=i % 2 == 0) for i in range(50) for s in range(8)]
    (narrow,), (wide,) = intervals(often, [accuracy]), intervals(once, [accuracy])
    assert (narrow.low, narrow.high) == (wide.low, wide.high)


def test_a_wider_level_gives_a_wider_interval_and_a_seed_the_same(item: MakeItem) -> None:
    items = [item(task=f"t{i}", right=i % 3 == 0) for i in range(60)]
    (small,), (large,) = intervals(items, [accuracy], level=0.5), intervals(items, [accuracy], level=0.99)
    assert large.low < small.low < small.high < large.high  # type: ignore[operator]
    assert intervals(items, [accuracy]) == intervals(items, [accuracy])
    assert intervals(items, [accuracy], seed=1) != intervals(items, [accuracy], seed=2)


def test_an_unknown_value_and_a_single_task_have_no_interval(item: MakeItem) -> None:
    unpriced = [item(task=f"t{i}", usage=Usage(unpriced=1)) for i in range(5)]
    (value,) = intervals(unpriced, [usd])
    assert (value.value, value.low, value.high, value.unknown) == (None, None, None, 5)
    (value,) = intervals([item()], [accuracy])
    assert (value.value, value.low) == (1.0, None)
    assert intervals([], [accuracy])[0].value is None


@pytest.mark.parametrize(("level", "resamples"), [(0.0, 10), (1.0, 10), (95, 10), (0.9, 0)])
def test_an_impossible_level_or_number_of_draws_is_refused(level: float, resamples: int, item: MakeItem) -> None:
    with pytest.raises(ValueError, match="expected"):
        intervals([item()], [accuracy], level=level, resamples=resamples)


# -- pairs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("b", "c", "p"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (5, 0, 0.0625),
        (0, 10, 0.001953125),
        (3, 9, 0.14599609375),
        (59, 6, 4.964650327128616e-12),
        (40, 61, 0.046044066929342785),
    ],
)
def test_mcnemars_p_is_that_of_the_binomial_test(b: int, c: int, p: float) -> None:
    """The values are those of scipy.stats.binomtest(b, b + c)."""
    assert mcnemar_p(b, c) == pytest.approx(p, rel=1e-12)
    assert mcnemar_p(c, b) == mcnemar_p(b, c)


def test_holm_corrects_and_keeps_the_order() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_only_common_keys_are_compared_and_the_others_are_counted(item: MakeItem) -> None:
    items = [item("a", f"t{i}", right=i < 6) for i in range(10)] + [
        item("b", f"t{i}", right=i < 9) for i in range(4, 12)
    ]
    found = compare(items, "a", "b")
    assert (found.items, found.tasks, found.dropped_a, found.dropped_b) == (6, 6, 4, 2)
    assert (found.mcnemar.only_a, found.mcnemar.only_b, found.mcnemar.both, found.mcnemar.neither) == (0, 3, 2, 1)
    gap = found["accuracy"]
    assert (gap.a, gap.b, gap.difference) == (pytest.approx(1 / 3), pytest.approx(5 / 6), pytest.approx(0.5))
    assert gap.low <= 0.5 <= gap.high  # type: ignore[operator]


def test_a_paired_interval_is_narrower_than_two_apart(item: MakeItem) -> None:
    """Hard tasks are hard for both, which says nothing about their difference."""
    items = [item("a", f"t{i}", right=i % 2 == 0) for i in range(200)]
    items += [item("b", f"t{i}", right=i % 2 == 0 or i % 20 == 1) for i in range(200)]
    gap = compare(items, "a", "b")["accuracy"]
    a, b = (intervals([i for i in items if i.key.system == name], [accuracy])[0] for name in "ab")
    paired, apart = gap.high - gap.low, (b.high - b.low) + (a.high - a.low)  # type: ignore[operator]
    assert 0 < paired < apart / 2
    assert gap.low > 0  # type: ignore[operator]


def test_an_equal_system_differs_by_nothing(item: MakeItem) -> None:
    items = [item(name, f"t{i}", right=i % 2 == 0, usage=Usage(usd=1.0)) for name in "ab" for i in range(10)]
    found = compare(items, "a", "b", [accuracy, usd])
    assert [(d.difference, d.low, d.high, d.ratio) for d in found.differences] == [(0.0, 0.0, 0.0, 1.0)] * 2
    assert found.mcnemar.p == 1.0


def test_mcnemar_takes_one_sample_per_task(item: MakeItem) -> None:
    items = [item(name, "t", sample, right=name == "a") for name in "ab" for sample in range(8)]
    assert compare(items, "a", "b").mcnemar.only_a == 1


def test_what_cannot_be_compared_says_what_is_there(item: MakeItem) -> None:
    with pytest.raises(ValueError, match="'b' has no items; there are: a"):
        compare([item("a")], "a", "b")
    with pytest.raises(ValueError, match="share no task"):
        compare([item("a", "t1"), item("b", "t2")], "a", "b")
    with pytest.raises(KeyError, match="was not compared"):
        compare([item("a"), item("b")], "a", "b")["usd"]


def test_an_unknown_price_has_no_difference(item: MakeItem) -> None:
    items = [item("a", f"t{i}", usage=Usage(usd=1.0)) for i in range(3)]
    items += [item("b", f"t{i}", usage=Usage(unpriced=1)) for i in range(3)]
    gap = compare(items, "a", "b", [usd])["usd"]
    assert (gap.a, gap.b, gap.difference, gap.low, gap.ratio) == (1.0, None, None, None, None)


def test_what_one_system_did_not_answer_is_compared_as_nothing(item: MakeItem) -> None:
    items = [item("a", f"t{i}", right=i < 5, values={"f1": 1.0} if i < 5 else {}) for i in range(10)]
    items += [item("b", f"t{i}", values={"f1": 0.5}) for i in range(10)]
    gap = compare(items, "a", "b", [value_mean("f1")])["f1"]
    assert (gap.a, gap.b, gap.tasks) == (0.5, 0.5, 10)
    silent = [item("c", f"t{i}", right=False) for i in range(10)]
    assert compare([*items, *silent], "c", "b", [value_mean("f1")])["f1"].a == 0.0


@pytest.mark.parametrize("metric", [seconds, tool_entropy], ids=lambda metric: metric.name)
def test_a_run_that_did_not_begin_is_left_out_with_its_counterpart(metric: Metric, item: MakeItem) -> None:
    def used(count: int) -> dict[str, MemberUse]:
        return {name: MemberUse("tool", n, {"OK": n}, Usage(n)) for name, n in (("x", 1), ("y", count))}

    items = [item("a", f"t{i}", seconds=2.0, members=used(1)) for i in range(4)]
    items += [item("a", f"t{i}", right=False, error="PoolError: no") for i in range(4, 8)]
    items += [item("b", f"t{i}", seconds=2.0 if i < 4 else 9.0, members=used(1 if i < 4 else 9)) for i in range(8)]
    gap = compare(items, "a", "b", [metric])[metric.name]
    assert (gap.difference, gap.low, gap.high, gap.tasks) == (0.0, 0.0, 0.0, 4)
    assert compare(items, "a", "b")["accuracy"].tasks == 8


def test_of_several_samples_only_the_broken_one_and_its_counterpart_are_left_out(item: MakeItem) -> None:
    items = [item("a", "t", 0, seconds=2.0), item("a", "t", 1, right=False, error="PoolError: no")]
    items += [item("b", "t", 0, seconds=3.0), item("b", "t", 1, seconds=99.0)]
    gap = compare(items, "a", "b", [seconds])["seconds"]
    assert (gap.a, gap.b, gap.tasks) == (2.0, 3.0, 1)
    nothing = [item(name, "t", right=False, error="PoolError: no") for name in "ab"]
    assert compare(nothing, "a", "b", [seconds, tool_entropy])["seconds"].a is None


def test_draws_have_the_right_spread(item: MakeItem) -> None:
    from concertino_bench.metrics.bootstrap import draws

    items = [item(task=f"t{i:03}", right=i < 50) for i in range(100)]
    (sums,) = draws([accuracy.columns(list(by_task(items).values()))], 2000, 0)
    values = accuracy.many(sums)
    assert values.shape == (2000,)
    assert float(np.std(values)) == pytest.approx(0.05, rel=0.08)
