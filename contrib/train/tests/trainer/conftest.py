"""Tiny policies and made-up batches for tests of trainers."""

from __future__ import annotations

import gc
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from concertino_local.codec import ByteCodec
from concertino_train.groups import GroupKey
from concertino_train.rollouts import Batch, TrainingRow

if TYPE_CHECKING:
    from transformers import PreTrainedModel

torch = pytest.importorskip("torch", reason="torch is not installed; the trainers need it")
CODEC = ByteCodec()


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def light() -> Iterator[None]:
    """A trainer collects garbage when it begins, over everything that is imported; that is left out of it here."""
    import peft  # noqa: F401

    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def make_model(seed: int = 0, spread: float = 0.3) -> PreTrainedModel:
    """Two layers, 32 wide; weights large enough that probabilities differ."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=CODEC.size,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        intermediate_size=64,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        initializer_range=spread,
        bos_token_id=None,
        eos_token_id=CODEC.end_ids[0],
        pad_token_id=CODEC.pad_id,
    )
    return Qwen3ForCausalLM(config).float()


def make_row(
    rng: np.random.Generator, question: int, *, role: str = "orchestrator", turns: int | None = None
) -> TrainingRow:
    """A row of one to three turns with what others said between them."""
    mask: list[int] = []
    for number in range(turns or int(rng.integers(1, 4))):
        mask += [0] * (int(rng.integers(2, 6)) if number else 0) + [1] * int(rng.integers(2, 7))
    prompt = tuple(np.random.default_rng(question).integers(0, 256, 5 + question % 4).tolist())
    ids = tuple(rng.integers(0, 256, len(mask)).tolist())
    logprobs = tuple(float(-rng.random() * 3) if trained else 0.0 for trained in mask)
    return TrainingRow(GroupKey(f"q{question}"), role, prompt, ids, tuple(mask), logprobs)


def make_batch(seed: int, questions: int = 2, group: int = 4, *, roles: tuple[str, ...] = ("orchestrator",)) -> Batch:
    """Rows with advantages drawn from a seed; all are trained."""
    rng = np.random.default_rng(seed)
    rows = [make_row(rng, q, role=role) for q in range(questions) for _ in range(group) for role in roles]
    credit = rng.normal(size=len(rows)).round(3)
    return Batch(rows, credit, np.ones(len(rows), bool), credit, ("",) * len(rows), {"reward": float(credit.mean())})


@pytest.fixture(scope="session")
def codec() -> ByteCodec:
    return CODEC


@pytest.fixture(scope="session")
def tiny() -> Callable[..., PreTrainedModel]:
    """A model: `tiny(seed)`."""
    return make_model


@pytest.fixture(scope="session")
def made_batch() -> Callable[..., Batch]:
    """A batch: `made_batch(seed, questions, group, roles=...)`."""
    return make_batch


@pytest.fixture(scope="session")
def parameters() -> Callable[[Any], Any]:
    """All weights of a model as one vector."""
    return lambda model: torch.cat([value.detach().flatten() for value in model.parameters()])


class Recorder:
    """What a training did: gradients before each optimiser step, and log lines."""

    def __init__(self) -> None:
        from transformers import TrainerCallback

        recorder = self
        self.gradients: list[Any] = []
        self.logs: list[dict[str, float]] = []

        class Callback(TrainerCallback):
            def on_pre_optimizer_step(
                self, args: Any, state: Any, control: Any, model: Any = None, **more: Any
            ) -> None:
                values = [p.grad if p.grad is not None else torch.zeros_like(p) for p in model.parameters()]
                # A sharded gradient is compared whole.
                values = [value.full_tensor() if hasattr(value, "full_tensor") else value for value in values]
                recorder.gradients.append(torch.cat([value.flatten() for value in values]).clone())

            def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
                recorder.logs.append(dict(logs))

        self.callback = Callback()


@pytest.fixture
def trained(tmp_path: Path, light: None) -> Callable[..., Any]:
    """Train on batches: `trained(model, algorithm, sample)` returns the trainer and a `Recorder`."""
    from concertino_train.trainer import OrchestratorGRPOTrainer

    def train(model: Any, algorithm: Any, sample: Any, **more: Any) -> tuple[Any, Recorder]:
        recorder = Recorder()
        settings = {"codec": CODEC, "folder": tmp_path / "run", **more}
        callbacks = [recorder.callback, *settings.pop("callbacks", [])]
        trainer = OrchestratorGRPOTrainer(model, algorithm, sample, list(range(8)), callbacks=callbacks, **settings)
        trainer.train()
        return trainer, recorder

    return train
