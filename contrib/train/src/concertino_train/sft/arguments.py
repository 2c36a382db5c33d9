"""TRL's trainer over rows that are in their order already; one table says which setting is which argument."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino import UsageError
from concertino_local.codec import Codec

from concertino_train.data.encoding import LabelledConversation
from concertino_train.device import check_device, computing_precision, optimizer_argument
from concertino_train.micro_batch import MicroBatch

from .rows import identity_of, table_of
from .settings import SftSettings

if TYPE_CHECKING:
    from transformers import TrainingArguments

    from .callback import SftCallback


def make_trainer(
    settings: SftSettings,
    model: Any,
    codec: Codec,
    rows: Sequence[LabelledConversation],
    order: Sequence[int],
    adapter: Any,
) -> tuple[Any, SftCallback]:
    """TRL's trainer over these rows, and its callback."""
    from transformers.trainer_callback import PrinterCallback
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling, SFTTrainer

    from concertino_train.trainer.row_packing import check_packing
    from concertino_train.trainer.sharded_training import ShardedTraining
    from concertino_train.trainer.tokenizer import codec_tokenizer

    from .accumulation import AccumulatedSteps
    from .callback import SftCallback

    class Trainer(AccumulatedSteps, ShardedTraining, SFTTrainer):
        """As TRL's, without what it tells the network and writes for a hub."""

        sharding, packing = settings.sharding == "full", settings.packing

        def _send_telemetry(self) -> None: ...

        def create_model_card(self, *_: Any, **__: Any) -> None: ...

    callback = SftCallback(settings, identity_of(settings, codec, rows), len(order) // settings.batch, len(rows))
    shape = model.config.get_text_config()
    router_logits = getattr(shape, "output_router_logits", None)
    trainer = Trainer(
        model=model,
        args=sft_arguments(settings, len(order)),
        train_dataset=table_of(rows).select(order),
        processing_class=getattr(codec, "tokenizer", None) or codec_tokenizer(codec),
        data_collator=DataCollatorForLanguageModeling(pad_token_id=codec.pad_id),
        peft_config=adapter,
        callbacks=[callback],
    )
    if trainer.sharding:
        # Where a release of transformers has not placed it in its constructor.
        trainer._shard(trainer.model)
    if settings.packing:
        check_packing(trainer.model, trainer.accelerator.autocast())
    trainer.micro = MicroBatch(
        trainer.args.per_device_train_batch_size,
        "trainer.sft.micro_batch",
        model=model,
        bfloat16=trainer.args.bf16,
        again=settings.gradient_checkpointing,
        ranks=trainer.args.world_size,
    )
    # TRL sets both for each batch, too. Written with the weights, no cache would slow every generation, and the logits
    # of the router of a mixture of experts would break sampling.
    shape.use_cache = True
    if router_logits is not None:
        shape.output_router_logits = router_logits
    trainer.remove_callback(PrinterCallback)
    trainer.processing_class = None  # the codec is written with the weights, and decides about padding and ends
    return trainer, callback


def sft_arguments(settings: SftSettings, rows: int) -> TrainingArguments:
    """The settings as TRL's arguments, by an explicit table.

    Raises:
        UsageError: `batch` cannot be divided among processes and forward passes, or the device does not exist.
    """
    import torch
    from trl.trainer.sft_config import SFTConfig

    check_device(settings.device, "SftSettings(device='cuda')")
    on_cpu = settings.device == "cpu" or not torch.accelerator.is_available()
    precision = computing_precision(settings.precision, on_cpu=on_cpu)
    # A batch that is smaller than a micro-batch is one forward pass.
    micro = min(settings.micro_batch, settings.batch)
    constant = "constant_with_warmup" if settings.warmup else "constant"
    known = SFTConfig.__dataclass_fields__
    # Releases of TRL differ in the name; where both exist, only one may be on.
    checkpointing = "activation_checkpointing" if "activation_checkpointing" in known else "gradient_checkpointing"
    table: dict[str, Any] = {
        checkpointing: settings.gradient_checkpointing,
        **({"gradient_checkpointing": False} if checkpointing != "gradient_checkpointing" else {}),
        "output_dir": str(Path(settings.out) / "checkpoints"),
        "max_steps": rows // settings.batch,
        "per_device_train_batch_size": micro,
        "learning_rate": settings.learning_rate,
        "lr_scheduler_type": constant if settings.schedule == "constant" else settings.schedule,
        "warmup_steps": settings.warmup,
        "weight_decay": settings.weight_decay,
        "max_grad_norm": settings.max_grad_norm,
        "loss_type": settings.loss,
        "bf16": precision == "bfloat16",
        "fp16": precision == "float16",
        "use_cpu": on_cpu,
        **optimizer_argument(settings.optimizer, sharded=settings.sharding == "full"),
        "seed": settings.seed,
        "data_seed": settings.seed,
        "save_strategy": "steps" if settings.save_every else "no",
        "save_steps": max(1, settings.save_every),
        "save_total_limit": None,  # the callback removes old ones when the new one is complete
        "logging_strategy": "steps",
        "logging_steps": settings.log_every,
        "eval_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
        "ddp_find_unused_parameters": False,
        # The rows are whole and in their order already.
        "train_sampling_strategy": "sequential",
        "max_length": None,
        "packing": False,
        "dataset_kwargs": {"skip_prepare_dataset": True},
    }
    arguments = SFTConfig(**table)
    passes, left = divmod(settings.batch, micro * arguments.world_size)
    if left:
        raise UsageError(
            f"batch={settings.batch} is not a multiple of micro_batch={micro} times {arguments.world_size} processes; "
            "choose one that is"
        )
    # Behind the constructor, as the number of processes is known from then on.
    arguments.gradient_accumulation_steps = passes
    return arguments
