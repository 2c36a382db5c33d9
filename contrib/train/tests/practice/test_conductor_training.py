"""What the tiny conductor learns from: casts, the scripted leader, rows, the training itself."""

from __future__ import annotations

import asyncio
import json
import re
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from concertino import ChatRequest, Executor, Model, Orchestrator, Reply, UsageError
from concertino_train.conductor.casts import draw_cast
from concertino_train.conductor.examples import collect, conversation, to_row
from concertino_train.conductor.leader import MOST_ATTEMPTS, Leader, value_in
from concertino_train.conductor.training import Settings, train, train_together
from concertino_train.conductor.trial import boxes, is_clean, try_out
from concertino_train.conductor.wording import new_value, refusal_text, reply_text

pytest.importorskip("torch")


def lead(number: int, slips: float = 0.0, fault_rate: float = 0.2) -> Any:
    async def run() -> Any:
        cast = draw_cast(number, fault_rate=fault_rate)
        async with Executor() as executor:
            leader = Leader(cast.choices, slips=slips, seed=number)
            run = await Orchestrator(leader, cast.strategy, executor=executor).run(cast.question, pool=cast.pool)
            return cast, run

    return asyncio.run(run())


def test_without_faults_the_leader_is_right_in_every_cast() -> None:
    for number in range(40):
        cast, run = lead(number, fault_rate=0.0)
        assert boxes(run) == cast.answers, run.question
        assert is_clean(run)


def test_with_faults_it_asks_somebody_else_and_is_mostly_right() -> None:
    runs = [lead(number) for number in range(80)]
    failed = [(cast, run) for cast, run in runs if not all(seen.ok for seen in run.observations)]
    assert len(failed) > 20
    assert sum(boxes(run) == cast.answers for cast, run in failed) >= 0.8 * len(failed)


def test_a_slip_is_mended_and_not_learned() -> None:
    said = [each for number in range(20) for each in conversation(lead(number, slips=1.0, fault_rate=0.0)[1])]
    turns = [(message.text, learned) for message, learned in said if message.role == "assistant"]
    assert any(not learned for _, learned in turns)
    assert all("PARSE_ERR" not in text for text, learned in turns if learned)


def test_the_same_number_is_the_same_cast_and_gives_the_same_run() -> None:
    first, again = collect(range(6), slips=0.3), collect(range(6), slips=0.3)
    assert first == again
    assert draw_cast(1).question != draw_cast(1, seed=1).question


@pytest.mark.parametrize(
    ("text", "value"),
    [("6 * 3 = 18. The answer is 25.", "25"), ('"<answer>\\n\\\\boxed{-3}\\n</answer>"', "-3"), ("\\boxed{1.5}", "1.5"),
     ('"sums\\n#### 1234\\n\\n"', "1234"), ("7", "7"), ("unknown", ""), ("It is beyond me: 7 * 2 = 3.", ""),
     ('"2*7=<<2*7=14>>14 pens\\nA: 1,430"', "1,430"), ("4 + 5 = 9. In all Ada pays $1,234.50.", "1,234.50"),
     ("3 * 4 [… 58 characters left out …] So Ben has 12 pens.", "12"), ("4 [… 58 characters left out …]", "4")],
)  # fmt: skip
def test_the_leader_reads_the_answer_of_a_reply(text: str, value: str) -> None:
    assert value_in(text) == value


@pytest.mark.parametrize("long", [False, True])
def test_whatever_a_member_writes_the_leader_reads_the_answer_that_was_meant(long: bool) -> None:
    for number in range(1000):
        rng = Random(number)
        value = new_value(rng)
        text = reply_text(rng, value, long=long)
        assert value_in(text).replace(",", "") == value, text
        assert value_in(refusal_text(rng)) == ""


def test_the_notes_say_all_that_is_known_and_how_often_a_problem_failed() -> None:
    for number in range(30):
        _, run = lead(number, fault_rate=0.4)
        thoughts = [made.text.partition("</reasoning>")[0] for made in run.rounds]
        for before, after in pairwise(thoughts):
            known = dict(re.findall(r"(\d): ([^?,;]+)", before))
            assert known.items() <= dict(re.findall(r"(\d): ([^?,;]+)", after)).items()
        counts = [int(times) for thought in thoughts for times in re.findall(r"\?(\d)", thought)]
        assert all(1 <= count <= MOST_ATTEMPTS for count in counts)


def test_a_row_learns_the_turns_and_their_ends_alone() -> None:
    from concertino_train.tiny import new_tokenizer

    said = collect(range(8))
    tokenizer = new_tokenizer([message.text for run in said for message, _ in run], 700)
    for run in said:
        row = to_row(run, tokenizer)
        learned = tokenizer.decode([token for token, own in zip(row.ids, row.learned, strict=True) if own])
        assert learned == "".join(f"{message.text}<|im_end|>" for message, own in run if own)


def test_settings_that_train_nothing_are_refused() -> None:
    with pytest.raises(UsageError, match="seconds"):
        Settings(seconds=0)


def test_a_few_steps_make_it_better_and_the_same_seed_makes_it_again() -> None:
    import torch
    from concertino_train.tiny import new_model, new_tokenizer

    torch.set_num_threads(1)
    said = collect(range(12))
    tokenizer = new_tokenizer([message.text for run in said for message, _ in run], 700)
    rows = [to_row(run, tokenizer) for run in said]
    told: list[str] = []
    models = []
    for _ in range(2):
        model = new_model(tokenizer, layers=2, hidden=48, heads=2)
        done = train(model, rows, Settings(seconds=600, steps=8, tokens=300, warm=3, every=4), told.append)
        models.append(model)
    assert done.steps == 8
    losses = [float(line.split("loss ")[1].split(",")[0]) for line in told[:2]]
    assert losses[1] < losses[0]
    assert all(torch.equal(a, b) for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True))


def apart(one: Any, other: Any) -> float:
    """How far the weights of two models are from each other."""
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return float(sum(((a - b).detach() ** 2).sum() for a, b in pairs)) ** 0.5


@pytest.mark.slow
def test_two_processes_give_the_weights_of_one_that_reads_the_batches_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from concertino_train.conductor import training
    from concertino_train.tiny import new_model, new_tokenizer

    class Both(list[Any]):
        """The batches of both processes."""

        def __init__(self, parts: Any) -> None:
            self.parts = list(parts)
            super().__init__(row for part in self.parts for row in part)

    class BothBatches:
        def __init__(self, rows: Any, settings: Settings, rank: int) -> None:
            self.each = [batches(rows, settings, number) for number in range(2)]

        def draw(self, done: float) -> Both:
            return Both(each.draw(done) for each in self.each)

    torch.set_num_threads(1)
    said = collect(range(12))
    tokenizer = new_tokenizer([message.text for run in said for message, _ in run], 700)
    rows = [to_row(run, tokenizer) for run in said]
    settings = Settings(seconds=600, steps=4, tokens=300, warm=2)
    alone, together, half = (new_model(tokenizer, layers=1, hidden=32, heads=2) for _ in range(3))
    train(half, rows, settings)
    both = train_together(together, rows, settings, 2)
    batches, loss = training._Batches, training._loss
    monkeypatch.setattr(training, "_Batches", BothBatches)
    monkeypatch.setattr(training, "_loss", lambda model, batch: sum(loss(model, part) for part in batch.parts) / 2)
    done = train(alone, rows, settings)
    assert both.steps == done.steps == 4
    # Muon works in bfloat16, so that sums in another order are seen; but less than what half of the batches changes.
    assert apart(alone, together) < 0.02 * apart(alone, half)


def test_the_command_writes_a_folder_that_is_read_again(tmp_path: Path) -> None:
    from concertino_train.conductor.__main__ import main
    from transformers import AutoModelForCausalLM, AutoTokenizer

    out = tmp_path / "tiny"
    sizes = ["--layers", "2", "--hidden", "48", "--heads", "2", "--vocabulary", "700", "--rows", "12"]
    assert main(["--out", str(out), "--seconds", "1", "--processes", "1", *sizes]) == 0
    record = json.loads((out / "training.json").read_text(encoding="utf-8"))
    model, tokenizer = AutoModelForCausalLM.from_pretrained(out), AutoTokenizer.from_pretrained(out)
    assert record["rows"] == 12
    assert record["parameters"] == sum(each.numel() for each in model.parameters())
    assert record["vocabulary"] == len(tokenizer)


def test_a_trial_counts_what_came_of_the_runs() -> None:
    class Silent(Model):
        async def chat(self, request: ChatRequest) -> Reply:
            return Reply("nothing")

    figures = try_out(Silent(), range(3))
    assert (figures.runs, figures.right, figures.clean, figures.failed) == (3, 0.0, 0.0, 0)
