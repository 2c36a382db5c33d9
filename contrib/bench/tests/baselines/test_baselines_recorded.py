"""Baselines over six recorded models: what each gives is checked against the recording itself, counted another way.

The reading of numbers here is the one that the recording describes, written anew: the last number behind `####` or
`A:`, else the last number of the text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import concertino as ct
import pytest
from concertino_bench import System
from concertino_bench.baselines import Cascade, KnnRouter, MajorityVote, RouterProfile, systems
from concertino_bench.baselines.lineup import experts, visible

concertino_replay = pytest.importorskip("concertino_replay")
pytestmark = pytest.mark.slow
STRONG = "gpt-4-1106-preview"
PRICES = {
    "gpt3-6b_finetuning": ct.Prices(2.0, 2.0),
    "gpt3-6b_verification": ct.Prices(2.0, 2.0),
    "Mixtral-8x7B-Instruct-v0.1": ct.Prices(0.6, 0.6),
    "gpt3-175b_finetuning": ct.Prices(20.0, 20.0),
    "gpt3-175b_verification": ct.Prices(20.0, 20.0),
    STRONG: ct.Prices(10.0, 30.0),
}


def last_number(text: str) -> Fraction | None:
    marked = re.split(r"####|(?m:^A:)", text)
    found = re.findall(r"-?\d[\d,]*(?:\.\d+)?", (marked[-1] if len(marked) > 1 else text).replace("$", ""))
    return Fraction(found[-1].replace(",", "")) if found else None


@pytest.fixture(scope="module")
def rows(shared_data: Path) -> list[dict[str, Any]]:
    """The file, row by row."""
    text = (shared_data / "replay_pool_gsm8k" / "pool.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def pool(shared_data: Path) -> ct.Pool:
    return ct.Pool(concertino_replay.models(shared_data / "replay_pool_gsm8k", prices=PRICES))


async def run_all(system: System, pool: ct.Pool, rows: list[dict[str, Any]]) -> list[ct.Run]:
    async with ct.Executor() as executor:
        leader = ct.Orchestrator(system.model, system.strategy, executor=executor)
        seen = system.pool(pool)
        return [await leader.run(row["question"], pool=seen) for row in rows]


def right(run: ct.Run, row: dict[str, Any]) -> bool:
    return last_number(run.answer or "") == Fraction(row["gold"].replace(",", ""))


async def test_each_model_alone_is_right_exactly_where_the_file_says_so(
    rows: list[dict[str, Any]], pool: ct.Pool
) -> None:
    full = {name.rpartition("/")[2]: name for name in rows[0]["models"]}
    for system in systems(pool, ["single-model"]):
        runs = await run_all(system, pool, rows)
        flags = [row["models"][full[system.name.partition(":")[2]]]["numeric_correct"] for row in rows]
        assert [right(run, row) for run, row in zip(runs, rows, strict=True)] == flags


async def test_the_vote_of_three_is_the_vote_counted_by_hand(rows: list[dict[str, Any]], pool: ct.Pool) -> None:
    three = (STRONG, "gpt3-175b_verification", "gpt3-175b_finetuning")
    members = tuple(visible(pool, three))
    runs = await run_all(System("v", MajorityVote(members=members, answers="number"), STRONG, offer=("*",)), pool, rows)
    equal = 0
    for run, row in zip(runs, rows, strict=True):
        said = [last_number(row["models"][name]["output"]) for name in three]
        count = Counter(number for number in said if number is not None)
        most = max(count.values())
        winner = next(number for number in said if number is not None and count[number] == most)
        equal += last_number(run.answer or "") == winner
    assert equal >= 398  # the grader reads "-<<4-16=-12>>12" otherwise than the file does
    share = fmean(right(run, row) for run, row in zip(runs, rows, strict=True))
    assert share > fmean(row["models"][three[1]]["numeric_correct"] for row in rows)


async def test_a_cascade_is_nearly_as_good_as_its_best_model_and_cheaper(
    rows: list[dict[str, Any]], pool: ct.Pool
) -> None:
    members = tuple(visible(pool, ["Mixtral-8x7B-Instruct-v0.1", "gpt3-6b_verification", STRONG]))
    runs = await run_all(System("c", Cascade(members=members, answers="number"), STRONG, offer=("*",)), pool, rows)
    alone = await run_all(next(s for s in systems(pool, ["single-model"]) if s.name.endswith(STRONG)), pool, rows)
    share, best = (fmean(right(run, row) for run, row in zip(each, rows, strict=True)) for each in (runs, alone))
    assert share > best - 0.02
    assert fmean(run.usage.usd for run in runs) < 0.9 * fmean(run.usage.usd for run in alone)
    oracle = fmean(any(of["numeric_correct"] for of in row["models"].values()) for row in rows)
    assert share <= oracle == 0.945


async def test_a_router_that_was_fitted_to_one_half_chooses_well_on_the_other(
    rows: list[dict[str, Any]], pool: ct.Pool
) -> None:
    best, free, dear = [], [], []
    for seed in range(3):
        shuffled = Random(seed).sample(rows, len(rows))
        profile = RouterProfile.fit(
            {
                "question": row["question"],
                "model": name.rpartition("/")[2],
                "correct": of["numeric_correct"],
                "usd": PRICES[name.rpartition("/")[2]].usd(60, len(of["output"]) // 3),
            }
            for row in shuffled[:200]
            for name, of in row["models"].items()
        )
        for weight, into in ((0.0, free), (1000.0, dear)):
            strategy = KnnRouter(fitted=profile, k=40, cost_weight=weight)
            system = System("r", strategy, STRONG, prepare=lambda given: experts(given, list(PRICES)))
            runs = await run_all(system, pool, shuffled[200:])
            into.append((fmean(map(right, runs, shuffled[200:])), fmean(run.usage.usd for run in runs)))
        best.append(fmean(row["models"][STRONG]["numeric_correct"] for row in shuffled[200:]))
    assert fmean(share for share, _ in free) >= fmean(best) - 0.01
    assert fmean(usd for _, usd in dear) < 0.1 * fmean(usd for _, usd in free)
    assert fmean(share for share, _ in dear) > 0.5
