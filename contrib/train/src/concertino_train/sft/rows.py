"""Rows: conversations as ids and labels, and which of them is read when.

The invariants: a row is read whole or not at all, and the order of all steps follows from the seed alone.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from concertino import UsageError
from concertino_local.codec import Codec

from concertino_train.data.conversations import RoleConversation
from concertino_train.data.encoding import LabelledConversation, encode_all

from .settings import SftSettings

# As many as the length-grouped sampler of transformers takes.
_GROUPED = 50
"""Steps whose rows are sorted by length together."""


_MAY_DIFFER = (
    "out",
    "data",
    "model",
    "steps",
    "epochs",
    "save_every",
    "keep",
    "log_every",
    "evaluate_every",
    "resume",
    "force",
    "device",
)
"""Settings that may change when a training resumes."""


def identity_of(settings: SftSettings, codec: Codec, rows: Sequence[LabelledConversation]) -> str:
    """Equal for trainings that may resume from each other's checkpoints."""
    said = {name: value for name, value in settings.model_dump().items() if name not in _MAY_DIFFER}
    digest = hashlib.sha256(json.dumps([said, codec.fingerprint], sort_keys=True, default=str).encode())
    # The tokens themselves: another template or tokenizer changes what is learnt without changing any file.
    for row in rows:
        digest.update(json.dumps([row.ids, row.labels]).encode())
    return digest.hexdigest()[:16]


def prepare(
    data: Iterable[RoleConversation] | Sequence[LabelledConversation], codec: Codec, settings: SftSettings
) -> tuple[list[LabelledConversation], dict[str, int]]:
    """Rows to learn from, and how many were left out for which reason.

    Raises:
        UsageError: a conversation is too long, or nothing is left.
    """
    rows: list[LabelledConversation] = []
    dropped = {"untaught": 0, "too_long": 0}
    long: list[LabelledConversation] = []
    for each in data:
        encoded = [each] if isinstance(each, LabelledConversation) else list(encode_all([each], codec))
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


def with_limit(settings: SftSettings, model: Any) -> SftSettings:
    """The settings, with what the model reads as `max_tokens` where longer conversations are left out."""
    if settings.max_tokens is None and settings.too_long == "drop":
        return settings.changed(max_tokens=_context(model))
    return settings


def limit_check(rows: Sequence[LabelledConversation], model: Any) -> None:
    """See that the model can read all rows.

    Raises:
        UsageError: a row is longer than its context, or has ids that it does not know.
    """
    context = _context(model)
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


def _context(model: Any) -> int | None:
    """Tokens that a model reads, where it says so."""
    found: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return found


def order_of(rows: Sequence[LabelledConversation], settings: SftSettings) -> list[int]:
    """Which row is read when, for all steps: pass after pass, each in a new order; `batch` of them for each step."""
    steps = settings.steps or math.ceil(settings.epochs * len(rows) / settings.batch)
    needed = steps * settings.batch
    order: list[int] = []
    turn = 0
    # A generator for each pass, so the order of one pass does not depend on how many rows earlier ones had.
    while len(order) < needed:
        chance = Random(f"{settings.seed} {turn}")
        places = list(range(len(rows)))
        chance.shuffle(places)
        order += _grouped(places, rows, settings.batch, chance) if settings.group_by_length else places
        turn += 1
    return order[:needed]


def _grouped(places: list[int], rows: Sequence[LabelledConversation], batch: int, chance: Random) -> list[int]:
    """Rows of similar length side by side; which lengths come when is chance."""
    whole: list[list[int]] = []
    rest: list[int] = []
    for at in range(0, len(places), batch * _GROUPED):
        part = sorted(places[at : at + batch * _GROUPED], key=lambda place: -len(rows[place].ids))
        steps = [part[start : start + batch] for start in range(0, len(part), batch)]
        # A short step at the end of a part would shift the borders of all that follow.
        if len(steps[-1]) < batch:
            rest += steps.pop()
        whole += steps
    # Whole steps are shuffled: in order of length the first steps would all be long, and the schedule sees them first.
    chance.shuffle(whole)
    return [place for step in whole for place in step] + rest


def padding_of(rows: Sequence[LabelledConversation], order: Sequence[int], micro_batch: int) -> float:
    """The share of padding when rows are read in this order."""
    read = padded = 0
    for at in range(0, len(order), micro_batch):
        sizes = [len(rows[place].ids) for place in order[at : at + micro_batch]]
        read += sum(sizes)
        padded += max(sizes) * len(sizes)
    return round(1 - read / padded, 4) if padded else 0.0


def table_of(rows: Sequence[LabelledConversation]) -> Any:
    """Rows as the trainer reads them: ids and labels, and nothing else."""
    datasets = importlib.import_module("datasets")  # it has no annotations, and takes half a second
    return datasets.Dataset.from_dict({"input_ids": [row.ids for row in rows], "labels": [row.labels for row in rows]})
