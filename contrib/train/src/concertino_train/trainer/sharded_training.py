"""What a trainer of transformers does otherwise where its weights are sharded: placing, saving and resuming.

Accelerate would shard too, but on GPUs alone; here the trainer gets a model that is sharded already, and accelerate is
told to leave it as it is. The invariant: with `sharding` off, a trainer is as transformers made it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from concertino import UsageError
from torch import nn

from concertino_train.running.shards import SHARDS

from .sharding import is_sharded, load_shards, save_shards, save_whole, shard, whole

if TYPE_CHECKING:
    from transformers import Trainer as _Base
else:
    # A mixin: the real base is the trainer that stands behind it.
    _Base = object

_SCHEDULE = "scheduler.pt"


class ShardedTraining(_Base):
    """Goes before the trainer's class.

    Attributes:
        sharding: whether weights are sharded; set before the trainer's own constructor.
    """

    sharding: bool = False

    def _move_model_to_device(self, model: nn.Module, device: torch.device) -> None:
        """Shard the model here: layer by layer, so that no device has to hold all of it."""
        if self.sharding:
            self._shard(model)
        else:
            super()._move_model_to_device(model, device)

    def _shard(self, model: Any) -> None:
        if is_sharded(model):
            return
        if self.is_fsdp_enabled or self.is_deepspeed_enabled:
            raise UsageError(
                "trainer.sharding=full and a file of accelerate with FSDP or DeepSpeed: both would spread the weights; "
                "take trainer.accelerate=multi_gpu, or leave it out"
            )
        if self.args.fp16:
            raise UsageError(
                "trainer.precision=float16 with trainer.sharding=full: gradients would need a scale over all "
                "processes; take trainer.precision=bfloat16"
            )
        shard(model, self.accelerator.device, bfloat16=self.args.bf16)
        # Accelerate then wraps it in nothing, neither DDP nor an autocast of its own.
        model._is_accelerate_prepared = True

    @contextmanager
    def whole_weights(self) -> Iterator[None]:
        """Each process has all weights, and may sample alone."""
        if not self.sharding:
            yield
            return
        model: Any = self.model
        with whole(model):
            yield

    # -- see transformers.Trainer --------------------------------------------------------------------------------------

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Write the weights: whole where a person asks for them; in checkpoints they are in parts."""
        if not self.sharding:
            super().save_model(output_dir, _internal_call)
        elif not _internal_call:
            save_whole(self.model, str(output_dir or self.args.output_dir))

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        if not self.sharding:
            super()._save_optimizer_and_scheduler(output_dir)
            return
        folder = Path(output_dir)
        model, schedule = self._parts_of_training()
        if self.args.should_save:
            # What a crash left there might have been of more processes.
            shutil.rmtree(folder / SHARDS, ignore_errors=True)
        self.accelerator.wait_for_everyone()
        save_shards(folder, model, _bare(self.optimizer))
        if self.args.should_save:
            torch.save(schedule.state_dict(), folder / _SCHEDULE)
            _describe(model, folder)
            tokenizer: Any = self.processing_class
            if tokenizer is not None:
                tokenizer.save_pretrained(str(folder))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is None or not self.sharding:
            super()._load_optimizer_and_scheduler(checkpoint)
            return
        # Weights and optimiser go together: the parts are read once there is an optimiser.
        model, schedule = self._parts_of_training()
        load_shards(Path(checkpoint), model, _bare(self.optimizer))
        schedule.load_state_dict(torch.load(Path(checkpoint) / _SCHEDULE, weights_only=True))

    def _parts_of_training(self) -> tuple[Any, Any]:
        """Model and schedule, which transformers makes before it saves or loads anything."""
        return self.model, self.lr_scheduler

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        if not self.sharding:
            if (Path(resume_from_checkpoint) / SHARDS).is_dir():
                raise UsageError(
                    f"{resume_from_checkpoint} is sharded; resume with trainer.sharding=full, or export it and begin "
                    "from that (concertino train export)"
                )
            super()._load_from_checkpoint(resume_from_checkpoint, model)


def _bare(optimizer: Any) -> torch.optim.Optimizer:
    """Without accelerate's wrapper."""
    found: torch.optim.Optimizer = getattr(optimizer, "optimizer", optimizer)
    return found


def _describe(model: Any, folder: Path) -> None:
    """Say beside the parts what they are parts of, so that they can be exported."""
    adapters = getattr(model, "peft_config", None)
    if not adapters:
        model.config.save_pretrained(str(folder))
        return
    for name, config in adapters.items():
        home = folder if name == "default" else folder / name
        config.save_pretrained(str(home))
