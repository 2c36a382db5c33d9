"""The benchmark of unseen pools: its pool files and variants, its leader, and the whole chain at a tiny size."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from concertino import Executor, Orchestrator, Pool

pytest.importorskip("torch")
pytest.importorskip("concertino_replay")
BENCHMARKS = Path(__file__).resolve().parents[4] / "benchmarks"
SHARES = {"strong": 9, "sound": 7, "middling": 5, "weak": 2}
"""Of ten questions, how many each invented model gets right."""
PRICES = {"strong": 20.0, "sound": 1.0, "middling": 10.0, "weak": 2.0}


@pytest.fixture(scope="module", autouse=True)
def _importable() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten sums to train on and four to measure on, with the answers of four invented models."""
    rows: list[dict[str, Any]] = [
        {"model": name, "prices": {"input": price, "output": price}} for name, price in PRICES.items()
    ]
    for number in range(14):
        gold = 100 + 7 * number
        for name, share in SHARES.items():
            right = (number + 3 * len(name)) % 10 < share
            text = f"{gold - number} and {number} are {gold if right else gold + 1}.\nA: {gold if right else gold + 1}"
            row = {"model": name, "id": f"s{number}", "question": f"What is the sum of {gold - number} and {number}?"}
            rows.append({**row, "gold": str(gold), "text": text, "correct": right, "output_tokens": 20})
    file = tmp_path_factory.mktemp("recorded") / "pool.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


@pytest.fixture
def halves(recordings: Path, tmp_path: Path) -> dict[str, list[str]]:
    import unseen_pool

    found: dict[str, list[str]] = unseen_pool.write_files(recordings, tmp_path, unseen_pool.QUICK)
    return found


def test_both_pool_files_have_strong_and_weak_models_and_none_has_anothers(
    halves: dict[str, list[str]], tmp_path: Path
) -> None:
    assert halves == {"A": ["replay/strong", "replay/middling"], "B": ["replay/sound", "replay/weak"]}
    for half, models in halves.items():
        pool = Pool.load(tmp_path / f"{half}.toml")
        assert {model.name for model in pool.models} == set(models)
        assert [name for name, _ in pool.actions] == ["ash", "birch"]
        assert {model.name: model.prices.input for model in pool.models if model.prices} == {
            name: PRICES[name.partition("/")[2]] for name in models
        }


def test_questions_that_are_measured_on_say_nothing_of_a_model(halves: dict[str, list[str]], tmp_path: Path) -> None:
    train, test = ((tmp_path / f"{name}.jsonl").read_text().splitlines() for name in ("train", "test"))
    known = json.loads((tmp_path / "outcomes.json").read_text())
    assert len(train) == 8
    assert len(test) == 6
    assert not set(train) & set(test)
    assert {len(right) for right in known.values()} == {8}


def test_a_variant_tells_the_same_models_otherwise_and_is_the_same_again(
    halves: dict[str, list[str]], tmp_path: Path
) -> None:
    from unseen_members import variant

    file, outcomes = str(tmp_path / "A.toml"), str(tmp_path / "outcomes.json")
    plain, first, again = (variant(file, outcomes, number) for number in (0, 7, 7))
    assert plain.id == Pool.load(file).id
    assert first.id == again.id
    assert {model.name for model in first.models} == {model.name for model in plain.models}
    assert len({variant(file, outcomes, number).id for number in range(12)}) > 6


def test_a_leader_that_asks_all_answers_with_the_text_of_the_best_card(
    halves: dict[str, list[str]], tmp_path: Path
) -> None:
    from concertino_train.config import load_config
    from concertino_train.config.named import make_strategy
    from unseen_members import Leader
    from unseen_pool import QUICK, settings

    strategy = make_strategy(load_config(settings(tmp_path, "A", 0, QUICK)).rollout.strategy)
    pool = Pool.load(tmp_path / "A.toml")

    async def answer(question: str) -> tuple[str | None, int]:
        async with Executor() as executor:
            run = await Orchestrator(Leader(pool, strategy, everyone=True), strategy, executor=executor).run(
                question, pool=pool
            )
            return run.answer, len(run.observations)

    row = json.loads((tmp_path / "train.jsonl").read_text().splitlines()[0])
    text, calls = asyncio.run(answer(row["question"]))
    assert calls == 2
    assert text is not None
    assert text.endswith(f"A: {row['answer']}")


@pytest.mark.slow
def test_the_whole_chain_measures_every_system_over_both_pools(recordings: Path, tmp_path: Path) -> None:
    from unseen_pool import ORACLE, QUICK, TAUGHT, TRAINED, UNTRAINED, VOTE, measure, table

    found = measure(recordings, tmp_path, 1, QUICK)
    lines = {(line["pool"], line["system"], line["on"]): line for line in found["lines"]}
    policies = {(over, name, on) for over in "AB" for name in (TAUGHT, TRAINED) for on in "AB"}
    assert policies | {(half, UNTRAINED, "") for half in "AB"} <= lines.keys()
    assert found["agreed"] == found["verdicts"] == 4 * found["questions"] == 24
    assert lines["A", ORACLE, ""]["right"] >= lines["A", VOTE, ""]["right"]
    assert lines["A", VOTE, ""]["calls"] == 2
    assert lines["A", "single-model:strong", ""]["calls"] == 1
    assert "an unseen pool" in table(found)
    header = json.loads((tmp_path / "A-0" / "eval" / "trained-B-0.jsonl").read_text().splitlines()[0])
    assert (header["trained_pool"], header["pool"]) == (found["pools"]["A"], found["pools"]["B"])


def test_without_a_recording_it_says_what_it_wants(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "unseen_pool.py"), "--recordings", str(tmp_path / "none.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "give --recordings FILE" in done.stderr
    assert "numeric_correct" in done.stderr
