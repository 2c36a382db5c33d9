"""The training of the tiny conductor: rows, a few steps, several processes, the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from concertino import UsageError
from concertino_toy.exercises import collect
from concertino_train.conductor.rows import to_row
from concertino_train.conductor.training import TrainingSettings, train, train_together

pytest.importorskip("torch")


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
        TrainingSettings(seconds=0)


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
        done = train(model, rows, TrainingSettings(seconds=600, steps=8, tokens=300, warm=3, every=4), told.append)
        models.append(model)
    assert done.steps == 8
    losses = [float(line.split("loss ")[1].split(",")[0]) for line in told[:2]]
    assert losses[1] < losses[0]
    assert all(torch.equal(a, b) for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True))


def apart(one: Any, other: Any) -> float:
    """How far the weights of two models are from each other."""
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return float(sum(((a - b).detach() ** 2).sum() for a, b in pairs)) ** 0.5


@pytest.mark.soak
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
        def __init__(self, rows: Any, settings: TrainingSettings, rank: int) -> None:
            self.each = [batches(rows, settings, number) for number in range(2)]

        def draw(self, done: float) -> Both:
            return Both(each.draw(done) for each in self.each)

    torch.set_num_threads(1)
    said = collect(range(12))
    tokenizer = new_tokenizer([message.text for run in said for message, _ in run], 700)
    rows = [to_row(run, tokenizer) for run in said]
    settings = TrainingSettings(seconds=600, steps=4, tokens=300, warm=2)
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


@pytest.mark.slow
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
