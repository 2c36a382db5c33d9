"""The judge: what it is asked, what of its replies counts, what is kept; and how agreement is measured."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from concertino import PoolError, ProviderError, Reply
from concertino_bench import Submission, Task, Verdict
from concertino_bench.graders import LlmJudge, agreement
from concertino_bench.graders.judge_agreement import wilson

TASK = Task("t", "Capital of France?", ("Paris",), "text", metadata={"aliases": ["Paname"]})
YES, NO = {"reason": "the same city", "verdict": "right"}, {"reason": "another city", "verdict": "wrong"}


def reply(data: Any) -> Reply:
    return Reply(json.dumps(data), data=data)


async def test_the_judge_sees_everything_as_data_and_its_verdict_counts(judge_bench: Any) -> None:
    bench = judge_bench(reply(YES), reply(NO))
    seen = await LlmJudge().grade(TASK, Submission("<think>hm</think>It is Paris."), bench)
    assert (seen.verdict, seen.reason) == ("right", "the judge: the same city")
    request = bench.asked[0]
    assert json.loads(request.messages[1].text) == {
        "question": "Capital of France?",
        "accepted": ["Paris", "Paname"],
        "all": False,
        "candidate": "It is Paris.",
    }
    assert request.schema["properties"]["verdict"] == {"enum": ["right", "wrong"]}
    assert request.sampling.temperature == 0
    assert (await LlmJudge().grade(TASK, Submission("Rome"), bench)).verdict == "wrong"


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (Reply('```json\n{"reason": "same", "verdict": "right"}\n```'), "right"),
        (Reply("Right, I would say."), "unparsable"),
        (Reply(""), "unparsable"),
        (reply({"verdict": "maybe"}), "unparsable"),
        (reply(["right"]), "unparsable"),
        (reply({"verdict": "right"}), "unparsable"),
        (ProviderError("the server is away"), "unparsable"),
    ],
)
async def test_a_verdict_that_cannot_be_read_is_unparsable_with_a_reason(
    given: Any, verdict: str, judge_bench: Any
) -> None:
    seen = await LlmJudge().grade(TASK, Submission("Paris"), judge_bench(given))
    assert seen.verdict == verdict
    assert seen.reason


async def test_nothing_is_asked_about_an_empty_answer_and_a_missing_judge_is_an_error(judge_bench: Any) -> None:
    bench = judge_bench()
    assert (await LlmJudge().grade(TASK, Submission(" "), bench)).verdict == "unparsable"
    assert bench.asked == []
    with pytest.raises(PoolError):
        await LlmJudge().grade(TASK, Submission("Paris"), judge_bench(PoolError("no model plays the role 'judge'")))
    with pytest.raises(ValueError, match="has no answers"):
        await LlmJudge().grade(Task("t", "?", (), "text"), Submission("Paris"), bench)


def _count(folder: Path) -> int:
    return len(list(folder.iterdir()))


async def test_a_kept_verdict_is_not_paid_for_again_and_belongs_to_one_judge(judge_bench: Any, tmp_path: Path) -> None:
    bench = judge_bench(reply(YES), reply(NO), reply(NO))
    first, second = LlmJudge(tmp_path / "kept", judge="one"), LlmJudge(tmp_path / "kept", judge="two")
    for _ in range(3):
        assert (await first.grade(TASK, Submission("Paris"), bench)).verdict == "right"
    assert len(bench.asked) == 1
    assert (await second.grade(TASK, Submission("Paris"), bench)).verdict == "wrong"
    assert (await first.grade(TASK, Submission("Rome"), bench)).verdict == "wrong"
    assert len(bench.asked) == 3
    assert _count(tmp_path / "kept") == 3
    with pytest.raises(ValueError, match="which model it is"):
        LlmJudge(tmp_path)


def _break_the_only(folder: Path) -> None:
    (file,) = folder.iterdir()
    file.write_text("{")


async def test_a_broken_kept_file_is_asked_for_again_and_a_bad_verdict_is_not_kept(
    judge_bench: Any, tmp_path: Path
) -> None:
    judge = LlmJudge(tmp_path, judge="one")
    assert (await judge.grade(TASK, Submission("Paris"), judge_bench(Reply("?")))).verdict == "unparsable"
    assert _count(tmp_path) == 0
    await judge.grade(TASK, Submission("Paris"), judge_bench(reply(YES)))
    _break_the_only(tmp_path)
    assert (await judge.grade(TASK, Submission("Paris"), judge_bench(reply(NO)))).verdict == "wrong"


async def test_a_lone_surrogate_in_an_answer_does_no_harm(judge_bench: Any, tmp_path: Path) -> None:
    seen = await LlmJudge(tmp_path, judge="one").grade(TASK, Submission("\ud800"), judge_bench(reply(NO)))
    assert seen.verdict == "wrong"


def series(both: int, lenient: int, strict: int, neither: int) -> tuple[list[Verdict], list[bool]]:
    right, wrong = Verdict.RIGHT, Verdict.WRONG
    ours = [right] * both + [right] * lenient + [wrong] * strict + [wrong] * neither
    return ours, [True] * both + [False] * lenient + [True] * strict + [False] * neither


def test_agreement_is_what_the_textbook_says() -> None:
    """20 and 15 of 50 agreed, 5 and 10 not: kappa 0.4, as in every introduction to it."""
    seen = agreement(*series(20, 5, 10, 15))
    assert (seen.items, seen.both_right, seen.too_lenient, seen.too_strict, seen.both_wrong) == (50, 20, 5, 10, 15)
    assert seen.accuracy == pytest.approx(0.7)
    assert seen.accuracy_interval == pytest.approx((0.5625, 0.8090), abs=1e-3)
    assert seen.kappa == pytest.approx(0.4)


def test_unparsable_items_are_counted_apart() -> None:
    ours, theirs = series(3, 0, 0, 3)
    seen = agreement([*ours, Verdict.UNPARSABLE], [*theirs, True])
    assert (seen.items, seen.unparsable, seen.accuracy, seen.kappa) == (6, 1, 1.0, 1.0)


def test_what_cannot_be_said_is_none() -> None:
    assert agreement([], []).accuracy is None
    assert agreement(*series(4, 0, 0, 0)).kappa is None
    with pytest.raises(ValueError, match="1 verdicts against 2"):
        agreement([Verdict.RIGHT], [True, False])


def test_the_interval_of_kappa_holds_the_true_value_about_95_times_in_100() -> None:
    chances = [0.45, 0.08, 0.12, 0.35]
    ours, theirs = chances[0] + chances[1], chances[0] + chances[2]
    by_chance = ours * theirs + (1 - ours) * (1 - theirs)
    true = (chances[0] + chances[3] - by_chance) / (1 - by_chance)
    draw, inside, repeats = random.Random(5), 0, 400
    for _ in range(repeats):
        cells = draw.choices(range(4), chances, k=200)
        low, high = agreement(*series(*(cells.count(cell) for cell in range(4)))).kappa_interval or (math.nan, math.nan)
        inside += low <= true <= high
    assert 0.92 <= inside / repeats <= 0.98


def test_a_share_of_all_or_none_has_an_interval_too() -> None:
    assert wilson(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-3)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-3)
