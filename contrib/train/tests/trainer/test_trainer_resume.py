"""Checkpoints: ten steps are five, a restart and five; what a crash left is no checkpoint, and another's is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from concertino import UsageError
from concertino_local.codec import ByteCodec
from concertino_train.rollouts import Batch
from concertino_train.running.checkpoints import StatefulPart, complete_checkpoints, latest_checkpoint, write_state
from concertino_train.trainer import Algorithm, OrchestratorGRPOTrainer

TEN = Algorithm(
    steps=10, questions_per_step=2, group_size=4, learning_rate=1e-2, schedule="linear", kl=0.05, device="cpu"
)


class Buffered:
    """Rollouts from a random generator, of which some wait for the next step."""

    def __init__(self, make: Callable[..., Batch]) -> None:
        self._make, self._generator = make, np.random.default_rng(0)
        self._waiting: list[int] = []
        self.seeds: list[int] = []

    def __call__(self, tasks: list[int], step: int) -> Batch:
        self._waiting += [int(self._generator.integers(1000)) for _ in range(2)]
        self.seeds.append(self._waiting.pop(0))
        return self._make(self.seeds[-1] + sum(tasks), 2, 3 + step % 2)

    def state_dict(self) -> Mapping[str, Any]:
        return {"waiting": self._waiting, "generator": self._generator.bit_generator.state, "seeds": self.seeds}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._waiting, self.seeds = list(state["waiting"]), list(state["seeds"])
        self._generator.bit_generator.state = state["generator"]


@pytest.fixture
def trainer(
    tiny: Callable[..., Any], made_batch: Callable[..., Batch], codec: ByteCodec, tmp_path: Path, light: None
) -> Callable[..., tuple[OrchestratorGRPOTrainer, Buffered]]:
    def make(algorithm: Algorithm = TEN, **more: Any) -> tuple[OrchestratorGRPOTrainer, Buffered]:
        sampler = Buffered(made_batch)
        assert isinstance(sampler, StatefulPart)
        settings = {"folder": tmp_path, "save_every": 5, "parts": {"sampler": sampler}, **more}
        return OrchestratorGRPOTrainer(tiny(), algorithm, sampler, list(range(9)), codec=codec, **settings), sampler

    return make


class SaveAt:
    """A callback that asks for a checkpoint after some optimiser steps, as one that heard a signal would."""

    def __new__(cls, *steps: int) -> Any:
        from transformers import TrainerCallback

        class Callback(TrainerCallback):
            def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
                control.should_save = state.global_step in steps

        return Callback()


@pytest.mark.parametrize(
    ("algorithm", "middle"),
    [(TEN, 5), (TEN.changed(steps=3, steps_per_generation=2, iterations=2), 7)],
    ids=["between-generations", "within-a-generation"],
)
def test_ten_steps_are_five_a_restart_and_five(
    algorithm: Algorithm, middle: int, trainer: Callable[..., Any], tmp_path: Path, parameters: Any
) -> None:
    straight, sampler = trainer(algorithm, save_every=0, callbacks=[SaveAt(middle)])
    straight.train()
    again, other = trainer(algorithm)
    again.train(tmp_path / f"checkpoint-{middle}")
    assert float((parameters(straight.model) - parameters(again.model)).abs().max()) <= 1e-6
    assert other.state_dict() == sampler.state_dict()
    assert (again.generation, again.tasks.position) == (straight.generation, straight.tasks.position)
    assert again.state.global_step == straight.state.global_step == algorithm.optimizer_steps


def test_a_checkpoint_without_its_last_file_is_none(trainer: Callable[..., Any], tmp_path: Path) -> None:
    assert latest_checkpoint(tmp_path / "nothing") is None
    settings = TEN.changed(steps=3)
    trainer(settings, save_every=1)[0].train()
    assert [path.name for path in complete_checkpoints(tmp_path)] == ["checkpoint-1", "checkpoint-2", "checkpoint-3"]
    (tmp_path / "checkpoint-3" / "concertino.json").unlink()
    torn = tmp_path / "checkpoint-2" / "concertino.json"
    torn.write_bytes(torn.read_bytes()[:-20])
    assert latest_checkpoint(tmp_path) == tmp_path / "checkpoint-1"
    for name in ("checkpoint-2", "checkpoint-3"):
        with pytest.raises(UsageError, match=rf"{name} is not a complete checkpoint.*checkpoint-1"):
            trainer(settings)[0].train(tmp_path / name)
    again, _ = trainer(settings, save_every=1)
    again.train(True)
    assert latest_checkpoint(tmp_path) == tmp_path / "checkpoint-3"
    with pytest.raises(UsageError, match="no complete checkpoint"):
        trainer(settings, folder=tmp_path / "empty")[0].train(True)


def test_a_checkpoint_that_is_written_again_is_none_meanwhile(
    trainer: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = TEN.changed(steps=1)
    trainer(settings, save_every=1)[0].train()
    assert latest_checkpoint(tmp_path) is not None
    again, _ = trainer(settings, save_every=1)

    def crash(*args: Any, **more: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(again, "_save_optimizer_and_scheduler", crash)
    with pytest.raises(OSError, match="no space left"):
        again.train()
    assert (tmp_path / "checkpoint-1" / "model.safetensors").exists()
    assert latest_checkpoint(tmp_path) is None


def test_old_checkpoints_go_when_a_new_one_is_complete(trainer: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "checkpoint-0").mkdir()
    trainer(TEN.changed(steps=4), save_every=1, keep=2)[0].train()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-3", "checkpoint-4"]


def test_a_checkpoint_of_another_training_is_refused_with_what_differs_and_a_way_on(
    trainer: Callable[..., Any], tmp_path: Path
) -> None:
    settings = TEN.changed(steps=1)
    trainer(settings, save_every=1, identity={"pool": "a1", "recipe": "r1"})[0].train()
    other = {"pool": "b2", "recipe": "r1"}
    with pytest.raises(UsageError, match=r"pool was 'a1' and is 'b2'.*accept_changed=\('pool',\)") as caught:
        trainer(settings, identity=other)[0].train(tmp_path / "checkpoint-1")
    assert "recipe" not in str(caught.value)
    resumed, _ = trainer(settings, identity=other, accept_changed=("pool",))
    assert resumed.train(tmp_path / "checkpoint-1").global_step == 1
    with pytest.raises(UsageError, match=r"state of \['sampler', 'tasks'\], .* parts \['tasks'\]"):
        trainer(settings, identity=other, accept_changed=("pool",), parts={})[0].train(tmp_path / "checkpoint-1")


def test_a_checkpoint_of_other_ranks_or_another_format_is_refused(trainer: Callable[..., Any], tmp_path: Path) -> None:
    trainer(TEN.changed(steps=1), save_every=1)[0].train()
    file = tmp_path / "checkpoint-1" / "concertino.json"
    state = json.loads(file.read_text())
    for change, said in (({"ranks": state["ranks"] * 2}, "of 2 ranks, there are 1"), ({"format": 9}, "format 9")):
        file.write_text(json.dumps({**state, **change}))
        with pytest.raises(UsageError, match=said):
            trainer(TEN.changed(steps=1))[0].train(tmp_path / "checkpoint-1")


def test_a_state_that_is_no_json_data_is_an_error_and_no_checkpoint(tmp_path: Path) -> None:
    for state in ({"a": object()}, {"a": float("nan")}):
        with pytest.raises(UsageError, match="not JSON data"):
            write_state(tmp_path / "checkpoint-1", 1, state)
    assert latest_checkpoint(tmp_path) is None
