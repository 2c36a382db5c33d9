"""Accuracy, pass@k and maj@k: published numbers, and what must hold for all."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from concertino.text import answer_key
from concertino_bench import Item, Verdict
from concertino_bench.metrics import METRICS, Metric, accuracy, majority_at, mean_at, pass_at, value_mean
from concertino_bench.metrics.correctness import partial_credit, unparsable
from concertino_bench.metrics.samples import pass_at_k
from hypothesis import given, settings
from hypothesis import strategies as st

MakeItem = Callable[..., Item]


def cases(folder: Path, *names: str) -> list[dict]:
    texts = [(folder / "lighteval_metrics" / name).read_text(encoding="utf-8") for name in names]
    return [case for text in texts for case in json.loads(text)["test_cases"]]


def samples(item: MakeItem, case: dict, letters: bool = False) -> list[Item]:
    """The outputs of a case, right where they are the gold answer."""
    gold = case["doc"]["gold_index"]
    accepted = {case["doc"]["choices"][at] for at in (gold if isinstance(gold, list) else [gold])}
    texts = case["model_response"]["text"]
    if letters:
        texts = [text.strip("()").rpartition(" ")[2] for text in texts]
        accepted = {"ABCD"[gold]}
    return [item(sample=i, right=text in accepted, found=(text,)) for i, text in enumerate(texts)]


def test_pass_at_k_agrees_with_the_published_cases(shared_data: Path, item: MakeItem) -> None:
    found = cases(shared_data, "pass_at_k.json", "pass_at_k_math.json")
    for case in found:
        k, n = case["metric_params"]["k"], case["metric_params"]["n"]
        (expected,) = case["expected_output"].values()
        value = pass_at(k)(samples(item, case)[:n]).value
        assert value == pytest.approx(expected, abs=case["tolerance"]), case["name"]
    assert len(found) == 6


def test_pass_at_k_of_letters_agrees_with_the_published_cases(shared_data: Path, item: MakeItem) -> None:
    found = cases(shared_data, "gpqa_instruct_pass_at_k.json")
    for case in found:
        k, n = case["metric_params"]["k"], case["metric_params"]["n"]
        (expected,) = case["expected_output"].values()
        assert pass_at(k)(samples(item, case, letters=True)[:n]).value == pytest.approx(expected), case["name"]
    assert len(found) == 11


def test_mean_at_k_agrees_with_the_published_cases(shared_data: Path, item: MakeItem) -> None:
    found = cases(shared_data, "avg_at_k.json", "avg_at_k_math.json")
    for case in found:
        (expected,) = case["expected_output"].values()
        outputs = samples(item, case)
        if isinstance(case["doc"]["gold_index"], list):  # the case counts the first gold only
            first = case["doc"]["choices"][case["doc"]["gold_index"][0]]
            outputs = [item(sample=i, right=one.found == (first,)) for i, one in enumerate(outputs)]
        value = mean_at(case["metric_params"]["k"])(outputs).value
        assert value == pytest.approx(expected, abs=case["tolerance"]), case["name"]
    assert len(found) == 6


def test_majority_of_recorded_samples_is_that_of_counting(shared_data: Path, item: MakeItem) -> None:
    rows = [json.loads(line) for line in (shared_data / "math_samples_8" / "part_a.jsonl").read_text().splitlines()]
    items, expected, ties = [], [], 0
    for row in rows:
        pairs = list(zip(row["pred"], row["score"], strict=True))
        items += [item(task=f"t{row['idx']}", sample=i, right=s, found=(p,)) for i, (p, s) in enumerate(pairs)]
        most = Counter(row["pred"]).most_common()
        tied = [answer for answer, votes in most if votes == most[0][1]]
        right = {answer for answer, score in pairs if score}
        expected.append(sum(answer in right for answer in tied) / len(tied))
        ties += len(tied) > 1
    assert ties == 3
    assert majority_at(8)(items).value == pytest.approx(sum(expected) / len(rows))
    assert majority_at(1)(items).value == pytest.approx(sum(row["score"][0] for row in rows) / len(rows))


@settings(deadline=None)
@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_pass_at_k_is_the_share_of_draws_that_pass_and_grows_with_k(counts: tuple[int, int]) -> None:
    n, c = counts
    outcomes = [i < c for i in range(n)]
    before = 0.0
    for k in range(1, n + 1):
        draws = list(itertools.combinations(outcomes, k))
        value = pass_at_k(n, c, k)
        assert value == pytest.approx(sum(map(any, draws)) / len(draws))
        assert value >= before - 1e-12
        before = value
    assert pass_at_k(n, c, 1) == pytest.approx(c / n)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 1, 4), (3, 4, 1), (3, -1, 1), (3, 1, 0)])
def test_pass_at_k_of_impossible_counts_is_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="expected 1 <= k <= n"):
        pass_at_k(n, c, k)


@pytest.mark.parametrize("family", [pass_at, mean_at, majority_at])
def test_less_than_one_sample_is_refused(family: Callable[[int], Metric]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        family(0)


@pytest.mark.parametrize("metric", [pass_at(3), mean_at(3), majority_at(3)])
def test_a_task_with_too_few_samples_is_left_out_and_counted(metric: Metric, item: MakeItem) -> None:
    items = [item(task="full", sample=i, right=True, found=("4",)) for i in range(3)]
    items += [item(task="short", sample=i, right=False, found=("5",)) for i in range(2)]
    value = metric(items)
    assert (value.value, value.tasks, value.missing) == (1.0, 1, 2)


def test_tied_answers_count_by_lot_and_silence_does_not_vote(item: MakeItem) -> None:
    said = [(True, ("4",)), (False, ("5",)), (False, ()), (False, ())]
    items = [item(sample=i, right=right, found=found) for i, (right, found) in enumerate(said)]
    assert majority_at(4)(items).value == 0.5
    assert majority_at(4)([item(sample=i, right=False) for i in range(4)]).value == 0.0


def test_spellings_of_one_answer_vote_together(item: MakeItem) -> None:
    said = [(True, "37"), (True, "37.00"), (True, "$37"), (False, "9"), (False, "9")]
    assert (
        majority_at(5)([item(sample=i, right=right, found=(text,)) for i, (right, text) in enumerate(said)]).value == 1
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x+1", "x-1"),
        ("-x", "x"),
        ("(1, 2)", "12"),
        ("3:15", "315"),
        ("x-y", "xy"),
        ("1.5 m", "15 m"),
        ("5!", "5"),
        ("[1, 2)", "(1, 2]"),
        ("print(a + b)\nend", "print(a - b)\nend"),
    ],
)
def test_answers_that_differ_in_a_sign_that_counts_are_two(one: str, other: str) -> None:
    assert answer_key(one) != answer_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,000", "1000.0"),
        ("x + 1", "x+1."),
        ("1, 2", "1,2"),
        ("The Beatles", "beatles."),
        ("(B)", "b"),
        ("July 4, 1776", "july 4 1776"),
        ("\\text{Paris}", "Paris"),
        ("0.5", "1/2"),
    ],
)
def test_answers_that_differ_in_spelling_are_one(one: str, other: str) -> None:
    assert answer_key(one) == answer_key(other)


def test_every_task_weighs_the_same_in_an_accuracy(item: MakeItem) -> None:
    items = [item(task="a", sample=i, right=False) for i in range(9)] + [item(task="b", right=True)]
    assert accuracy(items).value == 0.5


def test_a_system_that_could_not_begin_is_not_right(item: MakeItem) -> None:
    items = [item(task="a"), item(task="b", right=False, verdict=Verdict.UNPARSABLE, error="PoolError: no model")]
    assert accuracy(items).value == 0.5
    assert unparsable(items).value == 0.5
    assert partial_credit(items).value == 0.5


def test_an_answer_that_was_not_given_counts_nothing_in_what_the_grader_measures(item: MakeItem) -> None:
    items = [item(task=f"t{n}", values={"f1": 1.0}) for n in range(5)]
    items += [item(task=f"s{n}", right=False, verdict=Verdict.UNPARSABLE) for n in range(5)]
    value = value_mean("f1")(items)
    assert (value.value, value.tasks, value.missing) == (0.5, 10, 0)
    assert accuracy(items).value == value.value


def test_a_kind_of_task_that_is_not_measured_so_is_missing(item: MakeItem) -> None:
    items = [item(task="a", values={"f1": 0.8}), item(task="b", values={"f1": 0.4})]
    other = replace(item(task="c"), kind="code")
    value = value_mean("f1")([*items, other])
    assert (value.value, value.tasks, value.missing) == (pytest.approx(0.6), 2, 1)
    assert value_mean("em")(items).value is None


def test_a_system_that_answered_nothing_has_the_value_0_where_others_are_measured(item: MakeItem) -> None:
    answered = [item("a", f"t{n}", values={"f1": 0.5}) for n in range(3)]
    silent = [item("b", f"t{n}", right=False) for n in range(3)]
    assert value_mean("f1")(silent).value is None
    assert value_mean("f1", [*answered, *silent])(silent).value == 0.0


def test_no_items_have_no_value() -> None:
    for metric in METRICS.values():
        if metric.terms is not None:
            value = metric([])
            assert (value.value, value.tasks, value.missing) == (None, 0, 0), metric.name


def test_a_definition_with_a_parameter_says_how_it_is_given(item: MakeItem) -> None:
    with pytest.raises(TypeError, match=r"pass_at\(k\)\(items\)"):
        METRICS["pass@k"]([item()])


ROW = st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans())


@settings(deadline=None)
@given(st.lists(ROW, unique_by=lambda row: row[:2]), st.randoms())
def test_the_order_of_items_does_not_matter(rows: list[tuple[int, int, bool]], chance: object) -> None:
    from concertino import Usage
    from concertino_bench import Key

    items = [
        Item(
            Key("a", f"t{t}", s),
            "number",
            Verdict.RIGHT if right else Verdict.WRONG,
            "r",
            seconds=t + s / 7,
            usage=Usage(1, 0.1 * s, 0.1 + t / 3),
            found=(str(right),),
        )
        for t, s, right in rows
    ]
    mixed = list(items)
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    metrics = [m for m in METRICS.values() if m.terms] + [pass_at(2), majority_at(2), mean_at(2)]
    assert [m(items) for m in metrics] == [m(mixed) for m in metrics]
    assert all(m(items).value is None or not math.isnan(m(items).value or 0.0) for m in metrics)
