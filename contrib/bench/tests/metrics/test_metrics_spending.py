"""What runs consumed, how long they took, whom they called, what became of it."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from concertino import Usage
from concertino_bench import Item, MemberUse
from concertino_bench.metrics.latency import latency
from concertino_bench.metrics.shapes import depth, parallel_rounds, width
from concertino_bench.metrics.shares import model_entropy, model_share, tool_entropy, tool_share, unique_tools
from concertino_bench.metrics.spending import (
    cached_tokens,
    calls,
    cost_of_pass,
    grading_usd,
    input_tokens,
    output_tokens,
    rounds,
    units,
    usd,
)
from concertino_bench.metrics.statuses import format_rate, ok_rate, recovery_rate, status_mix
from concertino_bench.metrics.times import critical_path, path_share, seconds, speedup

MakeItem = Callable[..., Item]


def test_an_unknown_price_is_unknown_and_counted(item: MakeItem) -> None:
    items = [item(task="a", usage=Usage(usd=0.5)), item(task="b", usage=Usage(usd=0.1, unpriced=1))]
    for metric in (usd, cost_of_pass):
        value = metric(items)
        assert (value.value, value.missing, value.unknown) == (None, 1, 1)
    assert usd(items[:1]).value == 0.5


def test_a_run_that_never_began_does_not_make_money_unknown(item: MakeItem) -> None:
    items = [item(task="a", usage=Usage(usd=0.5), seconds=2.0, calls=4), item(task="b", right=False, error="broke")]
    assert (usd(items).value, usd(items).missing, usd(items).unknown) == (0.5, 1, 0)
    assert seconds(items).value == 2.0
    assert calls(items).value == 4.0


def test_grading_is_paid_apart(item: MakeItem) -> None:
    items = [item(usage=Usage(usd=0.5), graded=Usage(usd=0.25))]
    assert (usd(items).value, grading_usd(items).value) == (0.5, 0.25)


def test_a_pass_costs_all_attempts_and_no_pass_costs_infinitely_much(item: MakeItem) -> None:
    items = [item(task=f"t{i}", right=i == 0, usage=Usage(usd=0.25)) for i in range(4)]
    assert cost_of_pass(items).value == 1.0
    assert cost_of_pass(items[1:]).value == math.inf
    assert cost_of_pass(items[1:]).to_json()["value"] == "inf"


def test_tokens_and_units_are_means_per_run_and_cached_tokens_a_share(item: MakeItem) -> None:
    items = [
        item(task="a", usage=Usage(units=2.0, input_tokens=100, output_tokens=10, cached_tokens=50), rounds=1),
        item(task="b", usage=Usage(units=4.0, input_tokens=300, output_tokens=30), rounds=2),
    ]
    values = [units, input_tokens, output_tokens, cached_tokens, rounds]
    assert [metric(items).value for metric in values] == [3.0, 200.0, 20.0, 0.125, 1.5]


def use(kind: str, *seconds: float, calls: int | None = None, usd: float = 0.0, unpriced: int = 0) -> MemberUse:
    count = len(seconds) if calls is None else calls
    return MemberUse(kind, count, {"OK": count}, Usage(count, usd=usd, unpriced=unpriced), seconds)


def test_speedup_counts_the_work_inside_an_agent_once(item: MakeItem) -> None:
    members = {"solve": use("agent", 4.0), "big": use("model", 3.0, 3.0), "calc": use("tool", 2.0)}
    value = speedup([item(seconds=4.0, critical_path=3.0, members=members)])
    assert value.value == 2.0
    assert path_share([item(seconds=4.0, critical_path=3.0)]).value == 0.75
    assert critical_path([item(seconds=4.0, critical_path=3.0)]).value == 3.0


def test_shares_sum_to_one_and_an_unpriced_member_has_no_money(item: MakeItem) -> None:
    members = {
        "calc": use("tool", calls=3),
        "solve": use("agent", calls=1),
        "big": use("model", calls=1, usd=0.5),
        "own": use("model", calls=1, unpriced=1),
    }
    items = [item(members=members)]
    tools, models = tool_share(items), model_share(items)
    assert {name: share.share for name, share in tools.items()} == {"calc": 0.75, "solve": 0.25}
    assert {name: share.usd for name, share in models.items()} == {"big": 0.5, "own": None}
    assert sum(share.share for share in models.values()) == 1.0


def test_entropy_is_zero_for_one_member_and_log2_of_the_number_for_equals(item: MakeItem) -> None:
    four = {f"tool-{i}": use("tool", calls=5) for i in range(4)}
    assert tool_entropy([item(members=four)]).value == pytest.approx(2.0)
    assert tool_entropy([item(members={"one": use("tool", calls=5)})]).value == 0.0
    assert tool_entropy([item()]).value is None
    assert model_entropy([item(members=four)]).value is None
    assert unique_tools([item(members=four)]).value == 4.0


def test_shapes_are_per_round(item: MakeItem) -> None:
    items = [item(task="a", widths=(4, 1), depths=(1, 1), rounds=2), item(task="b", widths=(3,), depths=(3,), rounds=1)]
    values = [metric(items).value for metric in (width, depth, parallel_rounds)]
    assert values == [pytest.approx(8 / 3), pytest.approx(5 / 3), pytest.approx(1 / 3)]


def test_statuses_recoveries_and_form_are_shares(item: MakeItem) -> None:
    items = [item(statuses={"OK": 6, "TIMEOUT": 2}, recovered=1, rounds=4, flawed=1)]
    assert status_mix(items) == {"OK": 0.75, "PARSE_ERR": 0.0, "EXEC_ERR": 0.0, "TIMEOUT": 0.25}
    values = [metric(items).value for metric in (ok_rate, recovery_rate, format_rate)]
    assert values == [0.75, 0.5, 0.75]
    assert recovery_rate([item(statuses={"OK": 3})]).value is None
    assert format_rate([item(rounds=0, flawed=2)]).value == 0.0


def test_percentiles_of_latency_lie_between_calls(item: MakeItem) -> None:
    items = [item(members={"calc": use("tool", 4.0, 1.0)}), item(task="b", members={"calc": use("tool", 3.0, 2.0)})]
    found = latency(items)["calc"]
    assert (found.calls, found.p50, found.longest) == (4, 2.5, 4.0)
    assert found.p90 == pytest.approx(3.7)
