"""The settings of a fine-tuning."""

from __future__ import annotations

from pathlib import Path

from concertino_train.config.learning import ComputeSection, SftSteps
from concertino_train.settings import Count, Number


class SftSettings(SftSteps, ComputeSection):
    """How a policy is fine-tuned: the settings of a file that it reads, and where it takes from and writes to.

    Attributes:
        out: folder; checkpoints go to `checkpoints`, the weights to `model`.
        data: folder or file of conversations (`data.make_set`), unless they are given.
        model: folder of weights and tokenizer, unless they are given.
        template: chat template, unless a codec is given; the tokenizer's own by default.
        save_every: steps between checkpoints; 0 for none.
        keep: checkpoints that are kept.
        log_every: steps between reports of progress.
        evaluate_every: steps between evaluations; 0 for one at the end.
        resume: continue from the newest complete checkpoint, if there is one.
        force: even where it was made with other data or settings.
    """

    out: str | Path
    data: str | Path = ""
    model: str | Path = ""
    template: str = ""
    save_every: Number = 0
    keep: Count = 2
    log_every: Count = 10
    evaluate_every: Number = 0
    resume: bool = False
    force: bool = False
