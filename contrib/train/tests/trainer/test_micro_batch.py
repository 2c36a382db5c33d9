"""An update that the memory cannot hold: fewer rows at once, the same gradients, nothing sampled twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from concertino import UsageError
from concertino_train.micro_batch import MicroBatch, activation_bytes
from concertino_train.rollouts import Batch
from concertino_train.trainer import Algorithm

ONE = Algorithm(steps=2, questions_per_step=2, group_size=4, learning_rate=1e-3, max_grad_norm=0, device="cpu")


class Full:
    """The memory of a device that ends in the forward or the backward pass of more rows than these at once."""

    def __init__(self, model: Any, rows: int, where: str) -> None:
        self.rows, self.where, self.seen = rows, where, list[int]()
        embedding = model.get_input_embeddings()
        embedding.register_forward_hook(self._forward)

    def _forward(self, module: Any, inputs: Any, output: Any) -> None:
        rows = len(inputs[0])
        self.seen.append(rows)
        if self.where == "forward":
            self._check(rows)
        elif output.requires_grad:
            # It is reached last: gradients of all other weights have been made by then.
            output.register_hook(lambda gradient: self._check(rows))

    def _check(self, rows: int) -> None:
        if rows > self.rows:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_an_update_that_does_not_fit_is_made_with_fewer_rows_at_once_and_told(
    where: str,
    tiny: Callable[..., Any],
    made_batch: Callable[..., Batch],
    trained: Callable[..., Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    sampled: list[int] = []

    def sample(tasks: Any, step: int) -> Batch:
        sampled.append(step)
        return made_batch(step)

    settings = ONE.changed(kl=0.05)
    plain = trained(tiny(), settings.changed(micro_batch=2), sample)[1]
    model = tiny()
    full = Full(model, 2, where)
    halved = trained(model, settings, sample)[1]
    assert sampled == [0, 1, 0, 1], "rows that are paid for are kept"
    for one, other in zip(plain.gradients, halved.gradients, strict=True):
        assert float((one - other).abs().max()) <= 1e-6
    for one, other in zip(plain.logs, halved.logs, strict=True):
        for name in ("loss", "entropy", "kl"):
            assert other.get(name) == pytest.approx(one.get(name), abs=1e-5)
    assert "from now on 4 (trainer.rl.micro_batch=4" in caplog.text
    assert "from now on 2 (trainer.rl.micro_batch=2" in caplog.text
    # The second step does not try again what was too much.
    assert max(full.seen[-8:]) == 2


def test_one_row_that_does_not_fit_is_refused_with_what_to_do(
    tiny: Callable[..., Any], made_batch: Callable[..., Batch], trained: Callable[..., Any]
) -> None:
    model = tiny()
    Full(model, 0, "backward")
    with pytest.raises(UsageError, match=r"too small for one row \(CUDA out of memory.*gradient_checkpointing=true"):
        trained(model, ONE, lambda tasks, step: made_batch(step))


def test_several_processes_do_not_go_on_by_themselves(tiny: Callable[..., Any]) -> None:
    def work() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    micro = MicroBatch(8, "trainer.rl.micro_batch", model=tiny(), bfloat16=False, again=False, ranks=2)
    with pytest.raises(UsageError, match=r"for 8 rows at once .*: give trainer\.rl\.micro_batch=4"):
        micro.compute(work, lambda: pytest.fail("nothing is undone"))


def test_an_estimate_comes_before_the_first_pass_and_is_told_once(
    tiny: Callable[..., Any],
    made_batch: Callable[..., Batch],
    trained: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings, model = ONE, tiny()
    plain = trained(tiny(), settings, lambda tasks, step: made_batch(step))[1]
    full = Full(model, 99, "forward")
    # Room for three rows of 40 tokens: two layers, 32 wide, in 32 bits.
    room = 3 * 40 * activation_bytes(2, 32, 4, again=False)
    monkeypatch.setattr("concertino_train.micro_batch.free_bytes", lambda device: room)
    fitting = trained(model, settings, lambda tasks, step: made_batch(step))[1]
    assert 1 <= max(full.seen) <= 4 < 8
    assert float((plain.gradients[0] - fitting.gradients[0]).abs().max()) <= 1e-6
    assert caplog.text.count("says so from the beginning") == 1
    assert activation_bytes(20, 32, 4, again=True) < activation_bytes(20, 32, 4, again=False) / 5
