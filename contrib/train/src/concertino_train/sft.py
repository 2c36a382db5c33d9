"""Supervised learning: a policy is taught to write what good trajectories wrote.

    result = run_sft(SftSettings(out="out", data="sets/first", model="models/base", epochs=2))

Conversations are encoded here (`data.encoding`) and handed to TRL's SFTTrainer as ids and labels: no message, and so no
argument of a call, goes through a table that would fill in what is not there. Which row is read when is decided here as
well, for all steps at once.

The invariants: what is trained are the labels of the encoding, whole or not at all: a conversation that is too long is
refused or left out, never cut; the rows of a step follow from the seed alone, so a training that was interrupted and
goes on ends with the weights of one that was not; and one that goes on does so with the data, codec and settings that
it began with.

Importing this module imports no torch.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal, get_args

from concertino import UsageError

from .codec import Codec
from .data import Conversation, Encoded, encode_all, read_conversations

if TYPE_CHECKING:
    from transformers import TrainingArguments

    from .episodes import Episode

Evaluate = Callable[[int], "float | Mapping[str, float]"]
"""Measures the policy as it is after a step: a share, or figures by name."""
TooLong = Literal["refuse", "drop"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]
Schedule = Literal["constant", "linear", "cosine"]
STATE = "sft.json"
"""Written last into a checkpoint: with it, the checkpoint is whole."""
_GROUPED = 50
"""Steps whose rows are sorted by length together."""
_MAY_DIFFER = ("out", "data", "model", "save_every", "keep", "log_every", "evaluate_every", "resume", "device")
"""Settings that a training may go on without."""


@dataclass(frozen=True)
class SftSettings:
    """How is learnt.

    Attributes:
        out: folder; checkpoints go to `checkpoints`, what comes of it to `model`.
        data: folder or file of conversations (`data.make_set`), unless they are given.
        model: folder of weights and tokenizer, unless they are given.
        template: chat template, unless a codec is given; the tokenizer's own by default.
        steps: optimiser steps; None for as many as `epochs` make.
        epochs: passes over the data.
        batch: conversations of a step, over all processes.
        micro_batch: of one forward pass, in one process.
        learning_rate: at the top of the schedule.
        schedule: of the learning rate.
        warmup: steps in which it rises from 0.
        weight_decay: of AdamW.
        max_grad_norm: gradients are scaled down to this norm.
        max_tokens: of a conversation; None for as many as the model reads.
        too_long: what becomes of longer ones: `refuse` says which, `drop` leaves them out and counts them.
        group_by_length: rows of similar length stand in one step, which saves padding.
        loss: `nll`, the log-likelihood, or `dft`, weighted by the probability itself.
        precision: of computing; `auto` is bfloat16 on an accelerator, float32 on a CPU.
        device: `auto` is an accelerator where there is one.
        activation_checkpointing: less memory for more time.
        seed: of the order of the rows, and of dropout.
        save_every: steps between checkpoints; 0 for none.
        keep: checkpoints that are kept.
        log_every: steps between reports of progress.
        evaluate_every: steps between evaluations; 0 for one at the end.
        resume: go on from the newest whole checkpoint, where there is one.
    """

    out: str | Path
    data: str | Path = ""
    model: str | Path = ""
    template: str = ""
    steps: int | None = None
    epochs: float = 1.0
    batch: int = 32
    micro_batch: int = 8
    learning_rate: float = 1e-5
    schedule: Schedule = "cosine"
    warmup: int = 0
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    max_tokens: int | None = None
    too_long: TooLong = "refuse"
    group_by_length: bool = True
    loss: Literal["nll", "dft"] = "nll"
    precision: Precision = "auto"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    activation_checkpointing: bool = False
    seed: int = 0
    save_every: int = 0
    keep: int = 2
    log_every: int = 10
    evaluate_every: int = 0
    resume: bool = False

    def __post_init__(self) -> None:
        for name in ("batch", "micro_batch", "keep", "log_every"):
            if getattr(self, name) < 1:
                raise UsageError(f"SftSettings({name}={getattr(self, name)!r}): expected 1 or more")
        for name in ("steps", "max_tokens"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise UsageError(f"SftSettings({name}={getattr(self, name)!r}): expected 1 or more, or None")
        if self.steps is None and self.epochs <= 0:
            raise UsageError(f"SftSettings(epochs={self.epochs!r}): expected more than 0")
        allowed = {"too_long": TooLong, "precision": Precision, "schedule": Schedule}
        for name, kind in allowed.items():
            if getattr(self, name) not in get_args(kind):
                known = ", ".join(get_args(kind))
                raise UsageError(f"SftSettings({name}={getattr(self, name)!r}): expected one of {known}")


@dataclass(frozen=True)
class SftProgress:
    """How far it is.

    Attributes:
        step, steps: done, and in all.
        epoch: passes over the data so far.
        loss: mean of the trained tokens since the last report.
        learning_rate: now.
        grad_norm: before it was scaled down.
        accuracy: share of the trained tokens that were the most probable ones.
        tokens: read so far by this process group since it began, padding left out.
        seconds: since this process began.
    """

    step: int
    steps: int
    epoch: float
    loss: float
    learning_rate: float
    grad_norm: float
    accuracy: float
    tokens: int
    seconds: float

    @property
    def eta(self) -> float:
        """Seconds that the rest will take at the pace so far."""
        return self.seconds / max(1, self.step) * (self.steps - self.step)


@dataclass(frozen=True)
class SftResult:
    """What came of it.

    Attributes:
        model: folder of the weights.
        step, steps: done, and asked for; fewer where somebody asked it to stop.
        resumed: step that it went on from, 0 for a new one.
        losses: by step.
        evaluations: by step, figures by name.
        rows: conversations that were learnt from.
        trained: tokens of one pass that have labels.
        dropped: conversations that were left out, by reason.
        longest: tokens of the longest row.
        padding: share of what was read that is padding.
        seconds: of this process.
    """

    model: Path
    step: int
    steps: int
    resumed: int
    losses: Mapping[int, float]
    evaluations: Mapping[int, Mapping[str, float]]
    rows: int
    trained: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    longest: int = 0
    padding: float = 0.0
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {**asdict(self), "model": str(self.model)}


def run_sft(
    settings: SftSettings, model: Any = None, codec: Codec | None = None,
    data: Iterable[Conversation] | Sequence[Encoded] | None = None, *, adapter: Any = None,
    evaluate: Evaluate | None = None, on_progress: Callable[[SftProgress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> SftResult:  # fmt: skip
    """Teach a model.

    Args:
        settings: how.
        model: of transformers, trained in place; by default the one of `settings.model`.
        codec: between messages and its ids; by default of the tokenizer beside the model.
        data: conversations, or rows that are encoded already; by default those of `settings.data`.
        adapter: a configuration of peft, to train an adapter in place of all weights.
        evaluate: called with a step's number while the model stands still, in evaluation mode.
        on_progress: told every `log_every` steps.
        stop: asked after every step; if it says so, a checkpoint is written and the training ends. All processes of a
            distributed training have to be told the same.

    Raises:
        UsageError: there is nothing to learn from, a conversation is too long, ids do not fit the model, or a training
            would go on with other settings.
    """
    began = time.monotonic()
    model, codec = _model(settings, model), _codec(settings, codec)
    rows, dropped = prepare(_data(settings), codec, settings) if data is None else prepare(data, codec, settings)
    limit_check(rows, model)
    order = order_of(rows, settings)
    trainer, watch = _trainer(settings, model, codec, rows, order, adapter)
    watch.evaluate, watch.on_progress, watch.stop, watch.began = evaluate, on_progress, stop, began
    known = latest_checkpoint(settings)
    if known is not None and not settings.resume:
        raise UsageError(
            f"{known.parent} holds checkpoints of an earlier training; go on with it (resume=True), remove them, or "
            "choose another folder (out=…)"
        )
    folder = Path(settings.out) / "model"
    with _quiet():
        if known is not None:
            watch.take_up(known)
        trainer.train(resume_from_checkpoint=str(known) if known is not None else None)
        watch.finish(trainer)
        trainer.save_model(str(folder))
    if trainer.is_world_process_zero() and hasattr(codec, "save"):
        codec.save(folder)
    return SftResult(
        folder, trainer.state.global_step, watch.steps, watch.resumed, dict(watch.losses), dict(watch.evaluations),
        len(rows), sum(row.trained for row in rows), dropped, max(len(row.ids) for row in rows),
        padding_of(rows, order, settings.micro_batch), round(time.monotonic() - began, 3),
    )  # fmt: skip


# -- rows --------------------------------------------------------------------------------------------------------------


def prepare(
    data: Iterable[Conversation] | Sequence[Encoded], codec: Codec, settings: SftSettings
) -> tuple[list[Encoded], dict[str, int]]:
    """Rows to learn from, and how many were left out for which reason.

    Raises:
        UsageError: a conversation is too long, or nothing is left.
    """
    rows: list[Encoded] = []
    dropped = {"untaught": 0, "too_long": 0}
    long: list[Encoded] = []
    for each in data:
        encoded = [each] if isinstance(each, Encoded) else list(encode_all([each], codec))
        if not encoded or not encoded[0].trained:
            dropped["untaught"] += 1
        elif settings.max_tokens is not None and len(encoded[0].ids) > settings.max_tokens:
            long.append(encoded[0])
        else:
            rows += encoded
    if long and settings.too_long == "refuse":
        worst = max(long, key=lambda row: len(row.ids))
        raise UsageError(
            f"{len(long)} of {len(long) + len(rows)} conversations have more than max_tokens={settings.max_tokens}, "
            f"the longest {len(worst.ids)} ({worst.id}); nothing is cut: raise max_tokens, or leave them out with "
            "too_long='drop'"
        )
    dropped["too_long"] = len(long)
    if not rows:
        told = ", ".join(f"{count} {reason}" for reason, count in dropped.items() if count) or "there are none"
        raise UsageError(f"no conversation to learn from: {told}; make a set with data.make_set")
    return rows, {reason: count for reason, count in dropped.items() if count}


def limit_check(rows: Sequence[Encoded], model: Any) -> None:
    """See that the model can read all rows.

    Raises:
        UsageError: a row is longer than its context, or has ids that it does not know.
    """
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    longest = max(rows, key=lambda row: len(row.ids))
    if context is not None and len(longest.ids) > context:
        raise UsageError(
            f"conversation {longest.id} has {len(longest.ids)} tokens, and the model reads {context}; set max_tokens, "
            "and too_long='drop' to leave such ones out"
        )
    known = model.get_input_embeddings().weight.shape[0]
    most = max(max(row.ids) for row in rows)
    if known and most >= known:
        raise UsageError(
            f"the codec gives the id {most}, and the model has {known} tokens; take the tokenizer that belongs to it, "
            "or resize its embeddings"
        )


def order_of(rows: Sequence[Encoded], settings: SftSettings) -> list[int]:
    """Which row is read when, for all steps: pass after pass, each in a new order; `batch` of them for each step."""
    steps = settings.steps or math.ceil(settings.epochs * len(rows) / settings.batch)
    needed = steps * settings.batch
    order: list[int] = []
    turn = 0
    while len(order) < needed:
        chance = Random(f"{settings.seed} {turn}")
        places = list(range(len(rows)))
        chance.shuffle(places)
        order += _grouped(places, rows, settings.batch, chance) if settings.group_by_length else places
        turn += 1
    return order[:needed]


def _grouped(places: list[int], rows: Sequence[Encoded], batch: int, chance: Random) -> list[int]:
    """Rows of similar length side by side; which lengths come when is chance."""
    whole: list[list[int]] = []
    rest: list[int] = []
    for at in range(0, len(places), batch * _GROUPED):
        part = sorted(places[at : at + batch * _GROUPED], key=lambda place: -len(rows[place].ids))
        steps = [part[start : start + batch] for start in range(0, len(part), batch)]
        if len(steps[-1]) < batch:
            rest += steps.pop()
        whole += steps
    chance.shuffle(whole)
    return [place for step in whole for place in step] + rest


def padding_of(rows: Sequence[Encoded], order: Sequence[int], micro_batch: int) -> float:
    """The share of padding when rows are read in this order."""
    read = padded = 0
    for at in range(0, len(order), micro_batch):
        sizes = [len(rows[place].ids) for place in order[at : at + micro_batch]]
        read += sum(sizes)
        padded += max(sizes) * len(sizes)
    return round(1 - read / padded, 4) if padded else 0.0


# -- what is trained ---------------------------------------------------------------------------------------------------


def _data(settings: SftSettings) -> Iterable[Conversation]:
    if not settings.data:
        raise UsageError("SftSettings(data=''): expected the folder of a set, or conversations given to run_sft")
    return read_conversations(settings.data)


def _model(settings: SftSettings, model: Any) -> Any:
    if model is not None:
        return model
    if not settings.model:
        raise UsageError("SftSettings(model=''): expected a folder of weights, or a model given to run_sft")
    from transformers import AutoModelForCausalLM

    try:
        return AutoModelForCausalLM.from_pretrained(str(settings.model))
    except (OSError, ValueError) as error:
        raise UsageError(f"{settings.model}: no model ({error}); expected what save_pretrained writes") from error


def _codec(settings: SftSettings, codec: Codec | None) -> Codec:
    if codec is not None:
        return codec
    if not settings.model:
        raise UsageError("run_sft has a model and no codec; give the one of its tokenizer: ChatCodec.load(folder)")
    from .chat_codec import ChatCodec

    return ChatCodec.load(settings.model, settings.template or None)


def _identity(settings: SftSettings, codec: Codec, rows: Sequence[Encoded]) -> str:
    """Equal for trainings that may go on from each other's checkpoints."""
    said = {name: value for name, value in asdict(settings).items() if name not in _MAY_DIFFER}
    digest = hashlib.sha256(json.dumps([said, codec.fingerprint], sort_keys=True, default=str).encode())
    for row in rows:
        digest.update(json.dumps([row.ids, row.labels]).encode())
    return digest.hexdigest()[:16]


def latest_checkpoint(settings: SftSettings) -> Path | None:
    """The newest whole checkpoint of a training; None if there is none."""
    found = (Path(settings.out) / "checkpoints").glob(f"checkpoint-*/{STATE}")
    return max((path.parent for path in found), key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def _trainer(
    settings: SftSettings, model: Any, codec: Codec, rows: Sequence[Encoded], order: Sequence[int], adapter: Any
) -> tuple[Any, _Watch]:
    """TRL's trainer over these rows, and who watches it."""
    from transformers.trainer_callback import PrinterCallback
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling, SFTTrainer

    class Trainer(SFTTrainer):
        """As TRL's, without what it tells the network and writes for a hub."""

        def _send_telemetry(self) -> None: ...

        def create_model_card(self, *_: Any, **__: Any) -> None: ...

    watch = _Watch(settings, _identity(settings, codec, rows), len(order) // settings.batch, len(rows))
    trainer = Trainer(
        model=model,
        args=sft_arguments(settings, len(order)),
        train_dataset=table_of(rows).select(order),
        processing_class=getattr(codec, "tokenizer", None) or _no_tokenizer(),
        data_collator=DataCollatorForLanguageModeling(pad_token_id=codec.pad_id),
        peft_config=adapter,
        callbacks=[watch.callback()],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.processing_class = None  # the codec is written with the weights, and decides about padding and ends
    return trainer, watch


@contextmanager
def _quiet() -> Iterator[None]:
    """Transformers shows bars of its own even where it was told not to."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def table_of(rows: Sequence[Encoded]) -> Any:
    """Rows as the trainer reads them: ids and labels, and nothing else."""
    from datasets import Dataset  # type: ignore[import-untyped]

    return Dataset.from_dict({"input_ids": [row.ids for row in rows], "labels": [row.labels for row in rows]})


def _no_tokenizer() -> Any:
    """TRL wants one; nothing is asked of it."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    plain = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    return PreTrainedTokenizerFast(tokenizer_object=plain)  # type: ignore[no-untyped-call]


def sft_arguments(settings: SftSettings, rows: int) -> TrainingArguments:
    """The settings as TRL's arguments, by an explicit table.

    Raises:
        UsageError: `batch` cannot be divided among processes and forward passes, or there is no such device.
    """
    import torch
    from trl.trainer.sft_config import SFTConfig

    if settings.device == "cuda" and not torch.cuda.is_available():
        raise UsageError("SftSettings(device='cuda'): torch sees no CUDA device here; take device='auto'")
    on_cpu = settings.device == "cpu" or not torch.accelerator.is_available()
    precision = ("float32" if on_cpu else "bfloat16") if settings.precision == "auto" else settings.precision
    micro = min(settings.micro_batch, settings.batch)
    constant = "constant_with_warmup" if settings.warmup else "constant"
    known = SFTConfig.__dataclass_fields__
    checkpointing = "activation_checkpointing" if "activation_checkpointing" in known else "gradient_checkpointing"
    table: dict[str, Any] = {
        checkpointing: settings.activation_checkpointing,
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
        "seed": settings.seed,
        "data_seed": settings.seed,
        "save_strategy": "steps" if settings.save_every else "no",
        "save_steps": max(1, settings.save_every),
        "save_total_limit": settings.keep,
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
            f"batch={settings.batch} is no multiple of micro_batch={micro} times {arguments.world_size} processes; "
            "choose one that is"
        )
    arguments.gradient_accumulation_steps = passes
    return arguments


class _Watch:
    """What is told, measured and kept while it goes on."""

    def __init__(self, settings: SftSettings, identity: str, steps: int, rows: int) -> None:
        self.settings, self.identity, self.steps, self.rows = settings, identity, steps, rows
        self.evaluate: Evaluate | None = None
        self.on_progress: Callable[[SftProgress], None] | None = None
        self.stop: Callable[[], bool] | None = None
        self.began = 0.0
        self.resumed = 0
        self.losses: dict[int, float] = {}
        self.evaluations: dict[int, dict[str, float]] = {}

    def take_up(self, checkpoint: Path) -> None:
        """Go on from a checkpoint.

        Raises:
            UsageError: it was made with other data, another codec or other settings.
        """
        state = json.loads((checkpoint / STATE).read_text("utf-8"))
        if state["identity"] != self.identity:
            raise UsageError(
                f"{checkpoint} was made with other data, another codec or other settings; go on with those, or choose "
                "another folder (out=…)"
            )
        self.resumed = state["step"]
        self.losses = {int(step): loss for step, loss in state["losses"].items()}
        self.evaluations = {int(step): figures for step, figures in state["evaluations"].items()}

    def logged(self, step: int, logs: Mapping[str, float]) -> None:
        if "loss" not in logs:
            return
        self.losses[step] = logs["loss"]
        if self.on_progress is not None:
            self.on_progress(
                SftProgress(
                    step, self.steps, round(step * self.settings.batch / self.rows, 3), logs["loss"],
                    logs.get("learning_rate", 0.0), logs.get("grad_norm", 0.0), logs.get("mean_token_accuracy", 0.0),
                    int(logs.get("num_tokens", 0)), time.monotonic() - self.began,
                )
            )  # fmt: skip

    def measured(self, step: int, model: Any) -> None:
        """Let the model be evaluated, once per step."""
        if self.evaluate is None or step in self.evaluations:
            return
        training = model.training
        model.eval()
        try:
            found = self.evaluate(step)
        finally:
            model.train(training)
        self.evaluations[step] = dict(found) if isinstance(found, Mapping) else {"share": float(found)}

    def saved(self, folder: Path, step: int) -> None:
        """Make a checkpoint whole."""
        state = {
            "identity": self.identity, "step": step, "losses": self.losses, "evaluations": self.evaluations,
        }  # fmt: skip
        beside = folder / f".{STATE}"
        beside.write_text(json.dumps(state), encoding="utf-8")
        beside.replace(folder / STATE)

    def finish(self, trainer: Any) -> None:
        """The last evaluation."""
        self.measured(trainer.state.global_step, trainer.model)

    def callback(self) -> Any:
        """As transformers wants it."""
        from transformers import TrainerCallback

        watch = self

        class Watching(TrainerCallback):
            def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
                if state.is_world_process_zero:
                    watch.logged(state.global_step, logs or {})

            def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
                every, step = watch.settings.evaluate_every, state.global_step
                if every and step % every == 0:
                    watch.measured(step, model)
                if watch.stop is not None and watch.stop():
                    control.should_training_stop = control.should_save = True

            def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                if state.is_world_process_zero:
                    folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
                    watch.saved(folder, state.global_step)

        return Watching()


def clean_share(episodes: Iterable[Episode]) -> float:
    """The share of rollouts in the exact form: every text of the policy is, and there is one."""
    found = [bool(each.policy_rounds) and all(text.exact for text in each.policy_rounds) for each in episodes]
    return sum(found) / len(found) if found else 0.0
