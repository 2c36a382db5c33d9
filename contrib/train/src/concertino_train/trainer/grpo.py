"""The seam to TRL: a GRPO trainer whose rollouts, rewards and groups are made by a function.

    sample(tasks, step) -> Batch -> tensors -> TRL's loss, optimiser, schedule, checkpoints

TRL calls `_generate_and_score_completions` at the beginning of every step, and this asks the function. The invariants:
a step makes the same number of optimiser steps whatever the number of rows; the gradient of a row depends on the rows
that are trained, never on filtered ones, padding, micro-batches or the number of ranks; with one adapter for each role,
rows of one role change no other.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from concertino import UsageError
from torch import Tensor, nn
from transformers import PrinterCallback
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.utils import split_tensor_dict

from concertino_train.micro_batch import MicroBatch
from concertino_train.rollouts.batches import Batch
from concertino_train.rollouts.task_stream import TaskStream
from concertino_train.running.checkpoints import (
    StatefulPart,
    begin_state,
    latest_checkpoint,
    prune,
    read_state,
    refuse_other,
    write_state,
)
from concertino_train.running.figures import over_ranks
from concertino_train.running.ranks import gathered

from .algorithm import Algorithm
from .arguments import grpo_arguments
from .contract import check_state, check_trl
from .layout import Layout, layout
from .losses import importance_weights
from .reference import ReferencePolicy
from .roles import Adapters
from .row_packing import PackedScoring, check_packing
from .sharded_training import ShardedTraining
from .tensors import Tensors, loss_mask, part, pieces, placed_tensors, score_rows, sequences
from .tokenizer import codec_tokenizer

if TYPE_CHECKING:
    from concertino_local.codec import Codec
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from transformers.trainer_utils import TrainOutput

SampleBatch = Callable[[list[Any], int], Batch]
"""Given this rank's tasks of a step and the number of the step from 0, roll out, reward and group."""
HearDrift = Callable[[int, Callable[[], dict[int, list[float]]]], None]
"""Given the number of a step from 0, and what gives its drift: by number of a row, of each of its trained tokens, the
log-probability where it is trained less that where it was sampled."""


class OrchestratorGRPOTrainer(PackedScoring, ShardedTraining, GRPOTrainer):
    """Trains a policy on batches of rollouts.

    Attributes:
        algorithm: its settings.
        tasks: the questions to come.
        generation: number of the step that is sampled next, from 0.
    """

    model: nn.Module
    _buffered_inputs: Any

    def __init__(
        self,
        model: PreTrainedModel,
        algorithm: Algorithm,
        sample: SampleBatch,
        tasks: Sequence[Any] | TaskStream[Any],
        *,
        codec: Codec,
        folder: Path | str,
        tokenizer: PreTrainedTokenizerBase | None = None,
        roles: Sequence[str] = (),
        role: str | None = None,
        parts: Mapping[str, StatefulPart] | None = None,
        identity: Mapping[str, str] | None = None,
        accept_changed: Collection[str] = (),
        save_every: int = 0,
        keep: int = 0,
        callbacks: Sequence[Any] = (),
        hear_drift: HearDrift | None = None,
    ) -> None:
        """Make a trainer.

        Args:
            model: the policy; the one that `sample` samples with.
            algorithm: its settings.
            sample: makes the batch of a step.
            tasks: questions, in an order drawn again for every pass; or a stream of them.
            codec: of the policy: its padding fills rows.
            folder: for checkpoints.
            tokenizer: is saved with every checkpoint; without, there is none to save.
            roles: train one adapter for each, made by `role_adapters`; without, all rows train the one policy.
            role: train on the rows of this role only.
            parts: what else has a state that belongs into checkpoints, by name.
            identity: fingerprints by name, `pool` and `recipe` for example: only checkpoints with the same are resumed.
            accept_changed: names in `identity` that may differ nevertheless.
            save_every: steps between checkpoints; 0 for none.
            keep: how many checkpoints are kept; 0 for all.
            callbacks: of transformers.
            hear_drift: is told of each step whose log-probabilities are computed before its update.

        Raises:
            UsageError: the installed TRL does not fit, an option would be ignored, or settings exclude each other.
        """
        check_trl()
        arguments = grpo_arguments(algorithm, folder, save_every=save_every)
        _refuse_dropout(model)
        self.algorithm, self.generation = algorithm, 0
        self._sample, self._keep, self._role = sample, keep, role
        self._hear_drift = hear_drift
        self._identity, self._accepted = dict(identity or {}), tuple(accept_changed)
        self._pad, self._folder = codec.pad_id, Path(folder)
        self.sharding, self.packing = algorithm.sharding == "full", algorithm.packing
        ranks = arguments.world_size
        self._own_questions = _shared_out(algorithm.questions_per_step, ranks)
        beats = algorithm.steps * ranks * algorithm.steps_per_generation
        # A reference model of TRL's own is loaded by the name of the model's folder, which a model in memory lacks; and
        # for adapters it knows one only. So TRL is built without, and told the weight of the KL term afterwards.
        arguments.beta = 0.0
        super().__init__(
            model=model,
            reward_funcs=[_rewards_made_elsewhere],
            args=arguments,
            callbacks=list(callbacks),
            # TRL counts steps in rows of a dataset, so it gets one of the right length with nothing in it.
            train_dataset=importlib.import_module("datasets").Dataset.from_dict({"prompt": [""] * beats}),
            processing_class=tokenizer or codec_tokenizer(codec),
        )
        # TRL sets these attributes in its constructor, so they can be looked for only now.
        check_state(self)
        # transformers prints every log as a dict where progress bars are off; the reporter says the same in words.
        self.remove_callback(PrinterCallback)
        # The stand-in was for TRL's constructor; left in place, it would be saved as if it were the policy's.
        if tokenizer is None:
            self.processing_class = None
        self.beta = arguments.beta = algorithm.kl
        self._refuse_others_sharding()
        if self.sharding:
            # Where a release of transformers has not placed it in its constructor.
            self._shard(model)
        if algorithm.packing:
            check_packing(model, self.accelerator.autocast())
        self._micro = MicroBatch(
            algorithm.micro_batch,
            "trainer.rl.micro_batch",
            model=model,
            bfloat16=bool(arguments.bf16),
            again=algorithm.gradient_checkpointing,
            ranks=ranks,
        )
        self._fitting = algorithm.micro_batch
        # Behind the sharding, which exchanges the parameters.
        self._adapters = Adapters(model, roles) if roles else None
        if self._adapters:
            # Before the optimiser is made, which takes only weights that require a gradient.
            self._adapters.unfreeze()
        # Behind `unfreeze`, for only weights that require a gradient are copied.
        self._reference = ReferencePolicy(model) if algorithm.kl else None
        self.tasks = tasks if isinstance(tasks, TaskStream) else self._stream(tasks)
        self._parts: dict[str, StatefulPart] = {"tasks": self.tasks, **(parts or {})}

    def _stream(self, tasks: Sequence[Any]) -> TaskStream[Any]:
        rank, ranks = self.accelerator.process_index, self.accelerator.num_processes
        return TaskStream(tasks, seed=self.algorithm.seed, rank=rank, ranks=ranks)

    def _refuse_others_sharding(self) -> None:
        if self.is_deepspeed_enabled:
            raise UsageError(
                "reinforcement learning works without DeepSpeed: it joins gradients once for each step, and here a "
                "step has as many passes as its rows need; take trainer.sharding=full, which shares out memory as "
                "ZeRO-3 does"
            )
        if self.is_fsdp_enabled:
            raise UsageError(
                "this trainer shards by itself; give trainer.sharding=full, and trainer.accelerate=multi_gpu in place "
                "of a file with FSDP"
            )

    # -- from tasks to tensors -----------------------------------------------------------------------------------------

    def _generate_and_score_completions(self, inputs: Any) -> Tensors:
        """The rows of a step, as TRL's loss reads them; the `inputs` of its data loader only say that one begins."""
        if not self.model.training:
            raise UsageError("a policy is evaluated by rollouts, not by the trainer; see concertino_train.rollouts")
        self.model.eval()
        started = time.perf_counter()
        # Processes need different numbers of passes to sample, so each has to have all weights.
        with self.whole_weights():
            batch = self._sample(self.tasks.take(self._own_questions), self.generation)
        self._note({"seconds/sample": time.perf_counter() - started})
        found = self._layout(batch)
        tensors = self._tensors(batch, found)
        self._add_old(tensors)
        if self._hear_drift and self.algorithm.old != "sampled" and "old_per_token_logps" in tensors:
            self._hear_drift(self.generation, lambda: _drift(tensors, found))
        self._add_reference(tensors)
        self.model.train()
        self.generation += 1
        self._note_batch(batch, tensors)
        # `sampled` has gone into old log-probabilities and advantages; TRL's loss knows no such key.
        return {name: value for name, value in tensors.items() if name != "sampled"}

    def _layout(self, batch: Batch) -> Layout:
        names = self._adapters.roles if self._adapters else ("",)
        # AT-GRPO Eq. 2: the batch of a model are the rows of its roles.
        kept = [n for n in np.flatnonzero(batch.keep).tolist() if self._role in (None, batch.rows[n].role)]
        wrong = {batch.rows[n].role for n in kept} - set(names)
        if self._adapters and wrong:
            raise UsageError(
                f"rows of {', '.join(sorted(wrong))} and adapters for {', '.join(names)}: give every role an adapter"
            )
        rows = [batch.rows[n] for n in kept]
        lengths = [len(row.prompt) + len(row.completion) for row in rows]
        roles = [names.index(row.role) if self._adapters else 0 for row in rows]
        steps = self.algorithm.steps_per_generation
        return layout(
            kept,
            lengths,
            roles,
            steps=steps,
            number_of_roles=len(names),
            # DDP waits for every rank in every backward pass, so the blocks have to be equally wide everywhere.
            greatest=lambda counts: self._across(counts, "max"),
        )

    def _tensors(self, batch: Batch, found: Layout) -> Tensors:
        device = self.accelerator.device
        tensors = placed_tensors(batch, found, self._pad, device)
        counts = np.array([int(loss_mask(tensors).sum()), int((found.rows >= 0).sum())])
        tokens, rows = self._across(counts, "sum").tolist()
        # TRL takes the mean over the rows of a micro-batch; times this and their number it is one over all rows.
        weight = len(found.rows) * self.accelerator.num_processes / max(1, rows)
        totals = {"num_items_in_batch": torch.tensor(tokens), "row_weight": torch.tensor(weight)}
        width = tensors["prompt_ids"].shape[1] + tensors["completion_ids"].shape[1]
        # As many passes on every rank: the least that fits on any of them.
        self._fitting = -int(self._across(np.array([-self._micro.estimated(width, device)]), "max")[0])
        return tensors | {name: value.to(device) for name, value in totals.items()}

    def _add_old(self, tensors: Tensors) -> None:
        """Log-probabilities that ratios are taken to, and importance weights, which are as good as part of credit."""
        algorithm, mask = self.algorithm, loss_mask(tensors)
        if algorithm.old == "sampled":
            tensors["old_per_token_logps"] = tensors["sampled"]
            return
        # With one update the old policy is the current one, and TRL takes its log-probabilities where none are given.
        if algorithm.updates == 1 and algorithm.corrects == "none":
            return
        old = tensors["old_per_token_logps"] = self._log_probabilities(tensors)
        apart = (old - tensors["sampled"]).abs() * mask
        largest, total, count = apart.max().item(), apart.sum().item(), int(mask.sum())
        largest = float(self._across(np.array([largest]), "max")[0])
        total, count = self._across(np.array([total, float(count)]), "sum").tolist()
        self._note({"sampling/difference_mean": total / max(1.0, count), "sampling/difference_max": largest})
        if algorithm.corrects == "none":
            return
        weights = importance_weights(old, tensors["sampled"], mask, algorithm.corrects, algorithm.correction_cap)
        credit = tensors["advantages"]
        # A factor on the advantage is one on the gradient of its token. TRL's own correction covers only its own vLLM.
        tensors["advantages"] = (credit.unsqueeze(1) if credit.dim() == 1 else credit) * weights * mask
        mean = (weights * mask).sum().item()
        self._note({"sampling/weight_mean": float(self._across(np.array([mean]), "sum")[0]) / max(1.0, count)})

    def _add_reference(self, tensors: Tensors) -> None:
        if self._reference:
            with self._reference.active(self.accelerator.unwrap_model(self.model)):
                tensors["ref_per_token_logps"] = self._log_probabilities(tensors)

    def _log_probabilities(self, tensors: Tensors) -> Tensor:
        """Shape (B, T): of the tokens, under the model as it is; 0 in places that are not used."""

        def score(rows: Tensors) -> Tensor:
            self._activate(rows)
            width = rows["completion_ids"].shape[1]
            found: Tensor = self._get_per_token_logps_and_entropies(self.model, *sequences(rows), width)[0]
            return found

        return self._micro.compute(lambda: score_rows(tensors, self._at_once, score), lambda: None)

    @property
    def _at_once(self) -> int:
        """Rows that are computed at once."""
        return min(self._fitting, self._micro.rows)

    # -- from tensors to gradients -------------------------------------------------------------------------------------

    def _prepare_inputs(self, generation_batch: Any) -> Tensors:
        """The rows of one optimiser step. TRL would shuffle them here; they have their places already."""
        if not self.model.training:
            raise UsageError("a policy is evaluated by rollouts, not by the trainer; see concertino_train.rollouts")
        if isinstance(generation_batch, dict) and "used" in generation_batch:
            return generation_batch  # prepared by `training_step`
        steps = self.algorithm.steps_per_generation
        if self._step % self.algorithm.updates == 0 or self._buffered_inputs is None:
            whole: dict[str, Tensor | None] = {**self._generate_and_score_completions(generation_batch)}
            self._buffered_inputs = split_tensor_dict(whole, steps)
        # With several iterations the same rows come round again, against the same old log-probabilities.
        rows: Tensors = self._buffered_inputs[self._step % steps]
        return rows

    def training_step(self, model: nn.Module, inputs: Any, num_items_in_batch: Any = None) -> Tensor:
        """The gradients of one optimiser step; made again, with fewer rows at once, where the memory was too small."""
        model.train()
        # Apart from what may be done again: sampled rows are paid for.
        rows = self._prepare_inputs(inputs)
        noted = {name: len(values) for name, values in self._metrics["train"].items()}
        compute: Any = super().training_step  # it has no annotations

        def undo() -> None:
            # A backward pass that broke off has left gradients of some weights. There were none before.
            model.zero_grad()
            for name, values in self._metrics["train"].items():
                del values[noted.get(name, 0) :]

        loss: Tensor = self._micro.compute(lambda: compute(model, rows, num_items_in_batch), undo)
        return loss

    def _compute_loss(self, model: nn.Module, inputs: Tensors) -> Tensor:
        """TRL's loss, a micro-batch of one role after the other; the gradients of all but the last are made at once."""
        if "used" not in inputs:
            compute: Any = super()._compute_loss  # it has no annotations
            loss: Tensor = compute(model, inputs)
            return loss
        chosen = pieces(inputs, self._at_once)
        before = torch.zeros((), device=self.accelerator.device)
        for places in chosen[:-1]:
            # DDP would average gradients after every piece; the last pass, which TRL makes, averages their sum. Sharded
            # ones are averaged piece by piece, for their sum would have to be kept whole.
            with self.accelerator.no_sync(model):
                piece = self._piece_loss(model, part(inputs, places))
                self.accelerator.backward(piece)
            before += piece.detach()
        last = part(inputs, chosen[-1])
        loss = self._piece_loss(model, last)
        # DDP expects a gradient of every parameter in the pass that it averages, and a piece touches one adapter only.
        if self._adapters and self.accelerator.num_processes > 1 and not self.sharding:
            loss = loss + self._adapters.nothing(self._adapters.roles[int(last["role"][0])])
        # For the log alone: `before` is detached, and its gradients have been made.
        return loss + before

    def _piece_loss(self, model: nn.Module, rows: Tensors) -> Tensor:
        self._activate(rows)
        compute: Any = super()._compute_loss  # it has no annotations
        loss: Tensor = compute(model, rows)
        if self._adapters:
            self._note_role(self._adapters.roles[int(rows["role"][0])])
        # `dapo` divides by the tokens of the whole step; the others are means over a piece, weighted by its rows.
        return loss if self.algorithm.loss == "dapo" else loss * len(rows["role"]) * rows["row_weight"]

    def _activate(self, rows: Tensors) -> None:
        if self._adapters:
            self._adapters.activate(self._adapters.roles[int(rows["role"][0])])

    # -- figures -------------------------------------------------------------------------------------------------------

    def _note(self, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            self._metrics["train"][name].append(value)

    def _note_role(self, role: str) -> None:
        """Record TRL's latest figures of a micro-batch again, under the role's name."""
        for name in ("entropy", "kl", "clip_ratio/region_mean"):
            if self._metrics["train"].get(name):
                self._metrics["train"][f"{role}/{name}"].append(self._metrics["train"][name][-1])

    def _note_batch(self, batch: Batch, tensors: Tensors) -> None:
        self._note(over_ranks(gathered(dict(batch.figures))))
        self._note({"tokens/trained": float(tensors["num_items_in_batch"]), "generation": float(self.generation)})
        # A row of padding has no token that is trained, and counts for nothing.
        real = tensors["tool_mask"].any(1)
        read = (tensors["prompt_mask"].sum(1) + tensors["completion_mask"].sum(1))[real].sum()
        self._note({"tokens/computed": float(self._across(np.array([int(read)]), "sum")[0])})

    def _across(self, values: np.ndarray[Any, Any], how: str) -> np.ndarray[Any, Any]:
        """Arrays of all ranks as one: elementwise `max` or `sum`."""
        every = gathered(values) if self.accelerator.num_processes > 1 else [values]
        return np.asarray(np.stack(every).max(0) if how == "max" else np.stack(every).sum(0))

    def _send_telemetry(self) -> None:
        """Nothing is sent."""

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """Checkpoints get no page of their own."""

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def train(self, resume_from_checkpoint: str | Path | bool | None = None, *args: Any, **more: Any) -> TrainOutput:
        """Train, from the beginning or from a checkpoint on.

        Args:
            resume_from_checkpoint: folder of a complete one, or True for the newest.
            *args, **more: for `transformers.Trainer.train`.

        Raises:
            UsageError: there is no complete checkpoint, or it is of another training.
        """
        chosen: str | Path | None = None if isinstance(resume_from_checkpoint, bool) else resume_from_checkpoint
        if resume_from_checkpoint is True:
            chosen = latest_checkpoint(self._folder)
            if chosen is None:
                raise UsageError(f"{self._folder} has no complete checkpoint; train without resuming")
        if chosen is not None:
            self._restore(Path(chosen))
        return super().train(None if chosen is None else str(chosen), *args, **more)

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        folder = self._folder / f"checkpoint-{self.state.global_step}"
        main, rank = self.accelerator.is_main_process, self.accelerator.process_index
        if main:
            begin_state(folder)
        # No rank may write into a folder that still counts as a complete checkpoint.
        self.accelerator.wait_for_everyone()
        save: Any = super()._save_checkpoint  # it has no annotations
        save(model, trial)
        # Between the updates of a step its rows cannot be made again: the weights that sampled them are gone.
        if self._step % self.algorithm.updates:
            folder.mkdir(parents=True, exist_ok=True)
            torch.save(self._buffered_inputs, folder / f"rows-{rank}.pt")
        # Every rank draws its own tasks, so each has a state of its own.
        parts = {name: dict(part_.state_dict()) for name, part_ in self._parts.items()}
        own = {"step": self._step, "generation": self.generation, "parts": parts}
        ranks = gathered(own)
        if main:
            write_state(folder, self.state.global_step, {"identity": self._identity, "ranks": ranks})
            prune(self._folder, self._keep)
        self.accelerator.wait_for_everyone()

    def _restore(self, folder: Path) -> None:
        """Take over everything that transformers does not."""
        state = read_state(folder)
        refuse_other(folder, state["identity"], self._identity, self._accepted)
        ranks, rank = state["ranks"], self.accelerator.process_index
        if len(ranks) != self.accelerator.num_processes:
            raise UsageError(
                f"{folder} is of {len(ranks)} ranks, there are {self.accelerator.num_processes}; resume with as many"
            )
        own = ranks[rank]
        if set(own["parts"]) != set(self._parts):
            raise UsageError(
                f"{folder} has the state of {sorted(own['parts'])}, and this training has parts {sorted(self._parts)}"
            )
        for name, part_ in self._parts.items():
            part_.load_state_dict(own["parts"][name])
        self._step, self.generation = own["step"], own["generation"]
        self._buffered_inputs = None
        if self._step % self.algorithm.updates:
            self._buffered_inputs = torch.load(
                folder / f"rows-{rank}.pt", map_location=self.accelerator.device, weights_only=True
            )

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        super()._load_from_checkpoint(resume_from_checkpoint, model)
        if self._adapters:
            # Loading adapters makes one of them active, which freezes the others.
            self._adapters.unfreeze()


def _rewards_made_elsewhere(*args: Any, **kwargs: Any) -> Any:
    """TRL wants a reward function; rewards come with the batch, so it is never asked."""
    raise UsageError("rewards are made with the rollouts; a batch comes with its advantages")


def _shared_out(questions: int, ranks: int) -> int:
    if questions % ranks:
        raise UsageError(
            f"Algorithm(questions_per_step={questions}) with {ranks} ranks: expected a multiple of {ranks}"
        )
    return questions // ranks


def _drift(tensors: Tensors, found: Layout) -> dict[int, list[float]]:
    """By number of a row, of each of its trained tokens."""
    apart, mask = (tensors["old_per_token_logps"] - tensors["sampled"]).cpu(), loss_mask(tensors).bool().cpu()
    places = enumerate(found.rows.ravel().tolist())
    return {row: apart[place][mask[place]].tolist() for place, row in places if row >= 0}


def _refuse_dropout(model: nn.Module) -> None:
    """Dropout of the model itself is switched off, as ratios would be noise; that of an adapter was asked for."""
    configs: Mapping[str, Any] = getattr(model, "peft_config", {})
    for name, config in configs.items():
        if getattr(config, "lora_dropout", 0.0):
            raise UsageError(
                f"adapter {name!r} has lora_dropout={config.lora_dropout}: old and new probabilities would differ by "
                "the dropout alone; make it with lora_dropout=0"
            )
