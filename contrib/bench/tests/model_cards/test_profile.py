"""Figures: intervals, tokens, seconds, money, and the words they are put into."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import concertino as ct
import pytest
from concertino_bench.graders.judge_agreement import wilson
from concertino_bench.model_cards import make_task
from concertino_bench.model_cards.answers import CardQuestion, ModelAnswer, identity, items_of
from concertino_bench.model_cards.facts import percent, show_usd, write_facts
from concertino_bench.model_cards.guard import DESCRIPTION_LIMIT
from concertino_bench.model_cards.profile import GradedAnswer, Profile, Rate, grade
from concertino_bench.model_cards.profile import measure as measure_by_prices
from hypothesis import given
from hypothesis import strategies as st

from .answering import PRICES, TASKS

MODEL = ct.ModelSpec("acme/one", ct.Model, prices=PRICES)
WHO = identity(MODEL, ct.Pool.of(MODEL))


def measure(spec: ct.ModelSpec, graded: list[GradedAnswer]) -> Profile:
    return measure_by_prices(spec.name, graded, {spec.name: spec.prices})


def answers(correct: int, *, tasks: Any = TASKS, repeats: int = 1, **fields: Any) -> list[GradedAnswer]:
    """Graded answers, the first so many correct, in turn taking 1, 2, 3 … seconds."""
    items = list(items_of(WHO, tasks, repeats))
    usage = ct.Usage(input_tokens=100, output_tokens=50)
    given = {"status": "OK", "text": "x", "usage": usage, "by": MODEL.name, **fields}
    return [GradedAnswer(item, ModelAnswer(**given, seconds=float(i)), i <= correct) for i, item in enumerate(items, 1)]


# -- intervals ---------------------------------------------------------------------------------------------------------

# From the definition: the shares p with |p̂ - p| <= z sqrt(p (1 - p) / n); figures as published tables round them.
WILSON = [(5, 5, 0.5655, 1.0), (0, 5, 0.0, 0.4345), (8, 10, 0.4902, 0.9433), (1, 29, 0.0061, 0.1718)]


@pytest.mark.parametrize(("right", "count", "low", "high"), WILSON)
def test_the_interval_is_wilson_s_score_interval(right: int, count: int, low: float, high: float) -> None:
    assert wilson(right, count) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@given(st.integers(1, 400), st.data())
def test_the_ends_of_an_interval_satisfy_its_equation(count: int, data: st.DataObject) -> None:
    share = data.draw(st.integers(0, count)) / count
    low, high = wilson(share * count, count)
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1
    for end in (low, high):
        distance = (share - end) ** 2 - 1.959963984540054**2 * end * (1 - end) / count
        assert distance == pytest.approx(0, abs=1e-9)


def test_repeats_of_a_task_are_no_further_tasks() -> None:
    once, thrice = Rate.of(answers(7)), Rate.of(answers(21, repeats=3))
    assert (once.tasks, once.answers, thrice.tasks, thrice.answers) == (10, 10, 10, 30)
    assert (once.low, once.high) == pytest.approx((thrice.low, thrice.high))


def test_a_task_that_is_right_now_and_then_counts_in_part() -> None:
    right = {task.question: [True, True, False] for task in TASKS}
    graded = [replace_grade(one, right[one.item.task.question].pop()) for one in answers(0, repeats=3)]
    assert Rate.of(graded).accuracy == pytest.approx(2 / 3)


def replace_grade(one: GradedAnswer, correct: bool) -> GradedAnswer:
    return one._replace(correct=correct)


# -- profiles ----------------------------------------------------------------------------------------------------------


def test_a_profile_holds_accuracy_by_kind_tokens_seconds_and_money() -> None:
    profile = measure(MODEL, answers(7))
    assert (profile.overall.accuracy, profile.overall.tasks) == (0.7, 10)
    assert {kind: rate.accuracy for kind, rate in profile.by_kind.items()} == {"sums": 1.0, "words": 0.4}
    assert (profile.input_tokens, profile.output_tokens, profile.estimated) == (100, 50, False)
    assert (profile.seconds_median, profile.seconds_p90) == (5.5, 9)
    assert profile.usd_per_task == pytest.approx((100 * 1 + 50 * 2) / 1e6)
    assert profile.failures == {}


def test_an_answer_that_did_not_come_is_not_correct_and_is_counted_by_status() -> None:
    items = list(items_of(WHO, TASKS))
    came = [ModelAnswer("OK", text=f"Answer: {item.task.answer}", usage=ct.Usage(input_tokens=1)) for item in items[:7]]
    late = [
        ModelAnswer("TIMEOUT", "deadline"),
        ModelAnswer("TIMEOUT", "deadline"),
        ModelAnswer("EXEC_ERR", "truncated"),
    ]
    profile = measure(MODEL, grade(zip(items, [*came, *late], strict=True)))
    assert profile.overall.accuracy == 0.7
    assert profile.failures == {"TIMEOUT": 2, "EXEC_ERR": 1}
    assert "No answer came to 3 of 10 requests (1 EXEC_ERR, 2 TIMEOUT)." in write_facts(profile)


def test_without_prices_the_money_is_unknown_and_a_bill_of_the_server_wins() -> None:
    assert measure(MODEL.with_(prices=None), answers(7)).usd_per_task is None
    billed = answers(7, usage=ct.Usage(input_tokens=100, output_tokens=50, usd=0.5))
    assert measure(MODEL, billed).usd_per_task == 0.5
    assert measure(MODEL.with_(prices=None), billed).usd_per_task == 0.5


def test_tokens_that_a_server_does_not_tell_are_unknown_and_so_is_the_money() -> None:
    profile = measure(MODEL, answers(7, usage=ct.Usage()))
    assert (profile.input_tokens, profile.output_tokens, profile.usd_per_task) == (None, None, None)
    assert "tokens unknown, price unknown" in write_facts(profile)


def test_the_money_is_unknown_if_that_of_one_answer_is() -> None:
    graded = answers(7)
    untold = graded[3]._replace(answer=replace(graded[3].answer, usage=ct.Usage()))
    profile = measure(MODEL, [*graded[:3], untold, *graded[4:]])
    assert (profile.usd_per_task, profile.input_tokens) == (None, 100)


def test_cached_tokens_are_charged_at_their_own_price() -> None:
    spec = MODEL.with_(prices=ct.Prices(input=1.0, output=2.0, cached=0.1))
    used = answers(7, usage=ct.Usage(input_tokens=100, cached_tokens=60, output_tokens=50))
    assert measure(spec, used).usd_per_task == pytest.approx((40 * 1 + 60 * 0.1 + 50 * 2) / 1e6)


def test_the_evidence_changes_with_answers_and_grades_and_not_with_their_order_or_a_price() -> None:
    graded = answers(7)
    evidence = measure(MODEL, graded).evidence
    assert measure(MODEL.with_(prices=None), list(reversed(graded))).evidence == evidence
    assert measure(MODEL, answers(6)).evidence != evidence
    other: list[GradedAnswer] = [graded[0]._replace(answer=replace(graded[0].answer, text="y")), *graded[1:]]
    assert measure(MODEL, other).evidence != evidence


# -- in words ----------------------------------------------------------------------------------------------------------


def test_the_words_say_on_how_many_tasks_they_rest_and_give_the_profile_s_figures() -> None:
    assert write_facts(measure(MODEL, answers(6))) == (
        "Measured on 10 tasks: 60 % correct (95 % interval 31 to 83 %). Reliable: sums (100 % of 5). "
        "Unclear: words (20 % of 5). An answer takes 5.5 s in the median (nine in ten at most 9.0 s), "
        "100 tokens in and 50 out, $0.00020 per task."
    )


def test_kinds_are_only_called_reliable_or_not_where_the_interval_allows_it() -> None:
    text = write_facts(measure(MODEL, answers(5)))
    assert "Reliable: sums (100 % of 5). Unreliable: words (0 % of 5)." in text
    single = write_facts(measure(MODEL, answers(1, tasks=TASKS[:1])))
    assert "Measured on 1 task: 100 % correct (95 % interval 21 to 100 %). Unclear: sums (100 % of 1)." in single


def test_repeats_and_estimates_are_said() -> None:
    text = write_facts(measure(MODEL, answers(14, repeats=2, usage=ct.Usage(input_tokens=9, estimated=1))))
    assert "Measured on 10 tasks, 20 answers:" in text
    assert "about 9 tokens in and 0 out" in text


def test_another_price_changes_the_money_and_nothing_else() -> None:
    cheap, dear = (write_facts(measure(MODEL.with_(prices=p), answers(7))) for p in (PRICES, ct.Prices(10, 20)))
    assert cheap.replace("$0.00020", "$0.0020") == dear


def test_the_words_fit_a_description_whatever_the_kinds() -> None:
    tasks = [make_task(f"{n}?", "1", f"{n:03} {'k' * 36}", "number") for n in range(200)]
    text = write_facts(measure(MODEL, answers(100, tasks=tasks)))
    assert len(text) < DESCRIPTION_LIMIT
    assert "192 more kinds" in text


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0 %"), (1, "100 %"), (0.001, "1 %"), (0.999, "99 %"), (0.625, "62 %")]
)
def test_all_and_none_are_said_only_where_they_are_exact(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(("usd", "text"), [(0, "$0"), (1.5, "$1.5000"), (0.00012, "$0.00012"), (3.4e-7, "$0.00000034")])
def test_small_money_is_shown_with_two_digits_of_it(usd: float, text: str) -> None:
    assert show_usd(usd) == text


def test_a_profile_is_plain_json_with_rounded_figures() -> None:
    data = measure(MODEL, answers(7)).to_json()
    assert data["overall"] == {"accuracy": 0.7, "low": 0.3968, "high": 0.8922, "tasks": 10, "answers": 10}
    assert set(data) == set(Profile.__dataclass_fields__) - {"model", "evidence", "at"}


def test_items_of_a_repeat_have_a_seed_of_their_own() -> None:
    items: list[CardQuestion] = list(items_of(WHO, TASKS[:1], 3, ct.Sampling(temperature=0.5)))
    assert [item.sampling.seed for item in items] == [None, 1, 2]
    assert {item.sampling.temperature for item in items} == {0.5}
    assert len({item.key for item in items}) == 3
