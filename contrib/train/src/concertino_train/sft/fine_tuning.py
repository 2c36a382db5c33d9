"""One fine-tuning, from its settings to its weights."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from concertino import UsageError
from concertino_local.codec import Codec

from concertino_train.data.conversations import RoleConversation
from concertino_train.data.encoding import LabelledConversation
from concertino_train.data.files import read_conversations
from concertino_train.running.checkpoints import latest_checkpoint
from concertino_train.running.quiet import quietly
from concertino_train.weight_storage import room_on, unreadable

from .arguments import make_trainer
from .progress import Evaluate, FineTuned, SftProgress
from .rows import limit_check, order_of, padding_of, prepare, with_limit
from .settings import SftSettings


def fine_tune(
    settings: SftSettings,
    model: Any = None,
    codec: Codec | None = None,
    data: Iterable[RoleConversation] | Sequence[LabelledConversation] | None = None,
    *,
    adapter: Any = None,
    evaluate: Evaluate | None = None,
    on_progress: Callable[[SftProgress], None] | None = None,
    stop: Callable[[], bool] | None = None,
    files: Mapping[str, str] | None = None,
) -> FineTuned:
    """Fine-tune a model.

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
        files: texts that belong beside the weights, by name.

    Raises:
        UsageError: there is nothing to learn from, a conversation is too long, ids do not fit the model, or a training
            would resume with other settings.
    """
    began = time.monotonic()
    model, codec = _model(settings, model), _codec(settings, codec)
    settings = with_limit(settings, model)
    rows, dropped = prepare(_data(settings), codec, settings) if data is None else prepare(data, codec, settings)
    limit_check(rows, model)
    order = order_of(rows, settings)
    trainer, callback = make_trainer(settings, model, codec, rows, order, adapter)
    callback.evaluate, callback.on_progress, callback.stop, callback.began = evaluate, on_progress, stop, began
    known = latest_checkpoint(Path(settings.out) / "checkpoints")
    if known is not None and not settings.resume:
        raise UsageError(
            f"{known.parent} holds checkpoints of an earlier training; continue it (--resume, resume=True), start "
            "over (--restart), or choose another folder (--output, out=…)"
        )
    folder = Path(settings.out) / "model"
    with quietly(), room_on(settings.out, "resume (--resume, resume=True)"):
        if known is not None:
            callback.resume_from(known)
        trainer.train(resume_from_checkpoint=str(known) if known is not None else None)
        done = trainer.state.global_step >= callback.steps
        if done:
            # A training that had ended before makes no further step, so nothing else would measure it.
            callback.measure(trainer.state.global_step, trainer.model)
            _save(trainer, codec, folder, files or {})
    return FineTuned(
        folder if done else None,
        trainer.state.global_step,
        callback.steps,
        callback.resumed,
        dict(callback.losses),
        dict(callback.evaluations),
        len(rows),
        sum(row.trained for row in rows),
        dropped,
        max(len(row.ids) for row in rows),
        0.0 if settings.packing else padding_of(rows, order, settings.micro_batch),
        round(time.monotonic() - began, 3),
    )


def _save(trainer: Any, codec: Codec, folder: Path, files: Mapping[str, str]) -> None:
    """The weights and what belongs to them, in the folder once whole."""
    part = folder.with_name(f"{folder.name}.part")
    trainer.save_model(str(part))
    if trainer.is_world_process_zero():
        if hasattr(codec, "save"):
            codec.save(part)
        for name, text in files.items():
            (part / name).write_text(text, encoding="utf-8")
        # A folder that holds files cannot be replaced by another.
        shutil.rmtree(folder, ignore_errors=True)
        part.replace(folder)
    trainer.accelerator.wait_for_everyone()


def _data(settings: SftSettings) -> Iterable[RoleConversation]:
    if not settings.data:
        raise UsageError("SftSettings(data=''): expected the folder of a set, or conversations given to fine_tune")
    return read_conversations(settings.data)


def _model(settings: SftSettings, model: Any) -> Any:
    if model is not None:
        return model
    if not settings.model:
        raise UsageError("SftSettings(model=''): expected a folder of weights, or a model given to fine_tune")
    from transformers import AutoModelForCausalLM

    try:
        return AutoModelForCausalLM.from_pretrained(str(settings.model), use_safetensors=True, trust_remote_code=False)
    except unreadable() as error:
        raise UsageError(
            f"{settings.model}: no model ({error}); expected what save_pretrained writes, with all files whole"
        ) from error


def _codec(settings: SftSettings, codec: Codec | None) -> Codec:
    if codec is not None:
        return codec
    if not settings.model:
        raise UsageError("fine_tune has a model and no codec; give the one of its tokenizer: ChatCodec.load(folder)")
    from concertino_local.codec import ChatCodec

    return ChatCodec.load(settings.model, settings.template or None)
