"""The frontier of two metrics."""

from __future__ import annotations

from concertino import Usage
from concertino_bench import Verdict
from concertino_bench.reports import pareto
from concertino_bench.tasks import Item, Key
from hypothesis import given, settings
from hypothesis import strategies as st


def items_of(system: str, right: int, usd: float, unpriced: bool = False) -> list[Item]:
    return [
        Item(
            Key(system, f"t{i}"),
            "number",
            Verdict.RIGHT if i < right else Verdict.WRONG,
            "r",
            usage=Usage(usd=usd, unpriced=int(unpriced)),
            seconds=usd,
        )
        for i in range(10)
    ]


def test_a_system_is_on_the_frontier_if_none_beats_it() -> None:
    items = [*items_of("cheap", 3, 1.0), *items_of("good", 9, 5.0), *items_of("bad", 2, 4.0), *items_of("mid", 6, 2.0)]
    points = pareto(items, resamples=50)
    assert [(point.system, point.frontier) for point in points] == [
        ("cheap", True),
        ("mid", True),
        ("bad", False),
        ("good", True),
    ]
    assert set(points[2].beaten_by) == {"cheap", "mid"}


def test_equal_systems_do_not_beat_each_other() -> None:
    points = pareto([*items_of("a", 5, 1.0), *items_of("b", 5, 1.0)], resamples=50)
    assert [point.frontier for point in points] == [True, True]


def test_an_unknown_price_is_no_point_and_beats_none() -> None:
    points = pareto([*items_of("a", 5, 1.0), *items_of("b", 9, 0.0, unpriced=True)], resamples=50)
    assert [(point.system, point.known, point.frontier) for point in points] == [("a", True, True), ("b", False, False)]
    assert points[1].to_json()["x"]["value"] is None
    assert points[1].to_json()["x"]["unknown"] == 10


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=1, max_size=8))
def test_whoever_is_off_the_frontier_is_beaten_by_someone_on_it(traits: list[tuple[int, int]]) -> None:
    items = [item for i, (right, usd) in enumerate(traits) for item in items_of(f"s{i}", right, float(usd))]
    points = pareto(items, resamples=2)
    frontier = {point.system for point in points if point.frontier}
    assert frontier
    assert all(point.frontier or frontier & set(point.beaten_by) for point in points)


def test_what_cannot_be_an_axis_is_refused_with_the_choices() -> None:
    import pytest

    for name in ("euros", "latency", "width", "pass@k"):
        with pytest.raises(ValueError, match="accuracy"):
            pareto(items_of("a", 1, 1.0), x=name)
